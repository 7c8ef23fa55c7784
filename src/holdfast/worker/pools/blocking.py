"""The loop of the pools `thread` and `gevent`: it takes jobs and reports what ended; threads or greenlets run them.

Only the loop touches its state. Whoever runs a job notes in `_ended` that it has ended, which the loop collects; the keeper
marks leases as lost, and the loop acts on it.
"""

import logging
import select
import signal
import threading
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from math import inf
from random import uniform
from time import monotonic

from holdfast.client.sync import Client
from holdfast.commands.leases import Popped
from holdfast.errors import ConnectionLost, Refused, TransportError
from holdfast.models import JobFacts
from holdfast.wire.plans import Plan
from holdfast.worker.descendants import guard_forks, leave_forks
from holdfast.worker.forking.forked import DANGEROUS
from holdfast.worker.forking.server import ForkServer
from holdfast.worker.loop import ENDED, LAST_CALL, LIVES, BlockingSlot, Crew, WorkerLoop
from holdfast.worker.observe.stacks import for_slots
from holdfast.worker.performing.outcome import Outcome, raised
from holdfast.worker.performing.perform import Performer
from holdfast.worker.performing.surroundings import Surroundings, make_performer
from holdfast.worker.process_state import ProcessState, Title
from holdfast.worker.queues.routing import make_route
from holdfast.worker.session import ANY_QUEUE, longer
from holdfast.worker.signals import Handler, Handlers, Stop, Terminated, start_without_signals
from holdfast.worker.supervisor.child import ChildPlace

log = logging.getLogger("holdfast")


