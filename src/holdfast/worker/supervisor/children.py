"""The children of one supervisor: forked where one is missing, reaped where one has died, all given the same orders.

They are forked in the thread of the supervisor's selector and nowhere else, so that none is forked while another thread holds a
lock.
"""

import logging
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from random import uniform
from time import monotonic
from typing import Final

import msgspec

from holdfast.commands.outcomes import HowReleased
from holdfast.worker import signals
from holdfast.worker.descendants import descendants, end_all
from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.observe.ledger import count_lost
from holdfast.worker.observe.metrics import State
from holdfast.worker.processes import stop_group
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import UNWIND, cause_of, how_ended
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.child import USED_UP, Body, ChildPlace, become
from holdfast.worker.supervisor.loading import Loading
from holdfast.worker.supervisor.presence import divide
from holdfast.worker.supervisor.upkeep import ChildUpkeep

log = logging.getLogger("holdfast")

SHORT_LIFE: Final = 1.0
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
LOOK: Final = 0.05  # seconds between two looks at whether a new child has begun


class ChildProcess:
    """One child of a supervisor, and those that replace it: the name and the lease table stay. `fork_at` is on the monotonic clock."""

    def __init__(self, name: str, number: int, lease_table: LeaseTable, fork_at: float = 0.0) -> None:
        self.name = name
        self.number = number
        self.lease_table = lease_table
        self.pid = 0
        self.pipe: socket.socket | None = None
        self.born = 0.0
        self.crashes = 0
        self.started = 0
        self.failed = 0
        self.fork_at = fork_at
        self.is_finished = False
        self.is_retiring = False
        self.had_jobs = False
        self.preempted = ""

    @property
    def awaits_child(self) -> bool:
        """Whether a process is to be forked, now or at `fork_at`."""
        return not self.pid and not self.is_finished

    def settings_of(self, settings: WorkerSettings) -> WorkerSettings:
        """Return the settings of the next process: only the first one resumes jobs that others of its name held.

        A job that is resumed may be what the first one died of.
        """
        held = () if self.born else tuple(divide(settings.held, settings.workers)[self.number])
        return msgspec.structs.replace(settings, held=held)

    @property
    def is_at_work(self) -> bool:
        """Whether its process has begun to take jobs."""
        return bool(self.pid) and self.lease_table.has_begun

    def begin(self, pid: int, pipe: socket.socket) -> None:
        """Note a new process."""
        self.pid, self.pipe, self.born = pid, pipe, monotonic()
        self.started += 1
        self.is_retiring = self.had_jobs = False
        self.preempted = ""

    def poke(self) -> None:
        """Have the child read its lease table."""
        if self.pipe is not None:
            try:
                self.pipe.send(b"\0")
            except OSError:
                pass  # it is ending, or has enough to read

    def signal(self, number: signal.Signals) -> None:
        """Send its child a signal, if there is one."""
        if self.pid:
            os.kill(self.pid, number)

    def preempt(self, cause: str) -> None:
        """Note that the child is ended from outside, and not because of a job: its jobs are requeued at no cost."""
        self.preempted = self.preempted or cause

    def kill(self) -> None:
        """Kill the child, and the processes of its jobs."""
        for process in self.lease_table.processes():
            stop_group(process)
        # They have another parent afterwards.
        started = descendants(self.pid) if self.pid else []
        self.signal(signal.SIGKILL)
        end_all(started)

    def release_of(self, code: int | None) -> tuple[HowReleased, str]:
        """Return how the leases of the dead child are released, and the cause; `code` is its exit code, None if it is unknown."""
        if self.preempted:
            return "preempted", self.preempted
        return ("lost", "") if code is None else ("crashed", cause_of(code))

    def retire(self) -> None:
        """Order the child to end after its jobs, to be replaced."""
        self.is_retiring = True
        self.signal(signal.SIGQUIT)

    def close(self) -> None:
        """Note that the process is dead, and count its jobs as lost."""
        if self.pipe is not None:
            self.pipe.close()
        self.pid, self.pipe = 0, None
        count_lost(self.name)

    @property
    def state(self) -> State:
        """Its state, for metrics."""
        return State(bool(self.pid), len(self.lease_table.read_all()), self.started, self.failed)

    def put_off(self) -> float:
        """Put the next fork off after a failure, longer each time. Return for how many seconds."""
        self.crashes += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * float(1 << min(self.crashes, 10)))
        self.fork_at = monotonic() + pause
        return pause

    def replace(self, code: int, stopped: bool) -> tuple[str, bool, float]:
        """Decide when the child that ended with `code` is replaced. `stopped`: it was killed for its job.

        Return how it ended, whether that was intended, and the pause in seconds.
        """
        meant = stopped or bool(self.preempted) or code == USED_UP or (self.is_retiring and code == 0)
        if stopped:
            how = "was stopped with its job"
        elif code == USED_UP or (self.is_retiring and code == 0):
            how = "has ended as planned"
        else:
            how = how_ended(code)
        self.failed += not meant
        if not meant and not self.had_jobs and monotonic() - self.born < SHORT_LIFE:
            return how, meant, self.put_off()
        # A signal to the whole group, as of a terminal, may reach the children first: the order to stop is on its way.
        pause = FIRST_PAUSE if code == 0 and not meant and not self.had_jobs else 0.0
        self.crashes, self.fork_at = 0, monotonic() + pause
        return how, meant, pause


