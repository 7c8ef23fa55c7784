"""A forked child of the supervisor, and its slot: what of it outlives the child, and how soon it is replaced."""

import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from math import inf
from time import monotonic
from typing import Final, NamedTuple, NoReturn

import msgspec

from holdfast.commands.outcomes import HowReleased
from holdfast.work import signals
from holdfast.work.observe.board import listen
from holdfast.work.observe.ledger import bury
from holdfast.work.observe.metrics import State
from holdfast.work.parent.lease_table import LeaseTable
from holdfast.work.parent.presence import divide
from holdfast.work.performing.around import Surroundings
from holdfast.work.processes import send_rest, stop_group
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import (
    UNWIND,
    Handler,
    Terminated,
    cause_of,
    end_process,
    how_ended,
    ignore,
    log_stack,
)
from holdfast.work.stop_order import StopOrder
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")


class Place(NamedTuple):
    """What a child is given: its name and number, its lease table, its end of the pipe to the parent, and its work.

    `order`: how TERM and INT are obeyed where there is no parent, which would order it.
    """

    name: str
    number: int
    lease_table: LeaseTable
    pipe: socket.socket
    parent: int
    settings: WorkerSettings
    store: StoreChoice
    order: StopOrder | None = None

    def is_orphan(self) -> bool:
        """Whether the parent is dead."""
        return os.getppid() != self.parent

    def poke(self) -> None:
        """Make the parent look at the lease table."""
        try:
            self.pipe.send(b"\0")
        except OSError:
            pass  # a full pipe pokes too, and a dead parent cannot be poked

    def hears_of_end(self) -> bool:
        """Read the pipe. Answers whether the parent is gone."""
        try:
            return self.pipe.recv(4096) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


Body = Callable[[Place, Surroundings], bool]
"""Works until told to stop, with what the process keeps around its jobs. Answers whether the process is used up, and another one should go on in its place."""

_UNTIL_AT_WORK: Final[dict[signal.Signals, Handler | signal.Handlers]] = {
    **dict.fromkeys((signal.SIGTERM, signal.SIGQUIT, UNWIND), end_process),
    signal.SIGINT: ignore,
    **dict.fromkeys((signal.SIGUSR1, signal.SIGUSR2), log_stack),
    signal.SIGHUP: signal.SIG_IGN,
}
"""What signals do to a child before its body says what they do; by default most would kill it, one with a core dump."""

USED_UP: Final = 75
"""The exit status of a process that is used up."""


def become(place: Place, body: Body, inherited: Iterable[int]) -> NoReturn:
    """Be a child: forget the parent's handlers and descriptors, run `body`, and end."""
    code = 1
    try:
        signals.reset()
        for number, handler in _UNTIL_AT_WORK.items():
            signal.signal(number, handler)
        listen()
        importlib.invalidate_caches()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        for descriptor in inherited:
            os.close(descriptor)
        place.pipe.setblocking(False)
        around = Surroundings.of_child(place.settings, place.number)
        try:
            code = USED_UP if body(place, around) else 0
        finally:
            # It ends already: one more order would only cut off what is still to be done.
            for number in _UNTIL_AT_WORK:
                signal.signal(number, signal.SIG_IGN)
            around.close()
            send_rest()
    except Terminated:
        code = 0
    except BaseException:
        log.exception("worker %s ends", place.name)
    finally:
        # Nothing of the parent's may run here: no exit handlers, no buffers of its that are not flushed.
        try:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


SHORT_LIFE: Final = 1.0
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
LOOK: Final = 0.05  # seconds between two looks at whether a new child has begun


