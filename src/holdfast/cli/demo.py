"""`holdfast demo`: real files, two workers, one of them killed on the way, and nothing lost."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Self

import click

from holdfast import Client
from holdfast import store as embedded
from holdfast.cli import demo_jobs
from holdfast.cli.demo_show import Diary, Screen, print_report
from holdfast.cli.output import json_option, print_json
from holdfast.errors import JobFailed, StoreUnavailable, UsageError

QUEUES = ("read", "measure", "report")
HEARTBEAT, GRACE = 2, 1
TICK = 0.05
PATIENCE = 60.0
"""Seconds without any progress after which the run gives up."""
MOST_RUNS = 8


class Worker:
    """A `holdfast worker` in a session of its own, so that it can be killed as a whole."""

    def __init__(self, name: str, url: str, namespace: str, directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        words = [sys.executable, "-m", "holdfast.cli.main", "worker", "--workers", "2", "--name", name]
        words += ["--url", url, "--namespace", namespace, "--import", demo_jobs.__name__]
        # The sandboxes of its jobs lie beside its log, and not where somebody looks at a demonstration.
        words += ["--workdir", str(directory)]
        for queue in reversed(QUEUES):  # what is nearly done goes first
            words += ["--queue", queue]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker and all its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop(self) -> None:
        """End it, politely and then not."""
        self.signal(signal.SIGCONT)
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(6)
        self.signal(signal.SIGKILL)
        self.process.wait()

    def check(self) -> None:
        """Raises StoreUnavailable, with the end of its log, if it ended by itself."""
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-800:]
            raise StoreUnavailable(f"{self.name} ended with status {self.process.returncode}:\n{tail}")


class Run:
    """A run in the embedded store at `url`; its files lie below `directory`."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url, self._store = url, directory
        self.namespace, self._lock = _free_namespace(directory)
        self.directory = directory / "demo" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self.directory.mkdir(parents=True)
        self.client = Client(url, namespace=self.namespace)
        self.diary = Diary(self.directory / demo_jobs.DIARY)
        self.workers: list[Worker] = []
        self.killed_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for worker in self.workers:
            worker.stop()
        self.client.close()
        self._lock.close()

    def whole(self, files: list[Path], screen: Screen) -> dict[str, Any]:
        """Put, work, kill, wait, report."""
        self._settle(len(files))
        screen.say(f"putting {len(files)} jobs, one a file")
        jids = self.client.queues["read"].put_many(
            (demo_jobs.SourceFile, {"path": str(path), "run": str(self.directory)}) for path in files
        )
        began = time.monotonic()
        self.workers = [
            Worker(name, self.url, self.namespace, self.directory) for name in ("first", "second")
        ]
        self._watch(len(files), screen)
        seconds = time.monotonic() - began
        screen.say("reporting")
        report = self._report()
        return self._result(jids, seconds, report)

    def _settle(self, count: int) -> None:
        """Short leases, room for all that completes, and nothing left of a run that was ended."""
        config = self.client.config
        config["grace-period"] = GRACE
        config["jobs-history-count"] = max(50_000, 2 * count)
        for name in QUEUES:
            queue = self.client.queues[name]
            queue.heartbeat = HEARTBEAT
            while jobs := queue.pop(512):
                self.client.jobs.cancel(*(job.jid for job in jobs))

    def _watch(self, count: int, screen: Screen) -> None:
        """Follow the run to its end, and kill the first worker halfway."""
        last, moved = -1, time.monotonic()
        while True:
            state = self._state(count)
            self.diary.read()
            screen.show(state, self.diary.returned())
            if state["steps"] != last:
                last, moved = state["steps"], time.monotonic()
            if state["done"] + state["failed"] >= count:
                return
            if not self.killed_at and state["steps"] >= count:  # of two steps each
                self._kill(screen)
            for worker in self.workers:
                worker.check()
            if time.monotonic() - moved > PATIENCE:
                raise StoreUnavailable(f"nothing has happened for {PATIENCE:.0f} s; see {self.directory}")
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

    def _kill(self, screen: Screen) -> None:
        """Kill the first worker and its children with -9, at a moment at which they hold jobs."""
        worker = self.workers[0]
        for _ in range(40):
            worker.signal(signal.SIGSTOP)  # to look what it holds before it is too late
            self.diary.read()
            if self.diary.held_by(worker.name):
                break
            worker.signal(signal.SIGCONT)
            time.sleep(0.002)
        worker.signal(signal.SIGKILL)
        worker.process.wait()
        self.workers.remove(worker)
        self.killed_at = time.time()
        lost = self.diary.lost(worker.name, self.killed_at)
        screen.killed(worker.name, worker.process.pid, lost, HEARTBEAT + GRACE)

    def _report(self) -> dict[str, Any]:
        jid = self.client.queues["report"].put(
            f"{demo_jobs.__name__}.report", {"args": [str(self.directory)], "kwargs": {}}
        )
        found = self.client.result_of(jid, PATIENCE)
        if found is None:
            raise JobFailed("demo", "the report left no result")
        return dict(json.loads(found))

    def _result(self, jids: list[str], seconds: float, report: dict[str, Any]) -> dict[str, Any]:
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
        }


def _free_namespace(directory: Path) -> tuple[str, IO[str]]:
    """A namespace that no other demo uses now, and the lock that says so."""
    (directory / "demo").mkdir(exist_ok=True)
    for number in range(1, MOST_RUNS + 1):
        name = "demo" if number == 1 else f"demo-{number}"
        lock = (directory / "demo" / f"{name}.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return name, lock
    raise UsageError(f"{MOST_RUNS} demos run in {directory} already: wait for one, or name another --dir")


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
    help="The embedded store's directory [default: HOLDFAST_DIR, or holdfast/store in your data directory].",
)
@json_option
@click.pass_context
def demo(context: click.Context, directory: Path | None, store: Path | None, as_json: bool) -> None:
    """Run a job for every source file below DIRECTORY, and kill a worker halfway.

    DIRECTORY is the standard library of the running Python if none is given. The jobs go through two queues, in an
    embedded store; the worker that is killed with -9 takes running jobs along, and they come back.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    files = source_files(directory or Path(sysconfig.get_path("stdlib")))
    with ExitStack() as ends:
        address = embedded.ensure(store)
        ends.callback(_stop_store, address)
        run = ends.enter_context(Run(address.url, address.directory))
        with Screen(len(files), quiet=as_json) as screen:
            result = run.whole(files, screen)
    if as_json:
        print_json(result)
    else:
        print_report(result)
    context.exit(0 if result["done"] == result["put"] else 1)


def source_files(directory: Path) -> list[Path]:
    """The source files below a directory, sorted. Raises UsageError if there is none, or no such directory."""
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
    """Whether these names can be said in JSON; a file system allows any bytes."""
    return all(name.isprintable() for name in names)


def _stop_store(address: embedded.StoreAddress) -> None:
    """End the store if this program started it and nobody else uses it."""
    if address.started and embedded.status(address.directory).clients == 0:
        embedded.stop(address.directory)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
