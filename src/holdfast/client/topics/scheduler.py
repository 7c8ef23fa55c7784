"""All topics together: the functions of older clients, which topics exist, and adopting the messages of an older
scheduler.

A message is put here before it is removed there, so none is lost if this breaks off: it is found again, and
recognised by its body. One that an older program takes at the same moment may be delivered by both.
"""

import asyncio
import inspect
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final, Unpack

from holdfast.client.descriptors import (
    AnyClient,
    AsyncMethods,
    CommandMethod,
    Named,
    PlanMethod,
    PlanProperty,
    StepMethod,
    SyncMethods,
)
from holdfast.client.plans import in_slices
from holdfast.client.tables import listed
from holdfast.client.topics.delivery import SubscriptionBase
from holdfast.client.topics.messages import AsyncItem, Item, body_of, epoch_ms
from holdfast.client.topics.topic import AsyncTopic, Topic, make_release, make_reserve, requeued, upto
from holdfast.code.put_options import PutOptions
from holdfast.code.steps import Steps, await_steps, run_steps
from holdfast.commands import Command
from holdfast.commands.base import map_reply
from holdfast.commands.topics import (
    MAX_COUNTED,
    MAX_MOVED,
    CountTopics,
    Message,
    TopicCounts,
    TopicDelete,
    TopicGet,
    TopicPull,
    TopicPut,
)
from holdfast.errors import UsageError
from holdfast.models.job import text
from holdfast.settings import SHORTEST, check_callable, check_name, check_seconds
from holdfast.wire.exchange import final_error
from holdfast.wire.plans import AsyncRunner, Call, ErrorReply, Plan, Planner, Replies, Runner
from holdfast.wire.repeat import RetryTimer, send_until_done
from holdfast.wire.shards import Shard

log = logging.getLogger("holdfast")

PREFIX: Final = "__REDIS_SCHED_"
PAGE: Final = 100
SECONDS_END: Final = 1e11
"""Times below it are seconds (until the year 5138), others milliseconds (from 1973 on)."""


def adopted(shard: Shard, ask: Planner, topic: str, prefix: str) -> Plan[int]:
    """Adopt the queued messages, and those whose reservation has ended; return how many."""
    older = _Older(shard, prefix, topic)
    yield from older.bring_back()
    size = yield from older.size()
    count = seen = skipped = 0
    # Messages that older programs put meanwhile may be left for the next call, so this ends.
    while seen < size:
        page = yield from older.queued(skipped)
        if not page:
            break
        gone = yield from _put(ask, topic, page)
        yield from older.remove([id for id, _, _ in page if id in gone])
        count += sum(id in gone and body is not None for id, _, body in page)
        seen += len(page)
        skipped += len(page) - len(gone)
    return count


def _put(ask: Planner, topic: str, page: Sequence[tuple[bytes, int, bytes | None]]) -> Plan[set[bytes]]:
    """Put messages here; return the ids of those that are here now, and of those without a body."""
    named: dict[str, tuple[bytes, int, bytes]] = {}
    gone: set[bytes] = set()
    for id, when, body in page:
        if body is None:
            gone.add(id)
            continue
        try:
            named[check_name("id", id.decode())] = (id, when, body)
        except (UsageError, UnicodeError) as error:
            log.warning("a message of the older topic %s was not moved: %s", topic, error)
    if not named:
        return gone
    words = [word for name, (_, when, body) in named.items() for word in (name, when, body)]
    yield from ask(TopicPut(topic, "at", words))
    here: list[Message | None] = []
    yield from in_slices(ask, lambda names: TopicGet(topic, names), list(named), here)
    for name, found in zip(named, here, strict=True):
        id, _, body = named[name]
        if found is not None and found.body == text(body):
            gone.add(id)
        else:
            log.warning("message %s of the older topic %s was not moved: another one has its id", name, topic)
    return gone


