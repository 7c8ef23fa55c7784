"""The places of children under their parent: what of each outlives the child, and how soon it is replaced."""

import os
import signal
import socket
from collections.abc import Sequence
from math import inf
from time import monotonic
from typing import Final

import msgspec

from holdfast.commands.outcomes import HowReleased
from holdfast.work.forking.lineage import stop_group
from holdfast.work.observe.ledger import bury
from holdfast.work.observe.metrics import State
from holdfast.work.parent.child import USED_UP
from holdfast.work.parent.resuming import divide
from holdfast.work.parent.slate import Slate
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import cause_of, how_ended

SHORT_LIFE: Final = 1.0
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
LOOK: Final = 0.05  # seconds between two looks at whether a new child has begun


class Slot:
    """The place of one child: its name and slate outlive it. `fork_at` is on the monotonic clock."""

    def __init__(self, name: str, number: int, seats: int, fork_at: float = 0.0) -> None:
        self.name = name
        self.number = number
        self.slate = Slate(seats)
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
        return bool(self.pid) and self.slate.has_begun

    def settle(self, pid: int, pipe: socket.socket) -> None:
        """A child lives here now."""
        self.pid, self.pipe, self.born = pid, pipe, monotonic()
        self.started += 1
        self.is_retiring = self.had_jobs = False
        self.preempted = ""

    def poke(self) -> None:
        """Make the child look at its slate."""
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
        for process in self.slate.processes():
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
        return State(bool(self.pid), len(self.slate.read_all()), self.started, self.failed)

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

    def step(self, slots: Sequence[Slot]) -> Slot | None:
        """Who is to be asked to go now, if anybody."""
        if not self.is_under_way or any(slot.is_retiring for slot in slots):
            return None
        if not all(slot.is_at_work or slot.is_finished for slot in slots):
            return None
        old = [slot for slot in slots if slot.pid and slot.born <= self._began]
        if old:
            # The idle first: who is busy for long keeps nobody waiting that could go at once.
            return min(old, key=lambda slot: len(slot.slate.read_all()))
        self._began = -inf
        return None

    def due(self) -> float:
        """When to ask for the next step: a child does not tell when it has begun."""
        return monotonic() + LOOK if self.is_under_way else inf
