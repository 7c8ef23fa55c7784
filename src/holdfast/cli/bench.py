"""`holdfast bench`: how fast a store puts, pops and completes jobs, measured from this program."""

import random
import shutil
import signal
import statistics
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import monotonic, perf_counter
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

import click

from holdfast import store as embedded
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
from holdfast.client.handles import Job, Queue
from holdfast.client.store_options import url_of_parts
from holdfast.client.sync import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.leases import WILL_WAIT, WOKEN, CompleteMany, Done, Pop
from holdfast.errors import HoldfastError, Refused, StoreUnavailable, UsageError
from holdfast.models import JobFacts
from holdfast.settings import shown_url
from holdfast.store.files import LEVELS
from holdfast.text import counted, duration, size
from holdfast.wire.exchange import final_error
from holdfast.wire.plans import ErrorReply, Plan
from holdfast.wire.repeat import RetryTimer, send_until_done

# Measure kinds of work in turn, slice by slice, in a namespace that is removed afterwards.


class Scratch:
    """A namespace that only the benchmark uses."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def command(self, *call: Any) -> Any:
        """Run one command of the store and return its reply."""
        return self.client.runner.run(self._plan_of(call))

    def _plan_of(self, call: tuple[Any, ...]) -> Plan[Any]:
        patience = RetryTimer(
            self.client.settings.deadline, self.client.shard.clock, store=self.client.settings.store
        )
        [reply] = yield from send_until_done([call], patience)
        if isinstance(reply, ErrorReply):
            raise final_error(reply)
        return reply

    def info(self, section: str) -> dict[str, str]:
        """Return one section of INFO."""
        lines = self.command("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def server(self) -> str:
        """Return name and version of the server."""
        facts = self.info("server")
        name = facts.get("server_name", "redis")
        return f"{name} {facts.get(f'{name}_version') or facts.get('redis_version', '')}"

    def cpu(self) -> float:
        """Return the CPU seconds of the server's main thread, or of the whole server if it does not report threads."""
        facts = self.info("cpu")
        user = facts.get("used_cpu_user_main_thread") or facts["used_cpu_user"]
        system = facts.get("used_cpu_sys_main_thread") or facts["used_cpu_sys"]
        return float(user) + float(system)

    def memory(self) -> int:
        """Return the memory of the server in bytes."""
        return int(self.info("memory")["used_memory"])

    def clean(self) -> None:
        """Remove every key of the namespace."""
        cursor = b"0"
        while True:
            cursor, keys = self.command("SCAN", cursor, "MATCH", self.client.root + "*", "COUNT", 1000)
            if keys:
                self.command("UNLINK", *keys)
            if cursor == b"0":
                return


QUEUE: Final = "bench"
KLASS: Final = "bench.Job"
DATA: Final = {"user": 7, "lang": "de", "text": "x" * 66}  # 100 bytes of JSON
BODY: Final = b"x" * 100
MANY: Final = 100
ITEMS: Final = [(KLASS, DATA)] * MANY
ROUNDS: Final = 5
KEPT: Final = 1000
STOCK: Final = 5000


class Figure(NamedTuple):
    """One kind of work: jobs per second, µs of the store's CPU per job, and its speed relative to SET."""

    what: str
    per_second: float
    store_us: float
    times_set: float


Work = Callable[[], int]
"""Works once, and returns the number of jobs; 0 if none is left."""


