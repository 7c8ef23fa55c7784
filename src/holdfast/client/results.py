"""Wait for the ends of jobs, which the store publishes.

The order matters: listen first, then call (which marks the jobs as awaited), then wait. A listener that lost its connection is
replaced and the call repeated, so no end is missed. One call is for many jobs.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterator, Sequence
from contextlib import aclosing, closing
from time import monotonic
from typing import TYPE_CHECKING, Final

from holdfast.client.descriptors import AnyClient
from holdfast.commands.jobs import Await, Outcome
from holdfast.errors import ConnectionLost, StoreUnsupported
from holdfast.settings import MAX_BATCH
from holdfast.wire.waiting import PerLoop, receive_unless, sleep

if TYPE_CHECKING:
    from holdfast.wire.aio import AsyncListener
    from holdfast.wire.sync import Listener

LONGEST_WAIT: Final = 30.0
POLL: Final = 0.2
"""Seconds between two calls while listening fails."""

OPEN: Final = Outcome("open")


class _EndListener:
    """The ends that one waiting thread learns of, on a listener of its own."""

    def __init__(self, results: "SyncResults", channel_of: Callable[[str], str]) -> None:
        self._results = results
        self._channel_of = channel_of
        self._listener: Listener | None = None
        self._following: set[str] = set()

    def next_jids(self, jids: Collection[str], seconds: float) -> Collection[str]:
        """Return the jobs of the next call: those just followed, those that ended, or all when nothing came in time."""
        try:
            listener = self._listener = self._listener or self._results.take()
            fresh = [jid for jid in jids if jid not in self._following]
            if fresh:
                listener.subscribe(*[self._channel_of(jid) for jid in fresh])
                self._following.update(fresh)
                return fresh
            message, ended = listener.receive(seconds), set[str]()
            while message is not None:
                ended.add(message[1].decode())
                message = listener.receive(0.0)
            return [jid for jid in jids if jid in ended] if ended else jids
        except (ConnectionLost, StoreUnsupported):
            sleep(min(seconds, POLL))
            # The next call goes through the link, which waits until the store is available.
            self._following.clear()
            return jids

    def close(self) -> None:
        """Give the listener to the next waiting thread."""
        if self._listener is None:
            return
        try:
            if self._following:
                self._listener.unsubscribe(*[self._channel_of(jid) for jid in self._following])
        except ConnectionLost:
            pass
        self._results.give(self._listener)


class SyncResults:
    """The listeners of a sync client; each waiting thread has one of its own."""

    def __init__(self, client: AnyClient) -> None:
        self._client = client
        self._idle: list[Listener] = []

    def wait_for(self, jid: str, timeout: float | None) -> Outcome:
        """Wait until `jid` has ended, at most `timeout` seconds; then it may still be `open`."""
        with closing(self.ends_of((jid,), timeout)) as ends:
            for _, outcome in ends:
                return outcome
        return OPEN

    def ends_of(self, jids: Sequence[str], timeout: float | None) -> Generator[tuple[str, Outcome]]:
        """Yield each job with its outcome as it ends, until all have ended or for `timeout` seconds."""
        end = None if timeout is None else monotonic() + timeout
        waiting = dict.fromkeys(jids)
        open_jids: Collection[str] = list(waiting)
        listener = _EndListener(self, self._client.shard.result_channel)
        try:
            while True:
                for step in _steps(open_jids):
                    for jid, outcome in _ended(step, self._client.run(Await(step))):
                        waiting.pop(jid)
                        yield jid, outcome
                if not waiting or _is_over(end):
                    return
                open_jids = listener.next_jids(list(waiting), _left(end))
        finally:
            listener.close()

    def take(self) -> "Listener":
        """Return an idle listener, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            listener: Listener = self._client.link.listener()
            return listener

    def give(self, listener: "Listener") -> None:
        """Take a listener back."""
        self._idle.append(listener)

    def close(self) -> None:
        """Close the idle listeners."""
        while self._idle:
            self._idle.pop().close()


class _Call:
    """One waiting caller: whether its channels are subscribed, and which of its jobs ended."""

    __slots__ = ("ended", "listener", "ready", "woken")

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.woken = asyncio.Event()
        self.ended: set[str] = set()
        self.listener: asyncio.Task[None] | None = None


