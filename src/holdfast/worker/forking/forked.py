"""One job in a process of its own, which is forked for it and ends with the process that forked it.

The process runs the job and sends its outcome through a pipe; the process that forked it settles the job and renews its lease. So
nothing that a job does to its process outlasts it, and a job that takes too long is killed with all that it started.
"""

import _socket
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from math import inf
from select import POLLIN, poll
from time import monotonic, time
from typing import Final

from holdfast.code.failure import brief
from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import HowReleased, Release
from holdfast.errors import WorkError
from holdfast.models import JobFacts
from holdfast.wire.waiting import sleep
from holdfast.worker import signals
from holdfast.worker.descendants import OwnFork
from holdfast.worker.forking.solitary import BY_ITSELF, SETTLED, SIZE, Assignment, become, read_outcome
from holdfast.worker.observe.ledger import note_lost
from holdfast.worker.performing.outcome import Outcome, log_release
from holdfast.worker.performing.surroundings import Surroundings, make_resolver, nothing
from holdfast.worker.processes import lead_group, prepare, stop_group
from holdfast.worker.settings import ONE_SLOT, WorkerSettings
from holdfast.worker.signals import DeferredTermination, Terminated
from holdfast.worker.store_choice import StoreChoice

log = logging.getLogger("holdfast")

DANGEROUS: Final = 2
"""A job that lost this many leases runs alone."""

PARTING: Final = 2.0  # seconds that a process gets to end by itself when it has sent its outcome
LOOK: Final = 0.05  # seconds between two looks at a process, where its end cannot be waited for

CRASH_PAUSE: Final = 0.1
"""Seconds after a crash before the next process is forked."""

_CHUNK: Final = 1 << 16


class Forking:
    """Forks a process for one job after another; `store` and `settings` are the worker's, `around` is the process's.

    `on_process` is called with the process that `perform` waits for, and with 0 when it has ended; the processes close the
    descriptors `inherited`.
    """

    def __init__(
        self,
        store: StoreChoice,
        settings: WorkerSettings,
        around: Surroundings,
        on_process: Callable[[int], None] = lambda pid: None,
    ) -> None:
        self._on_process = on_process
        self.inherited: tuple[int, ...] = ()
        self._store = store
        self._settings = settings
        self._around = around
        self._current: ForkedJob | None = None
        self._resolver = make_resolver(settings)
        self._has_advised = False
        prepare()

    def start(
        self, facts: JobFacts, ends: float = inf, on_settled: Callable[[], None] = nothing
    ) -> "ForkedJob":
        """Begin to perform a job, which may take until `ends`, on the monotonic clock; else as `perform`."""
        if facts.losses >= DANGEROUS:
            log.warning(
                "job %s lost its lease %d times; it runs in a separate process", facts.jid, facts.losses
            )
        self._look_for(facts)
        ours, theirs = os.pipe()
        assignment = Assignment(
            facts, theirs, os.getpid(), self._store, self._settings, self._around, self._resolver
        )
        # A signal between the fork and the handlers of the new process would be taken for one to this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
        try:
            pid = _fork()
            if pid == 0:
                for descriptor in (ours, *self.inherited):
                    os.close(descriptor)
                become(assignment)
        except BaseException:
            os.close(ours)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(theirs)
        log.debug("process %d was forked for job %s", pid, facts.jid)
        return ForkedJob(facts, pid, ours, ends, on_settled)

    def perform(
        self, facts: JobFacts, ends: float = inf, on_settled: Callable[[], None] = nothing
    ) -> Outcome:
        """Perform a job and wait for its end. Whatever interrupts the waiting ends the job's process too.

        `on_settled` is called when the job has settled itself; it may run for long after that.
        """
        forked: ForkedJob | None = None
        try:
            with DeferredTermination():
                forked = self._current = self.start(facts, ends, on_settled)
                self._on_process(forked.pid)
            if self._settings.pool in ONE_SLOT:
                self._around.title.show("Forked %d at %d", forked.pid, time())
            outcome = forked.wait()
            if isinstance(outcome, Release) and outcome.how == "crashed":
                sleep(CRASH_PAUSE)  # one crash after the other should not be all that a machine does
            return outcome
        except BaseException:
            if forked is not None:
                forked.end(self._settings.unwind_timeout)
            raise
        finally:
            self._current = None
            self._on_process(0)

    def _look_for(self, facts: JobFacts) -> None:
        """Find the code of a job if its module is here already, so that its process need not; nothing is imported here."""
        module = facts.klass.rpartition(".")[0]
        if module in sys.modules:
            try:
                self._resolver.resolve(facts.klass, facts.queue)
            except Exception as error:
                log.debug("the process of job %s sent an error: %s", facts.jid, brief(error))
        elif self._settings.pool == "fork" and not self._has_advised:
            self._has_advised = True
            log.info(
                "the process of each job imports %s again; --import %s imports it once",
                facts.klass,
                module or facts.klass,
            )

    def stop(self) -> None:
        """End what `perform` waits for; nothing is reported of its job. Any thread may do that."""
        forked = self._current
        if forked is not None:
            forked.stop()


