"""Waiting for the ends of jobs: the store publishes them, nobody polls.

The order matters: listen first, then ask (which marks the jobs as awaited), then wait. A listener that broke is
replaced and the question asked again, so no end is missed. Many jobs are asked for in one call.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Generator, Iterator, Sequence
from contextlib import aclosing, closing
from time import monotonic
from typing import Any, Final

from holdfast.commands.jobs import Await, Outcome
from holdfast.errors import ConnectionLost, StoreUnsupported
from holdfast.settings import MAX_BATCH
from holdfast.wire.waiting import PerLoop, receive_unless, sleep

LONGEST_WAIT: Final = 30.0
UNHEARD: Final = 0.2
"""Seconds between two questions while there is no listening."""

OPEN: Final = Outcome("open")


class _EndListener:
    """What one waiting thread hears, on a listener it has to itself."""

    def __init__(self, results: "SyncResults", channel_of: Any) -> None:
        self._results = results
        self._channel_of = channel_of
        self._listener: Any = None
        self._following: set[str] = set()

    def heard(self, jids: Collection[str], seconds: float) -> Collection[str]:
        """Whom to ask for next: those just followed, those heard of, or all when nothing came in time."""
        try:
            fresh = [jid for jid in jids if jid not in self._following]
            if fresh:
                self._listener = self._listener or self._results.take()
                self._listener.subscribe(*[self._channel_of(jid) for jid in fresh])
                self._following.update(fresh)
                return fresh
            message, told = self._listener.receive(seconds), set[str]()
            while message is not None:
                told.add(message[1].decode())
                message = self._listener.receive(0.0)
            return [jid for jid in jids if jid in told] if told else jids
        except (ConnectionLost, StoreUnsupported):
            sleep(min(seconds, UNHEARD))
            # The next question goes through the link, which waits for the store to come back.
            self._following.clear()
            return jids

    def close(self) -> None:
        """Give the listener to the next who waits."""
        if self._listener is None:
            return
        try:
            if self._following:
                self._listener.unsubscribe(*[self._channel_of(jid) for jid in self._following])
        except ConnectionLost:
            pass
        self._results.give(self._listener)


class SyncResults:
    """Listeners of a blocking client; each waiting thread has one to itself."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._idle: list[Any] = []

    def wait_for(self, jid: str, timeout: float | None) -> Outcome:
        """Wait until `jid` has ended, or `timeout` seconds are over; then it is still `open`."""
        with closing(self.ends_of((jid,), timeout)) as ends:
            for _, outcome in ends:
                return outcome
        return OPEN

    def ends_of(self, jids: Sequence[str], timeout: float | None) -> Generator[tuple[str, Outcome]]:
        """Each job with its outcome, as they end; over when all have ended or `timeout` seconds are over."""
        end = None if timeout is None else monotonic() + timeout
        waiting = dict.fromkeys(jids)
        asked: Collection[str] = list(waiting)
        ear = _EndListener(self, self._client.shard.result_channel)
        try:
            while True:
                for step in _steps(asked):
                    for jid, outcome in _ended(step, self._client.run(Await(step))):
                        waiting.pop(jid)
                        yield jid, outcome
                if not waiting or _is_over(end):
                    return
                asked = ear.heard(list(waiting), _left(end))
        finally:
            ear.close()

    def take(self) -> Any:
        """A listener that nobody uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._client.link.listener()

    def give(self, listener: Any) -> None:
        """Take a listener back."""
        self._idle.append(listener)

    def close(self) -> None:
        """End the listeners that nobody uses."""
        while self._idle:
            self._idle.pop().close()


class _Call:
    """One waiting caller: whether its channels are listened to, and of whom something was heard."""

    __slots__ = ("heard", "listener", "ready", "woken")

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.woken = asyncio.Event()
        self.heard: set[str] = set()
        self.listener: asyncio.Task[None] | None = None


class AsyncResults:
    """Waiting on an async client; each of its loops has one listener."""

    def __init__(self, client: Any) -> None:
        self._ears = PerLoop(lambda: _AsyncEndListener(client))

    async def wait_for(self, jid: str, timeout: float | None) -> Outcome:
        """Wait until `jid` has ended, or `timeout` seconds are over; then it is still `open`."""
        async with aclosing(self.ends_of((jid,), timeout)) as ends:
            async for _, outcome in ends:
                return outcome
        return OPEN

    async def ends_of(
        self, jids: Sequence[str], timeout: float | None
    ) -> AsyncGenerator[tuple[str, Outcome]]:
        """Each job with its outcome, as they end; over when all have ended or `timeout` seconds are over."""
        async with aclosing(self._ears.here().ends_of(jids, timeout)) as ends:
            async for end in ends:
                yield end

    async def close(self) -> None:
        """End the listener of this loop."""
        await self._ears.here().close()


class _AsyncEndListener:
    """The listener of one loop, and who waits for which job."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._waiting: dict[str, list[_Call]] = {}
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def ends_of(
        self, jids: Sequence[str], timeout: float | None
    ) -> AsyncGenerator[tuple[str, Outcome]]:
        """Each job with its outcome, as they end; over when all have ended or `timeout` seconds are over."""
        end = None if timeout is None else monotonic() + timeout
        waiting = dict.fromkeys(jids)
        asked: Collection[str] = list(waiting)
        call = _Call()
        try:
            while True:
                for step in _steps(asked):
                    for jid, outcome in _ended(step, await self._client.run(Await(step))):
                        waiting.pop(jid)
                        self._leave(call, (jid,))
                        yield jid, outcome
                if not waiting or _is_over(end):
                    return
                asked = await self._heard(call, list(waiting), _left(end))
        finally:
            self._leave(call, waiting)

    async def _heard(self, call: _Call, jids: Collection[str], seconds: float) -> Collection[str]:
        if call.listener is None or call.listener is not self._task:
            self._follow_for(call, jids)
            await _at_most(call.ready, seconds)
            return jids
        await _at_most(call.woken, seconds)
        call.woken.clear()
        heard, call.heard = call.heard, set()
        return [jid for jid in jids if jid in heard] if heard else jids

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
        listener = self._client.link.listener()
        heard: set[str] = set()
        try:
            while self._waiting:
                if self._changed.is_set():
                    self._changed.clear()
                    heard = await self._follow(listener, heard)
                message = await receive_unless(self._changed, listener, LONGEST_WAIT)
                if message is not None:
                    self._tell(message[1].decode())
        except (ConnectionLost, StoreUnsupported):
            # Everybody asks again, through the link, which waits for the store to come back.
            await asyncio.sleep(UNHEARD)
        finally:
            # From here on nobody is served: whoever comes now starts the next listener.
            if self._task is asyncio.current_task():
                self._task = None
            for call in {call for calls in self._waiting.values() for call in calls}:
                call.ready.set()
                call.woken.set()
            await listener.close()

    def _tell(self, jid: str) -> None:
        for call in self._waiting.get(jid, ()):
            call.heard.add(jid)
            call.woken.set()

    async def _follow(self, listener: Any, heard: set[str]) -> set[str]:
        """Listen for exactly the jobs somebody waits for."""
        channel = self._client.shard.result_channel
        wanted = set(self._waiting)
        if wanted - heard:
            await listener.subscribe(*[channel(jid) for jid in wanted - heard])
        if heard - wanted:
            await listener.unsubscribe(*[channel(jid) for jid in heard - wanted])
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