class AsyncResults:
    """The listeners of an async client; each of its loops has one."""

    def __init__(self, client: AnyClient) -> None:
        self._listeners = PerLoop(lambda: _AsyncEndListener(client))

    async def wait_for(self, jid: str, timeout: float | None) -> Outcome:
        """Wait until `jid` has ended, at most `timeout` seconds; then it may still be `open`."""
        async with aclosing(self.ends_of((jid,), timeout)) as ends:
            async for _, outcome in ends:
                return outcome
        return OPEN

    def ends_of(self, jids: Sequence[str], timeout: float | None) -> AsyncGenerator[tuple[str, Outcome]]:
        """Yield each job with its outcome as it ends, until all have ended or for `timeout` seconds."""
        return self._listeners.here().ends_of(jids, timeout)

    async def close(self) -> None:
        """End the listener of this loop."""
        await self._listeners.here().close()


class _AsyncEndListener:
    """The listener of one loop, and the callers that wait for each job."""

    def __init__(self, client: AnyClient) -> None:
        self._client = client
        self._waiting: dict[str, list[_Call]] = {}
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def ends_of(
        self, jids: Sequence[str], timeout: float | None
    ) -> AsyncGenerator[tuple[str, Outcome]]:
        """Yield each job with its outcome as it ends, until all have ended or for `timeout` seconds."""
        end = None if timeout is None else monotonic() + timeout
        waiting = dict.fromkeys(jids)
        open_jids: Collection[str] = list(waiting)
        call = _Call()
        try:
            while True:
                for step in _steps(open_jids):
                    for jid, outcome in _ended(step, await self._client.run(Await(step))):
                        waiting.pop(jid)
                        self._leave(call, (jid,))
                        yield jid, outcome
                if not waiting or _is_over(end):
                    return
                open_jids = await self._next_jids(call, list(waiting), _left(end))
        finally:
            self._leave(call, waiting)

    async def _next_jids(self, call: _Call, jids: Collection[str], seconds: float) -> Collection[str]:
        if call.listener is None or call.listener is not self._task:
            self._follow_for(call, jids)
            await _at_most(call.ready, seconds)
            return jids
        await _at_most(call.woken, seconds)
        call.woken.clear()
        ended, call.ended = call.ended, set()
        return [jid for jid in jids if jid in ended] if ended else jids

    def _follow_for(self, call: _Call, jids: Collection[str]) -> None:
        for jid in jids:
            calls = self._waiting.setdefault(jid, [])
            if call not in calls:
                calls.append(call)
        call.ready.clear()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        call.listener = self._task
        self._changed.set()

    def _leave(self, call: _Call, jids: Collection[str]) -> None:
        for jid in jids:
            calls = self._waiting.get(jid, [])
            if call in calls:
                calls.remove(call)
                if not calls:
                    del self._waiting[jid]
        if not self._waiting:
            self._changed.set()

    async def _listen(self) -> None:
        listener: AsyncListener = self._client.link.listener()
        followed: set[str] = set()
        try:
            while self._waiting:
                if self._changed.is_set():
                    self._changed.clear()
                    followed = await self._follow(listener, followed)
                message = await receive_unless(self._changed, listener, LONGEST_WAIT)
                if message is not None:
                    self._wake(message[1].decode())
        except (ConnectionLost, StoreUnsupported):
            # Every caller calls again, through the link, which waits until the store is available.
            await asyncio.sleep(POLL)
        finally:
            # From here on this listener is over: the next caller starts another.
            if self._task is asyncio.current_task():
                self._task = None
            for call in {call for calls in self._waiting.values() for call in calls}:
                call.ready.set()
                call.woken.set()
            await listener.close()

    def _wake(self, jid: str) -> None:
        for call in self._waiting.get(jid, ()):
            call.ended.add(jid)
            call.woken.set()

    async def _follow(self, listener: "AsyncListener", followed: set[str]) -> set[str]:
        """Subscribe to exactly the jobs that callers wait for; return them."""
        channel = self._client.shard.result_channel
        wanted = set(self._waiting)
        if wanted - followed:
            await listener.subscribe(*[channel(jid) for jid in wanted - followed])
        if followed - wanted:
            await listener.unsubscribe(*[channel(jid) for jid in followed - wanted])
        for call in {call for jid in wanted for call in self._waiting.get(jid, ())}:
            call.ready.set()
        return wanted

    async def close(self) -> None:
        """End the listener."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


async def _at_most(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _steps(jids: Collection[str]) -> Iterator[list[str]]:
    names = list(jids)
    for at in range(0, len(names), MAX_BATCH):
        yield names[at : at + MAX_BATCH]


def _ended(jids: Sequence[str], outcomes: Sequence[Outcome]) -> Iterator[tuple[str, Outcome]]:
    for jid, outcome in zip(jids, outcomes, strict=True):
        if outcome.status != OPEN.status:
            yield jid, outcome


def _is_over(end: float | None) -> bool:
    return end is not None and monotonic() >= end


def _left(end: float | None) -> float:
    return LONGEST_WAIT if end is None else max(0.0, min(end - monotonic(), LONGEST_WAIT))
