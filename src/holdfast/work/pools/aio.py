"""The `asyncio` pool: children with many slots on an event loop each."""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from random import uniform
from time import monotonic
from types import CoroutineType
from typing import Final

from holdfast.client.aio import AsyncClient
from holdfast.commands.leases import Popped
from holdfast.errors import ConnectionLost, Refused, TransportError
from holdfast.models import JobFacts
from holdfast.work.forking.forked import DANGEROUS, Forking
from holdfast.work.forking.server import ForkServer
from holdfast.work.observe.slot_frames import for_slots
from holdfast.work.parent.child import Place
from holdfast.work.parent.lease_table import LeaseTable
from holdfast.work.performing.around import Surroundings, Title
from holdfast.work.performing.making import make_performer
from holdfast.work.performing.outcome import Ending, raised
from holdfast.work.performing.perform import Performer
from holdfast.work.pools.slots import LAST_CALL, Slot, Slots
from holdfast.work.queues.route import Route
from holdfast.work.queues.routing import make_route
from holdfast.work.session import ANY_QUEUE, longer
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import UNWIND, at_usr2, log_stack

log = logging.getLogger("holdfast")

AGAIN: Final = 0.05  # seconds


class TaskSlot(Slot):
    """A slot whose job is a task."""

    __slots__ = ("task",)

    task: "asyncio.Task[None]"


