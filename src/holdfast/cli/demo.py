"""`holdfast demo`: run jobs over real files in two workers, kill one of them, and check that no job is lost."""

import contextlib
import fcntl
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Final, NamedTuple, Self

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from holdfast import Client
from holdfast import store as embedded
from holdfast.cli import demo_jobs
from holdfast.cli.bench import Scratch
from holdfast.cli.output import json_option, print_json
from holdfast.errors import HoldfastError, JobFailed, StoreUnavailable, UsageError, install_extra
from holdfast.text import counted, size

# What the demo prints: a live bar on a terminal, a few lines elsewhere, and the report.

Step = tuple[str, str]
"""A jid and a queue."""


class Lost(NamedTuple):
    """A step that was running when its worker was killed; it began again `after` seconds (None: not yet)."""

    jid: str
    queue: str
    worker: str
    after: float | None


class Diary:
    """Reads the diary of a run as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._begun: Counter[Step] = Counter()
        self._running: dict[Step, str] = {}
        self._killed_at = 0.0
        self.lost_jobs: dict[Step, Lost] = {}

    def read(self) -> None:
        """Read the lines that were added; an incomplete line is read the next time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as diary:
            diary.seek(self._offset)
            text = diary.read()
        whole, newline, _ = text.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        for line in whole.splitlines():
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        step = (line["jid"], line["queue"])
        if line["what"] == "end":
            self._running.pop(step, None)
            return
        self._begun[step] += 1
        self._running[step] = line["worker"]
        lost = self.lost_jobs.get(step)
        if lost and lost.after is None and line["at"] > self._killed_at:
            self.lost_jobs[step] = lost._replace(after=line["at"] - self._killed_at)

    def held_by(self, worker: str) -> list[Step]:
        """Return the running steps of a worker's children."""
        return [step for step, name in self._running.items() if name.startswith(worker + "-")]

    def runs_at(self, jid: str) -> str:
        """Return the worker that runs a step of a job, empty if none does."""
        return next((name for step, name in self._running.items() if step[0] == jid), "")

    def lost(self, worker: str, killed_at: float) -> list[Lost]:
        """Note and return the running steps of a worker that was killed at `killed_at`."""
        self.read()
        self._killed_at = killed_at
        self.lost_jobs = {
            step: Lost(*step, self._running[step], None) for step in self.held_by(worker)
        }  # fmt: skip
        return list(self.lost_jobs.values())

    def returned(self) -> list[Lost]:
        """Return the lost steps that began again."""
        return [lost for lost in self.lost_jobs.values() if lost.after is not None]

    def twice(self) -> int:
        """Return how many steps began more than once."""
        return sum(1 for times in self._begun.values() if times > 1)


STATES = ("waiting", "running", "done", "failed")


class Screen:
    """Shows a run of `count` jobs on standard error; nothing if `quiet`."""

    def __init__(self, count: int, *, quiet: bool = False) -> None:
        self._count = count
        self._quiet = quiet
        self._shown: set[str] = set()
        self._tenth = 0
        console = Console(stderr=True)
        self._bar: Progress | None = None
        if console.is_terminal and not quiet:
            self._bar = Progress(
                BarColumn(bar_width=None),
                *(TextColumn(f"{state} {{task.fields[{state}]:>5}}") for state in STATES),
                TimeElapsedColumn(),
                console=console,
            )
            self._task = self._bar.add_task("", total=2 * count, waiting=0, running=0, done=0, failed=0)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def line(self, sentence: str) -> None:
        """Print one line above the bar."""
        if self._quiet:
            return
        if self._bar:
            self._bar.console.print(escape(sentence), highlight=False)
        else:
            click.echo(sentence, err=True)

    def show(self, state: Mapping[str, int], returned: Sequence[Lost]) -> None:
        """Show the progress of the run, and lost steps that came back."""
        for lost in returned:
            if lost.jid not in self._shown:
                self._shown.add(lost.jid)
                self.line(f"  {lost.jid} is back in “{lost.queue}” after {lost.after:.1f} s")
        if self._bar:
            fields: dict[str, Any] = {name: state[name] for name in STATES}
            self._bar.update(self._task, completed=state["steps"], **fields)
        elif state["steps"] * 10 // (2 * self._count) > self._tenth:
            self._tenth = state["steps"] * 10 // (2 * self._count)
            self.line(", ".join(f"{name} {state[name]}" for name in STATES))

    def killed(self, name: str, pid: int, lost: Sequence[Lost], seconds: int) -> None:
        """Print that a worker was killed, and the steps that it was running."""
        held = counted(len(lost), "job")
        self.line(f"killed worker “{name}” (pid {pid}) and its children with -9, while it held {held}:")
        for step in lost:
            self.line(f"  {step.jid} in “{step.queue}” ({step.worker}), due back in {seconds} s")


