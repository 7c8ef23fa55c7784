"""A callback for what is published on one channel as JSON, called in a thread of its own."""

import logging
from collections.abc import Callable
from contextlib import closing
from typing import Any

from holdfast.client.background import InThread
from holdfast.client.listening import Listener
from holdfast.codecs import decode
from holdfast.errors import UsageError

log = logging.getLogger("holdfast")


class Subscriber:
    """Calls `fn` with each message of a channel, decoded from JSON, in a thread of its own; also a context manager.

    `database` is a `Client` or a `redis.Redis`, `channel` a name as the store has it, such as `client.shard.worker_channel("box-7-0")`. What `fn` raises, and what
    is no JSON, is logged. Raises UsageError.
    """

    def __init__(self, database: Any, channel: str, fn: Callable[[Any], object]) -> None:
        if not callable(fn):
            raise UsageError(f"fn must be callable, not {fn!r:.80}")
        self.channel = channel
        self._fn = fn
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
                    log.exception(
                        "a message on %s could not be handled: %.200s", self.channel, message["data"]
                    )

    def __enter__(self) -> "Subscriber":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Subscriber of {self.channel}>"
