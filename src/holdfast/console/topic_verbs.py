"""What operators and programs do with topics: what a topic holds, and put, take, release, requeue and delete messages."""

import msgspec

from holdfast.client.descriptors import AnyClient, CommandMethod, PlanMethod
from holdfast.client.plans import in_slices
from holdfast.client.topics.messages import body_of, epoch_ms, moment_of
from holdfast.client.topics.topic import first, requeued, upto
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
    TopicReschedule,
    TopicReserve,
)
from holdfast.commands.views import Cursor, ListSet
from holdfast.console.read.namespace_queries import Place
from holdfast.console.unknown import unknown
from holdfast.settings import MAX_BATCH, SHORTEST, check_milliseconds, check_name, check_names, check_whole
from holdfast.wire.plans import Plan, Planner


class TopicDetail(msgspec.Struct, frozen=True):
    """A topic: its counts, its first queued messages by ready time, and its first reserved ones by deadline.

    `next` is the cursor of the queued messages that follow, "" after the last.
    """

    counts: TopicCounts
    queued: tuple[Message, ...]
    reserved: tuple[Message, ...]
    next: str = ""


class TopicVerbs:
    """The queries and actions of topics. Only what operators do is audited: delete and reschedule.

    Moments are epoch seconds of the store, `max` and `at` by default its now; durations are seconds.
    """

    _client: AnyClient
    actor: str

    @PlanMethod
    def topic(self, ask: Planner, name: str, limit: int = 25, *, after: str = "") -> Plan[TopicDetail]:
        """One topic with its first messages, or the queued ones after a cursor. Raises HoldfastError if it holds none."""
        return topic(ask, name, check_whole("limit", limit, 1, MAX_BATCH), after)

    @CommandMethod
    def topic_counts(self, name: str) -> Command[TopicCounts]:
        """How many messages a topic holds, also one without any."""
        return map_reply(CountTopics((check_name("topic", name),)), first)

    @CommandMethod
    def message(self, topic: str, id: str) -> Command[Message | None]:
        """One message, None if the topic has none of that id."""
        return map_reply(TopicGet(check_name("topic", topic), (check_name("id", id),)), first)

    @CommandMethod
    def put_message(
        self, topic: str, id: str, body: str, delay: float | None = None, *, at: float | None = None
    ) -> Command[bool]:
        """Put a message into a topic, ready in `delay` seconds or `at` a moment. False if the id exists."""
        how, when = moment_of(delay, at)
        words = (check_name("id", id), when, body_of(body, self._client.settings.max_data))
        return map_reply(TopicPut(check_name("topic", topic), how, words), first)

    @CommandMethod
    def reserve_messages(
        self, topic: str, limit: int = 1, *, ttr: float = 60.0, max: float | None = None
    ) -> Command[list[Message]]:
        """Reserve the earliest messages that are ready by `max`; nobody else gets them for `ttr` seconds after it."""
        name, length = check_name("topic", topic), check_milliseconds("ttr", ttr, SHORTEST)
        size = check_whole("limit", limit, 1, MAX_BATCH)
        return map_reply(TopicReserve(name, length, upto(max), size), lambda found: found.messages)

    @CommandMethod
    def pull_messages(
        self, topic: str, limit: int = 1, *, max: float | None = None
    ) -> Command[list[Message]]:
        """Take the earliest messages that are ready by `max`, and delete them."""
        size = check_whole("limit", limit, 1, MAX_BATCH)
        return TopicPull(check_name("topic", topic), upto(max), size)

    @CommandMethod
    def release_messages(
        self,
        topic: str,
        *ids: str,
        delay: float | None = None,
        at: float | None = None,
        deadline: float | None = None,
    ) -> Command[list[bool]]:
        """End reservations: the messages are deleted, or with `delay` or `at` queued again, ready then.

        With `deadline` only reservations that end at that moment, as `reserve_messages` returned it. Returns False for each
        that is not reserved, or not so.
        """
        until = None if deadline is None else epoch_ms("deadline", deadline)
        name, held = check_name("topic", topic), [(id, until) for id in check_names("id", ids, MAX_BATCH)]
        if delay is None and at is None:
            return TopicRelease(name, held)
        return TopicRelease(name, held, *moment_of(delay, at))

    @PlanMethod
    def requeue_messages(
        self, ask: Planner, topic: str, limit: int = MAX_MOVED, *, max: float | None = None
    ) -> Plan[int]:
        """Queue up to `limit` messages again whose reservation has ended by `max`, ready then. Returns how many."""
        return requeued(ask, topic, max, limit)

    @CommandMethod
    def reschedule_messages(
        self, topic: str, *ids: str, delay: float | None = None, at: float | None = None
    ) -> Command[list[bool]]:
        """Change when queued messages are ready: in `delay` seconds (default: now), or `at` a moment.

        Returns False for each that is not queued.
        """
        how, when = moment_of(delay, at)
        names = check_names("id", ids, MAX_BATCH)
        return TopicReschedule(check_name("topic", topic), names, how, when)

    @CommandMethod
    def delete_messages(self, topic: str, *ids: str) -> Command[list[bool]]:
        """Delete messages, queued or reserved. Returns whether each existed."""
        return TopicDelete(check_name("topic", topic), check_names("id", ids, MAX_BATCH))


def topic(ask: Planner, name: str, limit: int, after: str = "") -> Plan[TopicDetail]:
    """Return one topic with its first messages. Raises HoldfastError if it holds none."""
    place = Place.parse(after)
    [found] = yield from ask(CountTopics((check_name("topic", name),)))
    if not found.queued and not found.reserved:
        page = yield from ask(ListSet("topics", "", None, MAX_BATCH))
        raise unknown("topic", name, page.names)
    queued, following = yield from _messages(ask, "queued", name, limit, place.after)
    reserved, _ = yield from _messages(ask, "reserved", name, limit)
    return TopicDetail(found, queued, reserved, str(Place(name, following)) if following else "")


def _messages(
    ask: Planner, state: str, topic: str, limit: int, after: Cursor | None = None
) -> Plan[tuple[tuple[Message, ...], Cursor | None]]:
    page = yield from ask(ListSet(state, topic, after, limit))
    found: list[Message | None] = []
    yield from in_slices(ask, lambda ids: TopicGet(topic, ids), page.names, found)
    return tuple(one for one in found if one is not None), page.next