class _Older:
    """A topic of the older scheduler."""

    def __init__(self, shard: Shard, prefix: str, topic: str) -> None:
        self._shard = shard
        self._bodies, self._queued, self._reserved = (
            f"{prefix}{part}__{topic}" for part in ("JOBS", "QUEUED", "RESERVED")
        )

    def bring_back(self) -> Plan[None]:
        """Queue messages again whose reservation has ended."""
        now = time.time() * 1000
        [rows] = yield from self._ask([("ZRANGE", self._reserved, 0, -1, "WITHSCORES")])
        for at in range(0, len(rows), 2):
            if _milliseconds(rows[at + 1]) <= now:
                yield from self._ask(
                    [("ZADD", self._queued, rows[at + 1], rows[at]), ("ZREM", self._reserved, rows[at])]
                )

    def size(self) -> Plan[int]:
        """Return how many are queued."""
        [count] = yield from self._ask([("ZCARD", self._queued)])
        return int(count)

    def queued(self, skipped: int) -> Plan[list[tuple[bytes, int, bytes | None]]]:
        """Return a page of ids with ready times in ms and bodies, the earliest first, after the first `skipped`."""
        [rows] = yield from self._ask([("ZRANGE", self._queued, skipped, skipped + PAGE - 1, "WITHSCORES")])
        if not rows:
            return []
        [bodies] = yield from self._ask([("HMGET", self._bodies, *rows[::2])])
        times = [_milliseconds(score) for score in rows[1::2]]
        return list(zip(rows[::2], times, bodies, strict=True))

    def remove(self, ids: Sequence[bytes]) -> Plan[None]:
        """Remove messages, except for the bodies of those that were reserved meanwhile."""
        if not ids:
            return
        calls: list[Call] = [("ZREM", self._queued, *ids)]
        calls += [("ZSCORE", self._reserved, id) for id in ids]
        _, *held = yield from self._ask(calls)
        free = [id for id, score in zip(ids, held, strict=True) if score is None]
        if free:
            yield from self._ask([("HDEL", self._bodies, *free)])

    def _ask(self, calls: list[Call]) -> Plan[Replies]:
        replies: list[object] = yield from send_until_done(
            calls,
            RetryTimer(self._shard.settings.deadline, self._shard.clock, store=self._shard.settings.store),
        )
        for reply in replies:
            if isinstance(reply, ErrorReply):
                raise final_error(reply)
        return replies


def _milliseconds(score: bytes) -> int:
    """Return a time of the older scheduler in milliseconds, at least 0."""
    value = max(0.0, float(score))
    return int(min(value * 1000 if value < SECONDS_END else value, 2.0**53 - 1))


LONGEST: Final = 3600.0


