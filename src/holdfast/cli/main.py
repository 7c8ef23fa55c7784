"""`holdfast`: finds the sub-command, runs it, and turns how it ended into an exit code.

0 it worked · 1 it did not, and one sentence says why · 2 it was asked wrongly · 3 the store could not be asked · 130 it was
interrupted.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

import click

from holdfast import __version__
from holdfast.cli.output import echo_text
from holdfast.errors import HoldfastError, TransportError, UsageError

COMMANDS = {
    "demo": "Run jobs over real files, kill a worker halfway, and show that no job is lost.",
    "worker": "Run jobs.",
    "jobs": "Show why a job is not running, or the stack of a running job.",
    "workers": "List, check, quiet and resume workers.",
    "store": "Start, stop and show the embedded store.",
    "config": "Read and write the settings kept in the store.",
    "stats": "Show figures of queues and of today, or send them to statsd.",
    "notify": "Send notices of tracked jobs to chats, webhooks or the desktop.",
    "lua": "Print the Lua scripts for clients in other languages.",
    "bench": "Measure how fast a store puts, pops and completes jobs.",
}
"""What each command does. `holdfast.cli.<name>` defines it under its own name, and is imported when it is named."""


class LazyGroup(click.Group):
    """A group whose commands are imported one by one, so that each starts as fast as it can."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"holdfast.cli.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = get_close_matches(args[0], COMMANDS, 1)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="holdfast", message="%(prog)s %(version)s")
def holdfast() -> None:
    """Background jobs on Valkey or Redis that do not get dropped.

    Every command has --help; those that print data have --json.
    """


def run(words: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors are one sentence on standard error."""
    try:
        code: object = holdfast.main(args=words, prog_name="holdfast", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except HoldfastError as error:
        echo_text(f"holdfast: {error}", err=True)
        return _code_of(error)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # whoever read our output has seen enough
            where = f": {error.filename}" if error.filename else ""
            echo_text(f"holdfast: {error.strerror or error}{where}", err=True)
        _drop_output()
        return 1
    return code if isinstance(code, int) else 0


def _code_of(error: HoldfastError) -> int:
    if isinstance(error, UsageError):
        return 2
    return 3 if isinstance(error, TransportError) else 1


def _drop_output() -> None:
    """What is still to be written would fail once more, at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> NoReturn:
    """The installed program."""
    sys.exit(run())


if __name__ == "__main__":
    main()
