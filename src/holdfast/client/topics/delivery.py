"""Deliver messages of a subscription: to a function, or as jobs into a queue.

One loop reserves messages and hands them on, the other brings those back whose reservation is over. Neither ends for
an error of the store: it waits, less and less impatiently, until the store is available again.
"""

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.client.put_options import NOTHING, make_put
from holdfast.client.topics.messages import ItemVerbs
from holdfast.code.function import AnyFunctionJob
from holdfast.code.naming import klass_name
from holdfast.commands import Command
from holdfast.commands.leases import WILL_WAIT, WOKEN
from holdfast.commands.topics import MAX_MOVED, Message, TopicRelease, TopicRequeue, TopicReserve
from holdfast.errors import HoldfastError, QueueFull, StoreFull, TransportError, UsageError
from holdfast.settings import Settings, check_callable, check_milliseconds, check_name
from holdfast.wire.exchange import exchange
from holdfast.wire.gather import together
from holdfast.wire.outage import Outage
from holdfast.wire.plans import Plan

SETTLED = ("jid", "only_new")


class Bridge(msgspec.Struct, frozen=True):
    """Where messages go that become jobs."""

    queue: str
    klass: Any
    options: Mapping[str, Any]


def bridge_of(
    client: Any, handler: object, to_queue: object, klass: object, options: Mapping[str, Any]
) -> Bridge | None:
    """Where messages go, None for a handler. Raises UsageError for what is neither or both, or cannot be put."""
    if handler is not None:
        if to_queue is not None or klass is not None or options:
            raise UsageError(
                "a subscription has a handler, or to_queue and klass with options of a put, not both"
            )
        check_callable("handler", handler)
        return None
    if _is_function(klass):
        own_queue, own = cast("Any", klass).put_options()
        to_queue, options = own_queue if to_queue is None else to_queue, {**own, **options}
    if to_queue is None or klass is None:
        raise UsageError("a subscription needs a handler, or to_queue and klass")
    for name in SETTLED:
        if name in options:
            raise UsageError(f"{name} is settled: each job has the id of its message, and is put only once")
    bridge = Bridge(check_name("to_queue", to_queue), klass, dict(options))
    # What cannot be put is refused now. The options of a class depend on the data, so they are not asked.
    make_put(client.settings, bridge.queue, _name(klass), NOTHING, bridge.options, is_trial=True)
    return bridge


def job_of(settings: Settings, bridge: Bridge, item: ItemVerbs) -> Any:
    """The command that puts the job of a message. Raises UsageError for a body that cannot be its data."""
    options = {**bridge.options, "jid": item.id, "only_new": True}
    if _is_function(bridge.klass):
        data = _call_of(bridge.klass, item.body)
        return make_put(settings, bridge.queue, _name(bridge.klass), data, options)
    value = _read(item.body)
    # Text would be taken for JSON that is written already.
    data = msgspec.json.encode(value) if isinstance(value, str) else value
    return make_put(settings, bridge.queue, bridge.klass, data, options)


def _name(klass: Any) -> str:
    if isinstance(klass, str):
        return klass
    return klass.stored_name if _is_function(klass) else klass_name(klass)


def _is_function(klass: object) -> bool:
    return isinstance(klass, AnyFunctionJob)


def _call_of(function: Any, body: str) -> Any:
    """The arguments of a function job: by name in an object, in order in a list, else the text is the only one."""
    value = _read(body)
    if isinstance(value, dict):
        return function.write((), value)
    return function.write(tuple(cast("Any", value)) if isinstance(value, list) else (value,), {})


def _read(body: str) -> Any:
    """A JSON object or list as such, any other text as text."""
    if body.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(body)
        except msgspec.MsgspecError:
            pass  # text that only begins like JSON
    return body


log = logging.getLogger("holdfast")

SHORTEST: Final = 0.01
MOST_BRIDGED: Final = 100
NOT_NOW: Final = (TransportError, QueueFull, StoreFull)
"""What says nothing about a message: it comes back after its time, and the loop waits a while."""


class Handle(msgspec.Struct, frozen=True):
    """Give a message to the handler; the answer is the error it ended with, or None."""

    item: Any


class Report(msgspec.Struct, frozen=True):
    """Tell of a message that could not be handled."""

    item: Any
    error: BaseException


class Pause(msgspec.Struct, frozen=True):
    """Wait so many seconds, or until the subscription ends."""

    seconds: float


class Listen(msgspec.Struct, frozen=True):
    """Wait until a wake-up comes, these seconds have passed, or the subscription ends. Raises ConnectionLost."""

    seconds: float


Need = Handle | Report | Pause | Listen | Plan[Any]
Loop = Generator[Need, Any, None]