def print_report(result: Mapping[str, Any]) -> None:
    """Print the report and the outcome of the jobs."""
    report = result["report"]
    console = Console() if sys.stdout.isatty() else Console(width=120)
    table = Table(title="Longest lines")
    for column, side in (("longest", "right"), ("lines", "right"), ("bytes", "right"), ("sha256", "left"), ("file", "left")):  # fmt: skip
        table.add_column(
            column, justify="right" if side == "right" else "left", no_wrap=column != "file", overflow="fold"
        )
    for row in report["longest"]:
        path = escape(row["path"])
        table.add_row(*(f"{row[name]:,}" for name in ("longest", "lines", "bytes")), row["sha256"][:12], path)
    console.print(table)
    click.echo(f"files      {report['files']:,}, {counted(report['lines'], 'line')}, {size(report['bytes'])}; "
               f"duplicates: {report['same']:,}")  # fmt: skip
    click.echo(f"jobs       put {result['put']:,}, done {result['done']:,}, failed {result['failed']:,}")
    click.echo(f"lost       {counted(result['lost'], 'job')} with the killed worker, {result['returned']:,} returned; "
               f"{counted(result['twice'], 'step')} ran twice")  # fmt: skip
    click.echo(
        f"speed      {result['rate']:,.0f} files/s in {result['seconds']} s: two jobs for each file, each waiting for the disk, "
        f"and the time until the leases of the killed worker ended"
    )
    click.echo(
        f"rate       {result['engine_rate']:,.0f} jobs/s that do nothing, with --pool process --workers 2: two at a time, each waiting "
        f"for the disk"
    )
    click.echo(
        f"           {result['thread_rate']:,.0f} jobs/s that do nothing, with --pool thread --workers 2: twenty at a time, sharing "
        f"calls and writes to the disk"
    )
    click.echo(f"data       {_data_of(result)}")
    for group, count in result["failures"].items():
        click.echo(f"failed     {count:,} in {group}", err=True)


def _data_of(result: Mapping[str, Any]) -> str:
    """Return what is left of the run, and where."""
    store, namespace = result["data"], result["namespace"]
    if result["kept"]:
        look = f"HOLDFAST_DIR={shlex.quote(store)} holdfast stats --namespace {namespace}"
        return f"kept: {result['run']} and the namespace {namespace} of the store in {store}; to look at it: {look}"
    return f"jobs and files of the run were removed; the embedded store is kept in {store}"


# The web UI beside the demo: its process, and jobs that give every page something to show.

SAMPLES: Final = "samples"
"""The queue of the jobs that are for looking only."""
THROTTLE: Final = "demo-printer"
_PATIENCE: Final = 30.0


def is_installed() -> bool:
    """Return whether the packages of the web UI are installed."""
    return all(importlib.util.find_spec(name) for name in ("starlette", "jinja2", "uvicorn"))


