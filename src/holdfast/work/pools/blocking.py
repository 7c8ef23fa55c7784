"""Many slots that block: one loop takes jobs and settles what ended; threads or greenlets perform.

Only the loop touches its state. Whoever performs says that it has ended in `_ended`, which the loop collects; the
keeper marks leases as lost, and the loop acts on it.
"""

import logging
import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from random import uniform
from time import monotonic

from holdfast.client.sync import Client
from holdfast.commands.leases import Popped
from holdfast.errors import ConnectionLost, Refused, TransportError
from holdfast.models import JobFacts
from holdfast.wire.plans import Plan
from holdfast.work.forking.forked import DANGEROUS
from holdfast.work.forking.server import ForkServer
from holdfast.work.observe.slot_frames import for_slots
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Surroundings, Title
from holdfast.work.performing.making import make_performer
from holdfast.work.performing.outcome import Ending, raised
from holdfast.work.performing.perform import Performer
from holdfast.work.pools.slots import LAST_CALL, BlockingSlot, Crew, Slots
from holdfast.work.queues.route import Route
from holdfast.work.queues.routing import make_route
from holdfast.work.session import ANY_QUEUE, longer
from holdfast.work.signals import Stop, Terminated, start_without_signals

log = logging.getLogger("holdfast")


class BlockingLoop(Slots[BlockingSlot]):
    """Takes as many jobs as there are free slots, has each performed, settles what ended in one call.

    A slot whose lease was lost is free at once, whether its job can be ended or not. When as many jobs as there are slots
    go astray like that, the process is used up: it ends what it can still settle, and its end is theirs.
    """

    def __init__(
        self,
        place: Place,
        client: Client,
        performer: Performer,
        crew: Crew,
        stop: Stop,
        route: Route,
        forking: ForkServer,
        on_short_lease: Callable[[], None],
        title: Title,
    ) -> None:
        super().__init__(client.shard, place.settings, place.name, place.lease_table, route, on_short_lease)
        self._title = title
        self._place = place
        self._client = client
        self._performer = performer
        self._crew = crew
        self._stop = stop
        self._forking = forking
        self._ended: deque[tuple[BlockingSlot, Ending]] = deque()
        self._astray: list[BlockingSlot] = []
        self._sleeps = False
        self._wake_up = client.link.wake_up()
        self._listening = False
        self._due = inf
        self._poll = select.poll()
        self._poll.register(stop.fileno(), select.POLLIN)
        # Each slot has a frame of its own, so that a dump shows whose job keeps the interpreter.
        self._sits = for_slots(BlockingLoop._sit, place.settings.concurrency)
        self._own = (stop.fileno(), stop.wake_fd, place.pipe.fileno())

    def look(self) -> None:
        """The parent has woken us: a lease may have been marked as lost. Any thread may call this."""
        if self.heed():
            self._poke()

    def run(self) -> None:
        """Work until asked to stop, until the queues are empty (`drain`), or for `max_jobs` jobs. Raises Terminated."""
        try:
            self._work()
            self._stop_listening()
            self._wait_for(self._astray, LAST_CALL)
        except Terminated:
            self._leave()
            raise
        finally:
            self._wake_up.close()
            self._crew.close()

    def _work(self) -> None:
        while True:
            self._collect()
            if self._has_ended():
                return
            limit = self._limit()
            if self._is_due(limit):
                jobs = self._ask(limit, self._rang())
                if jobs is None:
                    continue
                if self._is_drained(jobs):
                    return
                if len(jobs) < limit:
                    self._wait_for_more(jobs.due)
            else:
                if self.running:
                    self._crew.give_way()
                else:
                    self._title.rest(self._route.description, self._lease_table.paused)
                self._wait(inf)

    def _ask(self, limit: int, woken: str | None) -> Popped | None:
        """Have a turn and start what it took; None, after a pause, when the store could not be reached."""
        since = monotonic()
        settling = self._before_turn()
        try:
            if limit and self._route.asks_store:
                self._route.refresh()
            jobs = self._client.runner.run(self._turns.turn(limit, woken))
        except (TransportError, Refused) as error:
            self._hold_on(self._after_failed_turn(settling, error))
            return None
        self._after_turn(settling, jobs, since)
        if jobs:
            # The short ones have ended then, and share the next call; else half of them would miss it, each time.
            self._crew.give_way()
        return jobs

    def _make_slot(self, facts: JobFacts, since: float, number: int) -> BlockingSlot:
        return BlockingSlot(facts, self._name, since, number)

    def _start(self, slot: BlockingSlot, facts: JobFacts) -> None:
        self._crew.start(slot, lambda: self._sits[slot.number](self, slot, facts))

    def _sit(self, slot: BlockingSlot, facts: JobFacts) -> None:
        """Perform a job; in the thread or greenlet that does so."""
        ending: Ending = None
        try:
            if facts.losses >= DANGEROUS:
                slot.forked = self._forking.start(facts, slot.ends)
                ending = slot.forked.wait()
            else:
                ending = self._performer.perform(facts, self._crew.run_coroutine, slot, self._crew.lift)
        except Terminated:
            # Not an ending: it stays on the lease_table, and the parent gives it back.
            slot.is_over = True
        except Exception as error:
            # Ours, not the job's: that would have been an ending. The slot must not be lost with it.
            log.exception("job %s could not be performed", facts.jid)
            ending = raised(facts, None, error)
        finally:
            if not slot.is_over:
                slot.is_over = True
                self._ended.append((slot, ending))
            if self._sleeps:
                self._sleeps = False
                self._poke()

    # What happened.

    def _poke(self) -> None:
        self._stop.wake()

    def _collect(self) -> None:
        """Take note of what ended, and of what was lost."""
        while self._ended:
            slot, ending = self._ended.popleft()
            if self.running.get(slot.number) is slot:
                self._end(slot, ending)
        for slot in self._lost():
            self._drop(slot)

    def _drop(self, slot: BlockingSlot) -> None:
        """Free a slot whose lease was lost, unless its job has settled itself."""
        if self._goes_on(slot):
            return
        if not slot.stop_process():
            self._crew.stop(slot)
        self._end(slot, None)
        self._astray = [other for other in (*self._astray, slot) if not other.is_over]
        if len(self._astray) >= self._settings.concurrency and not self.is_used_up:
            log.warning(
                "worker %s is replaced: as many jobs as it has slots lost their leases and still run",
                self._name,
            )
            self._left = 0

    def _wait(self, until: float) -> None:
        """Wait for something to happen, until that moment."""
        self._sleeps = True
        if self._ended:
            self._sleeps = False
            return
        wait = min(until, self._due) - monotonic()
        ready = self._poll.poll(None if wait == inf else max(0.0, wait) * 1000)
        self._sleeps = False
        for descriptor, _ in ready:
            if descriptor == self._stop.fileno():
                self._stop.heard()
            else:
                self._on_wake_up()
        if self._stop.requested and not self._stopping:
            self.stop()
        if monotonic() >= self._due:
            self._due = inf
            self._come_due()

    def _hold_on(self, seconds: float) -> None:
        """Let so much time pass; what happens meanwhile is noted."""
        until = monotonic() + seconds
        while monotonic() < until:
            self._collect()
            self._wait(until)

    # The wake_up.

    def _wait_for_more(self, due: float | None) -> None:
        """There were fewer jobs than slots: wait for a wake-up, and for what is due next."""
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
        """Look everywhere, after a pause; whether the store is there at all will be seen then."""
        self._due = min(self._due, monotonic() + self._outage.cut_off())

    def _stop_listening(self) -> None:
        """Stop waiting for a wake-up; one that was on its way is passed on."""
        if self._listening:
            self._listening = False
            self._wake_up.leave()
            self._say_last(ANY_QUEUE)

    # The end.

    def _leave(self) -> None:
        """Let the jobs unwind, and say what had ended before."""
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
        if (self._turns.has_news or woken is not None) and self._say_last(woken):
            self._clear_settled()

    def _wait_for(self, slots: Sequence[BlockingSlot], seconds: float) -> None:
        """Wait up to `seconds` for the jobs of these slots to unwind."""
        until = monotonic() + seconds
        while not all(slot.is_over for slot in slots) and monotonic() < until:
            self._wait(until)
            self._collect()

    def _say_last(self, woken: str | None = None) -> bool:
        """Have a turn that takes nothing. Answers whether the store has heard it within a second."""
        self._before_last_turn()
        return self._run_briefly(self._turns.turn(0, woken))

    def _run_briefly(self, plan: Plan[object]) -> bool:
        """Run a plan in a thread. Returns whether it was done within a second."""
        return self._begin_call(plan).wait(LAST_CALL)

    def _begin_call(self, plan: Plan[object]) -> threading.Event:
        """Run a plan in a thread. Returns what is set when it was done."""
        done = threading.Event()

        def run() -> None:
            with suppress(TransportError, Refused):
                self._client.runner.run(plan)
                done.set()

        threading.Thread(target=run, name="holdfast-last-call", daemon=True).start()
        return done


