"""`holdfast bench`: how fast a store puts, pops and completes jobs, measured from this program."""

import shutil
import signal
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

import click

from holdfast import store as embedded
from holdfast.cli.bench_drops import DropBench, Plan, histogram, rows_of
from holdfast.cli.bench_run import Bench, Scratch
from holdfast.cli.connection import look, place_of, wait_option
from holdfast.cli.output import (
    FiniteRange,
    echo_text,
    json_option,
    print_facts,
    print_json,
    print_table,
    progress,
)
from holdfast.client.store_options import url_of_parts
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, UsageError
from holdfast.settings import shown_url
from holdfast.store.files import LEVELS
from holdfast.text import counted, size

F = TypeVar("F", bound=Callable[..., Any])
SECONDS: Final = 5.0


class Target(NamedTuple):
    """The store that is measured, and its durability level."""

    url: str
    shown: str
    durability: str


def _with_drop_options(command: F) -> F:
    """Give a command the options of `--drop-jobs`; None is an option that was not given."""
    defaults = Plan()
    options = (
        (
            "--drop-share",
            FiniteRange(0, 0.9),
            f"share of the jobs that are dropped [default: {defaults.forgetfulness}].",
        ),
        (
            "--stages",
            click.IntRange(1, 100),
            f"number of queues that each job goes through [default: {defaults.stages}].",
        ),
        ("--jobs", click.IntRange(1, 1_000_000), f"number of jobs [default: {defaults.jobs}]."),
        ("--workers", click.IntRange(1, 500), f"number of threads [default: {defaults.workers}]."),
        (
            "--retries",
            click.IntRange(0, 1000),
            f"number of lost leases after which a job fails [default: {defaults.retries}].",
        ),
    )
    for name, kind, text in reversed(options):
        dest = "forgetfulness" if name == "--drop-share" else name.removeprefix("--")
        command = click.option(name, dest, type=kind, help=f"With --drop-jobs: {text}")(command)
    return command


