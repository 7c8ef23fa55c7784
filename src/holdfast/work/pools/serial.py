"""One slot in the calling thread: the `serial` pool, and what each child of the `process` pool does."""

import asyncio
import logging
import select
from collections.abc import Coroutine
from contextvars import copy_context
from random import uniform
from time import monotonic
from typing import Any, Final, Protocol

from holdfast.client.sync import Client
from holdfast.commands.leases import Lease, Popped
from holdfast.errors import ConnectionLost, Refused, TransportError
from holdfast.models import JobFacts
from holdfast.wire.outage import Outage
from holdfast.wire.shards import RequestSequence
from holdfast.work.forking.forked import DANGEROUS, Forking
from holdfast.work.keeper import OVER, run_end
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Surroundings, Title
from holdfast.work.performing.housekeeping import Housekeeping
from holdfast.work.performing.making import make_performer
from holdfast.work.performing.outcome import Ending, gives_back, timed_out
from holdfast.work.performing.perform import Performer
from holdfast.work.queues.route import Route
from holdfast.work.queues.routing import make_route
from holdfast.work.session import ANY_QUEUE, StoreSession, longer
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import Handlers, Stop, Terminated, worker_handlers
from holdfast.work.stop_order import StopOrder

log = logging.getLogger("holdfast")


class Holder(Protocol):
    """Whoever keeps the lease of the one job alive."""

    def begin(self, line: str) -> None:
        """Jobs will be taken by calls on this line."""
        ...

    def ask(self, number: int) -> None:
        """A call of this number, which may take jobs, is about to be made; 0: it was answered."""
        ...

    def hold(self, facts: JobFacts, since: float) -> None:
        """This job is held, on a lease asked for at `since`."""
        ...

    def release(self) -> None:
        """Nothing is held any more, or nothing that should be kept alive."""
        ...

    def lost(self) -> str:
        """Why the lease of the held job is known to be lost; '' if it is not."""
        ...

    def may_take(self) -> bool:
        """Whether jobs may be taken just now; asked before each."""
        ...

    def fileno(self) -> int:
        """A descriptor to wait on beside the wake-up, -1 for none."""
        ...

    def heard(self) -> None:
        """That descriptor became readable."""
        ...


