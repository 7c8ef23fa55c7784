"""The loop of a worker process: its slots, the state that all pools share, and the crew that runs jobs.

A loop takes as many jobs as there are free slots; slots that end together share the call that reports it. How a job is started
and stopped, and how a loop waits, is the pool's own.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from time import monotonic
from typing import Any, ClassVar, Final, Generic, NoReturn, Protocol, TypeVar

from holdfast.code.current import RunningJob
from holdfast.code.middleware import Perform
from holdfast.commands.leases import Lease, Popped
from holdfast.errors import HoldfastError
from holdfast.logs import finished_jobs
from holdfast.models import JobFacts
from holdfast.text import counted
from holdfast.wire.outage import Outage
from holdfast.wire.plans import Plan
from holdfast.wire.shards import RequestSequence, Shard
from holdfast.worker.descendants import end_descendants
from holdfast.worker.forking.forked import ForkedJob
from holdfast.worker.forking.server import ServedJob
from holdfast.worker.leases.keeper import HeldLease, run_end
from holdfast.worker.leases.table import OVER
from holdfast.worker.performing.outcome import Outcome, failed, log_attempt, log_release, timed_out
from holdfast.worker.process_state import ProcessState, keep_standard
from holdfast.worker.queues.route import Route
from holdfast.worker.session import ANY_QUEUE, StoreSession, granted
from holdfast.worker.settings import own_of
from holdfast.worker.supervisor.child import USED_UP, ChildPlace

log = logging.getLogger("holdfast")

LIVES: Final = 1.0  # seconds between two looks at whether the threads of the jobs live
LAST_CALL: Final = 1.0  # time limit in seconds of the last call of a process that is about to end
ENDED: Final = -1
"""In place of a number of jobs to take: the loop has ended."""


class Slot(HeldLease):
    """A lease, and what works on it: the run, once its code was found, or the process of a job that runs alone.

    `is_stray`: its job was settled but cannot be stopped; the loop does not wait for it.
    """

    __slots__ = ("current", "facts", "forked", "is_stray", "limit")

    def __init__(self, facts: JobFacts, worker: str, since: float, number: int) -> None:
        # All of it here: there is one for each job.
        self.jid = facts.jid
        self.token = facts.token
        self.worker = worker
        self.lease = facts.lease_ms / 1000
        self.number = number
        self.ends = run_end(facts, since) if facts.options else inf
        self.facts = facts
        self.lost = ""
        self.limit = self.ends - since
        self.current: RunningJob | None = None
        self.forked: ServedJob | ForkedJob | None = None
        self.is_stray = False

    def stop_process(self) -> bool:
        """Kill the process of a job that runs alone. Return whether there is one."""
        if self.forked is not None:
            self.forked.stop()
        return self.forked is not None

    def unwind_process(self) -> bool:
        """Have the process of a job that runs alone unwind. Return whether there is one."""
        if self.forked is not None:
            self.forked.unwind()
        return self.forked is not None

    def timed_out(self) -> Outcome:
        """Return the outcome of a job that exceeded its timeout."""
        return timed_out(Lease(self.jid, self.token, self.worker), self.limit)

    def log_loss(self) -> None:
        """Log that the lease was lost; of a job that runs alone and exceeded its timeout that is logged by who stopped its process."""
        if self.lost != OVER:
            log.warning("job %s: %s; its result is not recorded", self.jid, self.lost)
        elif self.forked is None:
            facts = self.facts
            log_release(self.jid, "timed-out", f"{self.limit:g} s", facts, facts.remaining <= 0)

    def thread_ended(self, current: RunningJob) -> Outcome:
        """Log that the job ended the thread that performed it; return its outcome."""
        log.warning("job %s ended its thread; the process is replaced after its other jobs", self.jid)
        reason = "the job ended its thread from C code, so it returned nothing"
        outcome = failed(current.facts, "ThreadEnded", reason)
        log_attempt(current.facts, outcome)
        return outcome

    def settled_itself(self) -> bool:
        """Whether the job has settled itself, so that the end of its lease is not a loss."""
        made = self.current.made if self.current is not None else None
        by_process = self.forked is not None and self.forked.has_settled
        return by_process or (made is not None and bool(made.state_changed))


S = TypeVar("S", bound=Slot)


class WorkerLoop(Generic[S]):
    """The slots of one process, and its round trips. The process that renews the leases reads them in the lease table, and
    is notified (`place.poke`) of one that is shorter than those that it renews in time.
    """

    slot_type: ClassVar[type[Slot]] = Slot
    gives_up: ClassVar[bool] = False
    """Whether a loop that is about to end makes one call only for what it has to report, even if the store cannot be reached."""

    def __init__(self, place: ChildPlace, shard: Shard, route: Route) -> None:
        self._place = place
        self._settings = settings = place.settings
        self._name = place.name
        self._lease_table = lease_table = place.lease_table
        self._route = route
        self._marks = lease_table.marks
        self._was_paused = lease_table.paused
        self._session = StoreSession(shard, place.name, route, will_wait=not settings.drain)
        self._free = list(range(settings.concurrency))
        # Slots whose outcomes are to be reported, and those whose outcomes a call under way reports.
        self._settling: list[int] = []
        self._in_call: list[int] = []
        self.running: dict[int, S] = {}
        self._shard = shard
        lease_table.begin(self._session.sequence.name)
        self._woken: str | None = None
        self._look = True
        self._early = 0.0
        self._outage = Outage(shard.gate)
        self._is_failing = False
        self._logs_calls = log.isEnabledFor(logging.DEBUG)
        self._finished = finished_jobs()
        self._stopping = False
        self._left = settings.max_jobs or 1 << 60
        self._state: ProcessState | None = None
        self._is_unchecked = False
        self._is_closing = False
        # Seconds by which the parent waits longer for the end of a job whose time is over.
        self._patience = 0.0

    # What differs between the pools.

    def _poke(self) -> None:
        """Have the loop check what happened. Any thread, task or handler may call this."""
        raise NotImplementedError

    def _start(self, slot: S, facts: JobFacts) -> None:
        """Begin to work on a job."""
        raise NotImplementedError

    # Orders and messages.

    def stop(self) -> None:
        """Take no more jobs, and end when the running jobs have ended."""
        if not self._stopping:
            log.info("worker %s takes no more jobs", self._name)
        self._stopping = True
        self._poke()

    def wake(self) -> None:
        """Try the queues again, for example after a pause."""
        self._look = True
        self._poke()

    @property
    def _is_paused(self) -> bool:
        return self._lease_table.paused

    @property
    def is_used_up(self) -> bool:
        """Whether `max_jobs` were taken, or the process should be replaced for another reason."""
        return self._left <= 0

    def respond(self) -> bool:
        """Respond to the parent, and note a pause. Return whether leases were lost. Any thread may call this."""
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

    # Round trips.

    def _limit(self) -> int:
        """Return how many jobs may be taken just now; ENDED when no job runs, none may be taken, and all is reported."""
        if self._finished is not None:
            self._finished.write()
        if self._is_unchecked and self._state is not None:
            self._is_unchecked = False
            if self._state.check():
                self._left = 0
        self._is_closing = self._stopping or self._left <= 0 or self._route.is_over
        if self._is_closing:
            if self._session.has_outcomes or not all(slot.is_stray for slot in self.running.values()):
                return 0
            return ENDED
        free = min(self._settings.concurrency - len(self.running), self._left)
        return 0 if free and self._lease_table.paused else free

    def _before_call(self) -> list[int]:
        """Note that a round trip begins. Return the slots that it settles."""
        settling, self._settling = self._settling, []
        self._in_call = settling
        self._look = False
        self._lease_table.ask(self._session.sequence.number + 1)
        return settling

    def _after_call(self, settling: list[int], jobs: Popped, since: float) -> None:
        """Note the reply of the store: those slots are free, and these jobs begin."""
        if self._is_failing:
            self._is_failing = False
            self._outage.over()
        self._in_call = []
        if self._logs_calls and (jobs or settling):
            _log_call(self._name, len(settling), jobs, monotonic() - since)
        table, make = self._lease_table, self.slot_type
        for number in settling:
            table.clear(number)
        self._free += settling
        if jobs:
            self._early = 0.0
        self._left -= len(jobs)
        started: list[tuple[Any, JobFacts]] = []
        for facts in jobs:
            number = self._free.pop()
            slot: Any = make(facts, self._name, since, number)
            ends = slot.ends + self._patience
            if table.hold(number, facts.jid, facts.token, facts.lease_ms, since, ends):
                self._place.poke()
            self.running[number] = slot
            started.append((slot, facts))
        table.ask(0)
        for slot, facts in started:
            self._start(slot, facts)

    def _after_failed_call(self, settling: list[int], error: HoldfastError) -> float:
        """Note that the store did not answer. Return how many seconds to wait."""
        self._in_call, self._settling = [], settling + self._settling
        self._look = self._is_failing = True
        return self._outage.pause(error)

    def _cut_off(self) -> float:
        """Note that a wait for a wake-up was cut off. Return how many seconds to wait."""
        self._is_failing = True
        return self._outage.cut_off()

    def _end(self, slot: S, outcome: Outcome) -> None:
        """Note the outcome of a slot; the next round trip reports it."""
        number = slot.number
        del self.running[number]
        self._is_unchecked = True
        if slot.lost:
            outcome = slot.timed_out() if slot.lost == OVER else None
            slot.log_loss()
        if outcome is None:
            self._lease_table.clear(number)
            self._free.append(number)
            self._look = True
        else:
            self._session.end(outcome)
            self._settling.append(number)

    def leave(self, slot: S, outcome: Outcome) -> NoReturn:
        """Report what has ended, by connections of its own, and end the process: its loop cannot continue. In any thread."""
        log.warning(
            "process %d: job %s closed descriptors that the event loop needs; the process ends",
            os.getpid(),
            slot.jid,
        )
        try:
            keep_standard()
            self._end(slot, outcome)
            client = self._place.store.client(self._name)
            session = StoreSession(client.shard, self._name, Route(client.shard, self._settings.queues))
            session.done, session.others = self._session.done, self._session.others
            client.runner.run(session.round_trip(0))
            self._clear_settled()
        except Exception:
            log.exception("the outcome of job %s could not be reported", slot.jid)
        finally:
            end_descendants()
            os._exit(USED_UP)

    def _may_continue(self, slot: S) -> bool:
        """Whether a job whose lease was lost may continue, because it has settled itself; if not, its worker is notified."""
        if slot.settled_itself():
            slot.lost = ""
            return True
        own_of(self._settings).report_loss(slot.jid)
        return False

    def _is_drained(self, jobs: Popped) -> bool:
        idle = not jobs and jobs.due != 0 and not self.running and not self._session.has_outcomes
        return self._settings.drain and idle

    def _come_due(self) -> None:
        """Try what is due; if no slot is free by now, another worker is woken."""
        self._woken = self._woken or ANY_QUEUE
        self.wake()

    def _woken_by(self, key: str | None) -> None:
        """Note that the wait for a wake-up has ended, with a wake key or without."""
        self._early = 0.0
        self._woken = ANY_QUEUE if key is None else self._route.keys().get(key, ANY_QUEUE)

    def _before_last_call(self) -> None:
        """Keep the sequence of a call that was cut off as it is: the parent asks what that was granted."""
        if self._lease_table.asked():
            self._session.sequence = RequestSequence()

    def _hold_granted(self) -> Plan[None]:
        """Hold what a call that was cut off was granted: the parent renews it while other jobs unwind, then releases it."""
        asked, since = self._lease_table.asked(), monotonic()
        if asked is None:
            return
        begun = {(slot.jid, slot.token) for slot in [*self.running.values()]}
        taken = {*self.running, *self._in_call, *self._settling}
        free = [number for number in range(self._settings.concurrency) if number not in taken]
        for facts in (yield from granted(self._shard, self._name, self._settings.queues, asked)):
            if free and (facts.jid, facts.token) not in begun:
                ends = run_end(facts, since)
                self._lease_table.hold(free.pop(), facts.jid, facts.token, facts.lease_ms, since, ends)

    def _clear_settled(self) -> None:
        """Note that the last report was confirmed: a parent need not release these leases."""
        for number in (*self._in_call, *self._settling):
            self._lease_table.clear(number)


def _log_call(worker: str, reported: int, jobs: Popped, seconds: float) -> None:
    taken = ", ".join(f"{facts.jid} of queue {facts.queue} (priority {facts.priority})" for facts in jobs)
    log.debug(
        "worker %s reported %s and took %s in %.4f seconds: %s",
        worker,
        counted(reported, "outcome"),
        counted(len(jobs), "job"),
        seconds,
        taken or "none",
    )


class BlockingSlot(Slot):
    """A slot whose job is run by one of a crew, its `hand`.

    `is_stopped`: its job was ordered to end, because its lease was lost. `is_over`: nothing works on it any more.
    """

    __slots__ = ("hand", "is_over", "is_stopped")

    def __init__(self, facts: JobFacts, worker: str, since: float, number: int) -> None:
        super().__init__(facts, worker, since, number)
        self.hand: Any = None
        self.is_over = self.is_stopped = False


class Crew(Protocol):
    """The threads or greenlets that run jobs. All but `run_coroutine` is called by the loop."""

    def start(self, slot: BlockingSlot, work: Callable[[], None]) -> None:
        """Have one of them do `work`, which raises nothing, for a slot."""
        ...

    def give_way(self) -> None:
        """Let them work a little before the loop sleeps, which costs more where all share one thread."""
        ...

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run the coroutine of the job that runs here to its end."""
        ...

    def lift(self, method: Perform, /) -> Callable[[Any], Awaitable[Any]]:
        """Return plain code as a coroutine, for middleware that awaits it; called inside `run_coroutine`."""
        ...

    def stop(self, slot: BlockingSlot) -> None:
        """End the work on a slot whose lease was lost, as far as it can be ended."""
        ...

    def unwind(self, slot: BlockingSlot) -> None:
        """Raise Terminated in the job of a slot: the process ends now."""
        ...

    def is_cut_off(self, *own: int) -> bool:
        """Whether a job closed one of these descriptors, or another without which this crew cannot even wait; in one of it.

        If so, nothing here waits as greenlets do any more: the process is about to end.
        """
        ...

    def has_died(self, slot: BlockingSlot) -> bool:
        """Whether what runs a slot has ended without coming back."""
        ...

    def close(self) -> None:
        """End: nothing more will be started."""
        ...
