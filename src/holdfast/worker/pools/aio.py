"""The `asyncio` pool: children with an event loop each, on which jobs run as tasks."""

import asyncio
import logging
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from random import uniform
from time import monotonic
from types import CoroutineType
from typing import Final

from holdfast.client.aio import AsyncClient
from holdfast.code.current import RunningJob
from holdfast.commands.leases import Popped
from holdfast.errors import ConnectionLost, Refused, TransportError
from holdfast.models import JobFacts
from holdfast.worker.descendants import guard_forks, leave_forks
from holdfast.worker.forking.forked import DANGEROUS
from holdfast.worker.forking.server import ForkServer
from holdfast.worker.loop import ENDED, LAST_CALL, Slot, WorkerLoop
from holdfast.worker.observe.stacks import for_slots
from holdfast.worker.performing.outcome import Outcome, failed, raised
from holdfast.worker.performing.perform import Performer
from holdfast.worker.performing.surroundings import Surroundings, make_performer
from holdfast.worker.process_state import ProcessState, Title
from holdfast.worker.processes import thread_lives
from holdfast.worker.queues.routing import make_route
from holdfast.worker.session import ANY_QUEUE, longer
from holdfast.worker.signals import UNWIND, at_usr2, log_stack
from holdfast.worker.supervisor.child import ChildPlace

log = logging.getLogger("holdfast")

AGAIN: Final = 0.05  # seconds


class TaskSlot(Slot):
    """A slot whose job is a task."""

    __slots__ = ("task",)

    task: "asyncio.Task[None]"


class AsyncLoop(WorkerLoop[TaskSlot]):
    """Takes as many jobs as there are free slots, runs each in a task, reports what ended in one call."""

    slot_type = TaskSlot

    def __init__(
        self, place: ChildPlace, client: AsyncClient, performer: Performer, forking: ForkServer, title: Title
    ) -> None:
        route = make_route(place.settings, place.store, place.name, client.shard)
        super().__init__(place, client.shard, route)
        self._title = title
        self._client = client
        self._performer = performer
        self._forking = forking
        self._threads = ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="job")
        self._loop = asyncio.get_running_loop()
        self._event: asyncio.Future[None] = self._loop.create_future()
        self._wake_up = client.link.wake_up()
        self._waiting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._aborting = False
        self._calling: asyncio.Task[None] | None = None
        # Each slot has a frame of its own, so that a dump shows whose job blocks the loop.
        self._slot_functions = for_slots(AsyncLoop._run_slot, self._settings.concurrency)

    def abort(self) -> None:
        """End now: running jobs are cancelled and not settled, and so is a call that the store does not answer."""
        self._aborting = True
        self.stop()
        self._cancel_call()

    def _cancel_call(self) -> None:
        if self._calling is not None:
            self._calling.cancel()
            # `wait_for` of Python 3.11 may swallow it.
            self._loop.call_later(AGAIN, self._cancel_call)

    async def run(self) -> None:
        """Work until stopped, until the queues are empty (`drain`), or for `max_jobs` jobs."""
        self._state = ProcessState(self._settings, self._place.pipe.fileno())
        self._performer.after_call = self._after_call_in_thread
        guard_forks(is_whole=self._place.order is None)
        session, running = self._session, self.running
        try:
            while not self._aborting and (limit := self._limit()) != ENDED:
                if session.done or session.others or self._woken is not None or (limit and self._look):
                    jobs = await self._call(limit)
                    if jobs is None:
                        continue
                    if not running and self._is_drained(jobs):
                        return
                    if len(jobs) < limit:
                        self._wait_for_more(jobs.due)
                else:
                    if not running:
                        self._title.rest(self._route.description, self._is_paused)
                    await self._event
                    self._event = self._loop.create_future()
        except asyncio.CancelledError:
            if not self._aborting:
                raise
        finally:
            leave_forks()
            await self._close()

    async def _close(self) -> None:
        try:
            if self._aborting:
                await self._unwind()
        finally:
            await self._stop_waiting()
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(self, limit: int) -> Popped | None:
        """Make a round trip and start what it took; None, after a pause, when the store could not be reached."""
        since = monotonic()
        woken, self._woken = self._woken, None
        settling = self._before_call()
        self._calling = asyncio.current_task()
        try:
            if limit and self._route.plain is None and self._route.asks_store:
                await self._loop.run_in_executor(None, self._route.refresh)
            jobs = await self._client.runner.run(self._session.round_trip(limit, woken))
        except (TransportError, Refused) as error:
            await asyncio.sleep(self._after_failed_call(settling, error))
            return None
        finally:
            self._calling = None
        self._after_call(settling, jobs, since)
        return jobs

    def _start(self, slot: TaskSlot, facts: JobFacts) -> None:
        slot.task = self._loop.create_task(self._slot_functions[slot.number](self, slot, facts))

    async def _run_slot(self, slot: TaskSlot, facts: JobFacts) -> None:
        outcome: Outcome = None
        try:
            if facts.losses >= DANGEROUS:
                outcome = await self._perform_alone(facts, slot)
            else:
                outcome = await self._performer.perform_async(facts, self._threads, slot)
        except asyncio.CancelledError as error:
            if self._aborting:
                return
            if slot.current is not None and self._has_died(slot.current):
                outcome = slot.thread_ended(slot.current)
            elif not slot.lost:
                outcome = self._performer.cancelled(facts, error)
        except Exception as error:
            # The worker's, not the job's: that would have been an outcome. The slot must not be lost with it.
            outcome = raised(facts, None, error)
            log.exception("job %s could not be performed", facts.jid)
        if self._state is not None and self._state.is_cut_off():
            self.leave(slot, outcome)
        self._end(slot, outcome)
        if not self._event.done():
            self._event.set_result(None)

    def _after_call_in_thread(
        self, current: RunningJob | None, value: object, error: BaseException | None
    ) -> None:
        # The loop could not be woken for what the thread returns.
        if current is not None and self._state is not None and self._state.is_cut_off():
            self.leave(current.slot, self._performer.outcome_of(current, value, error))

    def leave_broken(self) -> None:
        """End the process if a job closed descriptors of its event loop, which could not continue. Else return.

        If there was one job it fails for that; of several it is not known which it was.
        """
        running = [slot.current for slot in self.running.values() if slot.current is not None]
        if len(running) == 1 and self._state is not None and self._state.is_cut_off():
            reason = "the job closed descriptors of its process, whose event loop cannot work without them"
            self.leave(running[0].slot, failed(running[0].facts, "ClosedDescriptors", reason))

    async def _perform_alone(self, facts: JobFacts, slot: TaskSlot) -> Outcome:
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

    def check(self) -> None:
        """Respond to the parent, and drop jobs whose leases were lost or whose threads have died."""
        self.respond()
        for slot in self.running.values():
            if slot.current is not None and self._has_died(slot.current):
                self._left = 0  # one of its threads is gone, perhaps with locks that others wait for
                slot.task.cancel()
        for slot in self._lost():
            if not slot.task.done():
                self.drop(slot)

    def _has_died(self, current: RunningJob) -> bool:
        number = current.thread
        return number != 0 and not thread_lives(number) and current.thread == number

    def drop(self, slot: TaskSlot) -> None:
        """Stop the job of a slot whose lease was lost, unless the job has settled itself."""
        if self._may_continue(slot):
            return
        coroutine = slot.task.get_coro()
        slot.task.cancel()
        if isinstance(coroutine, CoroutineType) and getcoroutinestate(coroutine) == CORO_CREATED:
            # A task that is cancelled before its first step does nothing, not even its end.
            self._end(slot, None)
            self._poke()

    def _wait_for_more(self, due: float | None) -> None:
        """Wait for a wake-up, and for what is due next: there were fewer jobs than slots."""
        if self._settings.drain:
            self._look = self._look or due == 0
            return
        if self._waiting is None:
            self._waiting = self._loop.create_task(self._wait_for_wake_up())
        if self._timer is not None:
            self._timer.cancel()
        if due is not None:
            self._timer = self._loop.call_later(max(due, self._early), self._come_due)
            self._early = longer(self._early, due)

    async def _wait_for_wake_up(self) -> None:
        try:
            key = await self._wake_up.wait(
                list(self._route.keys()), self._settings.interval * uniform(0.9, 1.1)
            )
            self._woken_by(key)
        except ConnectionLost:
            await asyncio.sleep(self._cut_off())
            self._woken = ANY_QUEUE
        finally:
            self._waiting = None
            self._poke()

    async def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        waiting = self._waiting
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait([waiting])
        await self._wake_up.close()
        if waiting is not None:
            # A wake-up may have been on its way: pass it on.
            await self._report_last(ANY_QUEUE)

    async def _unwind(self) -> None:
        """Let the jobs unwind, and report what had ended before."""
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
        if self._session.has_outcomes and await self._report_last():
            self._clear_settled()

    async def _report_last(self, woken: str | None = None) -> bool:
        self._before_last_call()
        try:
            async with asyncio.timeout(LAST_CALL):
                await self._client.runner.run(self._session.round_trip(0, woken))
        except (TransportError, Refused, TimeoutError):
            return False
        return True

    def _poke(self) -> None:
        if not self._event.done():
            self._event.set_result(None)


