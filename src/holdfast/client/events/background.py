"""Listening beside one's own work, in a thread or in a task; whoever starts it goes on when the subscription is active."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from threading import Event, Thread, current_thread
from typing import Any, Final

from holdfast.client.events.listening import AsyncListener, Listener
from holdfast.errors import UsageError

log = logging.getLogger("holdfast")

LONGEST_END: Final = 30.0
"""Seconds for the callback that is under way when listening shall end."""


class InThread:
    """Runs `follow`, which listens with `listener` until that is told to end, in a thread of its own."""

    def __init__(self, listener: Listener, follow: Callable[[], object]) -> None:
        self._listener = listener
        self._follow = follow
        self._thread: Thread | None = None
        self._settled = Event()
        self._error: BaseException | None = None

    def start(self) -> None:
        """Begin; returns when the subscription is active. Raises what kept it from that."""
        if self._thread is not None and self._thread.is_alive():
            raise UsageError("this has been started already")
        self._settled.clear()
        self._error = None
        self._listener.on_active = self._settled.set
        self._thread = Thread(target=self._run, name=f"holdfast {self._listener!r}", daemon=True)
        self._thread.start()
        try:
            self._settled.wait()
        except BaseException:  # an interrupt: nobody would end the thread
            self.stop()
            raise
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End; returns when the thread has ended, which first comes to the end of a callback that it is in."""
        thread, self._thread = self._thread, None
        self._listener.unlisten()
        if thread is not None and thread is not current_thread():
            thread.join(LONGEST_END)

    def _run(self) -> None:
        try:
            self._follow()
        except BaseException as error:
            if self._settled.is_set():
                log.exception("listening has ended")
            self._error = error
        finally:
            self._settled.set()


class InTask:
    """The same in a task of the running loop."""

    def __init__(self, listener: AsyncListener, follow: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._listener = listener
        self._follow = follow
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; returns when the subscription is active. Raises what kept it from that."""
        if self._task is not None and not self._task.done():
            raise UsageError("this has been started already")
        settled = asyncio.Event()
        self._listener.on_active = settled.set
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(lambda _: settled.set())
        try:
            await settled.wait()
        except BaseException:
            self._task.cancel()
            raise
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """End; returns when the task has ended, which first comes to the end of a callback that it is in."""
        task, self._task = self._task, None
        self._listener.unlisten()
        if task is None or task is asyncio.current_task():
            return
        _, late = await asyncio.wait([task], timeout=LONGEST_END)
        for one in late:
            one.cancel()
