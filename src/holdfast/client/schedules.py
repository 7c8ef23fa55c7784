"""`client.topics`, also called `client.schedules`: topics by name, the functions of older clients, and subscriptions."""

import os
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Any, Final, Unpack

from holdfast.client.colours import AsyncHandle, PlanAsked, Planned, SyncHandle, Verb
from holdfast.client.messages import AsyncItem, Item, body_of, moment_of
from holdfast.client.options import PutOptions
from holdfast.client.topics import (
    SHORTEST,
    AsyncTopic,
    Topic,
    make_release,
    make_reserve,
    requeued,
    upto,
)
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.listing import Cursor, ListSet
from holdfast.commands.topics import (
    MOST_COUNTED,
    MOST_MOVED,
    CountTopics,
    Message,
    TopicCounts,
    TopicDelete,
    TopicPull,
    TopicPut,
)
from holdfast.errors import UsageError
from holdfast.settings import MAX_BATCH, check_name, check_seconds
from holdfast.wire.plans import Ask, Plan
from holdfast.wire.runners import AsyncRunner, Runner

LONGEST: Final = 3600.0

Handler = Callable[[Item], object]
OnError = Callable[[Item, BaseException], object]
AsyncHandler = Callable[[AsyncItem], object]
AsyncOnError = Callable[[AsyncItem, BaseException], object]


class SchedulerVerbs:
    """Topics, with how long reservations last (`ttr` seconds), and how long an idle subscription goes without looking.

    The functions take a topic's name first, then what the older clients of these operations take, and answer as they did:
    1 or 0, a pair of id and body or None, a number. Times are epoch seconds, lengths of time seconds. A name or id that
    is missing is a UsageError, which is a ValueError.
    """

    _client: Any
    _runner: type

    def __init__(
        self,
        client: Any,
        ttr: float = 60.0,
        reserve_interval: float = 0.5,
        requeue_interval: float = 1.0,
        on_error: Any = None,
    ) -> None:
        if not isinstance(getattr(client, "runner", None), self._runner):
            raise UsageError(f"client must be one of the colour of {type(self).__name__}, not {client!r}")
        self._client = client
        self.ttr = check_seconds("ttr", ttr, SHORTEST)
        self.reserve_interval = check_seconds("reserve_interval", reserve_interval, 0.01, LONGEST)
        self.requeue_interval = check_seconds("requeue_interval", requeue_interval, 0.01, LONGEST)
        self.on_error = on_error
        self._subscriptions: dict[str, Any] = {}
        self._lock = Lock()
        self._pid = os.getpid()

    @Verb
    def put(self, topic: str, id: str, body: object, expiration: float) -> Command[int]:
        """Put a message that is ready at the epoch second `expiration`; 1, or 0 if the id is there. Core: verbs/topic.lua."""
        how, when = moment_of(None, expiration)
        words = (check_name("id", id), when, body_of(body, self._client.settings.max_data))
        return then(TopicPut(check_name("topic", topic), how, words), _number)

    @Verb
    def reserve(
        self, topic: str, max: float | None = None, ttr: float | None = None
    ) -> Command[tuple[str, str] | None]:
        """Reserve the earliest message that is ready by `max` (now) until `max + ttr`; (id, body) or None.

        Core: verbs/topic_take.lua.
        """
        command = make_reserve(topic, self.ttr if ttr is None else ttr, max)
        return then(command, lambda found: _pair(found.messages))

    @Verb
    def pull(self, topic: str, max: float | None = None) -> Command[tuple[str, str] | None]:
        """Take the earliest message that is ready by `max` (now) for good; (id, body) or None. Core: verbs/topic_take.lua."""
        return then(TopicPull(check_name("topic", topic), upto(max)), _pair)

    @Verb
    def release(self, topic: str, id: str, at: float | None = None) -> Command[int]:
        """Delete a reserved message, or with `at` queue it again, ready then; 0 if it is not reserved.

        Core: verbs/topic.lua.
        """
        return then(make_release(topic, id, at), _number)

    @Verb
    def delete(self, topic: str, id: str) -> Command[int]:
        """Delete a message, queued or reserved; 0 if there is none of that id. Core: verbs/topic.lua."""
        return then(TopicDelete(check_name("topic", topic), (check_name("id", id),)), _number)

    @Planned
    def requeue(self, ask: Ask, topic: str, max: float | None = None, limit: int = MOST_MOVED) -> Plan[int]:
        """Queue up to `limit` messages again whose reservation is over by `max` (now), ready then; how many.

        Core: verbs/topic.lua.
        """
        return requeued(ask, topic, max, limit)

    @Verb
    def ready_count(self, topic: str) -> Command[int]:
        """How many messages are queued and ready now. Core: verbs/topic_look.lua."""
        return then(CountTopics((check_name("topic", topic),)), lambda found: found[0].ready)

    @Planned
    def names(self, ask: Ask) -> Plan[list[str]]:
        """The topics that hold messages, in the order of their first. Core: verbs/listing.lua."""
        return _names(ask)

    @PlanAsked
    def counts(self, ask: Ask) -> Plan[list[TopicCounts]]:
        """How many messages each topic has that holds any, in the order of their first. Core: verbs/topic_look.lua."""
        names = yield from _names(ask)
        rows: list[TopicCounts] = []
        while names:
            rows += yield from ask(CountTopics(names[:MOST_COUNTED]))
            names = names[MOST_COUNTED:]
        return rows

    def is_subscribed(self, topic: str) -> bool:
        """Whether this scheduler has a subscription to `topic` that runs in this process."""
        return check_name("topic", topic) in self._own()

    def forget(self, subscription: Any) -> None:
        """A subscription has ended."""
        topic = subscription.topic
        if self._subscriptions.get(topic) is subscription:
            self._subscriptions.pop(topic, None)

    def _own(self) -> dict[str, Any]:
        """The subscriptions that run in this process."""
        if self._pid != os.getpid():
            # A fork has none of its parent's threads.
            self._subscriptions, self._lock, self._pid = {}, Lock(), os.getpid()
        for subscription in list(self._subscriptions.values()):
            if not subscription.alive:
                self.forget(subscription)
        return self._subscriptions

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"


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
        a job instead: its jid is the id, its data the body (a JSON object or list as such, any other text as text),
        `options` are those of a put. Raises UsageError, also for a second subscription to a topic.
        """
        from holdfast.client.subscriptions import Subscription

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
        from holdfast.client.subscriptions import AsyncSubscription

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


def _names(ask: Ask) -> Plan[list[str]]:
    names: dict[str, None] = {}
    after: Cursor | None = None
    while True:
        page = yield from ask(ListSet("topics", after=after, count=MAX_BATCH))
        names.update(dict.fromkeys(page.names))
        after = page.next
        if after is None:
            return list(names)


def _number(answers: list[bool]) -> int:
    return int(answers[0])


def _pair(messages: list[Message]) -> tuple[str, str] | None:
    return (messages[0].id, messages[0].body) if messages else None
