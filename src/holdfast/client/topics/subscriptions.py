"""`client.topics`, and the threads or tasks of a subscription."""

import asyncio
import inspect
import select
import socket
import threading
from collections.abc import Callable
from typing import Any, Final, Unpack

from holdfast.client.descriptors import AsyncHandle, SyncHandle
from holdfast.client.topics.delivery import SubscriptionBase
from holdfast.client.topics.messages import AsyncItem, Item
from holdfast.client.topics.scheduler import SchedulerVerbs
from holdfast.client.topics.topic import AsyncTopic, Topic
from holdfast.code.put_options import PutOptions
from holdfast.code.steps import Steps, await_steps, run_steps
from holdfast.errors import UsageError
from holdfast.wire.plans import AsyncRunner, Runner

PATIENCE: Final = 5.0
"""Seconds after the end of a wait in which the store has to reply."""


class Subscription(SubscriptionBase):
    """A subscription of a sync client. Its threads end with the program at the latest."""

    item_class = Item
    handled = Exception, SystemExit
    alive = True

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        if inspect.iscoroutinefunction(self.handler):
            raise UsageError("handler is an async function: subscribe with an AsyncClient")
        # Closing one end wakes the threads that poll the other.
        self._ending, self._awake = socket.socketpair()
        self._wake_up = self.client.link.wake_up()
        self._running = 2
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(
                target=self._follow, args=(loop,), name=f"holdfast-topic-{self.topic}", daemon=True
            )
            for loop in (self.deliver(), self.requeue())
        ]

    def start(self) -> None:
        """Start both loops."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both loops and wait for them, except for the loop of a handler that calls this."""
        self.stopping = True
        self._ending.close()
        for thread in self._threads:
            # A thread that has not started yet, because the first message ends the subscription, ends when it starts.
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join()

    def _follow(self, loop: Steps[None]) -> None:
        try:
            run_steps(loop)
        except Exception:
            self._fail()
            self._ending.close()
        finally:
            self._end_one()

    def _end_one(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running:
                return
        self._end()
        self._wake_up.close()
        self._ending.close()
        self._awake.close()

    def _listen(self, seconds: float) -> None:
        self._wake_up.send([self.wake_key], seconds)
        self._pause(seconds + PATIENCE, self._wake_up.fileno())
        if self.stopping:
            self._wake_up.leave()
        else:
            self._wake_up.receive()

    def _pause(self, seconds: float, *descriptors: int) -> None:
        """Wait `seconds`, for something to read on `descriptors`, or until the subscription ends."""
        poll = select.poll()
        for descriptor in (self._awake.fileno(), *descriptors):
            poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)


class AsyncSubscription(SubscriptionBase):
    """A subscription of an async client, on the event loop that it was made on."""

    item_class = AsyncItem
    handled = Exception, asyncio.CancelledError

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._wake_up = self.client.link.wake_up()
        self._running = 2
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def alive(self) -> bool:
        """Whether its event loop may still run."""
        return not self._loop.is_closed()

    def start(self) -> None:
        """Start both loops."""
        self._tasks = [
            self._loop.create_task(self._follow(loop), name=f"holdfast-topic-{self.topic}")
            for loop in (self.deliver(), self.requeue())
        ]

    async def stop(self) -> None:
        """End both loops and wait for them, except for the loop of a handler that calls this."""
        self.stopping = True
        self._over.set()
        others = [task for task in self._tasks if task is not asyncio.current_task()]
        if others:
            await asyncio.wait(others)

    async def _follow(self, loop: Steps[None]) -> None:
        try:
            await await_steps(loop)
        except Exception:
            self._fail()
            self._over.set()
        finally:
            self._running -= 1
            if not self._running:
                self._end()
                await self._wake_up.close()

    def _is_cancelled(self, error: BaseException) -> bool:
        task = asyncio.current_task()
        return isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)

    async def _listen(self, seconds: float) -> None:
        waiting = asyncio.ensure_future(self._wake_up.wait([self.wake_key], seconds))
        ending = asyncio.ensure_future(self._over.wait())
        both = {waiting, ending}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # A wait that is cancelled ends when the store has forgotten it.
            for one in both:
                one.cancel()
            await asyncio.wait(both)
        if not waiting.cancelled():
            waiting.result()

    async def _pause(self, seconds: float) -> None:
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
    """The topics of a sync client: `client.topics["mail"]`, or one with times of its own: `Scheduler(client, ttr=5)`.

    `with scheduler:` ends its subscriptions.
    """

    _runner = Runner
    _subscription = Subscription

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

        When `handler(item)` returns, the message is deleted; when it raises, the message comes back after `ttr` seconds,
        and the error goes to `on_error(item, error)`, or else to the log. With `to_queue` and `klass` each message is put as
        a job instead: its jid is the id, its data the body (a JSON object or list decoded, any other text as text; for
        a function job its arguments, and `to_queue` defaults to its queue), `options` are those of a put. Raises
        UsageError, also for a second subscription to a topic.
        """
        self._subscribe(topic, handler, ttr, on_error, to_queue, klass, options)

    def __enter__(self) -> "Scheduler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncScheduler(SchedulerVerbs, AsyncHandle):
    """The topics of an async client: `client.topics["mail"]`, or one with times of its own: `AsyncScheduler(client, ttr=5)`.

    `async with scheduler:` ends its subscriptions.
    """

    _runner = AsyncRunner
    _subscription = AsyncSubscription

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

        As `Scheduler.subscribe`, but `handler` and `on_error` may be async functions.
        """
        self._subscribe(topic, handler, ttr, on_error, to_queue, klass, options)

    async def __aenter__(self) -> "AsyncScheduler":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
