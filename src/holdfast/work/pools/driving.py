"""Coroutines of jobs in greenlets: driven together by one event loop, in a thread of the system's own.

An event loop counts as running for its whole thread, and so for all greenlets there: each with a loop of its own would
be refused, and blocking calls of the others would be taken for calls inside of one.
"""

import asyncio
import importlib
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Event
from typing import Any

gevent: Any = importlib.import_module("gevent")


class Driver:
    """Drives coroutines for greenlets that wait for them. Its thread begins with the first."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Any = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine to its end; other greenlets go on. When this greenlet is killed, the coroutine is cancelled."""
        ended = Event()

        async def whole() -> tuple[Any, BaseException | None]:
            try:
                return await coroutine, None
            except BaseException as error:
                # Some would end the loop as well.
                return None, error
            finally:
                ended.set()

        # The context of this greenlet, with the current job in it, goes along.
        ride = asyncio.run_coroutine_threadsafe(whole(), self._begun())
        try:
            value, error = ride.result()
        except BaseException:
            ride.cancel()
            # The job is over when its code is, whatever it does about that.
            ended.wait()
            raise
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """End the loop; coroutines that go on are left where they are."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.wait(1.0)

    def _begun(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            begins: Future[asyncio.AbstractEventLoop] = Future()
            self._thread = gevent.get_hub().threadpool.spawn(_drive, begins)
            self._loop = begins.result()
        return self._loop


def _drive(begins: Future[asyncio.AbstractEventLoop]) -> None:
    # Made here: a loop waits in the thread that made it.
    loop = asyncio.new_event_loop()
    begins.set_result(loop)
    loop.run_forever()