class Bench:
    """Measures in one namespace of one store."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._client = client = scratch.client
        self._queue = client.queues[QUEUE]

    def run(self, seconds: float, advance: Callable[[int], None]) -> list[Figure]:
        """Measure each kind of work for its share of `seconds`; call `advance` after each slice."""
        self._client.run(ConfigSet("jobs-history-count", str(KEPT)))
        kinds = self._kinds()
        slice_length = seconds / ROUNDS / len(kinds)
        found: dict[str, list[tuple[float, float]]] = {what: [] for what in kinds}
        for _ in range(ROUNDS):
            for what, work in kinds.items():
                found[what].append(self._slice(work, slice_length))
                self._drain()
                advance(1)
        base = [rate for rate, _ in found[next(iter(kinds))]]
        return [_figure(what, slices, base) for what, slices in found.items()]

    def slices(self) -> int:
        """Return the number of slices of a run."""
        return ROUNDS * len(self._kinds())

    def _kinds(self) -> dict[str, Work]:
        return {
            "SET, one by one": self._set,
            "put, one by one": self._put,
            "pop, one by one": self._pop,
            "put, pop and complete, one by one": self._lifecycle,
            f"put, {MANY} at once": self._put_many,
            f"put, pop and complete, {MANY} at once": self._lifecycle_of_many,
        }

    def _slice(self, work: Work, length: float) -> tuple[float, float]:
        """Measure one slice: jobs per second, and µs of the store's CPU per job."""
        if work == self._pop:
            self._stock_up()
        cpu, begun = self._scratch.cpu(), perf_counter()
        done, took = 0, 0.0
        while took < length:
            step = work()
            done += step
            took = perf_counter() - begun
            if not step:
                break
        return done / took, (self._scratch.cpu() - cpu) * 1e6 / done

    def _set(self) -> int:
        self._scratch.command("SET", self._client.root + "bench", BODY)
        return 1

    def _put(self) -> int:
        self._queue.put(KLASS, DATA)
        return 1

    def _pop(self) -> int:
        return 0 if self._queue.pop() is None else 1

    def _lifecycle(self) -> int:
        self._queue.put(KLASS, DATA)
        job = self._queue.pop()
        if job is not None:
            job.complete()
        return 1

    def _put_many(self) -> int:
        self._queue.put_many(ITEMS)
        return MANY

    def _lifecycle_of_many(self) -> int:
        self._queue.put_many(ITEMS)
        self._complete(self._take())
        return MANY

    def _stock_up(self) -> None:
        """Put jobs to pop; a slice that empties the queue ends early."""
        self._queue.put_many([(KLASS, DATA)] * STOCK)

    def _take(self) -> Sequence[JobFacts]:
        return self._client.run(Pop(self._client.worker_name, (QUEUE,), MANY))

    def _complete(self, jobs: Sequence[JobFacts]) -> None:
        ends = [Done(job.jid, job.token) for job in jobs]
        self._client.run(CompleteMany(self._client.worker_name, ends))

    def _drain(self) -> None:
        """Complete the waiting jobs, so that the next slice starts empty; popped jobs are removed with the namespace."""
        while jobs := self._take():
            self._complete(jobs)


def _figure(what: str, slices: list[tuple[float, float]], base: list[float]) -> Figure:
    rates = [rate for rate, _ in slices]
    times = statistics.median(rate / one for rate, one in zip(rates, base, strict=True))
    return Figure(what, statistics.median(rates), statistics.median(cpu for _, cpu in slices), times)


# `holdfast bench --drop-jobs`: jobs that do nothing, and threads that drop some of them, as crashed workers
# would.

DROPPED_KLASS: Final = "bench.Contrived"
HEARTBEAT: Final = 1  # seconds until a dropped job loses its lease
LOOK_EVERY: Final = 0.2
LONGEST_WAIT: Final = 0.5
PATIENCE: Final = 60.0
"""Seconds in which at least one job must end."""
_OPEN: Final = ("waiting", "running", "stalled", "scheduled", "throttled", "depends")


class DropPlan(NamedTuple):
    """A run: each of `jobs` goes through `stages` queues; `workers` threads drop a share of the jobs that they take."""

    forgetfulness: float = 0.1
    stages: int = 1
    jobs: int = 1000
    workers: int = 10
    retries: int = 5

    @property
    def queues(self) -> tuple[str, ...]:
        """Return the queues, the last stage first, so that started jobs are finished first."""
        return tuple(f"stage-{number}" for number in reversed(range(self.stages)))