class DemoWeb:
    """`holdfast web` for the namespace of a run, in a directory of its own; it ends with the block."""

    def __init__(self, url: str, namespace: str, directory: Path) -> None:
        self._directory = directory / "web"
        words = [sys.executable, "-m", "holdfast.cli.main", "web", "--foreground", "--in-background"]
        words += [
            "--url",
            url,
            "--namespace",
            namespace,
            "--app-dir",
            str(self._directory),
            "--environment",
            "demo",
        ]
        directory.mkdir(exist_ok=True)
        with (directory / "web.log").open("wb") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()

    def link(self) -> str:
        """Wait until the server listens, and return a link that works once. Raises HoldfastError if it does not start."""
        from holdfast.web.serving import Folder

        folder = Folder(self._directory)
        until = time.monotonic() + _PATIENCE
        while (found := folder.running()) is None:
            if self._process.poll() is not None or time.monotonic() > until:
                raise HoldfastError("the web UI did not start")
            time.sleep(0.05)
        return f"{found.url}login?token={folder.sessions(found.server).link_token()}"


def fill(client: Client, run: str) -> None:
    """Put what pages show: a failure group, a recurring job, a full throttle, a tracked job, dependencies, messages."""
    name = demo_jobs.__name__
    client.throttles[THROTTLE].set_maximum(1)
    queue = client.queues[SAMPLES]
    queue.put_many([(f"{name}.picky", _call(number)) for number in range(24)])
    held: list[tuple[str, dict[str, Any]]] = [(f"{name}.hold", _call(run))] * 3
    queue.put_many(held, throttles=[THROTTLE])
    first = queue.put(f"{name}.hold", _call(run), throttles=[THROTTLE], tags=["demo", "first"])
    for number in range(2):
        middle = queue.put(f"{name}.picky", _call(number), depends=[first], tags=["demo"])
        queue.put(f"{name}.nothing", _call(), depends=[middle])
    client.job(first).track()
    queue.recur(f"{name}.nothing", _call(), 60, jid="every-minute")
    for number, text in enumerate(("Ciao", "Welcome!", "See you tomorrow")):
        client.topics["greetings"].put(f"greeting-{number}", text, delay=60.0 * (number + 1))


def _call(*args: object) -> dict[str, Any]:
    return {"args": list(args), "kwargs": {}}


QUEUES = ("read", "measure", "report")
IDLE_QUEUES: Final = {"process": "report", "thread": "engine"}
"""The queue of the jobs that do nothing, for each pool that is measured."""
PROCESSES = 2
HEARTBEAT, GRACE = 2, 1
TICK = 0.05
PATIENCE = 60.0
"""Seconds without progress after which the run fails."""
ENGINE_JOBS, ENGINE_SECONDS = 2000, 2.0
"""How many jobs that do nothing measure each pool, and for how long at most."""
MOST_RUNS = 8


class Worker:
    """A `holdfast worker` in a session of its own, so that it can be killed as a whole."""

    def __init__(
        self, name: str, url: str, namespace: str, directory: Path, queues: Sequence[str], pool: str
    ) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        words = [sys.executable, "-m", "holdfast.cli.main", "worker", "--quiet"]
        words += ["--workers", str(PROCESSES), "--name", name, "--pool", pool]
        words += ["--import", demo_jobs.__name__]
        # The sandboxes of its jobs lie beside its log, not in the current directory.
        words += ["--workdir", str(directory)]
        for queue in queues:
            words += ["--queue", queue]
        # By variables, so that the client of the jobs has the same store.
        place = {"HOLDFAST_URL": url, "HOLDFAST_NAMESPACE": namespace}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **place},
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker and all its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop(self) -> None:
        """Stop the worker with TERM, then with KILL."""
        self.signal(signal.SIGCONT)
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(6)
        self.signal(signal.SIGKILL)
        self.process.wait()

    def check(self) -> None:
        """Raise StoreUnavailable with the end of its log if the worker ended by itself."""
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-800:]
            raise StoreUnavailable(f"{self.name} ended with status {self.process.returncode}:\n{tail}")


