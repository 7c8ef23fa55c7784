"""Many seats on one event loop. Each job is a task; seats that end together share a call."""

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from inspect import CORO_CREATED, getcoroutinestate
from random import uniform
from time import monotonic
from types import CoroutineType
from typing import Final

from holdfast.client.aio import AsyncClient
from holdfast.code.current import Running
from holdfast.commands.leases import Popped
from holdfast.errors import ConnectionLost, Refused, TransportError
from holdfast.models import JobFacts
from holdfast.wire.outage import Outage
from holdfast.wire.shards import Line
from holdfast.work.alone import DANGEROUS, Alone, ending_of, stop
from holdfast.work.keeper import Held, run_end
from holdfast.work.outcome import Ending, raised
from holdfast.work.perform import Performer
from holdfast.work.route import Route
from holdfast.work.seat import ANY_QUEUE, Turns, longer
from holdfast.work.settings import WorkerSettings
from holdfast.work.slate import Slate

log = logging.getLogger("holdfast")

FAREWELL: Final = 1.0  # seconds a process that must end now gives its jobs to unwind, and its last call


class Seat(Held):
    """A lease and the task that works on it."""

    __slots__ = ("current", "task")

    current: Running | None
    task: "asyncio.Task[None]"


class AsyncLoop:
    """Takes as many jobs as there are free seats, performs each in a task, settles what ended in one call."""

    def __init__(
        self,
        client: AsyncClient,
        settings: WorkerSettings,
        name: str,
        performer: Performer,
        slate: Slate,
        route: Route,
        alone: Alone,
        on_lease: Callable[[float], None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._name = name
        self._performer = performer
        self._slate = slate
        self._alone = alone
        self._on_lease = on_lease
        self._route = route
        self._turns = Turns(client.shard, name, route, will_wait=not settings.drain)
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix="job")
        self._free = list(range(settings.concurrency))
        self._settling: list[int] = []
        self.running: dict[int, Seat] = {}
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Future[None] = self._loop.create_future()
        # A line of its own, so that whoever comes after a sudden death knows what was asked last.
        self._line = Line()
        client.shard.lines.give(self._line)
        slate.begin(self._line.name)
        self._bell = client.link.bell()
        self._ringing: asyncio.Task[None] | None = None
        self._rung: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._look = True
        self._early = 0.0
        self._outage = Outage()
        self._stopping = False
        self._aborting = False
        self._left = settings.max_jobs or 1 << 60

    def stop(self) -> None:
        """Take no more jobs, and end when those under way have ended."""
        if not self._stopping:
            log.info("worker %s takes no more jobs", self._name)
        self._stopping = True
        self._poke()

    def abort(self) -> None:
        """End now: what is under way is cancelled and not settled."""
        self._aborting = True
        self.stop()

    def wake(self) -> None:
        """Look again, for example after a pause."""
        self._look = True
        self._poke()

    @property
    def is_used_up(self) -> bool:
        """Whether `max_jobs` were taken."""
        return self._left <= 0

    async def run(self) -> None:
        """Work until asked to stop, until the queues are empty (`drain`), or for `max_jobs` jobs."""
        try:
            await self._work()
            if self._aborting:
                await self._leave()
        finally:
            await self._stop_ringing()
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        while not self._aborting:
            is_over = self._stopping or self.is_used_up
            if is_over and not self.running and not self._turns.has_news:
                return
            limit = 0 if is_over or self._slate.paused else self._settings.concurrency - len(self.running)
            limit = min(limit, self._left)
            rung, self._rung = self._rung, None
            if self._turns.has_news or rung is not None or (limit and self._look):
                jobs = await self._ask(limit, rung)
                if jobs is None:
                    continue
                if self._is_drained(jobs):
                    return
                if len(jobs) < limit:
                    self._wait_for_more(jobs.due)
            else:
                await self._news
                self._news = self._loop.create_future()

    async def _ask(self, limit: int, rung: str | None) -> Popped | None:
        """Have a turn and start what it took; None, after a pause, when the store could not be reached."""
        since = monotonic()
        settling, self._settling = self._settling, []
        self._look = False
        self._slate.ask(self._line.number + 1)
        try:
            if limit and self._route.asks_store:
                await self._loop.run_in_executor(None, self._route.refresh)
            jobs = await self._client.runner.run(self._turns.turn(limit, rung))
        except (TransportError, Refused) as error:
            self._settling = settling + self._settling
            self._look = True
            await asyncio.sleep(self._outage.pause(error))
            return None
        self._outage.over()
        clear = self._slate.clear
        for seat in settling:
            clear(seat)
        self._free += settling
        self._start(jobs, since)
        self._slate.ask(0)
        return jobs

    def _start(self, jobs: Popped, since: float) -> None:
        if jobs:
            self._early = 0.0
        self._left -= len(jobs)
        for facts in jobs:
            number = self._free.pop()
            ends = run_end(facts, since)
            seat = Seat(facts.jid, facts.token, self._name, facts.lease_ms / 1000, since, number, ends)
            seat.current = None
            if self._slate.hold(number, facts.jid, facts.token, facts.lease_ms, since, ends):
                self._on_lease(seat.lease)
            self.running[number] = seat
            seat.task = self._loop.create_task(self._sit(seat, facts))

    async def _sit(self, seat: Seat, facts: JobFacts) -> None:
        ending: Ending = None
        try:
            if facts.losses >= DANGEROUS:
                ending = await self._perform_alone(facts)
            else:
                ending = await self._performer.perform_async(facts, self._threads, seat)
        except asyncio.CancelledError as error:
            if self._aborting:
                return
            if not seat.lost:
                ending = self._performer.cancelled(facts, error)
        except Exception as error:
            # Ours, not the job's: that would have been an ending. The seat must not be lost with it.
            log.exception("job %s could not be performed", facts.jid)
            ending = raised(facts, None, error)
        self._end(seat, ending)

    async def _perform_alone(self, facts: JobFacts) -> Ending:
        pid = self._alone.fork(facts)
        waiting = self._loop.run_in_executor(self._threads, os.waitpid, pid, 0)
        try:
            _, status = await asyncio.shield(waiting)
        except asyncio.CancelledError:
            stop(pid)
            raise
        return ending_of(facts, status)

    def _end(self, seat: Seat, ending: Ending) -> None:
        number = seat.seat
        del self.running[number]
        if seat.lost:
            log.warning("job %s: %s; what it did is dropped", seat.jid, seat.lost)
            ending = None
        if ending is None:
            self._slate.clear(number)
            self._free.append(number)
            self._look = True
        else:
            self._turns.end(ending)
            self._settling.append(number)
        self._poke()

    def drop(self, seat: Seat) -> None:
        """Stop the job of a seat whose lease was lost, unless the job has settled itself."""
        made = seat.current.made if seat.current is not None else None
        if made is not None and made.state_changed:
            seat.lost = ""
            return
        coroutine = seat.task.get_coro()
        seat.task.cancel()
        if isinstance(coroutine, CoroutineType) and getcoroutinestate(coroutine) == CORO_CREATED:
            # A task that is cancelled before its first step does nothing, not even its end.
            self._end(seat, None)

    def _is_drained(self, jobs: Popped) -> bool:
        idle = not jobs and jobs.due != 0 and not self.running and not self._turns.has_news
        return self._settings.drain and idle

    def _wait_for_more(self, due: float | None) -> None:
        """There were fewer jobs than seats: wait for the bell, and for what is due next."""
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

    def _come_due(self) -> None:
        """Look for what is due; if no seat is free by now, another worker is told."""
        self._rung = self._rung or ANY_QUEUE
        self.wake()

    async def _ring(self) -> None:
        try:
            key = await self._bell.wait(list(self._route.keys()), self._settings.interval * uniform(0.9, 1.1))
            self._early = 0.0
            self._rung = ANY_QUEUE if key is None else self._route.keys().get(key, ANY_QUEUE)
        except ConnectionLost as error:
            await asyncio.sleep(self._outage.pause(error))
            self._rung = ANY_QUEUE
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
        await self._bell.close()
        if ringing is not None:
            # A token may have been on its way: pass it on.
            await self._say_last(ANY_QUEUE)

    async def _leave(self) -> None:
        """Let the jobs unwind, and say what had ended before."""
        tasks = [seat.task for seat in self.running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=FAREWELL)
        if self._turns.has_news and await self._say_last():
            for number in self._settling:
                self._slate.clear(number)

    async def _say_last(self, rung: str | None = None) -> bool:
        try:
            async with asyncio.timeout(FAREWELL):
                await self._client.runner.run(self._turns.turn(0, rung))
        except (TransportError, Refused, TimeoutError):
            return False
        return True

    def _poke(self) -> None:
        if not self._news.done():
            self._news.set_result(None)