def work_blocking(place: Place, around: Surroundings, crew: Crew, stop: Stop, forking: ForkServer) -> bool:
    """Work in a forked child, with that crew, until told to stop. Answers whether the process is used up."""
    client = place.store.client(place.name)
    performer = make_performer(place.store, place.settings, place.name, client, around=around)
    route = make_route(place.settings, place.store, place.name, client.shard)
    jobs = BlockingLoop(place, client, performer, crew, stop, route, forking, place.poke, around.title)
    listening = PipeThread(place, jobs)
    listening.start()
    try:
        jobs.run()
    finally:
        forking.close()
        listening.close()
        client.close()
    return jobs.is_used_up


class PipeThread:
    """Listens to the parent beside the loop, which may wait long for the store. Under gevent it is a greenlet."""

    def __init__(self, place: Place, jobs: BlockingLoop) -> None:
        self._place = place
        self._jobs = jobs
        self._wake = Stop()
        self._thread = threading.Thread(target=self._run, name="holdfast-pipe", daemon=True)

    def start(self) -> None:
        """Begin."""
        start_without_signals(self._thread)

    def close(self) -> None:
        """End the thread and wait for it."""
        self._wake.request()
        self._thread.join()
        self._wake.close()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wake.fileno(), select.POLLIN)
        poll.register(self._place.pipe.fileno(), select.POLLIN)
        while poll.poll() and not self._wake.requested:
            if self._place.hears_of_end():
                self._jobs.stop()
                return
            self._jobs.look()
