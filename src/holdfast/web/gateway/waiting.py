"""Pops that wait for jobs, without asking the store again and again.

All waiting pops of a namespace share one connection, which waits at the wake keys of their queues as a worker of the pool
`asyncio` does. A wake-up is passed to the pop that has waited longest; while jobs are found, twice as many pops look each time.
Whoever has left gets no job: what was leased for it is given back at once, at no cost to the job.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from random import uniform
from time import monotonic
from typing import Any, Final

from msgspec.structs import replace

from holdfast.client.aio import AsyncClient
from holdfast.commands import Command
from holdfast.commands.leases import WILL_WAIT, WOKEN, Lease, Pop, Popped
from holdfast.commands.outcomes import Release
from holdfast.errors import ConnectionLost, HoldfastError
from holdfast.logs import logger
from holdfast.models import JobFacts
from holdfast.text import counted
from holdfast.web.live import cancelled
from holdfast.worker.session import longer

# One connection that waits at the wake keys of a changing set of queues.

_WAIT: Final = 30.0
_LINGER: Final = 1.0
"""Seconds for which queues are still followed after the last pop has left: the next one often comes soon."""
_AGAIN: Final = 0.25
_SOON: Final = 0.01


class WakeKeys:
    """Waits for wake-ups of the queues that it follows, and calls `woken` with the queue.

    After the connection was lost it calls `lost`, because a wake-up may have been lost with it. It waits for one wake-up at a
    time, with all queues in one command; for a new queue the wait is ended and begun again.
    """

    def __init__(self, client: AsyncClient, woken: Callable[[str], None], lost: Callable[[], None]) -> None:
        self._client, self._woken, self._lost = client, woken, lost
        self._queues: Collection[str] = ()
        self._listed: frozenset[str] = frozenset()
        """The queues of the wait under way."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def follow(self, queues: Collection[str]) -> None:
        """Follow these queues; the collection may change, and this is called then."""
        self._queues = queues
        if self._task is None or self._task.done():
            if queues:
                self._task = asyncio.get_running_loop().create_task(
                    self._run(), name="holdfast-gateway-waits"
                )
        elif not queues or not self._listed.issuperset(queues):
            self._changed.set()

    async def close(self) -> None:
        """End the wait."""
        if self._task is not None:
            self._queues = ()
            await cancelled(self._task)

    async def _run(self) -> None:
        wake_up = self._client.link.wake_up()
        prefix = len(self._client.shard.wake_key(""))
        try:
            while self._queues:
                self._changed.clear()
                self._listed = frozenset(self._queues)
                keys = [self._client.shard.wake_key(queue) for queue in self._listed]
                waiting = asyncio.ensure_future(wake_up.wait(keys, _WAIT * uniform(0.9, 1.1)))
                try:
                    key = await self._wake_up_of(waiting, wake_up.leave)
                except (ConnectionLost, HoldfastError):
                    await asyncio.sleep(_AGAIN)
                    self._lost()
                else:
                    if key is not None:
                        self._woken(key[prefix:])
                finally:
                    self._listed = frozenset()
                    await _ended(waiting)
        finally:
            await wake_up.close()

    async def _wake_up_of(
        self, waiting: "asyncio.Future[str | None]", leave: Callable[[], bool]
    ) -> str | None:
        """Return the key of a wake-up, None if the wait ended: by itself, or for queues that it does not list."""
        while not waiting.done():
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((waiting, changed), return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            if self._changed.is_set():
                self._changed.clear()
                if not self._queues:
                    await asyncio.wait([waiting], timeout=_LINGER)
                while not waiting.done() and self._is_wrong():
                    leave()
                    await asyncio.wait([waiting], timeout=_SOON)
        return waiting.result()

    def _is_wrong(self) -> bool:
        return not self._queues or not self._listed.issuperset(self._queues)


async def _ended(waiting: "asyncio.Future[str | None]") -> None:
    """Cancel a wait that was not ended, and return when the store knows."""
    if not waiting.done():
        waiting.cancel()
        await asyncio.wait([waiting])
    elif not waiting.cancelled():
        waiting.exception()  # retrieved, or asyncio would log it


Run = Callable[[Command[Any]], "asyncio.Future[Any]"]
"""Sends a command; how depends on whether the request has a key by which a repeat is recognised."""
_AT_ONCE: Final = 64
_NAME: Final = "gateway"
_MOST_RELEASED: Final = 128


class _Waiter:
    """One waiting pop. `is_busy` while it looks for jobs; its future gets the jobs."""

    __slots__ = ("found", "is_busy", "run", "take")

    def __init__(self, take: Pop, run: Run) -> None:
        self.take, self.run = take, run
        self.is_busy = False
        self.found: asyncio.Future[Popped] = asyncio.get_running_loop().create_future()


class _Group:
    """The pops that wait for jobs of the same queues, the longest first, and when one of these queues has a job due."""

    __slots__ = ("early", "is_served", "queues", "timer", "waiters", "woken")

    def __init__(self, queues: tuple[str, ...]) -> None:
        self.queues = queues
        self.waiters: dict[_Waiter, None] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.early = 0.0
        self.is_served = self.woken = False

    def idle(self, count: int) -> list[_Waiter]:
        """Return the first pops that do not look for jobs just now."""
        found: list[_Waiter] = []
        for one in self.waiters:
            if not one.is_busy and not one.found.done():
                found.append(one)
                if len(found) == count:
                    break
        return found


class WaitingPops:
    """The waiting pops of one client on one event loop."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._groups: dict[tuple[str, ...], _Group] = {}
        self._by_queue: dict[str, dict[_Group, None]] = {}
        self._keys = WakeKeys(client, self._woken, self._woken_all)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_ended = False

    async def pop(self, take: Pop, seconds: float, run: Run) -> Popped:
        """Return jobs, none if there are none within `seconds`. Whoever cancels this leaves: nothing is leased to it then."""
        if not seconds or self._is_ended:
            return await self.leased(take, run)
        until = monotonic() + seconds
        jobs = await self.leased(replace(take, mode=WILL_WAIT), run)
        return jobs or await self.wait(take, until - monotonic(), run, jobs.due)

    async def leased(self, take: Pop, run: Run) -> Popped:
        """Make one call, and give back what it leases if the caller is cancelled meanwhile."""
        future: asyncio.Future[Popped] = asyncio.ensure_future(run(take))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(self._give_back_result)
            raise

    async def wait(self, take: Pop, seconds: float, run: Run, due: float | None) -> Popped:
        """Wait for jobs after a pop that found none. `due`: seconds until there may be some."""
        if seconds <= 0 or self._is_ended:
            return Popped()
        waiter = _Waiter(take, run)
        group = self._join(waiter)
        self._set_timer(group, due)
        try:
            await asyncio.wait([waiter.found], timeout=seconds)
            if waiter.is_busy:  # its call is short, and what it finds is wanted
                await asyncio.wait([waiter.found])
            return waiter.found.result() if waiter.found.done() else Popped()
        except asyncio.CancelledError:
            if waiter.found.done():
                self._give_back_result(waiter.found)
            raise
        finally:
            self._leave(group, waiter)
            waiter.found.cancel()

    def end(self) -> None:
        """End all waits, with no jobs; later pops do not wait."""
        self._is_ended = True
        for group in self._groups.values():
            for waiter in group.waiters:
                if not waiter.is_busy and not waiter.found.done():
                    waiter.found.set_result(Popped())

    async def close(self) -> None:
        """End all waits and the shared connection, and finish what was begun."""
        self.end()
        await self._keys.close()
        while self._tasks:
            await asyncio.wait(self._tasks)

    # Who waits.

    def _join(self, waiter: _Waiter) -> _Group:
        queues = tuple(waiter.take.queues)
        group = self._groups.get(queues)
        if group is None:
            group = self._groups[queues] = _Group(queues)
            for queue in queues:
                self._by_queue.setdefault(queue, {})[group] = None
        group.waiters[waiter] = None
        self._keys.follow(self._by_queue.keys())
        return group

    def _leave(self, group: _Group, waiter: _Waiter) -> None:
        group.waiters.pop(waiter, None)
        if group.waiters or self._groups.get(group.queues) is not group:
            return
        del self._groups[group.queues]
        if group.timer is not None:
            group.timer.cancel()
        for queue in group.queues:
            groups = self._by_queue.get(queue, {})
            groups.pop(group, None)
            if not groups:
                self._by_queue.pop(queue, None)
        self._keys.follow(self._by_queue.keys())

    # Who is woken.

    def _woken(self, queue: str) -> None:
        """Let the pop look that has waited longest for a queue; if there is none, pass the wake-up on to another worker."""
        groups = self._by_queue.get(queue)
        if not groups:
            self._start(self._pass_on(queue))
            return
        group = next(iter(groups))
        # The next wake-up of this queue goes to another group.
        del groups[group]
        groups[group] = None
        self._serve(group)

    def _woken_all(self) -> None:
        """Let one pop of each group look, because wake-ups may have been lost."""
        for group in list(self._groups.values()):
            self._serve(group)

    def _serve(self, group: _Group) -> None:
        group.woken = True
        if not group.is_served:
            group.is_served = True
            self._start(self._look(group))

    async def _look(self, group: _Group) -> None:
        """Let pops of a group look for jobs: one, and twice as many each time as long as all find some."""
        count = 1
        try:
            while group.woken or count > 1:
                is_woken, group.woken = group.woken, False
                some = group.idle(count)
                if not some:
                    if is_woken:
                        await self._pass_on(*group.queues)
                    break
                found = await asyncio.gather(*[self._look_for(group, one) for one in some])
                count = min(2 * count, _AT_ONCE) if all(found) else 1
        finally:
            group.is_served = False

    async def _look_for(self, group: _Group, waiter: _Waiter) -> bool:
        """Return whether a waiting pop found jobs, which it then gets."""
        waiter.is_busy = True
        try:
            jobs: Popped = await waiter.run(replace(waiter.take, mode=WOKEN))
        except HoldfastError as error:
            if not waiter.found.done():
                waiter.found.set_exception(error)
            return False
        finally:
            waiter.is_busy = False
        if not jobs:
            self._set_timer(group, jobs.due)
            if waiter.run != self._client.run:  # a repeat, which finds only what the first request found
                await self._pass_on(*group.queues)
        elif waiter.found.done():
            self.give_back(jobs)
        else:
            group.early = 0.0
            waiter.found.set_result(jobs)
        return bool(jobs)

    def _set_timer(self, group: _Group, due: float | None) -> None:
        if group.timer is not None:
            group.timer.cancel()
            group.timer = None
        if due is not None and group.waiters:
            loop = asyncio.get_running_loop()
            group.timer = loop.call_later(max(due, group.early), self._serve, group)
            group.early = longer(group.early, due)

    async def _pass_on(self, *queues: str) -> None:
        """Wake another worker, wherever it is, if these queues have work."""
        with suppress(HoldfastError):
            await self._client.run(Pop(_NAME, queues, 0, None, WOKEN))

    # Who has left.

    def give_back(self, jobs: Sequence[JobFacts]) -> None:
        """Give back the leases of jobs whose callers have gone."""
        for at in range(0, len(jobs), _MOST_RELEASED):
            leases = [Lease(one.jid, one.token, one.worker) for one in jobs[at : at + _MOST_RELEASED]]
            self._start(self._release(leases))

    def _give_back_result(self, future: "asyncio.Future[Popped]") -> None:
        if not future.cancelled() and future.exception() is None:
            self.give_back(future.result())

    async def _release(self, leases: Sequence[Lease]) -> None:
        try:
            await self._client.run(Release(leases, "preempted", "the client disconnected"))
        except HoldfastError as error:
            what = counted(len(leases), "job")
            logger.warning("%s could not be released; requeued when the leases end: %s", what, error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