class Findings(NamedTuple):
    """The result of a run: seconds, jobs, memory and CPU of the server; `queues` maps each queue to its statistics."""

    put_seconds: float
    work_seconds: float
    completed: int
    failed: int
    dropped: int
    server_memory: int
    server_cpu_seconds: float
    queues: dict[str, dict[str, Any]]


class DropBench:
    """Runs one plan in a scratch namespace."""

    def __init__(self, scratch: Scratch, plan: DropPlan) -> None:
        self._scratch = scratch
        self._client = scratch.client
        self._plan = plan
        self._queues: list[Queue] = [self._client.queues[name] for name in plan.queues]
        self._over = threading.Event()
        self._dropped = [0] * plan.workers
        self._broken: list[BaseException] = []

    def run(self, advance: Callable[[int], None]) -> Findings:
        """Put the jobs and work until each is complete or failed; call `advance` with the number of jobs that ended.

        Raises StoreUnavailable if none ends for a minute, HoldfastError if a thread failed.
        """
        self._client.config["heartbeat"] = HEARTBEAT
        self._client.config["grace-period"] = 0  # no worker will settle a dropped job
        cpu, begun = self._scratch.cpu(), perf_counter()
        first = self._queues[-1]
        first.put_many(
            ((DROPPED_KLASS, number) for number in range(self._plan.jobs)), retries=self._plan.retries
        )
        put = perf_counter() - begun
        threads = [
            threading.Thread(target=self._work, args=(number,), name=f"dropping-{number}", daemon=True)
            for number in range(self._plan.workers)
        ]
        begun = perf_counter()
        for thread in threads:
            thread.start()
        try:
            self._watch(advance)
        finally:
            self._over.set()
            for thread in threads:
                thread.join(PATIENCE)
        worked = perf_counter() - begun
        return self._findings(put, worked, self._scratch.cpu() - cpu)

    def _work(self, number: int) -> None:
        try:
            self._take_and_drop(number)
        except BaseException as error:  # raised again by the main thread
            self._broken.append(error)
            self._over.set()

    def _take_and_drop(self, number: int) -> None:
        chance = random.Random(number)
        shard = self._client.shard
        keys = [shard.wake_key(queue) for queue in self._plan.queues]
        wake_up = self._client.link.wake_up()
        mode = WILL_WAIT
        try:
            while not self._over.is_set():
                found = self._client.run(Pop(f"dropping-{number}", self._plan.queues, 1, None, mode))
                mode = WILL_WAIT
                if not found:
                    due = LONGEST_WAIT if found.due is None else found.due
                    if wake_up.wait(keys, min(due, LONGEST_WAIT)) is not None:
                        mode = WOKEN
                elif chance.random() < self._plan.forgetfulness:
                    self._dropped[number] += 1
                else:
                    self._finish(found[0])
        finally:
            wake_up.close()

    def _finish(self, facts: JobFacts) -> None:
        stage = int(facts.queue.partition("-")[2]) + 1
        job = Job.of(facts, self._client)
        try:
            job.complete(f"stage-{stage}" if stage < self._plan.stages else None)
        except Refused:
            pass  # the lease was lost: another thread has the job

    def _watch(self, advance: Callable[[int], None]) -> None:
        """Wait until no job is open."""
        ended, last = 0, monotonic()
        while not self._over.wait(LOOK_EVERY):
            rows = self._client.queues.counts
            left = sum(row[state] for row in rows for state in _OPEN)
            if self._plan.jobs - left > ended:
                advance(self._plan.jobs - left - ended)
                ended, last = self._plan.jobs - left, monotonic()
            if not left:
                return
            if monotonic() - last > PATIENCE:
                raise StoreUnavailable(
                    f"no job ended for {PATIENCE:.0f} s; {counted(left, 'job is', 'jobs are')} left"
                )
        raise HoldfastError(f"a worker's thread ended: {self._broken[0]}") from self._broken[0]

    def _findings(self, put: float, worked: float, cpu: float) -> Findings:
        failed = sum(self._client.jobs.failed().values())
        stats = {queue.name: queue.stats() for queue in reversed(self._queues)}
        return Findings(
            put,
            worked,
            self._plan.jobs - failed,
            failed,
            sum(self._dropped),
            self._scratch.memory(),
            cpu,
            stats,
        )