def body(place: ChildPlace, around: Surroundings) -> bool:
    """Work in a forked child until stopped. Return whether it is used up."""
    forking = ForkServer(place.store, place.settings, around, place.pipe.fileno())
    made: list[AsyncLoop] = []
    try:
        return asyncio.run(_work(place, around, forking, made))
    except OSError:
        for jobs in made:
            jobs.leave_broken()
        raise


async def _work(place: ChildPlace, around: Surroundings, forking: ForkServer, made: list[AsyncLoop]) -> bool:
    client = place.store.async_client(place.name)
    performer = make_performer(place.store, place.settings, place.name, around=around)
    jobs = AsyncLoop(place, client, performer, forking, around.title)
    made.append(jobs)
    _listen(place, jobs)
    try:
        await jobs.run()
    finally:
        forking.close()
        await client.close()
    return jobs.is_used_up


def _on_signal(place: ChildPlace, jobs: AsyncLoop, number: signal.Signals) -> None:
    if number != signal.SIGQUIT and place.order is not None:
        place.order.obey(number, jobs.stop)
    elif number != signal.SIGINT:
        jobs.stop()


def _listen(place: ChildPlace, jobs: AsyncLoop) -> None:
    """Stop at signals, and when the parent is gone; check the leases when it asks for that."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, partial(_on_signal, place, jobs, number))
        loop.add_signal_handler(UNWIND, jobs.abort)
        signal.signal(signal.SIGUSR1, log_stack)
        signal.signal(signal.SIGUSR2, at_usr2(place.settings.debugger))

    def read_pipe() -> None:
        if place.has_ended():
            loop.remove_reader(place.pipe)
            jobs.stop()
        else:
            jobs.check()

    loop.add_reader(place.pipe, read_pipe)
