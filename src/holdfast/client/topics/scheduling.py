"""What can be asked of all topics, said once for both colours: the functions of older clients, and what there is."""

import os
from threading import Lock
from typing import Any, Final

from holdfast.client.colours import PlanAsked, Planned, Verb
from holdfast.client.named import Named
from holdfast.client.topics.adopting import PREFIX, adopted
from holdfast.client.topics.messages import body_of, epoch_ms
from holdfast.client.topics.topic import SHORTEST, make_release, make_reserve, requeued, upto
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
from holdfast.settings import MAX_BATCH, check_callable, check_name, check_seconds
from holdfast.wire.plans import Ask, Plan

LONGEST: Final = 3600.0


class SchedulerVerbs(Named):
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
            needed = type(self).__name__.replace("Scheduler", "Client")
            raise UsageError(
                f"client: a {type(self).__name__} takes one of holdfast.{needed}, not {client!r}"
            )
        self._client = client
        self.ttr = check_seconds("ttr", ttr, SHORTEST)
        self.reserve_interval = check_seconds("reserve_interval", reserve_interval, 0.01, LONGEST)
        self.requeue_interval = check_seconds("requeue_interval", requeue_interval, 0.01, LONGEST)
        self.on_error = None if on_error is None else check_callable("on_error", on_error)
        self._subscriptions: dict[str, Any] = {}
        self._lock = Lock()
        self._pid = os.getpid()

    @Verb
    def put(self, topic: str, id: str, body: object, expiration: float) -> Command[int]:
        """Put a message that is ready at the epoch second `expiration`; 1, or 0 if the id is there. Core: verbs/topic.lua."""
        when = epoch_ms("expiration", expiration)
        words = (check_name("id", id), when, body_of(body, self._client.settings.max_data))
        return then(TopicPut(check_name("topic", topic), "at", words), _number)

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

    @Planned
    def adopt(self, ask: Ask, topic: str, prefix: str = PREFIX) -> Plan[int]:
        """Take the messages of an older scheduler over, from its own keys on the same store; how many.

        Their keys are `<prefix>JOBS__<topic>` and so on; times in seconds and in milliseconds are told apart by their size.
        What is reserved by a program of then stays, unless that is over. It may be done again at any time, so while older
        programs still put. Raises UsageError for a topic that cannot be named here. Core: verbs/topic.lua.
        """
        return adopted(self._client.shard, ask, check_name("topic", topic), check_name("prefix", prefix))

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
