"""`holdfast bench`: how fast a store puts, pops and completes, from this program."""

import shutil
import signal
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple
from uuid import uuid4

import click

from holdfast import store as embedded
from holdfast.cli.bench_imports import ROUNDS, import_figures
from holdfast.cli.bench_run import Bench
from holdfast.cli.output import json_option, progress, say_json, say_table
from holdfast.client.place import without_password
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, UsageError
from holdfast.store.agreed import LEVELS


class Place(NamedTuple):
    """Where it is measured, and what an acknowledged call survives there."""

    url: str
    shown: str
    durability: str


@click.command()
@click.option("--url", help="The store [default: an embedded store of its own, in a temporary directory].")
@click.option(
    "--durability",
    type=click.Choice(LEVELS),
    help="What an acknowledged call survives in the embedded store [default: fsync].",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1, max=3600),
    default=5.0,
    show_default=True,
    help="How long to measure.",
)
@click.option("--imports", is_flag=True, help="Measure what importing holdfast costs instead.")
@json_option
def bench(url: str | None, durability: str | None, seconds: float, imports: bool, as_json: bool) -> None:
    """Measure how fast a store puts, pops and completes jobs.

    One connection, jobs of 100 bytes, beside bare SETs over the same connection. At a URL it works in a namespace of
    its own and removes it; the store's CPU is that of everybody who uses it meanwhile.
    """
    if imports:
        _imports(as_json)
        return
    if url is not None and durability is not None:
        raise UsageError("--durability is for the embedded store: a store at a URL has its own settings")
    signal.signal(signal.SIGTERM, _interrupt)
    namespace = f"bench-{uuid4().hex[:12]}"
    with _store(url, durability or "fsync") as place, Client(place.url, namespace=namespace) as client:
        run = Bench(client)
        try:
            with progress("measuring", run.slices()) as advance:
                figures = run.run(seconds, advance)
            server = run.server()
        finally:
            run.clean()
    if as_json:
        found = [figure._asdict() for figure in figures]
        say_json({"store": place.shown, "server": server, "durability": place.durability, "figures": found})
        return
    click.echo(f"{server}, {place.shown}, durability: {place.durability}")
    columns = ("", "per second", "store CPU, µs each", "× SET")
    say_table(columns, [_cells(*figure) for figure in figures])


def _imports(as_json: bool) -> None:
    with progress("importing", ROUNDS) as advance:
        figures = import_figures(ROUNDS, advance)
    if as_json:
        say_json({"figures": [figure._asdict() for figure in figures]})
        return
    click.echo("CPU of fresh interpreters; ours comes on top of the driver's")
    rows = [(figure.what, round(figure.cpu_ms, 1), round(figure.percent)) for figure in figures]
    say_table(("", "ms", "% of import redis"), rows)


def _cells(what: str, per_second: float, store_us: float, times_set: float) -> tuple[object, ...]:
    return what, round(per_second), round(store_us, 1), round(times_set, 2)


@contextmanager
def _store(url: str | None, durability: str) -> Generator[Place]:
    if url is not None:
        yield Place(url, without_password(url), "as the store is set")
        return
    directory = Path(tempfile.mkdtemp(prefix="hf-bench-"))
    try:
        address = embedded.ensure(directory / "store", durability=durability)
        yield Place(address.url, "an embedded store", durability)
    finally:
        try:
            embedded.stop(directory / "store")
        except HoldfastError as error:
            click.echo(f"holdfast: {error}", err=True)
        shutil.rmtree(directory, ignore_errors=True)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
