"""What a subscription does, without saying who waits: two loops that yield what they need, for threads and for tasks.

One loop reserves messages and hands them on, the other brings those back whose reservation is over. Neither ends for
an error of the store: it waits, less and less impatiently, until the store answers again.
"""

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.client.topics.bridging import Bridge, bridge_of, job_of
from holdfast.client.topics.messages import ItemVerbs
from holdfast.commands import Command
from holdfast.commands.leases import WILL_WAIT, WOKEN
from holdfast.commands.topics import MOST_MOVED, Message, TopicRelease, TopicRequeue, TopicReserve
from holdfast.errors import HoldfastError, QueueFull, StoreFull, TransportError, UsageError
from holdfast.settings import check_callable, check_milliseconds, check_name
from holdfast.wire.exchange import exchange
from holdfast.wire.gather import together
from holdfast.wire.outage import Outage
from holdfast.wire.plans import Plan

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
    """Wait until the bell rings, so many seconds have passed, or the subscription ends. Raises ConnectionLost."""

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
        self.bell_key = self.client.shard.topic_bell_key(self.topic)

    def delivering(self) -> Loop:
        """Reserve, hand on, and look again; wait only when nothing is ready."""
        outage, mode, limit = (
            Outage(self.client.shard.away),
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
        outage = Outage(self.client.shard.away)
        while not self.stopping:
            try:
                found = yield self._ask(TopicRequeue(self.topic))
            except HoldfastError as error:
                yield Pause(outage.pause(error))
                continue
            outage.over()
            if found.moved < MOST_MOVED:
                yield Pause(_wait(found.due, self.scheduler.requeue_interval))

    def _pass_on(self) -> Loop:
        """Whoever else waits may have to look, because a token of the bell was on its way here."""
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
        self.scheduler.forget(self)

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
