"""`holdfast bench`: how fast a store puts, pops and completes, from this program; and what importing holdfast costs."""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

import click

from holdfast import store as embedded
from holdfast.cli.bench_drops import DropBench, Plan, histogram, rows_of
from holdfast.cli.bench_run import Bench, Scratch
from holdfast.cli.output import echo_text, json_option, print_facts, print_json, print_table, progress, size
from holdfast.client.store_options import url_of_parts
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, UsageError
from holdfast.settings import shown_url
from holdfast.store.files import LEVELS

BARE: Final = "pass"
DRIVER: Final = "import redis"
OURS: Final[Mapping[str, str]] = {
    "import holdfast": f"{DRIVER}; import holdfast",
    "from holdfast import Client": f"{DRIVER}; from holdfast import Client",
    "from holdfast import AsyncClient": f"{DRIVER}; from holdfast import AsyncClient",
}
"""What is measured on top of the driver's own import, which every user of a store pays anyway."""
ROUNDS: Final = 5


class ImportFigure(NamedTuple):
    """One import: milliseconds of CPU, and its share of what `import redis` takes, in percent."""

    what: str
    cpu_ms: float
    percent: float


def import_figures(rounds: int, advance: Callable[[int], None]) -> list[ImportFigure]:
    """Start each interpreter `rounds` times; `advance` hears of each round. Medians, the bare interpreter taken off."""
    programs = (BARE, DRIVER, *OURS.values())
    for program in programs:
        _cpu_ms(program)  # the first start writes the compiled files
    taken: dict[str, list[float]] = {program: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            taken[program].append(_cpu_ms(program))
        advance(1)
    median = {program: statistics.median(times) for program, times in taken.items()}
    base = max(median[DRIVER] - median[BARE], 0.1)
    found = [ImportFigure(DRIVER, base, 100.0)]
    for what, program in OURS.items():
        ours = median[program] - median[DRIVER]
        found.append(ImportFigure(what, ours, 100 * ours / base))
    return found


def _cpu_ms(program: str) -> float:
    """Milliseconds of CPU that one interpreter takes. Raises HoldfastError if it fails."""
    # What is installed is compiled once, so a checkout in which nothing may be kept would be measured for compiling.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL, env=kept)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise HoldfastError(f"{sys.executable} cannot run {program!r}")
    return (used.ru_utime + used.ru_stime) * 1000


F = TypeVar("F", bound=Callable[..., Any])
SECONDS: Final = 5.0


class Place(NamedTuple):
    """The store that is measured, and its durability level."""

    url: str
    shown: str
    durability: str


def _with_drop_options(command: F) -> F:
    """The options of `--drop-jobs`; None where one was not given."""
    defaults = Plan()
    options = (
        (
            "--drop-share",
            click.FloatRange(0, 0.9),
            f"Share of the jobs dropped [{defaults.forgetfulness}].",
        ),
        ("--stages", click.IntRange(1, 100), f"Queues that each job goes through [{defaults.stages}]."),
        ("--jobs", click.IntRange(1, 1_000_000), f"How many jobs [{defaults.jobs}]."),
        ("--workers", click.IntRange(1, 500), f"How many threads [{defaults.workers}]."),
        ("--retries", click.IntRange(0, 1000), f"Losses until a job fails [{defaults.retries}]."),
    )
    for name, kind, told in reversed(options):
        dest = "forgetfulness" if name == "--drop-share" else name.removeprefix("--")
        command = click.option(name, dest, type=kind, help=f"With --drop-jobs: {told}")(command)
    return command


@click.command()
@click.option("--url", help="The store [default: an embedded store of its own, in a temporary directory].")
@click.option("--host", help="The store's machine, instead of a URL.")
@click.option("--port", type=click.IntRange(1, 65_535), help="The store's port, instead of a URL [6379].")
@click.option(
    "--durability",
    type=click.Choice(LEVELS),
    help="Durability level of the embedded store [default: fsync].",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1, max=3600),
    help="How long to measure  [default: 5]",
)
@click.option("--imports", is_flag=True, help="Measure what importing holdfast costs instead.")
@click.option(
    "--drop-jobs", is_flag=True, help="Run threads that drop some jobs instead; every job must still end."
)
@_with_drop_options
@click.option("--quiet", is_flag=True, help="With --drop-jobs: no progress bar and no histograms.")
@click.option("--no-flush", is_flag=True, help="With --drop-jobs, at a URL: leave what was written.")
@json_option
def bench(
    url: str | None,
    host: str | None,
    port: int | None,
    durability: str | None,
    seconds: float | None,
    imports: bool,
    drop_jobs: bool,
    quiet: bool,
    no_flush: bool,
    as_json: bool,
    **told: Any,
) -> None:
    """Measure how fast a store puts, pops and completes jobs.

    One connection, jobs of 100 bytes, beside bare SETs over the same connection. At a URL it works in a namespace of
    its own and removes it; the store's CPU is that of everybody who uses it meanwhile.

    --drop-jobs: threads take contrived jobs and drop some; a dropped one is missed after a second and handed out again,
    until its retries are used up.
    """
    given = {name: value for name, value in told.items() if value is not None}
    _check(imports, drop_jobs, seconds, quiet or no_flush, given)
    if imports:
        _imports(as_json)
        return
    if host is not None or port is not None:
        if url is not None:
            raise UsageError("--url and --host or --port both name the store: give one of them")
        url = url_of_parts({"host": host or "localhost", "port": port or 6379})
    if url is not None and durability is not None:
        raise UsageError("--durability is for the embedded store: a store at a URL has its own settings")
    if url is None and no_flush:
        raise UsageError("--no-flush is for a store at a URL: an embedded one is removed")
    signal.signal(signal.SIGTERM, _interrupt)
    namespace = f"bench-{uuid4().hex[:12]}"
    with _store(url, durability or "fsync") as place, Client(place.url, namespace=namespace) as client:
        scratch = Scratch(client)
        try:
            if drop_jobs:
                _drop_jobs(scratch, place, Plan()._replace(**given), quiet, as_json)
            else:
                _measure(scratch, place, seconds or SECONDS, as_json)
        finally:
            if no_flush:
                click.echo(f"left in namespace {namespace}", err=True)
            else:
                scratch.clean()