class BlockingLoop(WorkerLoop[BlockingSlot]):
    """Takes as many jobs as there are free slots, has its crew run each, reports what ended in one call.

    A slot whose lease was lost is free at once, whether its job can be ended or not. When as many such jobs still run as there
    are slots, the process is used up: it reports what it still can, and its end is theirs.
    """

    slot_type = BlockingSlot

    def __init__(
        self,
        place: ChildPlace,
        client: Client,
        performer: Performer,
        crew: Crew,
        stop: Stop,
        forking: ForkServer | None,
        title: Title,
    ) -> None:
        super().__init__(
            place, client.shard, make_route(place.settings, place.store, place.name, client.shard)
        )
        self._title = title
        self._client = client
        self._performer = performer
        self._crew = crew
        self._stop = stop
        self._forking = forking
        self._ended: deque[tuple[BlockingSlot, Outcome]] = deque()
        self._astray: list[BlockingSlot] = []
        self._sleeps = False
        self._wake_up = client.link.wake_up()
        self._listening = False
        self._due = inf
        self._lives_at = 0.0
        self._poll = select.poll()
        self._poll.register(stop.fileno(), select.POLLIN)
        # Each slot has a frame of its own, so that a dump shows whose job blocks the interpreter.
        self._slot_functions = for_slots(BlockingLoop._run_slot, self._settings.concurrency)

    def read_pipe(self) -> bool:
        """Read what the parent wrote, which may have marked a lease as lost. Return whether it is gone. Any thread may call this."""
        if self._place.has_ended():
            self.stop()
            return True
        if self.respond():
            self._stop_lost()
            self._poke()
        return False

    def _stop_lost(self) -> None:
        """Stop the jobs whose leases were lost; the loop, which may be waiting for the store, notes later that they ended."""
        for slot in [*self.running.values()]:
            reason = self._lease_table.reason_of_loss(slot.number, slot.token)
            if reason and not slot.settled_itself():
                slot.lost = reason
                self._stop_job(slot)

    def _stop_job(self, slot: BlockingSlot) -> None:
        """Stop a job, once; one that has not begun is stopped by the loop."""
        if slot.is_stopped:
            return
        slot.is_stopped = slot.hand is not None or slot.forked is not None
        if not slot.stop_process():
            self._crew.stop(slot)

    def run(self) -> None:
        """Work until stopped, until the queues are empty (`drain`), or for `max_jobs` jobs. Raises Terminated."""
        stop = self._stop
        self._state = ProcessState(self._settings, stop.fileno(), stop.wake_fd, self._place.pipe.fileno())
        guard_forks(is_whole=self._place.order is None)
        try:
            self._work()
            self._stop_listening()
            self._wait_for(self._astray, LAST_CALL)
        except Terminated:
            self._unwind()
            raise
        finally:
            leave_forks()
            self._wake_up.close()
            self._crew.close()

    def _work(self) -> None:
        session = self._session
        while True:
            self._collect()
            limit = self._limit()
            if limit == ENDED:
                return
            if session.done or session.others or self._woken is not None or (limit and self._look):
                jobs = self._call(limit)
                if jobs is None:
                    if self._is_closing and self.gives_up:
                        return
                    continue
                if self._is_drained(jobs):
                    return
                if len(jobs) < limit:
                    self._wait_for_more(jobs.due)
            else:
                if self.running:
                    self._crew.give_way()
                else:
                    self._title.rest(self._route.description, self._is_paused)
                self._wait(inf)

    def _call(self, limit: int) -> Popped | None:
        """Make a round trip and start what it took; None, after a pause, when the store could not be reached."""
        since = monotonic()
        woken, self._woken = self._woken, None
        settling = self._before_call()
        try:
            if limit and self._route.plain is None and self._route.asks_store:
                self._route.refresh()
            jobs = self._client.runner.run(self._session.round_trip(limit, woken))
        except (TransportError, Refused) as error:
            self._pause(self._after_failed_call(settling, error))
            return None
        self._after_call(settling, jobs, since)
        if jobs:
            # The short ones have ended then, and share the next call; else half of them would miss it, each time.
            self._crew.give_way()
        return jobs

    def _start(self, slot: BlockingSlot, facts: JobFacts) -> None:
        self._crew.start(slot, lambda: self._slot_functions[slot.number](self, slot, facts))

    def _run_slot(self, slot: BlockingSlot, facts: JobFacts) -> None:
        """Run a job; in the thread or greenlet of the crew."""
        outcome: Outcome = None
        try:
            if facts.losses >= DANGEROUS and self._forking is not None:
                slot.forked = self._forking.start(facts, slot.ends)
                outcome = slot.forked.wait()
            else:
                outcome = self._performer.perform(facts, self._crew.run_coroutine, slot, self._crew.lift)
            if self._crew.is_cut_off(self._place.pipe.fileno(), self._stop.fileno()):
                self.leave(slot, outcome)
        except Terminated:
            # Not an outcome: it stays in the lease table, and the parent releases it.
            slot.is_over = True
        except Exception as error:
            # The worker's, not the job's: that would have been an outcome. The slot must not be lost with it.
            outcome = raised(facts, None, error)
            log.exception("job %s could not be performed", facts.jid)
        finally:
            if not slot.is_over:
                slot.is_over = True
                self._ended.append((slot, outcome))
            if self._sleeps:
                self._sleeps = False
                self._poke()

    # What happened.

    def _poke(self) -> None:
        self._stop.wake()

    def _collect(self) -> None:
        """Note what ended, and what was lost."""
        while self._ended:
            slot, outcome = self._ended.popleft()
            if slot.lost and self.running.get(slot.number) is slot:
                self._drop(slot)
            if self.running.get(slot.number) is slot:
                self._end(slot, outcome)
        for slot in self._lost():
            self._drop(slot)

    def _drop(self, slot: BlockingSlot) -> None:
        """Free a slot whose lease was lost, unless its job has settled itself."""
        if self._may_continue(slot):
            return
        self._stop_job(slot)
        self._end(slot, None)
        self._astray = [other for other in (*self._astray, slot) if not other.is_over]
        if len(self._astray) >= self._settings.concurrency and not self.is_used_up:
            log.warning(
                "worker %s is replaced: all of its slots are held by jobs that lost their leases and still run",
                self._name,
            )
            self._left = 0

    def _wait(self, until: float) -> None:
        """Wait for something to happen, at most until that moment."""
        self._sleeps = True
        if self._ended:
            self._sleeps = False
            return
        # A thread that has died sends no notice.
        lives_at = monotonic() + LIVES if self.running else inf
        wait = min(until, self._due, lives_at) - monotonic()
        ready = self._poll.poll(None if wait == inf else max(0.0, wait) * 1000)
        self._sleeps = False
        for descriptor, _ in ready:
            if descriptor == self._stop.fileno():
                self._stop.read()
            elif descriptor == self._place.pipe.fileno():
                self.read_pipe()
            else:
                self._on_wake_up()
        if self._stop.requested and not self._stopping:
            self.stop()
        now = monotonic()
        if now >= self._due:
            self._due = inf
            self._come_due()
        if now >= self._lives_at:
            self._lives_at = now + LIVES / 2
            self._end_dead()

    def _end_dead(self) -> None:
        """End the jobs whose threads ended without coming back."""
        for slot in self.running.values():
            if slot.current is not None and not slot.is_over and self._crew.has_died(slot):
                slot.is_over = True
                # It may have held locks that others wait for.
                self._left = 0
                self._ended.append((slot, slot.thread_ended(slot.current)))

    def _pause(self, seconds: float) -> None:
        """Let that time pass; what happens meanwhile is noted."""
        until = monotonic() + seconds
        while monotonic() < until:
            self._collect()
            self._wait(until)

    # The wake-up.

    def _wait_for_more(self, due: float | None) -> None:
        """Wait for a wake-up, and for what is due next: there were fewer jobs than slots."""
        if self._settings.drain:
            self._look = self._look or due == 0
            return
        if due is not None:
            self._due = monotonic() + max(due, self._early)
            self._early = longer(self._early, due)
        if not self._listening:
            self._listen()

    def _listen(self) -> None:
        try:
            self._wake_up.send(list(self._route.keys()), self._settings.interval * uniform(0.9, 1.1))
        except ConnectionLost:
            self._wake_up_lost()
        else:
            self._listening = True
            self._poll.register(self._wake_up.fileno(), select.POLLIN)

    def _on_wake_up(self) -> None:
        self._listening = False
        self._poll.unregister(self._wake_up.fileno())
        try:
            self._woken_by(self._wake_up.receive())
        except ConnectionLost:
            self._wake_up_lost()

    def _wake_up_lost(self) -> None:
        """Try all queues after a pause; it shows whether the store is available."""
        self._due = min(self._due, monotonic() + self._cut_off())

    def _stop_listening(self) -> None:
        """Stop waiting for a wake-up; one that was on its way is passed on."""
        if self._listening:
            self._listening = False
            self._wake_up.leave()
            self._report_last(ANY_QUEUE)

    # The end.

    def _unwind(self) -> None:
        """Let the jobs unwind, and report what had ended before."""
        slots = list(self.running.values())
        for slot in slots:
            if not slot.unwind_process():
                self._crew.unwind(slot)
        self._begin_call(self._hold_granted())
        self._wait_for(slots, self._settings.unwind_timeout)
        for slot in slots:
            slot.stop_process()
        self._collect()
        if self._listening:
            self._wake_up.leave()
        woken = ANY_QUEUE if self._listening else None
        if (self._session.has_outcomes or woken is not None) and self._report_last(woken):
            self._clear_settled()

    def _wait_for(self, slots: Sequence[BlockingSlot], seconds: float) -> None:
        """Wait up to `seconds` for the jobs of these slots to unwind."""
        until = monotonic() + seconds
        while not all(slot.is_over for slot in slots) and monotonic() < until:
            self._wait(until)
            self._collect()

    def _report_last(self, woken: str | None = None) -> bool:
        """Make a round trip that takes nothing. Return whether the store has answered within a second."""
        self._before_last_call()
        return self._begin_call(self._session.round_trip(0, woken)).wait(LAST_CALL)

    def _begin_call(self, plan: Plan[object]) -> threading.Event:
        """Run a plan in a thread. Return an event that is set when it is done."""
        done = threading.Event()

        def run() -> None:
            with suppress(TransportError, Refused):
                self._client.runner.run(plan)
                done.set()

        threading.Thread(target=run, name="holdfast-last-call", daemon=True).start()
        return done


