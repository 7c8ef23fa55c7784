"""`holdfast store`: the embedded store of a directory."""

from pathlib import Path
from typing import Any

import click

from holdfast import store as embedded
from holdfast.cli.examples import examples
from holdfast.cli.output import FiniteRange, json_option, print_facts, print_json
from holdfast.core.library import library, shown_core
from holdfast.errors import UsageError
from holdfast.store.files import LEVELS
from holdfast.text import counted, duration, size

directory_option = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="Directory of the store [default: HOLDFAST_DIR, or holdfast/store in your data directory].",
)


@click.group()
@click.pass_context
def store(context: click.Context) -> None:
    """Start, stop and show the embedded store.

    Programs that use the store start it themselves; `holdfast store start` keeps it running between them.
    """
    if context.meta.get("holdfast.url") is not None:
        raise UsageError(
            "--url: holdfast store manages the embedded store of a directory (--dir); "
            "`holdfast doctor --url URL` checks another store"
        )


@examples("holdfast store start --linger 60")
@store.command()
@directory_option
@click.option(
    "--linger",
    type=FiniteRange(min=0),
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop the store when no program has been connected for this long; 0: never.",
)
@click.option(
    "--durability",
    type=click.Choice(LEVELS),
    default="fsync",
    show_default=True,
    help="Safety of acknowledged writes. memory: lost when the store ends; process: a crash or power loss may lose the last "
    "two seconds; fsync: on disk before the call returns.",
)
@json_option
def start(directory: Path | None, linger: float, durability: str, as_json: bool) -> None:
    """Start the store if it is not running."""
    address = embedded.ensure(directory, durability=durability, linger=linger)
    if as_json:
        print_json(address._asdict())
        return
    what = "started" if address.started else "is already running"
    click.echo(f"{address.engine} {address.version} {what}, pid {address.pid}: {address.url}")


@examples("holdfast store stop")
@store.command()
@directory_option
@json_option
def stop(directory: Path | None, as_json: bool) -> None:
    """Stop the store; its data stays in its directory."""
    before = embedded.status(directory)
    stopped = embedded.stop(directory)
    if as_json:
        print_json({"directory": before.directory, "stopped": stopped, "clients": before.clients})
        return
    click.echo("stopped" if stopped else f"no store is running in {before.directory}")
    if before.clients:
        click.echo(
            f"{counted(before.clients, 'client')} connected: running programs may start the store again",
            err=True,
        )


@examples("holdfast store status --json")
@store.command()
@directory_option
@json_option
@click.pass_context
def status(context: click.Context, directory: Path | None, as_json: bool) -> None:
    """Show whether the store is running, and its state.

    Exit code 1 if it is not running.
    """
    found = embedded.status(directory)
    if as_json:
        print_json(found._asdict())
    else:
        print_facts(_facts(found))
    context.exit(0 if found.state == "running" else 1)


@examples("holdfast store path")
@store.command()
@directory_option
@json_option
def path(directory: Path | None, as_json: bool) -> None:
    """Print the directory of the store."""
    found = embedded.status(directory)
    if as_json:
        print_json({"directory": found.directory, "url": found.url})
    else:
        click.echo(found.directory)


def _facts(found: embedded.StoreStatus) -> dict[str, Any]:
    facts: dict[str, Any] = {"state": found.state, "directory": found.directory, "on disk": size(found.disk)}
    if found.state == "running":
        facts |= {
            "url": found.url,
            "server": f"{found.engine} {found.version}, pid {found.pid}, for {duration(found.uptime)}",
            "warden": f"pid {found.warden_pid}, {_lifetime(found.linger)}",
            "durability": found.durability,
            "clients": found.clients,
            "memory": size(found.memory),
            "core": _core(found),
        }
    if found.crashes:
        facts["crashes"] = found.crashes
    if found.why:
        facts["why"] = found.why
    return facts


def _core(found: embedded.StoreStatus) -> str:
    if not found.core:
        return "none"
    ours, held = library(), shown_core(found.core, found.core_digest)
    if found.core_digest == ours.digest:
        return held
    return f"{held}; this program has {shown_core(ours.version, ours.digest)}: programs of different builds share the store"


def _lifetime(linger: float) -> str:
    return f"ends {duration(linger)} after its last client" if linger else "runs until it is stopped"
