"""Waiting for the ends of jobs: the store publishes them, nobody polls.

The order matters: listen first, then ask (which marks the job as awaited), then wait. A listener that broke is
replaced and the question asked again, so no end is missed.
"""

import asyncio
from time import monotonic
from typing import Any, Final

from holdfast.commands.jobs import Await, Outcome
from holdfast.errors import ConnectionLost, JobNotFound, StoreUnsupported
from holdfast.wire.waiting import hold

LONGEST_WAIT: Final = 30.0
UNHEARD: Final = 0.2
"""Seconds between two questions while there is no listening."""


class SyncResults:
    """Listeners of a blocking client; each waiting thread has one to itself."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._idle: list[Any] = []

    def wait_for(self, jid: str, timeout: float | None) -> Outcome:
        """Wait until `jid` has ended, or `timeout` seconds are over; then it is still `open`."""
        end = None if timeout is None else monotonic() + timeout
        outcome = self._ask(jid)
        listener = None
        while outcome.status == "open" and (end is None or monotonic() < end):
            listener = listener or self._listener()
            outcome = self._once(listener, jid, end)
        if listener is not None:
            self._idle.append(listener)
        return outcome

    def _once(self, listener: Any, jid: str, end: float | None) -> Outcome:
        channel = self._client.shard.result_channel(jid)
        try:
            listener.subscribe(channel)
            outcome = self._ask(jid)
            if outcome.status == "open":
                listener.receive(_left(end))
                outcome = self._ask(jid)
            listener.unsubscribe(channel)
        except (ConnectionLost, StoreUnsupported):
            hold(UNHEARD)
            # The next question goes through the link, which waits for the store to come back.
            outcome = self._ask(jid)
        return outcome

    def _ask(self, jid: str) -> Outcome:
        outcomes: list[Outcome] = self._client.run(Await((jid,)))
        return outcomes[0]

    def _listener(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            return self._client.link.listener()

    def close(self) -> None:
        """End the listeners that nobody uses."""
        while self._idle:
            self._idle.pop().close()


class _Call:
    """One waiting caller: whether the channel is listened to, and whether the end was heard."""

    __slots__ = ("ready", "rung")

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.rung = asyncio.Event()


class AsyncResults:
    """The one listener of an async client, and who waits for which job."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._waiting: dict[str, list[_Call]] = {}
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def wait_for(self, jid: str, timeout: float | None) -> Outcome:
        """Wait until `jid` has ended, or `timeout` seconds are over; then it is still `open`."""
        end = None if timeout is None else monotonic() + timeout
        outcome = await self._ask(jid)
        while outcome.status == "open" and (end is None or monotonic() < end):
            outcome = await self._once(jid, end)
        return outcome

    async def _ask(self, jid: str) -> Outcome:
        outcomes: list[Outcome] = await self._client.run(Await((jid,)))
        return outcomes[0]

    async def _once(self, jid: str, end: float | None) -> Outcome:
        call = _Call()
        self._waiting.setdefault(jid, []).append(call)
        if self._task is None or self._task.done():
            # A new event, because this may be another loop than the last listener's.
            self._changed = asyncio.Event()
            self._task = asyncio.create_task(self._listen())
        self._changed.set()
        try:
            await _at_most(call.ready, _left(end))
            outcome = await self._ask(jid)
            if outcome.status == "open" and await _at_most(call.rung, _left(end)):
                outcome = await self._ask(jid)
        finally:
            self._waiting[jid].remove(call)
            if not self._waiting[jid]:
                del self._waiting[jid]
            self._changed.set()
        return outcome

    async def _listen(self) -> None:
        listener = self._client.link.listener()
        heard: set[str] = set()
        try:
            while self._waiting:
                self._changed.clear()
                heard = await self._follow(listener, heard)
                message = await self._next(listener)
                if message is not None:
                    for call in self._waiting.get(message[1].decode(), ()):
                        call.rung.set()
        except (ConnectionLost, StoreUnsupported):
            # Everybody asks again, through the link, which waits for the store to come back.
            await asyncio.sleep(UNHEARD)
        finally:
            # From here on nobody is served: whoever comes now starts the next listener.
            if self._task is asyncio.current_task():
                self._task = None
            for call in [call for calls in self._waiting.values() for call in calls]:
                call.ready.set()
                call.rung.set()
            await listener.close()

    async def _follow(self, listener: Any, heard: set[str]) -> set[str]:
        """Listen for exactly the jobs somebody waits for."""
        channel = self._client.shard.result_channel
        wanted = set(self._waiting)
        if wanted - heard:
            await listener.subscribe(*[channel(jid) for jid in wanted - heard])
        if heard - wanted:
            await listener.unsubscribe(*[channel(jid) for jid in heard - wanted])
        for jid in wanted:
            for call in self._waiting.get(jid, ()):
                call.ready.set()
        return wanted

    async def _next(self, listener: Any) -> tuple[str, bytes] | None:
        """The next message, None when others are waited for than before."""
        receiving = asyncio.ensure_future(listener.receive(LONGEST_WAIT))
        changing = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((receiving, changing), return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else None
        finally:
            receiving.cancel()
            changing.cancel()

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


def result_in(jid: str, outcome: Outcome) -> bytes | None:
    """The result of a job that is done. Raises JobFailed, JobNotFound, TimeoutError for the other ends."""
    if outcome.status == "done":
        return outcome.result
    if outcome.error is not None:
        raise outcome.error
    if outcome.status == "open":
        raise TimeoutError(f"job {jid} has not ended in time")
    raise JobNotFound(f"neither job {jid} nor a result of it is kept", "HF_JOB_NOT_FOUND")


def _left(end: float | None) -> float:
    return LONGEST_WAIT if end is None else max(0.0, min(end - monotonic(), LONGEST_WAIT))