@click.command()
@click.option("--url", help="URL of the store [default: an embedded store in a temporary directory].")
@click.option("--host", help="Host of the store, in place of a URL.")
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="Port of the store, in place of a URL [default: 6379]."
)
@click.option(
    "--durability",
    type=click.Choice(LEVELS),
    help="Durability level of the embedded store [default: fsync].",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=0.1, max=3600),
    metavar="SECONDS",
    help=f"Time to measure [default: {SECONDS:g}].",
)
@click.option(
    "--drop-jobs",
    is_flag=True,
    help="Instead, run threads that drop some jobs, and check that every job ends.",
)
@_with_drop_options
@click.option("--quiet", is_flag=True, help="With --drop-jobs: print no progress bar and no histograms.")
@click.option("--no-flush", is_flag=True, help="With --drop-jobs and --url: do not remove the namespace.")
@wait_option("--wait")
@json_option
def bench(
    url: str | None,
    host: str | None,
    port: int | None,
    durability: str | None,
    seconds: float | None,
    drop_jobs: bool,
    quiet: bool,
    no_flush: bool,
    wait: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure how fast a store puts, pops and completes jobs.

    It uses one connection and jobs of 100 bytes, and compares with SETs over the same connection. At a URL it works in a
    namespace of its own, which it removes; the CPU of the store includes that of its other users.

    With --drop-jobs, threads take jobs that do nothing and drop some. A dropped job loses its lease after a second and is
    taken again, until its retries are used up.
    """
    given = {name: value for name, value in options.items() if value is not None}
    _check(drop_jobs, seconds, quiet or no_flush, given)
    url = _url(url, host, port)
    if url is not None and durability is not None:
        raise UsageError("--durability is for the embedded store: a store at a URL has its own settings")
    if url is None and no_flush:
        raise UsageError("--no-flush is for a store at a URL: an embedded one is removed")
    signal.signal(signal.SIGTERM, _interrupt)
    namespace = f"bench-{uuid4().hex[:12]}"
    origin = "--url" if url else "the store of this run"
    with (
        _store(url, durability or "fsync") as target,
        Client(target.url, namespace=namespace, url_origin=origin) as client,
    ):
        look(client, place_of(target.url, namespace, wait))
        scratch = Scratch(client)
        try:
            if drop_jobs:
                _drop_jobs(scratch, target, Plan()._replace(**given), quiet, as_json)
            else:
                _measure(scratch, target, seconds or SECONDS, as_json)
        finally:
            if no_flush:
                click.echo(f"the jobs are left in namespace {namespace}", err=True)
            else:
                scratch.clean()


def _url(url: str | None, host: str | None, port: int | None) -> str | None:
    if host is None and port is None:
        return url
    if url is not None:
        raise UsageError("--url and --host or --port both name the store: give one of them")
    return url_of_parts({"host": host or "localhost", "port": port or 6379})


def _check(drop_jobs: bool, seconds: float | None, other: bool, given: dict[str, Any]) -> None:
    if not drop_jobs and (given or other):
        name = next(iter(given), "quiet")
        raise UsageError(f"--{'drop-share' if name == 'forgetfulness' else name} is for --drop-jobs")
    if seconds is not None and drop_jobs:
        raise UsageError("--seconds is for measuring the store: --drop-jobs ends when its jobs have ended")


def _measure(scratch: Scratch, target: Target, seconds: float, as_json: bool) -> None:
    run = Bench(scratch)
    with progress("measuring", run.slices()) as advance:
        figures = run.run(seconds, advance)
    server = scratch.server()
    if as_json:
        found = [figure._asdict() for figure in figures]
        print_json(
            {"store": target.shown, "server": server, "durability": target.durability, "figures": found}
        )
        return
    click.echo(f"{server}, {target.shown}, durability: {target.durability}")
    columns = ("", "per second", "store CPU, µs each", "× SET")
    print_table(columns, [_cells(*figure) for figure in figures])


def _drop_jobs(scratch: Scratch, target: Target, plan: Plan, quiet: bool, as_json: bool) -> None:
    run = DropBench(scratch, plan)
    with progress("working", plan.jobs) if not quiet else nullcontext(_ignore) as advance:
        found = run.run(advance)
    server = scratch.server()
    if as_json:
        about = {
            "store": target.shown,
            "server": server,
            "durability": target.durability,
            "plan": plan._asdict(),
        }
        print_json(about | found._asdict())
        return
    click.echo(f"{server}, {target.shown}, durability: {target.durability}")
    print_facts(
        {
            "put": f"{counted(plan.jobs, 'job')} in {found.put_seconds:.2f} s",
            "worked": f"{found.work_seconds:.2f} s by {counted(plan.workers, 'thread')}",
            "completed": found.completed,
            "failed": found.failed,
            "dropped": found.dropped,
            "server memory": size(found.server_memory),
            "server CPU": f"{found.server_cpu_seconds:.2f} s",
        }
    )
    print_table(("queue", "", "count", "mean, s", "deviation, s", "lost"), rows_of(found))
    for name, stats in found.queues.items() if not quiet else ():
        for what in ("wait", "run"):
            click.echo("\n".join([f"{name}, {what}:", *histogram(stats[what]["histogram"])]))


def _ignore(_: int) -> None:
    """Show no progress."""


def _cells(what: str, per_second: float, store_us: float, times_set: float) -> tuple[object, ...]:
    return what, round(per_second), round(store_us, 1), round(times_set, 2)


@contextmanager
def _store(url: str | None, durability: str) -> Generator[Target]:
    if url is not None:
        yield Target(url, shown_url(url), "as set in the store")
        return
    directory = Path(tempfile.mkdtemp(prefix="hf-bench-"))
    try:
        address = embedded.ensure(directory / "store", durability=durability)
        yield Target(address.url, "an embedded store", durability)
    finally:
        try:
            embedded.stop(directory / "store")
        except HoldfastError as error:
            echo_text(f"holdfast: {error}", err=True)
        shutil.rmtree(directory, ignore_errors=True)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