class ForkedJob:
    """The process of one job, as seen by the process that forked it. `stop` may be called by any thread."""

    def __init__(
        self, facts: JobFacts, pid: int, pipe: int, ends: float, on_settled: Callable[[], None]
    ) -> None:
        lead_group(pid)
        self.facts = facts
        self.pid = pid
        self._pipe = pipe
        self._ends = ends
        self._on_settled = on_settled
        self.has_settled = False
        self._received = b""
        self._lock = threading.Lock()
        self._is_over = False
        self._stopped: str | None = None
        self._unwinds = False

    def wait(self, owner: _socket.socket | None = None) -> Outcome:
        """Wait until the process has ended, and return the outcome of the job. The process is killed at the end of its time.

        A byte from `owner` has the job unwind, and its end the process killed. Raises Terminated when the job was unwound.
        """
        process = _descriptor_of(self.pid)
        try:
            if not self._listen(process, owner):
                self.stop("it exceeded its timeout")
            status = self._reap(process)
        finally:
            os.close(self._pipe)
            if process >= 0:
                os.close(process)
        if self._unwinds and not self._is_complete():
            raise Terminated
        return self._outcome(status)

    def stop(self, why: str = "") -> None:
        """Kill the process and all that it started. Without a reason nothing more is reported of its job."""
        with self._lock:
            if not self._is_over and self._stopped is None:
                self._stopped = why
                stop_group(self.pid)

    def unwind(self) -> None:
        """Stop the job and end its process; then `wait` raises Terminated. Any thread may call it."""
        with self._lock:
            if not self._is_over:
                self._unwinds = True
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signals.UNWIND)

    def end(self, unwind_timeout: float) -> None:
        """Have the process unwind within a time, and wait for its end; for a caller of `wait` that was interrupted."""
        self.unwind()
        until = monotonic() + unwind_timeout
        while not _has_ended(self.pid) and monotonic() < until:
            sleep(LOOK / 10)
        self.stop()
        with self._lock:
            if not self._is_over:
                self._is_over = True
                _status_of(self.pid)

    def _listen(self, process: int, owner: _socket.socket | None) -> bool:
        """Read until the outcome has come, or cannot come any more. Return False if the time was over before."""
        watched = poll()
        watched.register(self._pipe, POLLIN)
        if process >= 0:
            watched.register(process, POLLIN)
        if owner is not None:
            watched.register(owner, POLLIN)
        while not self._is_complete():
            left = self._ends - monotonic()
            if left <= 0:
                return False
            ready = [one for one, _ in watched.poll(_milliseconds(left if process >= 0 else min(left, LOOK)))]
            if self._pipe in ready:
                received = os.read(self._pipe, _CHUNK)
                self._note(received)
                if not received:
                    watched.unregister(self._pipe)  # the job closed it, and still runs
            elif owner is not None and owner.fileno() in ready:
                if owner.recv(1):
                    self.unwind()
                else:
                    watched.unregister(owner)
                    self.stop()
            elif ready or (process < 0 and _has_ended(self.pid)):
                break  # what the job started and did not end may hold the pipe open
        return True

    def _note(self, received: bytes) -> None:
        self._received += received
        if self._received.startswith(BY_ITSELF):
            self._received = self._received.removeprefix(BY_ITSELF)
            self.has_settled = True
            self._on_settled()

    def _is_complete(self) -> bool:
        length, size = len(self._received), SIZE.size
        return length >= size and length - size >= SIZE.unpack_from(self._received)[0]

    def _reap(self, process: int) -> int:
        """Wait for the process, whose outcome has come or cannot come. Return its wait status."""
        watched = poll()
        if process >= 0:
            watched.register(process, POLLIN)
        end = monotonic() + PARTING
        while not _has_ended(self.pid):
            left = end - monotonic()
            if left <= 0:
                stop_group(self.pid)
            watched.poll(_milliseconds(PARTING if process >= 0 else LOOK / 10))
        if self._unwinds:
            stop_group(self.pid)
        elif not self._is_complete():
            # What a process that crashed had started; its last chance is TERM, which multiprocessing's tracker ignores.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)
        with self._lock:
            self._is_over = True
            return _status_of(self.pid)

    def _outcome(self, status: int) -> Outcome:
        jid, code = self.facts.jid, os.waitstatus_to_exitcode(status)
        if self._stopped is not None:
            if not self._stopped:
                return None
            return self._given_back("timed-out", f"{int(self.facts.options.get('limit', 0)) / 1000:g} s")
        if self._is_complete():
            try:
                return read_outcome(self._received[SIZE.size :], self.facts)
            except WorkError as error:
                log.error("job %s released: %s", jid, error)
                return self._given_back("lost", "")
        if code == SETTLED:
            return None
        if self.has_settled:
            log.warning(
                "process %d of job %s, which settled itself, %s", self.pid, jid, signals.how_ended(code)
            )
            return None
        return self._given_back("crashed", signals.cause_of(code))

    def _given_back(self, how: HowReleased, cause: str) -> Outcome:
        facts = self.facts
        left = facts.remaining
        if how != "timed-out" and facts.max_losses is not None:
            left = facts.max_losses - facts.losses  # a queue may allow fewer, which is not known here
        log_release(facts.jid, how, cause, facts, has_failed=left <= 0)
        note_lost(facts)
        return Release([Lease(facts.jid, facts.token, facts.worker)], how, cause)


def _fork() -> int:
    """Fork while no other thread writes to the log: its file would stay locked in the new process."""
    handlers = [*logging.getLogger().handlers, *log.handlers]
    for handler in handlers:
        handler.acquire()
    pid = -1
    try:
        with OwnFork():
            pid = os.fork()
    finally:
        # In the new process `logging` has given them new locks by now.
        for handler in handlers if pid else ():
            handler.release()
    return pid


def _descriptor_of(pid: int) -> int:
    """Return a descriptor that becomes readable when a process has ended, -1 where there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def _status_of(pid: int) -> int:
    """Return the wait status of a process that ends; 0 where something else has taken it."""
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _milliseconds(seconds: float) -> float | None:
    return None if seconds == inf else seconds * 1000
