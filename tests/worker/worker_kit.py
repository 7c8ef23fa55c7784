"""Workers as real processes, on a store of the run, performing jobs written for the test."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import programs
from programs import calls_store

CHORES = '''
import asyncio, os, pathlib, signal, subprocess, sys, threading
import holdfast
from holdfast import Failed, Moved, Retry

HERE = pathlib.Path(os.environ["CHORES_HERE"])
app = holdfast.Client(os.environ["CHORES_URL"], namespace=os.environ["CHORES_NAMESPACE"])


def note(line):
    """One line for each thing that happened; whole, because it is one write to a file opened to append."""
    descriptor = os.open(HERE / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\\n".encode())
    os.close(descriptor)


def wait_for(gate):
    pause = threading.Event()
    while not (HERE / gate).exists():
        pause.wait(0.005)


async def await_for(gate):
    while not (HERE / gate).exists():
        await asyncio.sleep(0.005)


@app.job(queue="q")
def add(a: int, b: int = 1) -> int:
    return a + b


@app.job(queue="q")
async def aadd(a: int, b: int = 1) -> int:
    await asyncio.sleep(0)
    return a + b


@app.job(queue="q")
def count(number: int) -> None:
    note(f"count {number}")


@app.job(queue="q")
async def acount(number: int) -> None:
    note(f"count {number}")


@app.job(queue="q")
async def block(name: str, gate: str = "gate") -> str:
    note(f"begin {name} {os.getpid()}")
    await await_for(gate)
    note(f"end {name}")
    return name


@app.job(queue="q")
def hog(name: str, gate: str = "gate") -> str:
    note(f"begin {name} {os.getpid()}")
    wait_for(gate)
    note(f"end {name}")
    return name


@app.job(queue="q")
async def careful(name: str, gate: str = "gate") -> str:
    try:
        note(f"begin {name} {os.getpid()}")
        await await_for(gate)
    finally:
        note(f"unwound {name}")
    return name


@app.job(queue="q")
def hog_carefully(name: str, gate: str = "gate") -> str:
    try:
        note(f"begin {name} {os.getpid()}")
        wait_for(gate)
    finally:
        note(f"unwound {name}")
    return name


@app.job(queue="q")
def once(name: str) -> str:
    """Kills its process the first time, works the second."""
    first = not (HERE / name).exists()
    note(f"begin {name} {os.getpid()}")
    if first:
        (HERE / name).touch()
        os.kill(os.getpid(), 9)
    return name


@app.job(queue="q")
def die_once(how: str) -> str:
    """Ends its process the first time, with an exit status or by a signal; works the second."""
    if not (HERE / how).exists():
        (HERE / how).touch()
        if how.isdigit():
            os._exit(int(how))
        os.kill(os.getpid(), getattr(signal, how))
    return how


lock = threading.Lock()


@app.job(queue="q")
def keep_lock(name: str) -> str:
    with lock:
        note(f"begin {name} {os.getpid()}")
        wait_for("gate")
        return name


@app.job(queue="q")
def take_lock(name: str) -> str:
    with lock:
        note(f"begin {name} {os.getpid()}")
    return name


@app.job(queue="q")
def start_program(name: str) -> None:
    program = subprocess.Popen(["sleep", "1000"])
    note(f"begin {name} {os.getpid()} {program.pid}")
    wait_for("gate")


@app.job(queue="q")
def announce(name: str) -> str:
    """Puts on completion; kills its process the first time, completes the second."""
    with holdfast.current_job().on_completion():
        count.put_many([1, 2, 3])
    return once(name)


@app.job(queue="q")
async def bomb() -> None:
    note(f"begin bomb {os.getpid()}")
    await await_for("gate")
    os.kill(os.getpid(), 9)


@app.job(queue="q", retries=2, backoff=0.02)
def unlucky() -> None:
    note("unlucky")
    raise ValueError("out of luck")


@app.job(queue="q")
def hopeless() -> None:
    note("hopeless")
    raise LookupError("no hope")


@app.job(queue="q")
def leave() -> None:
    sys.exit(3)


class OutOfTime(BaseException):
    """What libraries raise to get past `except Exception`."""


class Unspeakable(Exception):
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


ODD_ENDS = {
    "time": OutOfTime(),
    "generator": GeneratorExit(),
    "iterator": StopIteration(),
    "name": OSError("no file \\udcff\\nof that name"),
    "text": Unspeakable(),
}


@app.job(queue="q")
def end_oddly(how: str) -> None:
    raise ODD_ENDS[how]


@app.job(queue="q")
async def aend_oddly(how: str) -> None:
    raise ODD_ENDS[how]


@app.job(queue="q")
def heed(name: str) -> None:
    note(f"begin {name}")
    job, pause = holdfast.current_job(), threading.Event()
    while not job.cancelled:
        pause.wait(0.005)
    note(f"heeded {name}")


@app.job(queue="q")
def order(number: int) -> list[str]:
    with holdfast.current_job().on_completion():
        handles = [add.put(number), *add.put_many([(number + 1,)])]
    return [handle.jid for handle in handles if app.jobs[handle.jid] is None]


@app.job(queue="q")
def wish_oddly(how: str) -> object:
    return {"text": Failed("g", 7), "group": Retry(group="a\\nb")}[how]


@app.job(queue="q")
def who() -> list[str]:
    job = holdfast.current_job()
    return [job.jid, job.worker_name, job.klass_name]


@app.job(queue="q", retries=3)
def odd() -> object:
    note("odd")
    return object()


@app.job(queue="q", result_keep=60, retries=1)
def wish(what: str) -> object:
    if what == "retry" and not (HERE / "wished").exists():
        (HERE / "wished").touch()
        return Retry(after=0.01)
    if what == "fail":
        return Failed("chosen", "as wished")
    if what == "move":
        return Moved("elsewhere")
    return what


@app.job(queue="q")
def fork(how: str) -> int:
    """Forks in the middle of a job; both processes use the client, and the child leaves in its own way."""
    app.queues["q"].counts
    pid = os.fork()
    app.queues["q"].counts
    if pid == 0:
        note(f"forked {how}")
        if how == "return":
            return 5
        if how == "raise":
            raise ValueError("in the child")
        if how == "exit":
            sys.exit(7)
        os._exit(9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    app.queues["q"].counts
    return status


@app.job(queue="q")
def stop_worker() -> None:
    worker.stop()


class Parcel:
    @staticmethod
    def q(job):
        note(f"packed {job['to']}")
        job["packed"] = True
        job.complete("r")

    @staticmethod
    def r(job):
        note(f"shipped {job['to']} {job['packed']}")
        job.complete()


class Older:
    @staticmethod
    def perform(job):
        note("performed")


class Forgetful:
    @staticmethod
    def process(job):
        note("forgot")


class Awaited:
    @staticmethod
    async def process(job):
        await asyncio.sleep(0)
        note("awaited")
        await job.complete()


class Broken:
    @staticmethod
    def process(job):
        raise KeyError("broken inside")


class Lingering:
    """Settles itself, and goes on for longer than its lease."""

    @staticmethod
    def process(job):
        job.complete()
        note(f"begin lingering {os.getpid()}")
        wait_for("gate")
        note("end lingering")
'''


def until(condition: Callable[[], object], what: str, within: float = 30.0) -> None:
    """Wait until something is true; fail if it does not become so."""
    deadline, pause = time.monotonic() + within, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
        pause.wait(0.005)


def process_lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


LEADER = """
import fcntl, os, sys, termios
os.setsid()
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Worker:
    """One `holdfast worker`, or the program that `words` start; its log is a file.

    `leads`: it leads a session of its own, of which `stdin` is the terminal if it is one.
    """

    def __init__(
        self,
        here: Path,
        number: int,
        *flags: str,
        words: Sequence[str] = (),
        stdin: int = subprocess.DEVNULL,
        leads: bool = False,
    ) -> None:
        self.log = here / f"worker-{number}.log"
        words = words or [sys.executable, "-m", "holdfast.cli.main", "worker", *flags]
        start = programs.popen
        if leads:
            start, words = subprocess.Popen, [sys.executable, "-c", LEADER, *words]
        with self.log.open("wb") as log:
            self.process: Any = start(words, cwd=here, stdin=stdin, stderr=log, stdout=log)
        self.pid = self.process.pid

    def said(self) -> str:
        return self.log.read_text()

    def processes(self) -> list[int]:
        """Return all child processes."""
        file = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in file.read_text().split() if not programs.is_loader(int(pid))]

    def loaders(self) -> list[int]:
        file = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in file.read_text().split() if programs.is_loader(int(pid))]

    def children(self) -> list[int]:
        """Return those that perform jobs, once each process shows what it is, or a second later."""
        deadline, pause = time.monotonic() + 1.0, threading.Event()
        while any(map(self._is_new, self.processes())) and time.monotonic() < deadline:
            pause.wait(0.005)
        return [pid for pid in self.processes() if not calls_store(pid)]

    def _is_new(self, pid: int) -> bool:
        """Whether a process still shows the title that it was forked with."""
        try:
            title, mine = (Path(f"/proc/{each}/cmdline").read_bytes() for each in (pid, self.pid))
        except OSError:
            return False
        return bool(title) and (title == mine or not title.startswith(b"holdfast-"))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, within: float = 30.0) -> int:
        return self.process.wait(within)

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Stop parent and children for the time of the block."""
        pids = [self.pid, *self.processes()]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def kill_whole(self) -> None:
        """Kill parent and children at one moment, as the loss of a machine does."""
        pids = [self.pid, *self.processes()]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.process.wait(30)

    def end(self) -> None:
        if self.process.poll() is None:
            children = self.processes()
            self.process.kill()
            self.process.wait(30)
            for pid in children:
                if process_lives(pid):
                    os.kill(pid, signal.SIGKILL)