class Run:
    """A run in the embedded store at `url`; its files are below `directory`, and are removed after a success unless `keep`."""

    def __init__(self, url: str, directory: Path, *, keep: bool = False) -> None:
        self.url, self._store, self._keep = url, directory, keep
        self.namespace, self._lock = _free_namespace(directory)
        self.directory = directory / "demo" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self.directory.mkdir(parents=True)
        self.client = Client(url, namespace=self.namespace)
        self.diary = Diary(self.directory / demo_jobs.DIARY)
        self._gate = self.directory / demo_jobs.GATE
        self._gate.touch()
        self.workers: list[Worker] = []
        self.killed_at = 0.0
        self._succeeded = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for worker in self.workers:
            worker.stop()
        if self._succeeded and not self._keep:
            self._remove()
        self.client.close()
        self._lock.close()

    def _remove(self) -> None:
        """Remove the jobs and files of the run."""
        Scratch(self.client).clean()
        shutil.rmtree(self.directory, ignore_errors=True)
        Path(self._lock.name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another demo uses it
            self.directory.parent.rmdir()

    def whole(self, files: list[Path], screen: Screen) -> dict[str, Any]:
        """Put the jobs, run them, kill a worker, wait for the end, and return the figures."""
        self._settle(len(files))
        screen.line(f"putting {counted(len(files), 'job')}, one per file")
        middle = len(files) // 2
        jids = self.client.queues["read"].put_many(
            (
                demo_jobs.SourceFile,
                {"path": str(path), "run": str(self.directory), "in_the_middle": number == middle},
            )
            for number, path in enumerate(files)
        )
        began = time.monotonic()
        steps = (*reversed(QUEUES), SAMPLES)  # the last step first
        self.workers = [self._worker(name, steps, "process") for name in ("first", "second")]
        self._watch(len(files), jids[middle], screen)
        seconds = time.monotonic() - began
        screen.line("measuring with jobs that do nothing")
        rates = self._rates()
        screen.line("reporting")
        result = self._result(jids, seconds, self._report(), rates)
        fill(self.client, str(self.directory))
        self._succeeded = result["done"] == result["put"]
        result["kept"] = self._keep or not self._succeeded
        return result

    def _settle(self, count: int) -> None:
        """Set short leases and keep all completed jobs; cancel what an interrupted run left."""
        config = self.client.config
        config["grace-period"] = GRACE
        config["jobs-history-count"] = max(50_000, 2 * count)
        for name in QUEUES:
            queue = self.client.queues[name]
            queue.heartbeat = HEARTBEAT
            while jobs := queue.pop(512):
                self.client.jobs.cancel(*(job.jid for job in jobs))

    def _watch(self, count: int, middle: str, screen: Screen) -> None:
        """Follow the run to its end, and kill the worker that runs the job in the middle."""
        last, moved = -1, time.monotonic()
        while True:
            state = self._state(count)
            self.diary.read()
            screen.show(state, self.diary.returned())
            if state["steps"] != last:
                last, moved = state["steps"], time.monotonic()
            if state["done"] + state["failed"] >= count:
                return
            holder = self.diary.runs_at(middle) if not self.killed_at else ""
            if holder:
                self._kill(next(worker for worker in self.workers if holder.startswith(worker.name)), screen)
            for worker in self.workers:
                worker.check()
            if time.monotonic() - moved > PATIENCE:
                raise StoreUnavailable(f"no job ended for {PATIENCE:.0f} s; see the logs in {self.directory}")
            time.sleep(TICK)

    def _state(self, count: int) -> dict[str, int]:
        rows = {row["name"]: row for row in self.client.queues.counts}
        state = {name: sum(rows[queue][name] for queue in QUEUES if queue in rows) for name in
                 ("waiting", "scheduled", "running", "stalled", "failed")}  # fmt: skip
        state["waiting"] += state.pop("scheduled")
        state["running"] += state.pop("stalled")
        state["done"] = count - state["waiting"] - state["running"] - state["failed"]
        reading = rows.get("read", {})
        left = sum(int(reading.get(name, 0)) for name in ("waiting", "running", "stalled", "scheduled"))
        state["steps"] = (count - left) + state["done"]
        return state

    def _kill(self, worker: Worker, screen: Screen) -> None:
        """Kill a worker and its children with -9; the job in the middle, which one of them runs, no longer waits."""
        worker.signal(signal.SIGKILL)
        worker.process.wait()
        self.workers.remove(worker)
        self._gate.unlink()
        self.killed_at = time.time()
        lost = self.diary.lost(worker.name, self.killed_at)
        screen.killed(worker.name, worker.process.pid, lost, HEARTBEAT + GRACE)

    def _worker(self, name: str, queues: Sequence[str], pool: str) -> Worker:
        return Worker(name, self.url, self.namespace, self.directory, queues, pool)

    def _rates(self) -> dict[str, float]:
        """Return how many jobs that do nothing each pool runs in a second: the worker that is left, and one with threads."""
        self.workers.append(self._worker("threads", [IDLE_QUEUES["thread"]], "thread"))
        for queue in IDLE_QUEUES.values():  # until both workers take jobs
            self._rate(queue, PROCESSES, PATIENCE)
        return {
            pool: round(self._rate(queue, ENGINE_JOBS, ENGINE_SECONDS), 1)
            for pool, queue in IDLE_QUEUES.items()
        }

    def _rate(self, name: str, count: int, most: float) -> float:
        """Put `count` jobs that do nothing, and return how many of them were done in a second, after at most `most` seconds."""
        queue, klass = self.client.queues[name], f"{demo_jobs.__name__}.nothing"
        before, began = queue.tallies()["completed"], time.monotonic()
        job: tuple[str, dict[str, Any]] = (klass, {"args": [], "kwargs": {}})
        jids = queue.put_many([job] * count)
        done, seconds = 0, 0.0
        while done < count and seconds < most:
            for worker in self.workers:
                worker.check()
            time.sleep(TICK / 5)
            done, seconds = queue.tallies()["completed"] - before, time.monotonic() - began
        self.client.bulk_cancel(jids)
        return done / seconds

    def _report(self) -> dict[str, Any]:
        jid = self.client.queues["report"].put(
            f"{demo_jobs.__name__}.report", {"args": [str(self.directory)], "kwargs": {}}
        )
        found = self.client.result_of(jid, PATIENCE)
        if found is None:
            raise JobFailed("demo", "the report left no result")
        return dict(json.loads(found))

    def _result(
        self, jids: list[str], seconds: float, report: dict[str, Any], rates: dict[str, float]
    ) -> dict[str, Any]:
        self.diary.read()
        states = [job.state for job in self.client.jobs.get(*jids)]
        return {
            "put": len(jids),
            "done": states.count("complete"),
            "failed": states.count("failed"),
            "failures": self.client.jobs.failed(),
            "lost": len(self.diary.lost_jobs),
            "returned": len(self.diary.returned()),
            "twice": self.diary.twice(),
            "seconds": round(seconds, 2),
            "rate": round(len(jids) / seconds, 1),
            "report": report,
            "data": str(self._store),
            "namespace": self.namespace,
            "run": str(self.directory),
            "engine_rate": rates["process"],
            "thread_rate": rates["thread"],
        }


def _free_namespace(directory: Path) -> tuple[str, IO[str]]:
    """Return a namespace that no other demo uses, and the lock that keeps others out. Raises UsageError."""
    (directory / "demo").mkdir(exist_ok=True)
    for number in range(1, MOST_RUNS + 1):
        name = "demo" if number == 1 else f"demo-{number}"
        lock = _locked(directory / "demo" / f"{name}.lock")
        if lock is not None:
            return name, lock
    raise UsageError(f"{MOST_RUNS} demos run in {directory} already: wait for one, or name another --dir")


def _locked(path: Path) -> IO[str] | None:
    """Return a file that is now locked for this process; None if another demo has locked it, or removed it just now."""
    lock = path.open("w")
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino == os.fstat(lock.fileno()).st_ino:
            return lock
    lock.close()
    return None


SOURCE_ENDINGS = """
.c .cc .cpp .cs .css .go .h .hpp .html .java .js .kt .lua .md .php .pl .py .pyi .r .rb .rs .scala .sh .sql .swift
.toml .ts .tsx .txt .yaml .yml
"""
ENDINGS = frozenset(SOURCE_ENDINGS.split())
MOST_FILES = 1_000_000


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), required=False)
@click.option(
    "--dir",
    "store",
    type=click.Path(path_type=Path),
    help="Directory of the embedded store [default: HOLDFAST_DIR, or holdfast/store in your data directory].",
)
@click.option("--no-web", is_flag=True, help="Do not start the web UI.")
@click.option("--keep", is_flag=True, help="Keep the jobs and logs of the run [default: remove them].")
@json_option
@click.pass_context
def demo(
    context: click.Context,
    directory: Path | None,
    store: Path | None,
    no_web: bool,
    keep: bool,
    as_json: bool,
) -> None:
    """Run a job for every source file below DIRECTORY, and kill a worker halfway.

    DIRECTORY defaults to the standard library of Python. Each job passes through two queues of an embedded store. Halfway, a
    worker that runs jobs is killed with SIGKILL; the other worker runs these jobs again. The web UI shows the run; on a
    terminal it runs until you press Enter. Exit code 1 if a job is not done at the end; then jobs and logs are kept.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    files = source_files(directory or Path(sysconfig.get_path("stdlib")))
    with ExitStack() as ends:
        address = embedded.ensure(store)
        ends.callback(_stop_store, address)
        run = ends.enter_context(Run(address.url, address.directory, keep=keep))
        link = "" if no_web or as_json else _web_link(ends, run)
        with Screen(len(files), quiet=as_json) as screen:
            result = run.whole(files, screen)
        if as_json:
            print_json(result)
        else:
            print_report(result)
        if link:
            _linger()
    context.exit(0 if result["done"] == result["put"] else 1)


def _web_link(ends: ExitStack, run: Run) -> str:
    """Start the web UI of a run, print its address, and return it; "" if it is not installed or does not start."""
    if not is_installed():
        click.echo(f"the web UI is not installed: {install_extra('web')}", err=True)
        return ""
    web = ends.enter_context(DemoWeb(run.url, run.namespace, run.directory))
    try:
        link = web.link()
    except HoldfastError as error:
        click.echo(f"{error}; see {run.directory / 'web.log'}", err=True)
        return ""
    click.echo(f"web        {link}", err=True)
    return link


def _linger() -> None:
    """On a terminal, keep the run for the web UI until somebody presses Enter or Ctrl-C."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    click.echo("The web UI shows this run. Press Enter to end the demo.")
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.readline()


def source_files(directory: Path) -> list[Path]:
    """Return the source files below a directory, sorted. Raises UsageError if there are none, or no such directory."""
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory: name one with source files below it")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise UsageError(f"{directory} cannot be read: name a directory you may read")
    files = sorted(_walk(directory.resolve()))
    if not files:
        raise UsageError(f"there are no source files below {directory}: name a directory that has some")
    return files


def _walk(directory: Path) -> Iterator[Path]:
    found = 0
    for parent, names, leaves in os.walk(directory):
        names[:] = [
            name for name in names if name not in ("site-packages", "node_modules") and name[0] != "."
        ]
        for leaf in leaves:
            path = Path(parent, leaf)
            if path.suffix in ENDINGS and _is_text(leaf, parent) and path.is_file() and found < MOST_FILES:
                found += 1
                yield path


def _is_text(*names: str) -> bool:
    """Return whether these names are text; a file system allows any bytes."""
    return all(name.isprintable() for name in names)


def _stop_store(address: embedded.StoreAddress) -> None:
    """Stop the store if this program started it and no other uses it."""
    if address.started and embedded.status(address.directory).clients == 0:
        embedded.stop(address.directory)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