class ChildProcess:
    """The place of one child: its name and lease table outlive it. `fork_at` is on the monotonic clock."""

    def __init__(self, name: str, number: int, slots: int, fork_at: float = 0.0) -> None:
        self.name = name
        self.number = number
        self.lease_table = LeaseTable(slots)
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
        """Whether a child is to be forked here, now or at `fork_at`."""
        return not self.pid and not self.is_finished

    def told(self, settings: WorkerSettings) -> WorkerSettings:
        """What its next child is told: only the first one goes on with what others of its name held.

        A job that is resumed may be what the first one died of.
        """
        held = () if self.born else tuple(divide(settings.held, settings.workers)[self.number])
        return msgspec.structs.replace(settings, held=held)

    @property
    def is_at_work(self) -> bool:
        """Whether a child lives here that has begun to take jobs."""
        return bool(self.pid) and self.lease_table.has_begun

    def settle(self, pid: int, pipe: socket.socket) -> None:
        """A child lives here now."""
        self.pid, self.pipe, self.born = pid, pipe, monotonic()
        self.started += 1
        self.is_retiring = self.had_jobs = False
        self.preempted = ""

    def poke(self) -> None:
        """Make the child look at its lease table."""
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
        """The child is about to be ended from outside, and not because of a job: its jobs are requeued at no cost."""
        self.preempted = self.preempted or cause

    def kill(self) -> None:
        """Kill the child, and what performs its jobs beside it."""
        for process in self.lease_table.processes():
            stop_group(process)
        self.signal(signal.SIGKILL)

    def release_of(self, code: int | None) -> tuple[HowReleased, str]:
        """Return how the leases of the dead child are released, and the cause; `code` is its exit code, None if it is unknown."""
        if self.preempted:
            return "preempted", self.preempted
        return ("lost", "") if code is None else ("crashed", cause_of(code))

    def retire(self) -> None:
        """Ask the child to make room for another after its jobs."""
        self.is_retiring = True
        self.signal(signal.SIGQUIT)

    def leave(self) -> None:
        """The child is dead and buried."""
        if self.pipe is not None:
            self.pipe.close()
        self.pid, self.pipe = 0, None
        bury(self.name)

    @property
    def state(self) -> State:
        """What is told of it to those who measure."""
        return State(bool(self.pid), len(self.lease_table.read_all()), self.started, self.failed)

    def put_off(self) -> float:
        """Nothing came of a child here: try again later, and later each time. Answers in how many seconds."""
        self.crashes += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * float(1 << min(self.crashes, 10)))
        self.fork_at = monotonic() + pause
        return pause

    def replace(self, code: int, stopped: bool) -> tuple[str, bool, float]:
        """Decide when the child that ended with `code` is replaced, and say how it ended.

        `stopped`: it was killed for its job. Answers how, whether that was as it should be, and the pause in seconds.
        """
        meant = stopped or bool(self.preempted) or code == USED_UP or (self.is_retiring and code == 0)
        if stopped:
            how = "was stopped with its job"
        elif code == USED_UP:
            how = "has performed as many jobs as it may"
        elif self.is_retiring and code == 0:
            how = "has made room"
        else:
            how = how_ended(code)
        self.failed += not meant
        if not meant and not self.had_jobs and monotonic() - self.born < SHORT_LIFE:
            return how, meant, self.put_off()
        # Who signals a whole group, as a terminal does, may reach the children first: the order to stop is on its way.
        pause = FIRST_PAUSE if code == 0 and not meant and not self.had_jobs else 0.0
        self.crashes, self.fork_at = 0, monotonic() + pause
        return how, meant, pause


class Rolling:
    """A rolling restart: every child that was born before it began is replaced, politely, one at a time.

    Nobody is asked to go while another place is empty, so all but one are always at work.
    """

    def __init__(self) -> None:
        self._began = -inf

    @property
    def is_under_way(self) -> bool:
        """Whether there is, perhaps, somebody left to replace."""
        return self._began > -inf

    def begin(self) -> None:
        """Replace everybody who lives now."""
        self._began = monotonic()

    def step(self, children: Sequence[ChildProcess]) -> ChildProcess | None:
        """Who is to be asked to go now, if anybody."""
        if not self.is_under_way or any(child.is_retiring for child in children):
            return None
        if not all(child.is_at_work or child.is_finished for child in children):
            return None
        old = [child for child in children if child.pid and child.born <= self._began]
        if old:
            # The idle first: who is busy for long keeps nobody waiting that could go at once.
            return min(old, key=lambda child: len(child.lease_table.read_all()))
        self._began = -inf
        return None

    def due(self) -> float:
        """When to ask for the next step: a child does not tell when it has begun."""
        return monotonic() + LOOK if self.is_under_way else inf
