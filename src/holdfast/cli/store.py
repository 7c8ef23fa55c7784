"""`holdfast store`: the embedded store of a directory."""

from pathlib import Path
from typing import Any

import click

from holdfast import store as embedded
from holdfast.cli.output import duration, json_option, print_facts, print_json, size
from holdfast.core.library import library
from holdfast.store.files import LEVELS

directory_option = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="The store's directory [default: HOLDFAST_DIR, or holdfast/store in your data directory].",
)


@click.group()
def store() -> None:
    """Start, stop and show the embedded store.

    Programs that use a store start it themselves; start it here to keep it running between them.
    """


@store.command()
@directory_option
@click.option(
    "--linger",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="End it when nobody was connected for so long; 0: only by `holdfast store stop`.",
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
    what = "started" if address.started else "runs already"
    click.echo(f"{address.engine} {address.version} {what}, pid {address.pid}: {address.url}")


@store.command()
@directory_option
@json_option
def stop(directory: Path | None, as_json: bool) -> None:
    """Stop the store; its data stay in its directory."""
    before = embedded.status(directory)
    stopped = embedded.stop(directory)
    if as_json:
        print_json({"directory": before.directory, "stopped": stopped, "clients": before.clients})
        return
    click.echo("stopped" if stopped else f"no store runs in {before.directory}")
    if before.clients:
        click.echo(
            f"{before.clients} clients were connected: programs that still run may start it again", err=True
        )


@store.command()
@directory_option
@json_option
@click.pass_context
def status(context: click.Context, directory: Path | None, as_json: bool) -> None:
    """Show whether the store is running, and its state.

    The exit code is 1 if it does not run.
    """
    found = embedded.status(directory)
    if as_json:
        print_json(found._asdict())
    else:
        print_facts(_facts(found))
    context.exit(0 if found.state == "running" else 1)


@store.command()
@directory_option
@json_option
def path(directory: Path | None, as_json: bool) -> None:
    """Print the store's directory."""
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
            "warden": f"pid {found.warden_pid}, {_leaves(found.linger)}",
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
        return "none yet"
    ours, held = library(), f"{found.core}, digest {found.core_digest[:12]}"
    if found.core_digest == ours.digest:
        return held
    return f"{held}; this program brings {ours.version}, digest {ours.digest[:12]}: programs of different builds share the store"


def _leaves(linger: float) -> str:
    return f"ends {duration(linger)} after its last client" if linger else "stays until it is stopped"
