"""`client.topics`, also called `client.schedules`: topics by name, and subscriptions to them."""

from collections.abc import Callable
from types import TracebackType
from typing import Unpack

from holdfast.client.colours import AsyncHandle, SyncHandle
from holdfast.client.putting.options import PutOptions
from holdfast.client.topics.messages import AsyncItem, Item
from holdfast.client.topics.scheduling import SchedulerVerbs
from holdfast.client.topics.topic import AsyncTopic, Topic
from holdfast.settings import check_name
from holdfast.wire.runners import AsyncRunner, Runner

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
        from holdfast.client.topics.subscriptions import Subscription

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
        from holdfast.client.topics.subscriptions import AsyncSubscription

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
