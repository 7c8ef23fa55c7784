"""Deliver the messages of a subscription: to a function, or as jobs into a queue.

One loop reserves messages and delivers them, the other queues messages again whose reservation has ended. After an error of
the store both wait, longer each time, until the store is available again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeGuard

import msgspec

from holdfast.client.bulk import OnePut
from holdfast.client.descriptors import AnyClient
from holdfast.client.function_jobs import AnyFunctionJob
from holdfast.client.put_options import NOTHING, make_put
from holdfast.client.topics.messages import ItemVerbs
from holdfast.code.naming import klass_name
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.leases import WILL_WAIT, WOKEN
from holdfast.commands.topics import MAX_MOVED, Message, TopicRelease, TopicRequeue, TopicReserve
from holdfast.errors import HoldfastError, QueueFull, StoreFull, TransportError, UsageError
from holdfast.settings import Settings, check_callable, check_milliseconds, check_name
from holdfast.wire.exchange import exchange
from holdfast.wire.gather import together
from holdfast.wire.outage import Outage

_FIXED: Final = ("jid", "only_new")


class Bridge(msgspec.Struct, frozen=True):
    """The jobs that messages become."""

    queue: str
    klass: object
    options: Mapping[str, object]


def bridge_of(
    client: AnyClient, handler: object, to_queue: object, klass: object, options: Mapping[str, object]
) -> Bridge | None:
    """Return the jobs that messages become, None for a handler. Raises UsageError for neither, both, or what cannot be put."""
    if handler is not None:
        if to_queue is not None or klass is not None or options:
            raise UsageError(
                "a subscription has a handler, or to_queue and klass with options of a put, not both"
            )
        check_callable("handler", handler)
        return None
    if _is_function(klass):
        own_queue, own = klass.put_options()
        to_queue, options = own_queue if to_queue is None else to_queue, {**own, **options}
    if to_queue is None or klass is None:
        raise UsageError("a subscription needs a handler, or to_queue and klass")
    for name in _FIXED:
        if name in options:
            raise UsageError(f"{name} cannot be given: each job has the id of its message, and is put once")
    bridge = Bridge(check_name("to_queue", to_queue), klass, dict(options))
    # Refuse now what cannot be put. The options of a class depend on the data, so they are not checked.
    make_put(client.settings, bridge.queue, _name(klass), NOTHING, bridge.options, is_trial=True)
    return bridge


def job_of(settings: Settings, bridge: Bridge, item: ItemVerbs) -> OnePut:
    """Return the command that puts the job of a message. Raises UsageError for a body that cannot be its data."""
    options = {**bridge.options, "jid": item.id, "only_new": True}
    if _is_function(bridge.klass):
        data: object = _call_of(bridge.klass, item.body)
        return make_put(settings, bridge.queue, _name(bridge.klass), data, options)
    value = _read(item.body)
    # Text as data would count as JSON.
    data = msgspec.json.encode(value) if isinstance(value, str) else value
    return make_put(settings, bridge.queue, bridge.klass, data, options)


def _name(klass: object) -> str:
    if isinstance(klass, str):
        return klass
    return klass.stored_name if _is_function(klass) else klass_name(klass)


def _is_function(klass: object) -> TypeGuard[AnyFunctionJob[..., object, object]]:
    return isinstance(klass, AnyFunctionJob)


def _call_of(function: AnyFunctionJob[..., object, object], body: str) -> object:
    """Return the arguments of a function job: by name in an object, in order in a list, else the text is the only one."""
    value = _read(body)
    if isinstance(value, dict):
        return function.write((), value)
    return function.write(tuple(value) if isinstance(value, list) else (value,), {})


def _read(body: str) -> dict[str, object] | list[object] | str:
    """Return a JSON object or list decoded, any other text as text."""
    if body.lstrip()[:1] in ("{", "["):
        try:
            found: dict[str, object] | list[object] = msgspec.json.decode(body)
            return found
        except msgspec.MsgspecError:
            pass  # text that begins like JSON
    return body


log = logging.getLogger("holdfast")

SHORTEST: Final = 0.01
MOST_BRIDGED: Final = 100
NOT_NOW: Final = (TransportError, QueueFull, StoreFull)
"""Errors that no message causes: it comes back when its reservation ends, and the loop waits."""


class SubscriptionBase:
    """The messages of one topic on their way to a handler, or into a queue.

    What waits or talks to the store is yielded: an async subscription awaits it.
    """

    item_class: Callable[[Message, AnyClient], ItemVerbs]
    handled: tuple[type[BaseException], ...]
    """What a handler may raise without ending the subscription."""

    def __init__(
        self,
        scheduler: Any,
        topic: str,
        handler: Callable[[Any], object] | None,
        ttr: float | None,
        on_error: Callable[[Any, BaseException], object] | None,
        to_queue: str | None,
        klass: object,
        options: Mapping[str, object],
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

    def _pause(self, seconds: float) -> object:
        """Wait `seconds`, or until the subscription ends."""
        raise NotImplementedError

    def _listen(self, seconds: float) -> object:
        """Wait for a wake-up, `seconds`, or until the subscription ends. Raises ConnectionLost."""
        raise NotImplementedError

    def _is_cancelled(self, error: BaseException) -> bool:
        """Return whether the subscription itself was cancelled, not something that the handler waits for."""
        return False

    def _room(self) -> Steps[int]:
        """Return how many messages to reserve next, perhaps after waiting; 0 when the subscription ends."""
        yield from ()
        if self.stopping:
            return 0
        return 1 if self.bridge is None else MOST_BRIDGED

    def _finish(self) -> Steps[None]:
        """Wait for messages that are still being delivered."""
        yield from ()

    def deliver(self) -> Steps[None]:
        """Reserve and deliver messages until the subscription ends; wait when none is ready."""
        outage, mode = Outage(self.client.shard.gate), WILL_WAIT
        while limit := (yield from self._room()):
            try:
                found = yield self._run(TopicReserve(self.topic, self.ttr_ms, None, limit, mode))
                mode = WILL_WAIT
                if found.messages:
                    yield from self._deliver(found.messages)
                outage.over()
                if not found.messages:
                    mode = WOKEN
                    yield self._listen(_wait(found.due, self.scheduler.reserve_interval))
            except HoldfastError as error:
                yield self._pause(outage.pause(error))
        yield from self._pass_on()
        yield from self._finish()

    def requeue(self) -> Steps[None]:
        """Queue messages again whose reservation has ended, until the subscription ends."""
        outage = Outage(self.client.shard.gate)
        while not self.stopping:
            try:
                found = yield self._run(TopicRequeue(self.topic))
            except HoldfastError as error:
                yield self._pause(outage.pause(error))
                continue
            outage.over()
            if found.moved < MAX_MOVED:
                yield self._pause(_wait(found.due, self.scheduler.requeue_interval))

    def _pass_on(self) -> Steps[None]:
        """Wake another subscription, because a wake-up may have been on its way here."""
        try:
            yield self._run(TopicReserve(self.topic, self.ttr_ms, None, 0, WOKEN))
        except HoldfastError as error:
            log.debug("topic %s: a wake-up could not be passed on: %s", self.topic, error)

    def _deliver(self, messages: Sequence[Message]) -> Steps[None]:
        items = [self.item_class(message, self.client) for message in messages]
        if self.bridge is not None:
            yield from self._put(self.bridge, items)
            return
        for item in items:
            error = yield from self._handle(item)
            if error is not None:
                yield from self._report(item, error)
            elif not item.settled:
                yield from self._done([item])

    def _put(self, bridge: Bridge, items: Sequence[ItemVerbs]) -> Steps[None]:
        """Put messages as jobs, all in one round trip, and delete those that were put."""
        puts: list[OnePut] = []
        owners: list[ItemVerbs] = []
        for item in items:
            try:
                puts.append(job_of(self.client.settings, bridge, item))
                owners.append(item)
            except UsageError as error:
                yield from self._report(item, error)
        results: list[object] = []
        if puts:
            results = yield self.client.runner.run(together(self.client.shard, puts))
        pairs = list(zip(owners, results, strict=True))
        for item, result in pairs:
            if isinstance(result, HoldfastError) and not isinstance(result, NOT_NOW):
                yield from self._report(item, result)
        put = [item for item, result in pairs if not isinstance(result, HoldfastError)]
        if put:
            yield from self._done(put)
        for result in results:
            if isinstance(result, NOT_NOW):
                raise result

    def _done(self, items: Sequence[ItemVerbs]) -> Steps[None]:
        held = [(item.id, item.message.when_ms) for item in items]
        ended = yield self._run(TopicRelease(self.topic, held))
        for item, has_ended in zip(items, ended, strict=True):
            if not has_ended:
                log.warning(
                    "topic %s: message %s took longer than its ttr of %g s, so it will be delivered again",
                    self.topic,
                    item.id,
                    self.ttr_ms / 1000,
                )

    def _handle(self, item: object) -> Steps[BaseException | None]:
        """Call the handler; return the error that it raised, or None."""
        assert self.handler is not None  # a bridge does not get here
        try:
            yield self.handler(item)
        except self.handled as error:
            if self._is_cancelled(error):
                raise
            return error
        return None

    def _report(self, item: ItemVerbs, error: BaseException) -> Steps[None]:
        """Report a message that was not handled."""
        if self.on_error is None:
            sentence = "topic %s: message %s was not handled; it will be delivered again when its ttr is over"
            log.error(sentence, self.topic, item.id, exc_info=error)
            return
        try:
            yield self.on_error(item, error)
        except Exception:
            log.exception("topic %s: on_error raised", self.topic)

    def _run(self, command: Command[object]) -> object:
        return self.client.runner.run(exchange(self.client.shard, command))

    def _end(self) -> None:
        """Note that both loops have ended: there may be another subscription."""
        self.stopping = True
        self.scheduler._forget(self)

    def _fail(self) -> None:
        """Log an unexpected error of one loop, and end the other."""
        self.stopping = True
        log.exception("the subscription to topic %s has ended", self.topic)


def _wait(due: float | None, interval: float) -> float:
    return interval if due is None else max(SHORTEST, min(due, interval))
