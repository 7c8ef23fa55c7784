"""The slots of one process with many of them, and the crew of threads or greenlets that performs their jobs.

A loop takes as many jobs as there are free slots; slots that end together share the call that says so. How a job is
started and stopped, and how a loop waits, is the loop's own.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar

from holdfast.code.current import Running
from holdfast.code.middleware import Perform
from holdfast.commands.leases import Lease, Popped
from holdfast.errors import HoldfastError
from holdfast.models import JobFacts
from holdfast.wire.outage import Outage
from holdfast.wire.plans import Plan
from holdfast.wire.shards import RequestSequence, Shard
from holdfast.work.forking.forked import ForkedJob
from holdfast.work.forking.server import ServedJob
from holdfast.work.keeper import OVER, Held, run_end
from holdfast.work.parent.lease_table import LeaseTable
from holdfast.work.performing.housekeeping import Housekeeping
from holdfast.work.performing.outcome import Ending, timed_out
from holdfast.work.queues.route import Route
from holdfast.work.session import ANY_QUEUE, StoreSession, granted
from holdfast.work.settings import WorkerSettings, own_of

log = logging.getLogger("holdfast")

LAST_CALL: Final = 1.0  # time limit in seconds of the last call of a process that is about to end


class Slot(Held):
    """A lease, and what works on it: the run, once its code was found, or the process of a job that is performed alone.

    `is_stray`: its job has ended as far as anybody is concerned, but cannot be stopped; nobody waits for it.
    """

    __slots__ = ("current", "forked", "is_stray", "limit")

    def __init__(self, facts: JobFacts, worker: str, since: float, number: int) -> None:
        lease, ends = facts.lease_ms / 1000, run_end(facts, since)
        self.limit = ends - since
        super().__init__(facts.jid, facts.token, worker, lease, number, ends)
        self.current: Running | None = None
        self.forked: ServedJob | ForkedJob | None = None
        self.is_stray = False

    def stop_process(self) -> bool:
        """Kill the process of a job that runs alone. Returns whether there is one."""
        if self.forked is not None:
            self.forked.stop()
        return self.forked is not None

    def unwind_process(self) -> bool:
        """Have the process of a job that runs alone unwind. Returns whether there is one."""
        if self.forked is not None:
            self.forked.unwind()
        return self.forked is not None

    def timed_out(self) -> Ending:
        """Return the outcome of a job that exceeded its timeout."""
        return timed_out(Lease(self.jid, self.token, self.worker), self.limit)

    def settled_itself(self) -> bool:
        """Whether the job has said its own end, so that a lease that is gone is no loss."""
        made = self.current.made if self.current is not None else None
        told = self.forked is not None and self.forked.has_settled
        return told or (made is not None and bool(made.state_changed))


S = TypeVar("S", bound=Slot)


class Slots(Generic[S]):
    """The slots of one process, and its round trips. The process that renews the leases reads them in the lease table, and
    is notified by `on_short_lease` of one that is shorter than those that it renews in time.
    """

    def __init__(
        self,
        shard: Shard,
        settings: WorkerSettings,
        name: str,
        lease_table: LeaseTable,
        route: Route,
        on_short_lease: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._name = name
        self._lease_table = lease_table
        self._route = route
        self._on_short_lease = on_short_lease
        self._marks = lease_table.marks
        self._was_paused = lease_table.paused
        self._turns = StoreSession(shard, name, route, will_wait=not settings.drain)
        self._free = list(range(settings.concurrency))
        self._settling: list[int] = []
        self._in_turn: list[int] = []
        self.running: dict[int, S] = {}
        # A line of its own, so that whoever comes after a sudden death knows what was asked last.
        self._shard = shard
        self._sequence = RequestSequence()
        shard.sequences.give(self._sequence)
        lease_table.begin(self._sequence.name)
        self._woken: str | None = None
        self._look = True
        self._early = 0.0
        self._outage = Outage(shard.gate)
        self._stopping = False
        self._left = settings.max_jobs or 1 << 60
        self._own: tuple[int, ...] = ()
        self._wear: Housekeeping | None = None

    # What differs from loop to loop.

    def _poke(self) -> None:
        """Have the loop look at what happened. Any thread, task or handler may call this."""
        raise NotImplementedError

    def _make_slot(self, facts: JobFacts, since: float, number: int) -> S:
        """A slot of that number for a job that was asked for at `since`."""
        raise NotImplementedError

    def _start(self, slot: S, facts: JobFacts) -> None:
        """Begin to work on a job."""
        raise NotImplementedError

    # Being told.

    def stop(self) -> None:
        """Take no more jobs, and end when those under way have ended."""
        if not self._stopping:
            log.info("worker %s takes no more jobs", self._name)
        self._stopping = True
        self._poke()

    def wake(self) -> None:
        """Look again, for example after a pause."""
        self._look = True
        self._poke()

    @property
    def is_used_up(self) -> bool:
        """Whether `max_jobs` were taken, or the process is worn in another way."""
        return self._left <= 0

    def heed(self) -> bool:
        """The parent has woken us: respond, and note a pause. Returns whether leases were lost. Any thread may call this."""
        lease_table = self._lease_table
        lease_table.answer()
        if lease_table.paused != self._was_paused:
            self._was_paused = lease_table.paused
            self.wake()
        return lease_table.marks != self._marks

    def _lost(self) -> list[S]:
        """Return the slots whose leases were lost since the last call; for the loop only."""
        marks = self._lease_table.marks
        if marks == self._marks:
            return []
        self._marks = marks
        for slot in self.running.values():
            slot.lost = slot.lost or self._lease_table.reason_of_loss(slot.number, slot.token)
        return [slot for slot in self.running.values() if slot.lost]

    # StoreSession.

    @property
    def _is_closing(self) -> bool:
        return self._stopping or self.is_used_up or self._route.is_over

    def _has_ended(self) -> bool:
        if not self._is_closing or self._turns.has_news:
            return False
        return all(slot.is_stray for slot in self.running.values())

    def _limit(self) -> int:
        """How many jobs may be taken just now."""
        if self._wear is None:
            self._wear = Housekeeping(self._settings, *self._own)
        elif self._settling:
            self._wear.look()
            if self._wear.is_used_up:
                self._left = 0
        if self._is_closing or self._lease_table.paused:
            return 0
        return min(self._settings.concurrency - len(self.running), self._left)

    def _is_due(self, limit: int) -> bool:
        """Whether it is time for a turn."""
        return self._turns.has_news or self._woken is not None or (limit > 0 and self._look)

    def _rang(self) -> str | None:
        """What rang since the last turn."""
        woken, self._woken = self._woken, None
        return woken

    def _before_turn(self) -> list[int]:
        """Note that a turn begins. Return the slots that it settles."""
        settling, self._settling = self._settling, []
        self._in_turn = settling
        self._look = False
        self._lease_table.ask(self._sequence.number + 1)
        return settling

    def _after_turn(self, settling: list[int], jobs: Popped, since: float) -> None:
        """The store has answered: those slots are free, and these jobs begin."""
        self._outage.over()
        self._in_turn = []
        clear = self._lease_table.clear
        for number in settling:
            clear(number)
        self._free += settling
        if jobs:
            self._early = 0.0
        self._left -= len(jobs)
        for facts in jobs:
            number = self._free.pop()
            slot = self._make_slot(facts, since, number)
            if self._lease_table.hold(number, facts.jid, facts.token, facts.lease_ms, since, slot.ends):
                self._on_short_lease()
            self.running[number] = slot
            self._start(slot, facts)
        self._lease_table.ask(0)

    def _after_failed_turn(self, settling: list[int], error: HoldfastError) -> float:
        """The store did not answer. Answers how many seconds to wait."""
        self._in_turn, self._settling = [], settling + self._settling
        self._look = True
        return self._outage.pause(error)

    def _end(self, slot: S, ending: Ending) -> None:
        """A slot has ended; the next turn says how."""
        number = slot.number
        del self.running[number]
        if slot.lost:
            log.warning("job %s: %s; what it did is dropped", slot.jid, slot.lost)
            ending = slot.timed_out() if slot.lost == OVER else None
        if ending is None:
            self._vacate(number)
        else:
            self._turns.end(ending)
            self._settling.append(number)

    def _goes_on(self, slot: S) -> bool:
        """Whether a job whose lease was lost may go on, because it has settled itself; if not, its worker is told."""
        if slot.settled_itself():
            slot.lost = ""
            return True
        own_of(self._settings).hear_of_loss(slot.jid)
        return False

    def _vacate(self, number: int) -> None:
        self._lease_table.clear(number)
        self._free.append(number)
        self._look = True

    def _is_drained(self, jobs: Popped) -> bool:
        idle = not jobs and jobs.due != 0 and not self.running and not self._turns.has_news
        return self._settings.drain and idle

    def _come_due(self) -> None:
        """Look for what is due; if no slot is free by now, another worker is told."""
        self._woken = self._woken or ANY_QUEUE
        self.wake()

    def _woken_by(self, key: str | None) -> None:
        """The wait for a wake-up has ended, with a wake key or without."""
        self._early = 0.0
        self._woken = ANY_QUEUE if key is None else self._route.keys().get(key, ANY_QUEUE)

    def _before_last_turn(self) -> None:
        """Leave the line of a turn that was cut off as it is: the parent asks what that was granted."""
        if self._lease_table.asked():
            self._shard.sequences.give(RequestSequence())

    def _hold_granted(self) -> Plan[None]:
        """Hold what a call that was cut off was granted: the parent renews it while other jobs unwind, then releases it."""
        asked, since = self._lease_table.asked(), monotonic()
        if asked is None:
            return
        begun = {(slot.jid, slot.token) for slot in [*self.running.values()]}
        taken = {*self.running, *self._in_turn, *self._settling}
        free = [number for number in range(self._settings.concurrency) if number not in taken]
        for facts in (yield from granted(self._shard, self._name, self._settings.queues, asked)):
            if free and (facts.jid, facts.token) not in begun:
                ends = run_end(facts, since)
                self._lease_table.hold(free.pop(), facts.jid, facts.token, facts.lease_ms, since, ends)

    def _clear_settled(self) -> None:
        """The last turn was answered: a parent need not give these back."""
        for number in (*self._in_turn, *self._settling):
            self._lease_table.clear(number)


class BlockingSlot(Slot):
    """A slot whose job is performed by one of a crew, its `hand`. `is_over`: nobody works on it any more."""

    __slots__ = ("hand", "is_over")

    def __init__(self, facts: JobFacts, worker: str, since: float, number: int) -> None:
        super().__init__(facts, worker, since, number)
        self.hand: Any = None
        self.is_over = False


class Crew(Protocol):
    """Those who perform. All but `run_coroutine` is called by the loop."""

    def start(self, slot: BlockingSlot, work: Callable[[], None]) -> None:
        """Have somebody do `work`, which raises nothing, for a slot."""
        ...

    def give_way(self) -> None:
        """Let them work a little before the loop sleeps, which costs more where all share one thread."""
        ...

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive the coroutine of the job that is performed here to its end."""
        ...

    def lift(self, method: Perform, /) -> Callable[[Any], Awaitable[Any]]:
        """Return plain code as a coroutine, for middleware that awaits it; called inside `run_coroutine`."""
        ...

    def stop(self, slot: BlockingSlot) -> None:
        """End the work on a slot whose lease was lost, as far as it can be ended."""
        ...

    def unwind(self, slot: BlockingSlot) -> None:
        """The process ends now: raise Terminated in the job of a slot."""
        ...

    def close(self) -> None:
        """Nothing more will be started."""
        ...
