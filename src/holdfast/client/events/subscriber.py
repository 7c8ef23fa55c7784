"""A callback for what is published on one channel as JSON, called in a thread or in a task of its own."""

import inspect
import logging
from collections.abc import Callable
from contextlib import aclosing, closing
from typing import Any

from holdfast.client.events.background import InTask, InThread
from holdfast.client.events.listening import AsyncListener, Listener, Message
from holdfast.codecs import decode
from holdfast.errors import UsageError
from holdfast.settings import check_callable

log = logging.getLogger("holdfast")


class SubscriberBase:
    """What a subscriber of either colour is given."""

    def __init__(self, channel: str, fn: Callable[[Any], object], *, awaits: bool) -> None:
        check_callable("fn", fn)
        if not awaits and inspect.iscoroutinefunction(fn):
            raise UsageError("fn is an async function, which only an AsyncSubscriber awaits")
        self.channel = channel
        self._fn = fn

    def _failed(self, message: Message) -> None:
        log.exception("a message on %s could not be handled: %.200s", self.channel, message["data"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.channel}>"


class Subscriber(SubscriberBase):
    """Calls `fn` with each message of a channel, decoded from JSON, in a thread of its own; also a context manager.

    `database` is a `Client` or a `redis.Redis`, `channel` a name as the store has it, such as
    `client.shard.worker_channel("box-7-0")`. What `fn` raises, and what is no JSON, is logged. Raises UsageError.
    """

    def __init__(self, database: Any, channel: str, fn: Callable[[Any], object]) -> None:
        super().__init__(channel, fn, awaits=False)
        self._listener = Listener(database, [channel])
        self._background = InThread(self._listener, self._follow)

    def start(self) -> "Subscriber":
        """Begin; returns when the subscription is active. Raises ConnectionLost, StoreUnsupported."""
        self._background.start()
        return self

    def stop(self) -> None:
        """End the thread and the subscription; may be started again."""
        self._background.stop()

    def _follow(self) -> None:
        with closing(self._listener.listen()) as messages:
            for message in messages:
                try:
                    self._fn(decode(message["data"]))
                except Exception:
                    self._failed(message)

    def __enter__(self) -> "Subscriber":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class AsyncSubscriber(SubscriberBase):
    """The same in a task, of an `AsyncClient` or a `redis.asyncio.Redis`; `fn` may be `async`."""

    def __init__(self, database: Any, channel: str, fn: Callable[[Any], object]) -> None:
        super().__init__(channel, fn, awaits=True)
        self._listener = AsyncListener(database, [channel])
        self._background = InTask(self._listener, self._follow)

    async def start(self) -> "AsyncSubscriber":
        """Begin; returns when the subscription is active. Raises ConnectionLost, StoreUnsupported."""
        await self._background.start()
        return self

    async def stop(self) -> None:
        """End the task and the subscription; may be started again."""
        await self._background.stop()

    async def _follow(self) -> None:
        async with aclosing(self._listener.listen()) as messages:
            async for message in messages:
                try:
                    answer = self._fn(decode(message["data"]))
                    if inspect.isawaitable(answer):
                        await answer
                except Exception:
                    self._failed(message)

    async def __aenter__(self) -> "AsyncSubscriber":
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