class SerialLoop:
    """Takes one job, performs it here, settles it and takes the next in the same call.

    `forking` performs jobs that lost `forked_from` leases in processes of their own; a child that is one needs none. `order`
    is how TERM and INT are obeyed where there is no parent.
    """

    def __init__(
        self,
        client: Client,
        settings: WorkerSettings,
        name: str,
        performer: Performer,
        stop: Stop,
        holder: Holder,
        route: Route,
        title: Title,
        forking: Forking | None = None,
        forked_from: int = DANGEROUS,
        order: StopOrder | None = None,
    ) -> None:
        self._order = order
        self._title = title
        self._client = client
        self._settings = settings
        self._performer = performer
        self._stop = stop
        self._holder = holder
        self._forking = forking
        self._forked_from = forked_from
        self._route = route
        self._turns = StoreSession(client.shard, name, route, will_wait=not settings.drain)
        # A line of its own, so that whoever comes after a sudden death knows what was asked last.
        self._sequence = RequestSequence()
        client.shard.sequences.give(self._sequence)
        holder.begin(self._sequence.name)
        self._wake_up = client.link.wake_up()
        self._listening = False
        self._early = 0.0
        self._outage = Outage(client.shard.gate)
        self._coroutines: asyncio.Runner | None = None
        self._is_terminated = False
        self._since = 0.0
        self._wear = Housekeeping(settings, stop.fileno(), stop.wake_fd, holder.fileno())
        self.performed = 0

    def run(self) -> None:
        """Work until asked to stop, until the queues are empty (`drain`), or for `max_jobs` jobs."""
        self._title.say("Running %s", self._route.description)
        try:
            self._work()
        finally:
            self._wake_up.close()
            if self._coroutines is not None:
                self._coroutines.close()

    def _work(self) -> None:
        woken: str | None = None
        while True:
            paused = self._stop.paused or not self._holder.may_take()
            stopping = self._stop.requested or self.is_used_up or self._route.is_over
            if stopping and not self._turns.has_news:
                break
            jobs = self._ask(0 if stopping or paused else 1, woken)
            woken = None
            if jobs is None:
                if stopping:
                    break
            elif jobs:
                self._stop_listening()
                self._early = 0.0
                self._perform(jobs[0])
            elif paused and not stopping:
                woken = self._pause()
            elif self._settings.drain and jobs.due != 0:
                break
            elif not stopping:
                woken = self._wait(jobs.due)
        self._stop_listening()

    @property
    def is_used_up(self) -> bool:
        """Whether `max_jobs` were performed, or the process is worn in another way."""
        return self._wear.is_used_up or 0 < self._settings.max_jobs <= self.performed

    def _ask(self, limit: int, woken: str | None) -> Popped | None:
        """Have a turn; None, after a pause, when the store could not be reached."""
        if not limit and woken is None and not self._turns.has_news:
            return Popped()
        since, settles = monotonic(), self._turns.has_news
        self._holder.ask(self._sequence.number + 1)
        try:
            if limit and self._route.asks_store:
                self._route.refresh()
            jobs = self._client.runner.run(self._turns.turn(limit, woken))
        except (TransportError, Refused) as error:
            self._hold_on(self._outage.pause(error))
            return None
        self._outage.over()
        if jobs:
            # The only place where this worker takes a job, whichever caller looked for it.
            self._since = since
            self._holder.hold(jobs[0], since)
        elif settles:
            self._holder.release()
        self._holder.ask(0)
        return jobs

    def _perform(self, facts: JobFacts) -> None:
        try:
            if self._order is not None:
                self._order.begin_job()
            ending = self._perform_somewhere(facts)
        finally:
            if self._order is not None:
                self._order.end_job()
        self.performed += 1
        self._wear.look()
        lost = self._holder.lost()
        if lost:
            log.warning("job %s: %s; what it did is dropped", facts.jid, lost)
            lease = Lease(facts.jid, facts.token, facts.worker)
            ending = timed_out(lease, run_end(facts, 0.0)) if lost == OVER else None
        self._turns.end(ending)
        if ending is None or lost or gives_back(ending):
            # Before it is given back: whoever keeps it must not take its end for a loss.
            self._holder.release()

    def _perform_somewhere(self, facts: JobFacts) -> Ending:
        if self._forking is not None and facts.losses >= self._forked_from:
            return self._forking.perform(facts, run_end(facts, self._since), self._holder.release)
        return self._perform_here(facts)

    def _perform_here(self, facts: JobFacts) -> Ending:
        try:
            return self._performer.perform(facts, self._run_coroutine)
        except KeyboardInterrupt:
            if not self._holder.lost():
                raise
            return None  # it was to be broken off, and had just ended

    def _run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        if self._coroutines is None:
            self._coroutines = asyncio.Runner()
            self._coroutines.get_loop().set_exception_handler(self._on_loop_error)
        # The copy carries the current job into the coroutine.
        try:
            return self._coroutines.run(coroutine, context=copy_context())
        except asyncio.CancelledError:
            if self._is_terminated:
                raise Terminated from None
            raise
        except KeyboardInterrupt:
            # The coroutine was left where it was: it is cancelled with its loop, and unwinds. Later jobs get another
            # loop, even if a second interrupt breaks this off.
            loop, self._coroutines = self._coroutines, None
            loop.close()
            raise

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Unwind the job when Terminated was raised between two of its steps, where asyncio would only log it."""
        if isinstance(context.get("exception"), Terminated):
            self._is_terminated = True
            for task in asyncio.all_tasks(loop):
                task.cancel()
        else:
            loop.default_exception_handler(context)

    def _wait(self, due: float | None) -> str | None:
        """Wait for a wake-up, for what is due next, or for being stopped. Return the queue that woke us."""
        try:
            self._title.rest(self._route.description)
            if not self._listening:
                self._wake_up.send(list(self._route.keys()), self._settings.interval * uniform(0.9, 1.1))
                self._listening = True
            rang = self._wake_up.fileno() in self._readable(self._wake_up.fileno(), timeout=self._soon(due))
            if not rang:
                return None
            self._listening = False
            key = self._wake_up.receive()
        except ConnectionLost:
            self._listening = False
            self._hold_on(self._outage.cut_off())
            return ANY_QUEUE
        self._early = 0.0
        return ANY_QUEUE if key is None else self._route.keys().get(key, ANY_QUEUE)

    def _soon(self, due: float | None) -> float | None:
        """How long to wait for what is due; looks that find nothing make it patient, so that it never spins."""
        if due is None:
            return None
        wait = max(due, self._early)
        self._early = longer(self._early, due)
        return wait

    def _stop_listening(self) -> None:
        """Stop waiting before working; a wake-up that was on its way is passed on."""
        if self._listening:
            self._listening = False
            self._wake_up.leave()
            self._pass_on()

    def _pass_on(self) -> None:
        """Wake another worker for a token that we did not use. It takes nothing and changes nothing that is held."""
        try:
            self._client.runner.run(self._turns.turn(0, ANY_QUEUE))
        except (TransportError, Refused) as error:
            log.debug("a wake-up could not be passed on: %s", error)

    def _pause(self) -> str:
        self._stop_listening()
        self._title.rest(self._route.description, paused=True)
        self._hold_on(self._settings.interval)
        return ANY_QUEUE

    def _hold_on(self, seconds: float) -> None:
        self._readable(timeout=seconds)

    def _readable(self, *descriptors: int, timeout: float | None) -> list[int]:
        poll = select.poll()
        beside = self._holder.fileno()
        for descriptor in (self._stop.fileno(), beside, *descriptors):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(None if timeout is None else timeout * 1000)]
        if self._stop.fileno() in ready:
            self._stop.heard()
        if beside in ready:
            self._holder.heard()
        return ready


LOOK: Final = 0.2  # seconds between two looks at whether the parent lives, while there is work


class LeaseTableHolder:
    """Writes what the child holds where its parent reads it."""

    def __init__(self, place: Place, stop: Stop, patience: float = 0.0) -> None:
        self._place = place
        self._lease_table = place.lease_table
        self._stop = stop
        self._patience = patience
        self._look_at = 0.0

    def begin(self, line: str) -> None:
        self._lease_table.begin(line)

    def ask(self, number: int) -> None:
        self._lease_table.ask(number)

    def hold(self, facts: JobFacts, since: float) -> None:
        ends = run_end(facts, since) + self._patience
        if self._lease_table.hold(0, facts.jid, facts.token, facts.lease_ms, since, ends):
            self._place.poke()

    def release(self) -> None:
        self._lease_table.clear(0)

    def lost(self) -> str:
        return ""

    def may_take(self) -> bool:
        now = monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK
            if self._place.is_orphan():
                self._stop.request()
        return not self._lease_table.paused

    def fileno(self) -> int:
        return self._place.pipe.fileno()

    def heard(self) -> None:
        if self._place.hears_of_end():
            self._stop.request()


def body(place: Place, around: Surroundings) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    stop = Stop()
    return work(place, around, stop, LeaseTableHolder(place, stop))


def work(
    place: Place, around: Surroundings, stop: Stop, holder: LeaseTableHolder, forking: Forking | None = None
) -> bool:
    """Work in this process until `stop`, or with `forking` in one for each job. Answers whether it is used up."""
    client = place.store.client(place.name)
    performer = make_performer(
        place.store, place.settings, place.name, client, holder.release, holder.lost, around
    )
    with Handlers(worker_handlers(stop, place.settings.debugger), stop.wake_fd):
        route = make_route(place.settings, place.store, place.name, client.shard)
        jobs = SerialLoop(
            client, place.settings, place.name, performer, stop, holder, route, around.title, forking, 0
        )
        jobs.run()
    return jobs.is_used_up
