"""One connection that waits at the wake keys of a changing set of queues."""

import asyncio
from collections.abc import Callable, Collection
from random import uniform
from typing import Final

from holdfast.client.aio import AsyncClient
from holdfast.errors import ConnectionLost, HoldfastError
from holdfast.web.live import cancelled

_WAIT: Final = 30.0
_LINGER: Final = 1.0
"""Seconds for which a queue is still followed when nobody waits for any: the next pop usually comes soon."""
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