def rows_of(findings: Findings) -> list[Sequence[object]]:
    """Return a row for waiting and one for running of each queue: count, mean, deviation, lost leases."""
    rows: list[Sequence[object]] = []
    for name, stats in findings.queues.items():
        for what in ("wait", "run"):
            found = stats[what]
            lost = stats["lost"] if what == "run" else ""
            rows.append((name, what, found["count"], round(found["mean"], 3), round(found["std"], 3), lost))
    return rows


_BUCKETS: Final = (
    *range(60),
    *range(60, 3600, 60),
    *range(3600, 86_400, 3600),
    *range(86_400, 7 * 86_400, 86_400),
)
"""Where each bucket of a histogram begins, in seconds."""


def histogram(buckets: Sequence[int]) -> list[str]:
    """Return a line for each bucket that is not empty: 60 of a second, 59 of a minute, 23 of an hour, 6 of a day."""
    most = max(buckets, default=0)
    lines: list[str] = []
    for place, count in enumerate(buckets):
        if count:
            lines.append(
                f"{duration(_BUCKETS[place]):>6}  {count:>7}  {'#' * max(1, round(40 * count / most))}"
            )
    return lines


F = TypeVar("F", bound=Callable[..., Any])
SECONDS: Final = 5.0


class Target(NamedTuple):
    """The store that is measured, and its durability level."""

    url: str
    shown: str
    durability: str


def _with_drop_options(command: F) -> F:
    """Give a command the options of `--drop-jobs`; None is an option that was not given."""
    defaults = DropPlan()
    options = (
        (
            "--drop-share",
            FiniteRange(0, 0.9),
            f"share of the jobs to drop [default: {defaults.forgetfulness}].",
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
    help=f"Duration of the measurement [default: {SECONDS:g}].",
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

    It uses one connection and jobs of 100 bytes, and compares with SETs over the same connection. With --url, it uses a
    separate namespace, which it removes afterwards; the CPU of the store includes that of its other clients.

    With --drop-jobs, threads take jobs that do nothing, and drop some of them. A dropped job loses its lease after a second
    and is taken again, until its retries are used up.
    """
    given = {name: value for name, value in options.items() if value is not None}
    _check(drop_jobs, seconds, quiet or no_flush, given)
    url = _url(url, host, port)
    if url is not None and durability is not None:
        raise UsageError("--durability is for the embedded store; with --url the store's own settings apply")
    if url is None and no_flush:
        raise UsageError("--no-flush requires --url: an embedded store is always removed")
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
                _drop_jobs(scratch, target, DropPlan()._replace(**given), quiet, as_json)
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
        raise UsageError("--url and --host or --port both name the store: give only one")
    return url_of_parts({"host": host or "localhost", "port": port or 6379})


def _check(drop_jobs: bool, seconds: float | None, other: bool, given: dict[str, Any]) -> None:
    if not drop_jobs and (given or other):
        name = next(iter(given), "quiet")
        raise UsageError(f"--{'drop-share' if name == 'forgetfulness' else name} requires --drop-jobs")
    if seconds is not None and drop_jobs:
        raise UsageError("--seconds cannot be used with --drop-jobs, which ends when its jobs have ended")


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


def _drop_jobs(scratch: Scratch, target: Target, plan: DropPlan, quiet: bool, as_json: bool) -> None:
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