def _check(imports: bool, drop_jobs: bool, seconds: float | None, other: bool, given: dict[str, Any]) -> None:
    if imports and drop_jobs:
        raise UsageError("--imports and --drop-jobs measure different things: give one of them")
    if not drop_jobs and (given or other):
        name = next(iter(given), "quiet")
        raise UsageError(f"--{'drop-share' if name == 'forgetfulness' else name} is for --drop-jobs")
    if seconds is not None and (imports or drop_jobs):
        raise UsageError("--seconds is for measuring the store: the others end when they are done")


def _measure(scratch: Scratch, place: Place, seconds: float, as_json: bool) -> None:
    run = Bench(scratch)
    with progress("measuring", run.slices()) as advance:
        figures = run.run(seconds, advance)
    server = scratch.server()
    if as_json:
        found = [figure._asdict() for figure in figures]
        print_json({"store": place.shown, "server": server, "durability": place.durability, "figures": found})
        return
    click.echo(f"{server}, {place.shown}, durability: {place.durability}")
    columns = ("", "per second", "store CPU, µs each", "× SET")
    print_table(columns, [_cells(*figure) for figure in figures])


def _drop_jobs(scratch: Scratch, place: Place, plan: Plan, quiet: bool, as_json: bool) -> None:
    run = DropBench(scratch, plan)
    with progress("working", plan.jobs) if not quiet else nullcontext(_unheard) as advance:
        found = run.run(advance)
    server = scratch.server()
    if as_json:
        about = {
            "store": place.shown,
            "server": server,
            "durability": place.durability,
            "plan": plan._asdict(),
        }
        print_json(about | found._asdict())
        return
    click.echo(f"{server}, {place.shown}, durability: {place.durability}")
    print_facts(
        {
            "put": f"{plan.jobs} jobs in {found.put_seconds:.2f} s",
            "worked": f"{found.work_seconds:.2f} s by {plan.workers} threads",
            "completed": found.completed,
            "failed": found.failed,
            "dropped": found.dropped,
            "server memory": size(found.server_memory),
            "server CPU": f"{found.server_cpu_seconds:.2f} s",
        }
    )
    print_table(("queue", "", "count", "mean, s", "deviation, s", "lost leases"), rows_of(found))
    for name, stats in found.queues.items() if not quiet else ():
        for what in ("wait", "run"):
            click.echo("\n".join([f"{name}, {what}:", *histogram(stats[what]["histogram"])]))


def _unheard(_: int) -> None:
    """Nobody watches the progress."""


def _imports(as_json: bool) -> None:
    with progress("importing", ROUNDS) as advance:
        figures = import_figures(ROUNDS, advance)
    if as_json:
        print_json({"figures": [figure._asdict() for figure in figures]})
        return
    click.echo("CPU of fresh interpreters; ours comes on top of the driver's")
    rows = [(figure.what, round(figure.cpu_ms, 1), round(figure.percent)) for figure in figures]
    print_table(("", "ms", "% of import redis"), rows)


def _cells(what: str, per_second: float, store_us: float, times_set: float) -> tuple[object, ...]:
    return what, round(per_second), round(store_us, 1), round(times_set, 2)


@contextmanager
def _store(url: str | None, durability: str) -> Generator[Place]:
    if url is not None:
        yield Place(url, shown_url(url), "as the store is set")
        return
    directory = Path(tempfile.mkdtemp(prefix="hf-bench-"))
    try:
        address = embedded.ensure(directory / "store", durability=durability)
        yield Place(address.url, "an embedded store", durability)
    finally:
        try:
            embedded.stop(directory / "store")
        except HoldfastError as error:
            echo_text(f"holdfast: {error}", err=True)
        shutil.rmtree(directory, ignore_errors=True)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
