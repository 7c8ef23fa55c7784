"""`client.topics`, and the threads or tasks that wait for the messages of a subscription."""

import asyncio
import inspect
import select
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Unpack

from holdfast.client.descriptors import AsyncHandle, SyncHandle
from holdfast.client.put_options import PutOptions
from holdfast.client.topics.delivery import Delivering, Handle, Listen, Loop, Need, Pause, Report
from holdfast.client.topics.messages import AsyncItem, Item
from holdfast.client.topics.scheduler import SchedulerVerbs
from holdfast.client.topics.topic import AsyncTopic, Topic
from holdfast.code.steps import drive, drive_async
from holdfast.errors import UsageError
from holdfast.settings import check_name
from holdfast.wire.plans import AsyncRunner, Runner

PATIENCE = 5.0
"""Seconds beyond those of a wait in which the store has to end it."""


class Subscription(Delivering):
    """A subscription of a blocking client. Its threads end with the program, if nobody ends them before."""

    item_of = Item
    alive = True

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        if inspect.iscoroutinefunction(self.handler):
            raise UsageError("handler is an async function: subscribe with an AsyncClient")
        # Closing the one end wakes whoever looks at the other.
        self._ending, self._awake = socket.socketpair()
        self._wake_up = self.client.link.wake_up()
        self._running = 2
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(loop,), name=f"holdfast-topic-{self.topic}", daemon=True)
            for loop in (self.delivering(), self.bringing_back())
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both loops and wait for them, but not for the own one of a handler who asks."""
        self.stopping = True
        self._ending.close()
        for thread in self._threads:
            # One that is not begun yet, because the first message ends the subscription, ends when it is.
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join()

    def _run(self, loop: Loop) -> None:
        try:
            drive(loop, self._meet)
        except Exception:
            self.broke()
            self._ending.close()
        finally:
            self._end_one()

    def _end_one(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running:
                return
        self.end()
        self._wake_up.close()
        self._ending.close()
        self._awake.close()

    def _meet(self, need: Need) -> Any:
        if isinstance(need, Handle):
            return self._handle(need.item)
        if isinstance(need, Report):
            return self._report(need)
        if isinstance(need, Pause):
            return self._is_over(need.seconds)
        if isinstance(need, Listen):
            return self._listen(need.seconds)
        return self.client.runner.run(need)

    def _handle(self, item: Any) -> BaseException | None:
        try:
            self.handle(item)
        except (Exception, SystemExit) as error:
            return error
        return None

    def _report(self, told: Report) -> None:
        try:
            self.tell(told.item, told.error)
        except Exception:
            self.on_error_failed()

    def _listen(self, seconds: float) -> None:
        self._wake_up.send([self.wake_key], seconds)
        if self._is_over(seconds + PATIENCE, self._wake_up.fileno()):
            self._wake_up.leave()
        else:
            self._wake_up.receive()

    def _is_over(self, seconds: float, *beside: int) -> bool:
        """Wait so long, for something to read on `beside`, or for the end; says whether it has come."""
        poll = select.poll()
        for descriptor in (self._awake.fileno(), *beside):
            poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
        return self.stopping


class AsyncSubscription(Delivering):
    """A subscription of an async client, on the loop it was made on."""

    item_of = AsyncItem

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._wake_up = self.client.link.wake_up()
        self._running = 2
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def alive(self) -> bool:
        """Whether its loop may still run."""
        return not self._loop.is_closed()

    def start(self) -> None:
        """Begin."""
        self._tasks = [
            self._loop.create_task(self._run(loop), name=f"holdfast-topic-{self.topic}")
            for loop in (self.delivering(), self.bringing_back())
        ]

    async def stop(self) -> None:
        """End both loops and wait for them, but not for the own one of a handler who asks."""
        self.stopping = True
        self._over.set()
        others = [task for task in self._tasks if task is not asyncio.current_task()]
        if others:
            await asyncio.wait(others)

    async def _run(self, loop: Loop) -> None:
        try:
            await drive_async(loop, self._meet)
        except Exception:
            self.broke()
            self._over.set()
        finally:
            self._running -= 1
            if not self._running:
                self.end()
                await self._wake_up.close()

    async def _meet(self, need: Need) -> Any:
        if isinstance(need, Handle):
            return await self._handle(need.item)
        if isinstance(need, Report):
            return await self._report(need)
        if isinstance(need, Pause):
            return await self._is_over(need.seconds)
        if isinstance(need, Listen):
            return await self._listen(need.seconds)
        return await self.client.runner.run(need)

    async def _handle(self, item: Any) -> BaseException | None:
        try:
            ended = self.handle(item)
            if inspect.isawaitable(ended):
                await ended
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return error  # something the handler waited for was cancelled, not we
        except Exception as error:
            return error
        return None

    async def _report(self, told: Report) -> None:
        try:
            ended = self.tell(told.item, told.error)
            if inspect.isawaitable(ended):
                await ended
        except Exception:
            self.on_error_failed()

    async def _listen(self, seconds: float) -> None:
        waiting = asyncio.ensure_future(self._wake_up.wait([self.wake_key], seconds))
        ending = asyncio.ensure_future(self._over.wait())
        both = {waiting, ending}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # A wait that is broken off ends when the store knows of it.
            for one in both:
                one.cancel()
            await asyncio.wait(both)
        if not waiting.cancelled():
            waiting.result()

    async def _is_over(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            pass


Handler = Callable[[Item], object]
OnError = Callable[[Item, BaseException], object]
AsyncHandler = Callable[[AsyncItem], object]
AsyncOnError = Callable[[AsyncItem, BaseException], object]


class Scheduler(SchedulerVerbs, SyncHandle):
    """The topics of a blocking client: `client.topics["mail"]`, or one with times of its own: `Scheduler(client, ttr=5)`.

    `with scheduler:` ends its subscriptions.
    """

    _runner = Runner

    def __getitem__(self, topic: str) -> Topic:
        return Topic(topic, self._client, self.ttr)

    def subscribe(
        self,
        topic: str,
        handler: Handler | None = None,
        ttr: float | None = None,
        *,
        to_queue: str | None = None,
        klass: object = None,
        on_error: OnError | None = None,
        **options: Unpack[PutOptions],
    ) -> None:
        """Handle the messages of `topic` as they become ready, in a thread, until `unsubscribe`.

        `handler(item)` that returns is done with the message; one that raises leaves it to come back after `ttr` seconds,
        and is reported to `on_error(item, error)`, or else logged. With `to_queue` and `klass` each message is put as
        a job instead: its jid is the id, its data the body (a JSON object or list as such, any other text as text; for
        a function job its arguments, and it has a queue of its own), `options` are those of a put. Raises UsageError, also for a second subscription to a topic.
        """

        own = self._own()
        with self._lock:
            made = Subscription(self, topic, handler, ttr, on_error, to_queue, klass, options)
            own[made.topic] = made
        made.start()

    def unsubscribe(self, topic: str) -> None:
        """End a subscription; returns when its loops have ended and the handler under way has returned.

        Does not wait for itself when it is the handler who asks. Without such a subscription nothing happens.
        """
        subscription = self._own().get(check_name("topic", topic))
        if subscription is not None:
            subscription.stop()

    def close(self) -> None:
        """End all subscriptions."""
        for topic in list(self._own()):
            self.unsubscribe(topic)

    def __enter__(self) -> "Scheduler":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncScheduler(SchedulerVerbs, AsyncHandle):
    """The topics of an async client: `client.topics["mail"]`, or one with times of its own: `AsyncScheduler(client, ttr=5)`.

    `async with scheduler:` ends its subscriptions.
    """

    _runner = AsyncRunner

    def __getitem__(self, topic: str) -> AsyncTopic:
        return AsyncTopic(topic, self._client, self.ttr)

    async def subscribe(
        self,
        topic: str,
        handler: AsyncHandler | None = None,
        ttr: float | None = None,
        *,
        to_queue: str | None = None,
        klass: object = None,
        on_error: AsyncOnError | None = None,
        **options: Unpack[PutOptions],
    ) -> None:
        """Handle the messages of `topic` as they become ready, in tasks of this loop, until `unsubscribe`.

        `handler` and `on_error` may be async functions; otherwise it is `Scheduler.subscribe`.
        """

        own = self._own()
        with self._lock:
            made = AsyncSubscription(self, topic, handler, ttr, on_error, to_queue, klass, options)
            own[made.topic] = made
        made.start()

    async def unsubscribe(self, topic: str) -> None:
        """End a subscription; returns when its loops have ended and the handler under way has returned.

        Does not wait for itself when it is the handler who asks. Without such a subscription nothing happens.
        """
        subscription = self._own().get(check_name("topic", topic))
        if subscription is not None:
            await subscription.stop()

    async def close(self) -> None:
        """End all subscriptions."""
        for topic in list(self._own()):
            await self.unsubscribe(topic)

    async def __aenter__(self) -> "AsyncScheduler":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