LOADING_TIMEOUT_S: Final = 1.0  # seconds


class Children:
    """`settings.workers` children, each of which runs `body`; `upkeep` renews their leases.

    What is registered in `selector` comes with the function to call when it is ready; children close all of that, and the
    descriptor `wake`. `is_last` returns whether a child that ended with a status is not replaced. `loading` loads their code.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        store: StoreChoice,
        body: Body,
        upkeep: ChildUpkeep,
        selector: selectors.BaseSelector,
        wake: int,
        is_last: Callable[[ChildProcess, int], bool],
        loading: Loading | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._body = body
        self._upkeep = upkeep
        self._selector = selector
        self._wake = wake
        self._is_last = is_last
        self._loading = loading
        # When a rolling restart began: children that are older are replaced one at a time.
        self._restarted = -inf
        self.children = [self._make_child(number) for number in range(settings.workers)]

    def running(self) -> list[ChildProcess]:
        """Return the children that have a process."""
        return [child for child in self.children if child.pid]

    def missing(self) -> list[ChildProcess]:
        """Return the children for which a process is to be forked, now or later."""
        return [child for child in self.children if child.awaits_child]

    def due(self, *, fills: bool) -> float:
        """Return when to call `reap` next, or if `fills` also `fill`, on the monotonic clock."""
        # A child that has closed its pipe ends, but without a signal it is not known when.
        ends = monotonic() + LOADING_TIMEOUT_S if any(child.pipe is None for child in self.running()) else inf
        if not fills:
            return ends
        # A child does not notify its supervisor when it has begun.
        rolling = monotonic() + LOOK if self._restarted > -inf else inf
        forks = [] if self._waits_for_releases else [child.fork_at for child in self.missing()]
        return min([ends, rolling, *forks])

    def fill(self) -> None:
        """Fork where a process is missing, and order the next one to end in a rolling restart."""
        for child in self.missing():
            if child.fork_at <= monotonic() and not self._waits_for_releases:
                self._fork(child)
        old = self._next_to_replace()
        if old is not None:
            log.info("worker %s (process %d) is replaced after its jobs", old.name, old.pid)
            old.retire()

    @property
    def _waits_for_releases(self) -> bool:
        """Whether none is forked yet: one that drains the queues would find them empty, and end before jobs come back."""
        return self._settings.drain and self._upkeep.is_releasing

    def restart(self) -> None:
        """Replace all running children, one at a time, each after its jobs."""
        self._restarted = monotonic()

    def _next_to_replace(self) -> ChildProcess | None:
        """Return the child to replace now, if any. All but one are always at work."""
        children = self.children
        if self._restarted == -inf or any(child.is_retiring for child in children):
            return None
        if not all(child.is_at_work or child.is_finished for child in children):
            return None
        old = [child for child in children if child.pid and child.born <= self._restarted]
        if old:
            # The idle first: a child that is busy for long delays no other.
            return min(old, key=lambda child: len(child.lease_table.read_all()))
        self._restarted = -inf
        return None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every child."""
        for child in self.running():
            child.signal(number)

    def unwind(self, cause: str) -> None:
        """Order every child to stop its jobs and end, because of the signal `cause`; the jobs are requeued at no cost."""
        for child in self.running():
            child.preempt(cause)
            child.signal(UNWIND)

    def kill(self, cause: str) -> None:
        """Kill every child; its jobs are requeued at no cost, because of `cause`."""
        for child in self.running():
            child.preempt(cause)
            child.kill()

    def pause(self, pause: bool) -> None:
        """Have no more jobs taken, or have jobs taken again."""
        for child in self.children:
            child.lease_table.paused = pause
            child.poke()

    def reap(self, *, replace: bool) -> None:
        """Release the leases of children that have died; `replace`: other processes replace them."""
        for child in self.running():
            self._check(child, replace)

    def end(self, cause: str) -> None:
        """Kill all children, because of `cause`, and wait for them."""
        self.kill(cause or "the end of its worker")
        for child in self.running():
            with suppress(ChildProcessError):
                os.waitpid(child.pid, 0)
            self._reap(child)

    def close(self) -> None:
        """Free the lease tables."""
        for child in self.children:
            child.lease_table.close()

    def _make_child(self, number: int) -> ChildProcess:
        name, delay = self._settings.worker_name(number), uniform(0.0, self._settings.max_startup_interval)
        tables = self._loading.lease_tables if self._loading is not None else None
        table = tables[number] if tables else LeaseTable(self._settings.concurrency)
        return ChildProcess(name, number, table, monotonic() + delay)

    def _fork(self, child: ChildProcess) -> None:
        _flush()
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            self._cannot_fork(child, error)
            return
        ours.setblocking(False)
        place = ChildPlace(
            child.name,
            child.number,
            child.lease_table,
            theirs,
            os.getpid(),
            child.settings_of(self._settings),
            self._store,
        )
        with theirs:
            # A signal between the fork and the child's own handlers would be taken for one to the parent.
            signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
            try:
                pid = self._fork_process(place, ours)
            except OSError as error:
                ours.close()
                self._cannot_fork(child, error)
                return
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        child.begin(pid, ours)
        if self._loading is not None:
            child.poke()  # it has waited for that
        self._selector.register(ours, selectors.EVENT_READ, partial(self._read, child, ours))
        log.info("worker %s started as process %d", child.name, pid)

    def _fork_process(self, place: ChildPlace, ours: socket.socket) -> int:
        loading = self._loading
        pid = None if loading is None else loading.fork(place)
        if pid is None:
            pid = os.fork()
            if pid == 0:
                load = None if loading is None else loading.load_in_child
                become(place, self._body, [ours.fileno(), *self.descriptors()], load)
        return pid

    def _cannot_fork(self, child: ChildProcess, error: OSError) -> None:
        log.error(
            "worker %s cannot be started, trying again in %.1f s: %s", child.name, child.put_off(), error
        )

    def descriptors(self) -> list[int]:
        """Return the descriptors of the parent that a child must close; an end of a pipe kept open would hide the parent's death."""
        registered = [key.fd for key in self._selector.get_map().values()]
        selector = getattr(self._selector, "fileno", None)
        loaders = self._loading.descriptors() if self._loading is not None else []
        return [*registered, *loaders, self._wake, *([selector()] if selector else [])]

    def _read(self, child: ChildProcess, pipe: socket.socket) -> None:
        try:
            received = pipe.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if received:
            self._upkeep.learn(child)
        else:
            # The child is ending; SIGCHLD follows when it has ended.
            self._selector.unregister(pipe)
            pipe.close()
            child.pipe = None

    def _check(self, child: ChildProcess, replace: bool) -> None:
        status: int | None
        try:
            pid, status = os.waitpid(child.pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            pid, status = child.pid, None  # something else has taken its status
        if pid and status is not None and os.WIFSTOPPED(status):
            log.warning("worker %s (process %d) is halted by a signal until CONT", child.name, pid)
        elif pid:
            known = None if status is None else os.waitstatus_to_exitcode(status)
            child.had_jobs = bool(child.lease_table.read_all())
            stopped, code = self._reap(child, known), known or 0
            child.is_finished = self._is_last(child, code) and not child.had_jobs
            _log_end(child, pid, code, stopped, replace=replace and not child.is_finished)

    def _reap(self, child: ChildProcess, code: int | None = None) -> bool:
        """Have the leases of a dead child released. Return whether it had been killed because of its job."""
        for process in child.lease_table.processes():
            stop_group(process)
        stopped = self._upkeep.release(child, *child.release_of(code))
        if child.pipe is not None:
            self._selector.unregister(child.pipe)
        child.close()
        return stopped


def _log_end(child: ChildProcess, pid: int, code: int, stopped: bool, *, replace: bool) -> None:
    if not replace:
        log.info("worker %s (process %d) %s", child.name, pid, how_ended(code) if code else "has ended")
        return
    how, was_meant, pause = child.replace(code, stopped)
    level = logging.INFO if was_meant else logging.WARNING
    log.log(level, "worker %s (process %d) %s; it is replaced in %.1f s", child.name, pid, how, pause)


def _flush() -> None:
    """Write what is buffered, which every child would write again."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
