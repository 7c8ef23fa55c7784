"""`holdfast demo`: run jobs over real files in two workers, kill one of them, and check that no job is lost."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Final, Self

import click

from holdfast import Client
from holdfast import store as embedded
from holdfast.cli import demo_jobs, demo_web
from holdfast.cli.bench_run import Scratch
from holdfast.cli.demo_show import Diary, Screen, print_report
from holdfast.cli.output import json_option, print_json
from holdfast.errors import HoldfastError, JobFailed, StoreUnavailable, UsageError, install_extra
from holdfast.text import counted

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
        steps = (*reversed(QUEUES), demo_web.QUEUE)  # the last step first
        self.workers = [self._worker(name, steps, "process") for name in ("first", "second")]
        self._watch(len(files), jids[middle], screen)
        seconds = time.monotonic() - began
        screen.line("measuring with jobs that do nothing")
        rates = self._rates()
        screen.line("reporting")
        result = self._result(jids, seconds, self._report(), rates)
        demo_web.fill(self.client, str(self.directory))
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

    DIRECTORY defaults to the standard library of Python. Each job goes through two queues of an embedded store. Halfway, a
    worker that holds jobs is killed with -9; the other worker runs these jobs again. The web UI shows the run; on a
    terminal it stays until Enter is pressed. Exit code 1 if a job is not done at the end; then jobs and logs are kept.
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
    if not demo_web.is_installed():
        click.echo(f"the web UI is not installed: {install_extra('web')}", err=True)
        return ""
    web = ends.enter_context(demo_web.DemoWeb(run.url, run.namespace, run.directory))
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
        raise UsageError(f"there are no source files below {directory}: name a directory with some")
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