class SchedulerVerbs(Named):
    """Topics, with how long a reservation lasts (`ttr` seconds), and how often an idle subscription checks.

    The methods take a topic's name, then the arguments of older clients, and return what those do:
    1 or 0, a pair of id and body or None, a number. Times are epoch seconds, durations seconds. A name or id that
    is missing raises UsageError, which is a ValueError.
    """

    _runner: type
    _subscription: Callable[..., Any]

    def __init__(
        self,
        client: AnyClient,
        ttr: float = 60.0,
        reserve_interval: float = 0.5,
        requeue_interval: float = 1.0,
        on_error: object = None,
    ) -> None:
        if not isinstance(getattr(client, "runner", None), self._runner):
            needed = type(self).__name__.replace("Scheduler", "Client")
            raise UsageError(f"client: a {type(self).__name__} needs a holdfast.{needed}, not {client!r}")
        super().__init__(client)
        self.ttr = check_seconds("ttr", ttr, SHORTEST)
        self.reserve_interval = check_seconds("reserve_interval", reserve_interval, 0.01, LONGEST)
        self.requeue_interval = check_seconds("requeue_interval", requeue_interval, 0.01, LONGEST)
        self.on_error = None if on_error is None else check_callable("on_error", on_error)
        self._subscriptions: dict[str, Any] = {}
        self._lock = Lock()
        self._pid = os.getpid()

    @CommandMethod
    def put(self, topic: str, id: str, body: object, expiration: float) -> Command[int]:
        """Put a message that is ready at the epoch second `expiration`; 1, or 0 if the id is there. Core: verbs/topic.lua."""
        when = epoch_ms("expiration", expiration)
        words = (check_name("id", id), when, body_of(body, self._client.settings.max_data))
        return map_reply(TopicPut(check_name("topic", topic), "at", words), _number)

    @CommandMethod
    def reserve(
        self, topic: str, max: float | None = None, ttr: float | None = None
    ) -> Command[tuple[str, str] | None]:
        """Reserve the earliest message that is ready by `max` (now) until `max + ttr`; (id, body) or None.

        Core: verbs/topic_take.lua.
        """
        command = make_reserve(topic, self.ttr if ttr is None else ttr, max)
        return map_reply(command, lambda found: _pair(found.messages))

    @CommandMethod
    def pull(self, topic: str, max: float | None = None) -> Command[tuple[str, str] | None]:
        """Take the earliest message that is ready by `max` (now) for good; (id, body) or None. Core: verbs/topic_take.lua."""
        return map_reply(TopicPull(check_name("topic", topic), upto(max)), _pair)

    @CommandMethod
    def release(self, topic: str, id: str, at: float | None = None) -> Command[int]:
        """Delete a reserved message, or with `at` queue it again, ready then; 0 if it is not reserved.

        Core: verbs/topic.lua.
        """
        return map_reply(make_release(topic, id, at), _number)

    @CommandMethod
    def delete(self, topic: str, id: str) -> Command[int]:
        """Delete a message, queued or reserved; 0 if there is none of that id. Core: verbs/topic.lua."""
        return map_reply(TopicDelete(check_name("topic", topic), (check_name("id", id),)), _number)

    @PlanMethod
    def requeue(
        self, ask: Planner, topic: str, max: float | None = None, limit: int = MAX_MOVED
    ) -> Plan[int]:
        """Queue up to `limit` messages again whose reservation is over by `max` (now), ready then; how many.

        Core: verbs/topic.lua.
        """
        return requeued(ask, topic, max, limit)

    @CommandMethod
    def ready_count(self, topic: str) -> Command[int]:
        """How many messages are queued and ready now. Core: verbs/topic.lua."""
        return map_reply(CountTopics((check_name("topic", topic),)), lambda found: found[0].ready)

    @PlanMethod
    def names(self, ask: Planner) -> Plan[list[str]]:
        """The topics that hold messages, in the order of their first. Core: verbs/list.lua."""
        return listed(ask, "topics")

    @PlanProperty
    def counts(self, ask: Planner) -> Plan[list[TopicCounts]]:
        """How many messages each topic has that holds any, in the order of their first. Core: verbs/topic.lua."""
        names = yield from listed(ask, "topics")
        rows: list[TopicCounts] = []
        while names:
            rows += yield from ask(CountTopics(names[:MAX_COUNTED]))
            names = names[MAX_COUNTED:]
        return rows

    @PlanMethod
    def adopt(self, ask: Planner, topic: str, prefix: str = PREFIX) -> Plan[int]:
        """Adopt the messages of an older scheduler from its own keys in the same store; return how many.

        Their keys are `<prefix>JOBS__<topic>` and so on; times in seconds and in milliseconds differ in size.
        Messages that an older program has reserved stay there. This may be repeated at any time, while older
        programs still put. Raises UsageError for a topic that cannot be named here. Core: verbs/topic.lua.
        """
        return adopted(self._client.shard, ask, check_name("topic", topic), check_name("prefix", prefix))

    def is_subscribed(self, topic: str) -> bool:
        """Whether this scheduler has a subscription to `topic` that runs in this process."""
        return check_name("topic", topic) in self._own()

    @StepMethod
    def unsubscribe(self, topic: str) -> Steps[None]:
        """End a subscription; return when its loops have ended and its handler has returned.

        Called by the handler, it does not wait for that. Without such a subscription nothing happens.
        """
        subscription = self._own().get(check_name("topic", topic))
        if subscription is not None:
            yield subscription.stop()

    @StepMethod
    def close(self) -> Steps[None]:
        """End all subscriptions."""
        for subscription in list(self._own().values()):
            yield subscription.stop()

    def _subscribe(self, *settings: object) -> None:
        own = self._own()
        with self._lock:
            made = self._subscription(self, *settings)
            own[made.topic] = made
        made.start()

    def _forget(self, subscription: Any) -> None:
        """Remove a subscription that has ended."""
        topic = subscription.topic
        if self._subscriptions.get(topic) is subscription:
            self._subscriptions.pop(topic, None)

    def _own(self) -> dict[str, Any]:
        """Return the subscriptions that run in this process."""
        if self._pid != os.getpid():
            # A forked process has none of its parent's threads.
            self._subscriptions, self._lock, self._pid = {}, Lock(), os.getpid()
        for subscription in list(self._subscriptions.values()):
            if not subscription.alive:
                self._forget(subscription)
        return self._subscriptions

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"


def _number(results: list[bool]) -> int:
    return int(results[0])


def _pair(messages: list[Message]) -> tuple[str, str] | None:
    return (messages[0].id, messages[0].body) if messages else None


# `client.topics`, and the threads or tasks of a subscription.

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


class Scheduler(SchedulerVerbs, SyncMethods):
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


class AsyncScheduler(SchedulerVerbs, AsyncMethods):
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
