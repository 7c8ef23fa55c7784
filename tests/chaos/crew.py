"""Workers as real processes: `holdfast worker` with code of the kit, started, hurt and ended by the test."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import programs
from programs import calls_store
from waiting import until

KIT = Path(__file__).parent


class Crew:
    """The workers of one test. Everything they start dies with the `with` block; what they say is kept."""

    def __init__(self, here: Path, url: str, namespace: str, env: Mapping[str, str] | None = None) -> None:
        self._here = here
        self._url = url
        self._flags = ("--namespace", namespace, "--path", str(KIT))
        path = os.pathsep.join([str(KIT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._env = {**os.environ, "PYTHONPATH": path, "HOLDFAST_URL": url, **(env or {})}
        self.workers: list[Worker] = []

    def start(self, *flags: str, url: str = "") -> "Worker":
        """One more `holdfast worker` with a name of its own, on the store of the crew or another way to it."""
        name = f"w{len(self.workers)}"
        usual = ("--name", name, "--url", url or self._url, *self._flags)
        worker = Worker(name, [*flags, *usual], self._here / f"{name}.log", self._env)
        self.workers.append(worker)
        return worker

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.end()
        if error is not None:
            for worker in self.workers:
                error.add_note(f"worker {worker.pid} said:\n{worker.said()[-2000:]}")


class Worker:
    """One `holdfast worker` and its children, in a session of its own."""

    def __init__(self, name: str, flags: list[str], log: Path, env: Mapping[str, str]) -> None:
        self._log = log
        self.name = name
        with log.open("wb") as out:
            self.process = programs.popen(
                [sys.executable, "-m", "holdfast.cli.main", "worker", *flags],
                cwd=KIT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def family(self) -> list[int]:
        """All living processes of this worker, the parent first."""
        return [self.pid, *self.children()] if self.lives else self.children()

    def processes(self) -> list[int]:
        """All of it, the parent first: also the process that calls the store, and the one that forks the children."""
        parent = [self.pid] if self.lives else []
        return [*parent, *(pid for pid in members(self.pid) if pid != self.pid)]

    def children(self) -> list[int]:
        """The living processes of its session that are not the parent, nor have loaded the code for the others."""
        return [pid for pid in members(self.pid) if pid != self.pid and not programs.is_loader(pid)]

    def workers(self) -> list[int]:
        """Those of them that perform jobs: all but the process that calls the store for the parent."""
        return [pid for pid in self.children() if not calls_store(pid)]

    def signal(self, number: signal.Signals) -> None:
        """To the parent alone."""
        if self.lives:
            self.process.send_signal(number)

    def wait(self, within: float = 30.0) -> int:
        return self.process.wait(within)

    def end(self) -> None:
        """Kill whatever is left of it."""
        for pid in self.family():
            send(pid, signal.SIGKILL)
        self.process.wait(30)
        until(lambda: not self.children(), f"all processes of worker {self.pid} are gone")


def send(pid: int, number: signal.Signals) -> bool:
    """Signal a process of ours. Answers whether it was there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def stop(pid: int) -> None:
    """Stop a process. When this returns it has stopped, or has ended: a signal takes its time to arrive."""
    if send(pid, signal.SIGSTOP):
        until(lambda: all(state in "TtZX" for state in states(pid)), f"process {pid} has stopped", 30)


def states(pid: int) -> list[str]:
    """The state of each thread of a process, none if it is gone."""
    found: list[str] = []
    for entry in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            found.append(entry.read_text().rpartition(")")[2].split()[0])
        except OSError:
            continue
    return found


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found
