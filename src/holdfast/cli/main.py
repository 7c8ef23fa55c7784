"""`holdfast`: find the sub-command, run it, and turn its outcome into an exit code.

0 success · 1 failure, with one sentence on standard error · 2 usage error · 3 the store did not respond · 130 interrupted.
"""

import importlib
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from holdfast.cli.output import echo_text
from holdfast.cli.place import options_before
from holdfast.cli.tables import echo_wrapped
from holdfast.errors import HoldfastError, TransportError, UsageError
from holdfast.release import VERSION

COMMANDS = {
    "demo": "Run jobs on real files, kill a worker halfway, and check that no job is lost.",
    "worker": "Run jobs.",
    "jobs": "Find, show and change jobs: one by one, or all that a filter matches.",
    "failed": "Show failed jobs by group, and retry or cancel them.",
    "operations": "Show, continue, stop and undo changes of many jobs.",
    "queues": "Show, pause, resume, purge, drain and set queues.",
    "workers": "List, show, check, quiet and resume workers, and show what they run.",
    "flows": "List, show, cancel and retry flows: jobs that wait for each other.",
    "recurring": "Show, run, pause, edit and delete recurring jobs.",
    "throttles": "Show and set the limits of throttles.",
    "topics": "Show, put, take, deliver and delete delayed messages.",
    "tags": "List the tags of jobs.",
    "audit": "Show the audit log.",
    "web": "Serve the web UI and its JSON API.",
    "store": "Start, stop and show the embedded store.",
    "config": "Read and write the settings kept in the store.",
    "settings": "Show the settings of programs and their origins.",
    "put": "Put jobs.",
    "doctor": "Check the store and the namespace.",
    "stats": "Show findings and figures of queues, or send them to a statsd.",
    "top": "Show queues, workers and failures live.",
    "metrics": "Serve the figures of a namespace for Prometheus and OpenTelemetry.",
    "events": "Follow the events of jobs, queues and workers.",
    "notify": "Send notices of tracked jobs and failure surges by chat, webhook, mail or desktop notification.",
    "acl": "Print the access rules for a user of the store.",
    "lua": "Print the Lua scripts for clients in other languages.",
    "bench": "Measure how fast a store puts, pops and completes jobs.",
}
"""The summary of each command. `holdfast.cli.<name>` defines it under the same name, and is imported when it is used."""


class LazyGroup(click.Group):
    """A group that imports only the command that is used, so that it starts fast; it takes --url and --namespace for it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params += options_before()

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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=summary)
            for name, summary in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_COMPLETION = """\b
Completion of commands, options and names in your shell:
  bash  eval "$(_HOLDFAST_COMPLETE=bash_source holdfast)"    in ~/.bashrc
  zsh   eval "$(_HOLDFAST_COMPLETE=zsh_source holdfast)"     in ~/.zshrc
  fish  _HOLDFAST_COMPLETE=fish_source holdfast | source     in config.fish
"""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_COMPLETION)
@click.version_option(VERSION, prog_name="holdfast", message="%(prog)s %(version)s")
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
        echo_wrapped(f"holdfast: {error}", err=True)
        return _code_of(error)
    except UnicodeEncodeError as error:
        echo_text(f"holdfast: {error.object[:60]!r} cannot be written as UTF-8", err=True)
        return 2
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # the reader of the output closed it
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
    """Discard buffered output, which could not be written at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _hide_secrets() -> None:
    """Show URLs in the list of processes, which everybody reads, without what may be secret in them."""
    if any(_URL.search(word) for word in sys.argv[1:]):
        from holdfast.worker.process_state import set_title

        set_title(" ".join(["holdfast", *(_URL.sub(_without_secrets, word) for word in sys.argv[1:])]))


_URL = re.compile(r"([a-z][a-z0-9+]*)://(\S+)", re.IGNORECASE)


def _without_secrets(found: "re.Match[str]") -> str:
    """Return scheme and host of a URL, and its path where that is the number of a database."""
    place, slash, path = found[2].rpartition("@")[2].partition("/")
    is_store = found[1].lower() in ("redis", "rediss", "valkey", "valkeys")
    shown = path.partition("?")[0] if is_store else "…" if path else ""
    return f"{found[1]}://{place.partition('?')[0]}{slash}{shown}"


def main() -> NoReturn:
    """The installed program."""
    _hide_secrets()
    sys.exit(run())


if __name__ == "__main__":
    main()
