"""Commands about topics: delayed messages under ids that their callers chose."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from holdfast.bounds import Limit, Milliseconds, Name, Names
from holdfast.codecs import decode
from holdfast.commands.base import AuditedChange, CommandBase, Reply, Word
from holdfast.models.job import text

How = Literal["in", "at"]
MAX_MOVED: Final = 1000
MAX_COUNTED: Final = 128
NEVER: Final = -1


class Message(msgspec.Struct, frozen=True, gc=False):
    """A delayed message: its topic, its id, and its body as text.

    `state` is `queued` or `reserved`, and `when_ms` when it is ready or its reservation ends, in epoch milliseconds;
    `""` and 0 for one that was pulled, which is deleted.
    """

    topic: str
    id: str
    body: str
    state: str = ""
    when_ms: int = 0

    @property
    def data(self) -> Any:
        """The body, decoded from JSON. Raises CodecError."""
        return decode(self.body)

    @property
    def ready(self) -> float | None:
        """When a queued message is ready, in epoch seconds; None for others."""
        return self.when_ms / 1000 if self.state == "queued" else None

    @property
    def deadline(self) -> float | None:
        """When the reservation ends, in epoch seconds; None if it is not reserved."""
        return self.when_ms / 1000 if self.state == "reserved" else None


class TopicCounts(msgspec.Struct, frozen=True, gc=False):
    """How many messages a topic has: `queued`, those of them that are `ready`, and `reserved`.

    `first_ready_ms` is when the first queued message is (or was) ready, `first_deadline_ms` when the first reservation
    ends, in epoch milliseconds; -1 if there is none.
    """

    name: str
    queued: int
    ready: int
    reserved: int
    first_ready_ms: int = NEVER
    first_deadline_ms: int = NEVER


class Reserved(msgspec.Struct, frozen=True, gc=False):
    """Messages that were reserved, and the seconds until the next one is ready (None: none is queued)."""

    messages: list[Message]
    due: float | None = None


class Requeued(msgspec.Struct, frozen=True, gc=False):
    """How many messages were queued again, and the seconds until the next reservation ends (None: there is none)."""

    moved: int
    due: float | None = None


class TopicPut(CommandBase, frozen=True, gc=False):
    """Add up to 512 messages, each an id, when it is ready, and its body. Returns True for each that was added.

    `how`: the time is a delay in milliseconds (`in`) or in epoch milliseconds (`at`). A message whose id the topic has
    already is not added. Core: verbs/topic.lua.
    """

    verb: ClassVar[str] = "topic_put"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    topic: Name
    how: How
    messages: Sequence[Word]

    def words(self) -> Sequence[Word]:
        return (self.topic, self.how, *self.messages)

    def read(self, reply: Reply) -> list[bool]:
        return _each(reply)


class TopicReserve(CommandBase, frozen=True, gc=False):
    """Reserve up to `limit` (512) messages that are ready at `max_ms` (None: now), the earliest first.

    The reservation ends `ttr_ms` after `max_ms`. `mode` is that of a pop: whether the caller is going to wait if there
    are fewer, or was woken. Core: verbs/topic_take.lua.
    """

    verb: ClassVar[str] = "topic_reserve"
    request_id_at: ClassVar[int] = 0

    topic: Name
    ttr_ms: Milliseconds
    max_ms: Milliseconds | None = None
    limit: Limit = 1
    mode: int = 0

    def words(self) -> Sequence[Word]:
        return (self.topic, self.mode, self.limit, _max(self.max_ms), self.ttr_ms)

    def read(self, reply: Reply) -> Reserved:
        rows = range(1, len(reply), 3)
        messages = [
            Message(self.topic, text(reply[at]), text(reply[at + 2]), "reserved", int(reply[at + 1]))
            for at in rows
        ]
        return Reserved(messages, _due(reply[0]))


class TopicPull(CommandBase, frozen=True, gc=False):
    """Delete and return up to `limit` (512) messages that are ready at `max_ms` (None: now). Core: verbs/topic_take.lua."""

    verb: ClassVar[str] = "topic_pull"
    request_id_at: ClassVar[int] = 0

    topic: Name
    max_ms: Milliseconds | None = None
    limit: Limit = 1

    def words(self) -> Sequence[Word]:
        return (self.topic, self.limit, _max(self.max_ms))

    def read(self, reply: Reply) -> list[Message]:
        return [Message(self.topic, text(reply[at]), text(reply[at + 1])) for at in range(0, len(reply), 2)]


class TopicRelease(CommandBase, frozen=True, gc=False):
    """End up to 512 reservations. Returns True for each that existed; queued messages stay unchanged.

    `held` are ids and the ends of their reservations in epoch milliseconds (None: any). `how`: `done` deletes the
    messages, `in` and `at` queue them again, ready after `when_ms` or at that time. Core: verbs/topic.lua.
    """

    verb: ClassVar[str] = "topic_release"
    request_id_at: ClassVar[int] = 0

    topic: Name
    held: Sequence[tuple[str, int | None]]
    how: How | Literal["done"] = "done"
    when_ms: Milliseconds = 0

    def words(self) -> Sequence[Word]:
        pairs = [word for id, deadline in self.held for word in (id, "" if deadline is None else deadline)]
        return (self.topic, self.how, "" if self.how == "done" else self.when_ms, *pairs)

    def read(self, reply: Reply) -> list[bool]:
        return _each(reply)


class TopicReschedule(CommandBase, frozen=True, gc=False):
    """Change when up to 512 messages are ready. Returns False for each that is not queued.

    `how`: after `when_ms` milliseconds (`in`) or at that time in epoch milliseconds (`at`). Core: verbs/topic.lua.
    """

    verb: ClassVar[str] = "topic_reschedule"
    request_id_at: ClassVar[int] = 0

    topic: Name
    ids: Names
    how: How
    when_ms: Milliseconds

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("reschedule messages", self.topic, " ".join(self.ids))

    def words(self) -> Sequence[Word]:
        return (self.topic, self.how, self.when_ms, *self.ids)

    def read(self, reply: Reply) -> list[bool]:
        return _each(reply)


class TopicDelete(CommandBase, frozen=True, gc=False):
    """Delete up to 512 messages, queued or reserved. Returns True for each that existed. Core: verbs/topic.lua."""

    verb: ClassVar[str] = "topic_delete"
    request_id_at: ClassVar[int] = 0

    topic: Name
    ids: Names

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("delete messages", self.topic, " ".join(self.ids))

    def words(self) -> Sequence[Word]:
        return (self.topic, *self.ids)

    def read(self, reply: Reply) -> list[bool]:
        return _each(reply)


class TopicRequeue(CommandBase, frozen=True, gc=False):
    """Queue up to `limit` (1,000) messages again whose reservations ended by `max_ms` (None: now); they are ready at once.

    Core: verbs/topic.lua.
    """

    verb: ClassVar[str] = "topic_requeue"
    request_id_at: ClassVar[int] = 0

    topic: Name
    max_ms: Milliseconds | None = None
    limit: Limit = MAX_MOVED

    def words(self) -> Sequence[Word]:
        return (self.topic, _max(self.max_ms), self.limit)

    def read(self, reply: Reply) -> Requeued:
        return Requeued(int(reply[0]), _due(reply[1]))


class TopicGet(CommandBase, frozen=True, gc=False):
    """Look up to 512 messages up by id. Returns None for each that does not exist. Core: verbs/topic.lua."""

    verb: ClassVar[str] = "topic_get"
    reads: ClassVar[bool] = True

    topic: Name
    ids: Names

    def words(self) -> Sequence[Word]:
        return (self.topic, *self.ids)

    def read(self, reply: Reply) -> list[Message | None]:
        return [
            Message(self.topic, id, text(row[2]), text(row[0]), int(row[1])) if row else None
            for id, row in zip(self.ids, reply, strict=True)
        ]


class CountTopics(CommandBase, frozen=True, gc=False):
    """Count the messages of up to 128 topics. Core: verbs/topic.lua."""

    verb: ClassVar[str] = "topic_counts"
    reads: ClassVar[bool] = True

    topics: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.topics)

    def read(self, reply: Reply) -> list[TopicCounts]:
        return [TopicCounts(text(row[0]), *map(int, row[1:6])) for row in reply]


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind
    for kind in (
        TopicPut,
        TopicReserve,
        TopicPull,
        TopicRelease,
        TopicReschedule,
        TopicDelete,
        TopicRequeue,
        TopicGet,
        CountTopics,
    )
}


def _max(moment_ms: int | None) -> Word:
    return "" if moment_ms is None else moment_ms


def _due(milliseconds: Reply) -> float | None:
    return None if int(milliseconds) == NEVER else int(milliseconds) / 1000


def _each(reply: Reply) -> list[bool]:
    return [bool(one) for one in reply]