class Delivering:
    """The messages of one topic on their way to a handler, or into a queue."""

    item_of: Callable[[Message, Any], ItemVerbs]

    def __init__(
        self,
        scheduler: Any,
        topic: str,
        handler: Callable[[Any], object] | None,
        ttr: float | None,
        on_error: Callable[[Any, BaseException], object] | None,
        to_queue: str | None,
        klass: object,
        options: Mapping[str, Any],
    ) -> None:
        self.topic = check_name("topic", topic)
        if scheduler.is_subscribed(topic):
            raise UsageError(f"there is a subscription to {topic} already; unsubscribe first")
        self.client = scheduler._client
        self.scheduler = scheduler
        self.handler = handler
        self.on_error = scheduler.on_error if on_error is None else check_callable("on_error", on_error)
        self.ttr_ms = check_milliseconds("ttr", scheduler.ttr if ttr is None else ttr, 0.001)
        self.bridge = bridge_of(self.client, handler, to_queue, klass, options)
        self.stopping = False
        self.wake_key = self.client.shard.topic_wake_key(self.topic)

    def delivering(self) -> Loop:
        """Reserve, hand on, and look again; wait only when nothing is ready."""
        outage, mode, limit = (
            Outage(self.client.shard.gate),
            WILL_WAIT,
            1 if self.bridge is None else MOST_BRIDGED,
        )
        while not self.stopping:
            try:
                found = yield self._ask(TopicReserve(self.topic, self.ttr_ms, None, limit, mode))
                mode = WILL_WAIT
                if found.messages:
                    yield from self._hand_on(found.messages)
                outage.over()
                if not found.messages:
                    mode = WOKEN
                    yield Listen(_wait(found.due, self.scheduler.reserve_interval))
            except HoldfastError as error:
                yield Pause(outage.pause(error))
        yield from self._pass_on()

    def bringing_back(self) -> Loop:
        """Queue messages again whose reservation is over."""
        outage = Outage(self.client.shard.gate)
        while not self.stopping:
            try:
                found = yield self._ask(TopicRequeue(self.topic))
            except HoldfastError as error:
                yield Pause(outage.pause(error))
                continue
            outage.over()
            if found.moved < MAX_MOVED:
                yield Pause(_wait(found.due, self.scheduler.requeue_interval))

    def _pass_on(self) -> Loop:
        """Whoever else waits may have to look, because a wake-up was on its way here."""
        try:
            yield self._ask(TopicReserve(self.topic, self.ttr_ms, None, 0, WOKEN))
        except HoldfastError as error:
            log.debug("topic %s: nobody else was woken: %s", self.topic, error)

    def _hand_on(self, messages: Sequence[Message]) -> Loop:
        items = [self.item_of(message, self.client) for message in messages]
        if self.bridge is not None:
            yield from self._put(self.bridge, items)
            return
        for item in items:
            error = yield Handle(item)
            if error is not None:
                yield Report(item, error)
            elif not item.settled:
                yield from self._done([item])

    def _put(self, bridge: Bridge, items: Sequence[ItemVerbs]) -> Loop:
        """Put messages as jobs, all in one trip, and be done with those that were put."""
        puts: list[Any] = []
        owners: list[ItemVerbs] = []
        for item in items:
            try:
                puts.append(job_of(self.client.settings, bridge, item))
                owners.append(item)
            except UsageError as error:
                yield Report(item, error)
        answers: list[Any] = []
        if puts:
            answers = yield together(self.client.shard, puts)
        for item, answer in zip(owners, answers, strict=True):
            if isinstance(answer, HoldfastError) and not isinstance(answer, NOT_NOW):
                yield Report(item, answer)
        put = [
            item
            for item, answer in zip(owners, answers, strict=True)
            if not isinstance(answer, HoldfastError)
        ]
        if put:
            yield from self._done(put)
        for answer in answers:
            if isinstance(answer, NOT_NOW):
                raise answer

    def _done(self, items: Sequence[ItemVerbs]) -> Loop:
        held = [(item.id, item.message.when_ms) for item in items]
        answers = yield self._ask(TopicRelease(self.topic, held))
        for item, ended in zip(items, answers, strict=True):
            if not ended:
                log.warning(
                    "topic %s: %s took longer than its ttr of %g s, so it comes again",
                    self.topic,
                    item.id,
                    self.ttr_ms / 1000,
                )

    def _ask(self, command: Command[Any]) -> Plan[Any]:
        return exchange(self.client.shard, command)

    def end(self) -> None:
        """Its loops have ended: there may be another one."""
        self.stopping = True
        self.scheduler._forget(self)

    def broke(self) -> None:
        """One of its loops met what it does not know; the other must not go on as if all were well."""
        self.stopping = True
        log.exception("the subscription to topic %s has ended", self.topic)

    def handle(self, item: Any) -> object:
        """Give a message to the handler."""
        assert self.handler is not None  # a bridge has none, and yields no Handle
        return self.handler(item)

    def tell(self, item: Any, error: BaseException) -> object:
        """Report a message that was not handled; answers what `on_error` answered."""
        if self.on_error is not None:
            return self.on_error(item, error)
        log.error(
            "topic %s: %s was not handled and comes back when its ttr is over",
            self.topic,
            item.id,
            exc_info=error,
        )
        return None

    def on_error_failed(self) -> None:
        """Note that the caller's own `on_error` raised."""
        log.exception("topic %s: on_error raised", self.topic)


def _wait(due: float | None, interval: float) -> float:
    return interval if due is None else max(SHORTEST, min(due, interval))
