"""The methods of a topic, for both clients: delayed messages under ids of the caller's choice."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

import msgspec

from holdfast.client.descriptors import (
    AnyClient,
    AsyncMethods,
    CommandMethod,
    CommandProperty,
    PlanMethod,
    StepMethod,
    SyncMethods,
)
from holdfast.client.plans import in_slices
from holdfast.client.tables import check_cursor, check_direction
from holdfast.client.topics.messages import (
    AsyncItem,
    Item,
    ItemVerbs,
    bodies_of,
    body_of,
    epoch_ms,
    held,
    moment_of,
)
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.base import map_reply
from holdfast.commands.topics import (
    MAX_MOVED,
    CountTopics,
    Message,
    TopicCounts,
    TopicDelete,
    TopicGet,
    TopicPull,
    TopicPut,
    TopicRelease,
    TopicRequeue,
    TopicReschedule,
    TopicReserve,
)
from holdfast.commands.views import OF_TOPICS, Cursor, Direction, ListSet
from holdfast.errors import UsageError
from holdfast.settings import MAX_BATCH, MAX_WHOLE, SHORTEST, check_milliseconds, check_name, check_whole
from holdfast.wire.plans import Plan, Planner

T = TypeVar("T")

MAX_BYTES: Final = 1 << 20


class MessagePage(msgspec.Struct, frozen=True, gc=False):
    """Some messages of a topic, the earliest first, and the cursor of the next page; None at the end."""

    messages: list[Message]
    next: Cursor | None = None


ItemT = TypeVar("ItemT", bound=ItemVerbs)
"""The class of reserved messages of a client."""


class TopicVerbs(Generic[ItemT]):
    """A topic. `ttr` is how many seconds a reservation lasts by default. Making one sends nothing."""

    _client: AnyClient
    _item_class: type[ItemT]

    def __init__(self, name: str, client: AnyClient, ttr: float = 60.0) -> None:
        self.name = check_name("topic", name)
        self.ttr = ttr
        self._client = client

    @CommandMethod
    def put(
        self, id: str, body: object, delay: float | None = None, *, at: float | None = None
    ) -> Command[bool]:
        """Put a message, ready in `delay` seconds (0) or `at` an epoch second; False, without a change, if the id exists.

        A `body` that is not text is written as JSON. Raises UsageError, StoreFull. Core: verbs/topic.lua.
        """
        how, when = moment_of(delay, at)
        words = (check_name("id", id), when, body_of(body, self._client.settings.max_data))
        return map_reply(TopicPut(self.name, how, words), first)

    @PlanMethod
    def put_many(
        self,
        ask: Planner,
        messages: Mapping[str, object] | Iterable[tuple[str, object]],
        delay: float | None = None,
        *,
        at: float | None = None,
    ) -> Plan[list[bool]]:
        """Put messages, (id, body) pairs or a mapping, that are ready at the same time; True for each that was added.

        Up to 512 are one atomic call. Raises UsageError, StoreFull. Core: verbs/topic.lua.
        """
        how, when = moment_of(delay, at)
        pairs = bodies_of(messages, self._client.settings.max_data)
        added: list[bool] = []
        while pairs:
            count = _fitting(pairs)
            words = [word for id, body in pairs[:count] for word in (id, when, body)]
            added += yield from ask(TopicPut(self.name, how, words))
            pairs = pairs[count:]
        return added

    @CommandMethod
    def reschedule(self, id: str, delay: float | None = None, *, at: float | None = None) -> Command[bool]:
        """Change when a queued message is ready: in `delay` seconds (0: deliver it now) or `at` an epoch second.

        False if it is not queued. Raises UsageError. Core: verbs/topic.lua.
        """
        return map_reply(TopicReschedule(self.name, (check_name("id", id),), *moment_of(delay, at)), first)

    @CommandMethod
    def delete(self, id: str) -> Command[bool]:
        """Delete a message, queued or reserved; False if there is none of that id. Core: verbs/topic.lua."""
        return map_reply(TopicDelete(self.name, (check_name("id", id),)), first)

    @CommandMethod
    def get(self, id: str) -> Command[Message | None]:
        """Return a message: its body, and when it is ready or its reservation ends. Core: verbs/topic.lua."""
        return map_reply(TopicGet(self.name, (check_name("id", id),)), first)

    @CommandMethod
    def exists(self, id: str) -> Command[bool]:
        """Whether there is a message of that id, queued or reserved. Core: verbs/topic.lua."""
        return map_reply(TopicGet(self.name, (check_name("id", id),)), lambda found: found[0] is not None)

    @CommandMethod
    def done(self, item: str | ItemVerbs) -> Command[bool]:
        """Delete a reserved message, which was handled; False if it is not reserved.

        An item ends its own reservation only, an id any reservation. Core: verbs/topic.lua.
        """
        return map_reply(TopicRelease(self.name, [held(item)]), first)

    @CommandMethod
    def give_back(self, item: str | ItemVerbs, delay: float = 0) -> Command[bool]:
        """Queue a reserved message again, ready in `delay` seconds; False if it is not reserved.

        An item ends its own reservation only, an id any reservation. Raises UsageError. Core: verbs/topic.lua.
        """
        wait = check_milliseconds("delay", delay)
        return map_reply(TopicRelease(self.name, [held(item)], "in", wait), first)

    @CommandMethod
    def release(self, id: str | ItemVerbs, at: float | None = None) -> Command[bool]:
        """End a reservation: as `done`, or with `at`, an epoch second, as `give_back`, ready then; False if it is not reserved.

        Raises UsageError. Core: verbs/topic.lua.
        """
        return map_reply(make_release(self.name, id, at), first)

    @PlanMethod
    def requeue(self, ask: Planner, limit: int = MAX_MOVED) -> Plan[int]:
        """Queue up to `limit` messages again whose reservation has ended, ready now; return how many.

        Raises UsageError. Core: verbs/topic.lua.
        """
        return requeued(ask, self.name, None, limit)

    @CommandMethod
    def ready_count(self) -> Command[int]:
        """How many messages are queued and ready now. Core: verbs/topic.lua."""
        return map_reply(CountTopics((self.name,)), lambda found: found[0].ready)

    @CommandMethod
    def length(self) -> Command[int]:
        """How many messages there are, queued or reserved; `len(topic)` in a sync client. Core: verbs/topic.lua."""
        return map_reply(CountTopics((self.name,)), lambda found: found[0].queued + found[0].reserved)

    @CommandProperty
    def counts(self) -> Command[TopicCounts]:
        """How many are queued, ready and reserved, and when the first of them is due. Core: verbs/topic.lua."""
        return map_reply(CountTopics((self.name,)), lambda found: found[0])

    @PlanMethod
    def messages(
        self,
        ask: Planner,
        state: str = "queued",
        after: Cursor | None = None,
        count: int = 100,
        *,
        direction: Direction = "",
    ) -> Plan[MessagePage]:
        """A page of the `queued` messages by ready time, or of the `reserved` by deadline, after the cursor `after`.

        `direction` is `up`, or `down` for the latest first. Raises UsageError. Core: verbs/list.lua.
        """
        if not isinstance(state, str) or state not in OF_TOPICS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"state is queued or reserved, not {state!r}")
        size = check_whole("count", count, 1, MAX_BATCH)
        found = yield from ask(
            ListSet(state, self.name, check_cursor(after), size, check_direction(direction))
        )
        messages: list[Message | None] = []
        yield from in_slices(ask, lambda ids: TopicGet(self.name, ids), found.names, messages)
        return MessagePage([message for message in messages if message is not None], found.next)

    @CommandMethod
    def pull(self, max: float | None = None) -> Command[Message | None]:
        """Take and delete the earliest message that is ready by `max`, an epoch second (now); None if there is none.

        It does not come back, even if the caller fails. Core: verbs/topic_take.lua.
        """
        return map_reply(TopicPull(self.name, upto(max)), lambda found: found[0] if found else None)

    @StepMethod
    def reserve(self, max: float | None = None, ttr: float | None = None) -> Steps[ItemT | None]:
        """Reserve the earliest message that is ready by `max`, an epoch second (now); None if there is none.

        No other program gets it for `ttr` seconds (60). `with item:` (async: `async with`) deletes it at the end of the
        block; if the block raises, it comes back after that time. Raises UsageError. Core: verbs/topic_take.lua.
        """
        found = yield self._client.run(make_reserve(self.name, self.ttr if ttr is None else ttr, max))
        return self._item_class(found.messages[0], self._client) if found.messages else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Topic(TopicVerbs[Item], SyncMethods):
    """A topic of a sync client: `client.topics["mail"]`."""

    _item_class = Item

    def __len__(self) -> int:
        return self.length()

    def __bool__(self) -> bool:
        return True

    def __contains__(self, id: str) -> bool:
        return self.exists(id)


class AsyncTopic(TopicVerbs[AsyncItem], AsyncMethods):
    """A topic of an async client: `client.topics["mail"]`."""

    _item_class = AsyncItem


def make_reserve(topic: object, ttr: object, max: object) -> TopicReserve:
    """Return the command that reserves a message. Raises UsageError."""
    return TopicReserve(check_name("topic", topic), check_milliseconds("ttr", ttr, SHORTEST), upto(max))


def make_release(topic: object, item: object, at: object) -> TopicRelease:
    """Return the command that ends a reservation: the message is deleted, or ready again at `at`. Raises UsageError."""
    name, reservation = check_name("topic", topic), [held(item)]
    if at is None:
        return TopicRelease(name, reservation)
    return TopicRelease(name, reservation, *moment_of(None, at))


def requeued(ask: Planner, topic: object, max: object, limit: object) -> Plan[int]:
    """Queue messages again whose reservation has ended, a thousand a call; return how many. Raises UsageError."""
    name, until, most = check_name("topic", topic), upto(max), check_whole("limit", limit, 1, MAX_WHOLE)
    moved = 0
    while moved < most:
        step = min(most - moved, MAX_MOVED)
        found = yield from ask(TopicRequeue(name, until, step))
        moved += found.moved
        if found.moved < step:
            break
    return moved


def upto(max: object) -> int | None:
    """Return `max`, an epoch second, as milliseconds, None for the store's now. Raises UsageError."""
    return None if max is None else epoch_ms("max", max)


def first(results: Sequence[T]) -> T:
    """Return the result for the only id of a call."""
    return results[0]


def _fitting(pairs: Sequence[tuple[str, bytes]]) -> int:
    """Return how many messages are one call: up to 512, and a mebibyte unless the first is larger."""
    size = 0
    for count, (_, body) in enumerate(pairs[:MAX_BATCH]):
        size += len(body)
        if count and size > MAX_BYTES:
            return count
    return min(len(pairs), MAX_BATCH)