class AsyncLoop(Slots[TaskSlot]):
    """Takes as many jobs as there are free slots, performs each in a task, settles what ended in one call."""

    def __init__(
        self,
        client: AsyncClient,
        settings: WorkerSettings,
        name: str,
        performer: Performer,
        lease_table: LeaseTable,
        route: Route,
        forking: ForkServer,
        on_short_lease: Callable[[], None],
        title: Title,
    ) -> None:
        super().__init__(client.shard, settings, name, lease_table, route, on_short_lease)
        self._title = title
        self._client = client
        self._performer = performer
        self._forking = forking
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix="job")
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Future[None] = self._loop.create_future()
        self._wake_up = client.link.wake_up()
        self._ringing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._aborting = False
        self._turn: asyncio.Task[None] | None = None
        # Each slot has a frame of its own, so that a dump shows whose job keeps the loop.
        self._sits = for_slots(AsyncLoop._sit, settings.concurrency)

    def abort(self) -> None:
        """End now: what is under way is cancelled and not settled, a turn with a store that does not answer too."""
        self._aborting = True
        self.stop()
        self._break_off_turn()

    def _break_off_turn(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            # `wait_for` of Python 3.11 may swallow it.
            self._loop.call_later(AGAIN, self._break_off_turn)

    async def run(self) -> None:
        """Work until asked to stop, until the queues are empty (`drain`), or for `max_jobs` jobs."""
        try:
            try:
                await self._work()
            except asyncio.CancelledError:
                if not self._aborting:
                    raise
            if self._aborting:
                await self._leave()
        finally:
            await self._stop_ringing()
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        while not self._aborting and not self._has_ended():
            limit = self._limit()
            if self._is_due(limit):
                jobs = await self._ask(limit, self._rang())
                if jobs is None:
                    continue
                if self._is_drained(jobs):
                    return
                if len(jobs) < limit:
                    self._wait_for_more(jobs.due)
            else:
                if not self.running:
                    self._title.rest(self._route.description, self._lease_table.paused)
                await self._news
                self._news = self._loop.create_future()

    async def _ask(self, limit: int, woken: str | None) -> Popped | None:
        """Have a turn and start what it took; None, after a pause, when the store could not be reached."""
        since = monotonic()
        settling = self._before_turn()
        self._turn = asyncio.current_task()
        try:
            if limit and self._route.asks_store:
                await self._loop.run_in_executor(None, self._route.refresh)
            jobs = await self._client.runner.run(self._turns.turn(limit, woken))
        except (TransportError, Refused) as error:
            await asyncio.sleep(self._after_failed_turn(settling, error))
            return None
        finally:
            self._turn = None
        self._after_turn(settling, jobs, since)
        return jobs

    def _make_slot(self, facts: JobFacts, since: float, number: int) -> TaskSlot:
        return TaskSlot(facts, self._name, since, number)

    def _start(self, slot: TaskSlot, facts: JobFacts) -> None:
        slot.task = self._loop.create_task(self._sits[slot.number](self, slot, facts))

    async def _sit(self, slot: TaskSlot, facts: JobFacts) -> None:
        ending: Ending = None
        try:
            if facts.losses >= DANGEROUS:
                ending = await self._perform_alone(facts, slot)
            else:
                ending = await self._performer.perform_async(facts, self._threads, slot)
        except asyncio.CancelledError as error:
            if self._aborting:
                return
            if not slot.lost:
                ending = self._performer.cancelled(facts, error)
        except Exception as error:
            # Ours, not the job's: that would have been an ending. The slot must not be lost with it.
            log.exception("job %s could not be performed", facts.jid)
            ending = raised(facts, None, error)
        self._end(slot, ending)

    async def _perform_alone(self, facts: JobFacts, slot: TaskSlot) -> Ending:
        forked = slot.forked = self._forking.start(facts, slot.ends)
        waiting = self._loop.run_in_executor(self._threads, forked.wait)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if self._aborting:
                forked.unwind()
                await asyncio.wait([waiting], timeout=self._settings.unwind_timeout)
            forked.stop()
            raise

    def _end(self, slot: TaskSlot, ending: Ending) -> None:
        super()._end(slot, ending)
        self._poke()

    def look(self) -> None:
        """The parent has woken us: drop jobs whose leases were lost."""
        self.heed()
        for slot in self._lost():
            if not slot.task.done():
                self.drop(slot)

    def drop(self, slot: TaskSlot) -> None:
        """Stop the job of a slot whose lease was lost, unless the job has settled itself."""
        if self._goes_on(slot):
            return
        coroutine = slot.task.get_coro()
        slot.task.cancel()
        if isinstance(coroutine, CoroutineType) and getcoroutinestate(coroutine) == CORO_CREATED:
            # A task that is cancelled before its first step does nothing, not even its end.
            self._end(slot, None)

    def _wait_for_more(self, due: float | None) -> None:
        """There were fewer jobs than slots: wait for a wake-up, and for what is due next."""
        if self._settings.drain:
            self._look = self._look or due == 0
            return
        if self._ringing is None:
            self._ringing = self._loop.create_task(self._ring())
        if self._timer is not None:
            self._timer.cancel()
        if due is not None:
            self._timer = self._loop.call_later(max(due, self._early), self._come_due)
            self._early = longer(self._early, due)

    async def _ring(self) -> None:
        try:
            key = await self._wake_up.wait(
                list(self._route.keys()), self._settings.interval * uniform(0.9, 1.1)
            )
            self._woken_by(key)
        except ConnectionLost:
            await asyncio.sleep(self._outage.cut_off())
            self._woken = ANY_QUEUE
        finally:
            self._ringing = None
            self._poke()

    async def _stop_ringing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        ringing = self._ringing
        if ringing is not None:
            ringing.cancel()
            await asyncio.wait([ringing])
        await self._wake_up.close()
        if ringing is not None:
            # A token may have been on its way: pass it on.
            await self._say_last(ANY_QUEUE)

    async def _leave(self) -> None:
        """Let the jobs unwind, and say what had ended before."""
        tasks = [slot.task for slot in self.running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            holding = asyncio.create_task(self._client.runner.run(self._hold_granted()))
            await asyncio.wait(tasks, timeout=self._settings.unwind_timeout)
            holding.cancel()
            await asyncio.wait([holding])
            if not holding.cancelled():
                holding.exception()  # retrieved, or asyncio would log it
        if self._turns.has_news and await self._say_last():
            self._clear_settled()

    async def _say_last(self, woken: str | None = None) -> bool:
        self._before_last_turn()
        try:
            async with asyncio.timeout(LAST_CALL):
                await self._client.runner.run(self._turns.turn(0, woken))
        except (TransportError, Refused, TimeoutError):
            return False
        return True

    def _poke(self) -> None:
        if not self._news.done():
            self._news.set_result(None)


def body(place: Place, around: Surroundings) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    forking = ForkServer(Forking(place.store, place.settings, around), around, [place.pipe.fileno()])
    return asyncio.run(_work(place, around, forking))


async def _work(place: Place, around: Surroundings, forking: ForkServer) -> bool:
    client = place.store.async_client(place.name)
    performer = make_performer(place.store, place.settings, place.name, around=around)
    jobs = AsyncLoop(
        client,
        place.settings,
        place.name,
        performer,
        place.lease_table,
        make_route(place.settings, place.store, place.name, client.shard),
        forking,
        place.poke,
        around.title,
    )
    _listen_to_others(place, jobs)
    try:
        await jobs.run()
    finally:
        forking.close()
        await client.close()
    return jobs.is_used_up


def _hear_signal(place: Place, jobs: AsyncLoop, number: signal.Signals) -> None:
    if number != signal.SIGQUIT and place.order is not None:
        place.order.obey(number, jobs.stop)
    elif number != signal.SIGINT:
        jobs.stop()


def _listen_to_others(place: Place, jobs: AsyncLoop) -> None:
    """Stop when signalled, or when the parent is gone; look again when it says so."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, partial(_hear_signal, place, jobs, number))
        loop.add_signal_handler(UNWIND, jobs.abort)
        signal.signal(signal.SIGUSR1, log_stack)
        signal.signal(signal.SIGUSR2, at_usr2(place.settings.debugger))

    def hear() -> None:
        if place.hears_of_end():
            loop.remove_reader(place.pipe)
            jobs.stop()
        else:
            jobs.look()

    loop.add_reader(place.pipe, hear)