def work_blocking(
    place: ChildPlace,
    around: Surroundings,
    crew: Crew,
    stop: Stop,
    handlers: dict[signal.Signals, Handler],
    forking: ForkServer,
) -> bool:
    """Work in a forked child, with that crew, until stopped. Return whether the process is used up."""
    if place.order is not None:
        handlers |= place.order.handlers(stop.request)
    with closing(stop), closing(forking), Handlers(handlers, stop.wake_fd):
        client = place.store.client(place.name)
        performer = make_performer(place.store, place.settings, place.name, client, around=around)
        jobs = BlockingLoop(place, client, performer, crew, stop, forking, around.title)
        with closing(client), _listening(place, jobs):
            jobs.run()
    return jobs.is_used_up


@contextmanager
def _listening(place: ChildPlace, jobs: BlockingLoop) -> Generator[None]:
    """Listen to the parent in a thread: the loop may wait long for the store. Under gevent it is a greenlet."""
    ended = Stop()

    def listen() -> None:
        poll = select.poll()
        poll.register(ended.fileno(), select.POLLIN)
        poll.register(place.pipe.fileno(), select.POLLIN)
        while poll.poll() and not ended.requested:
            if jobs.read_pipe():
                return

    thread = threading.Thread(target=listen, name="holdfast-pipe", daemon=True)
    start_without_signals(thread)
    try:
        yield
    finally:
        ended.request()
        thread.join()
        ended.close()
