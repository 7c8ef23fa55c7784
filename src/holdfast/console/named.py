"""What operators see and do with single things by name: queues of a pattern, a recurring job, a topic, a running job."""

from collections.abc import Sequence
from typing import Unpack

import msgspec

from holdfast.client.descriptors import AnyClient, CommandMethod, PlanMethod, StepMethod
from holdfast.client.recur_options import Changes, make_update
from holdfast.client.stacks import PATIENCE, LiveStack, ask_worker
from holdfast.client.topics.messages import body_of, moment_of
from holdfast.client.workers import is_meant
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.dependencies import Depend
from holdfast.commands.queues import QueueNames
from holdfast.commands.recurring import RecurGet, RecurringFacts, RecurTag
from holdfast.commands.topics import (
    CountTopics,
    Message,
    TopicCounts,
    TopicDelete,
    TopicGet,
    TopicPull,
    TopicPut,
)
from holdfast.commands.views import ListSet
from holdfast.commands.workers import WorkerFacts
from holdfast.console import job_lists
from holdfast.console.actions import by, edit_recurring
from holdfast.console.filters import glob
from holdfast.console.namespace_queries import recurring
from holdfast.console.queries import all_workers
from holdfast.console.unknown import unknown
from holdfast.errors import HoldfastError
from holdfast.models import Counts
from holdfast.settings import MAX_BATCH, check_each, check_name, check_names, check_whole
from holdfast.wire.plans import Plan, Planner, counts_of, in_slices


class TopicDetail(msgspec.Struct, frozen=True):
    """A topic: its counts, its first queued messages by ready time, and its first reserved ones by deadline."""

    counts: TopicCounts
    queued: tuple[Message, ...]
    reserved: tuple[Message, ...]


class NamedVerbs:
    """The queries and actions of operators on things by name."""

    _client: AnyClient
    actor: str

    @PlanMethod
    def queue_names(self, ask: Planner, *names: str) -> Plan[list[str]]:
        """The queues of these names and globs, each once. Raises HoldfastError for a name or glob without a queue."""
        return queue_names(ask, names)

    @PlanMethod
    def known_queue(self, ask: Planner, name: str) -> Plan[str]:
        """The name of a queue that is known. Raises HoldfastError if it is not."""
        return known_queue(ask, name)

    @PlanMethod
    def counts(self, ask: Planner, *queues: str) -> Plan[list[Counts]]:
        """The counts of these queues, also of unknown ones."""
        return counts_of(ask, check_names("queue", queues, 1 << 40))

    @PlanMethod
    def workers_of(self, ask: Planner, *names: str) -> Plan[list[WorkerFacts]]:
        """The workers of these names, each of one worker or of a worker command. Raises HoldfastError if one is not known."""
        return workers_of(ask, names)

    @PlanMethod
    def recurring_job(self, ask: Planner, jid: str) -> Plan[RecurringFacts]:
        """One recurring job. Raises HoldfastError if it is not known."""
        return recurring_job(ask, jid)

    @CommandMethod
    def update_recurring(self, jid: str, **changes: Unpack[Changes]) -> Command[bool]:
        """Change attributes of a recurring job, checked as `update` of its handle does. Raises UsageError, JobNotFound."""
        return edit_recurring(self.actor, make_update(self._client.settings, check_name("jid", jid), changes))

    @CommandMethod
    def tag_recurring(self, jid: str, *tags: str, remove: bool = False) -> Command[list[str]]:
        """Add tags to the jobs that a recurring job puts from now on, or remove some. Returns all of them."""
        names = check_each("tag", tags, MAX_BATCH)
        command = RecurTag("remove" if remove else "add", check_name("jid", jid), names)
        what = "untag recurring" if remove else "tag recurring"
        return by(self.actor, what, jid, ", ".join(names), command)

    @PlanMethod
    def topic(self, ask: Planner, name: str, limit: int = 25) -> Plan[TopicDetail]:
        """One topic with its first messages. Raises HoldfastError if it holds none."""
        return topic(ask, name, check_whole("limit", limit, 1, MAX_BATCH))

    @CommandMethod
    def put_message(
        self, topic: str, id: str, body: str, delay: float | None = None, *, at: float | None = None
    ) -> Command[bool]:
        """Put a message into a topic, ready in `delay` seconds or `at` an epoch second. False if the id exists."""
        how, when = moment_of(delay, at)
        words = (check_name("id", id), when, body_of(body, self._client.settings.max_data))
        return then(TopicPut(check_name("topic", topic), how, words), lambda added: added[0])

    @CommandMethod
    def delete_messages(self, topic: str, *ids: str) -> Command[list[bool]]:
        """Delete messages, queued or reserved. Returns whether each existed."""
        names = check_names("id", ids, MAX_BATCH)
        return by(
            self.actor,
            "delete messages",
            topic,
            " ".join(names),
            TopicDelete(check_name("topic", topic), names),
        )

    @CommandMethod
    def pull_messages(self, topic: str, limit: int = 1) -> Command[list[Message]]:
        """Take the earliest messages that are ready, and delete them. This is not audited: it is what consumers do."""
        return TopicPull(check_name("topic", topic), None, check_whole("limit", limit, 1, MAX_BATCH))

    @PlanMethod
    def completed(self, ask: Planner, *, after: str = "", limit: int = 25) -> Plan[job_lists.CompletedPage]:
        """A page of completed jobs with their results, the latest first, and how long they are kept."""
        return job_lists.completed(ask, after, limit)

    @PlanMethod
    def tracked(
        self, ask: Planner, state: str = "", *, after: str = "", limit: int = 25
    ) -> Plan[job_lists.TrackedPage]:
        """A page of tracked jobs, with how many are in each state; marks whose job is gone are `expired`."""
        return job_lists.tracked(ask, state, after, limit)

    @PlanMethod
    def family(self, ask: Planner, jid: str, most: int = job_lists.MOST_RELATIVES) -> Plan[job_lists.Family]:
        """The jobs around one that it depends on or that depend on it, over any number of steps, `most` at most."""
        return job_lists.family(ask, jid, most)

    @CommandMethod
    def undepend(self, jid: str, *parents: str) -> Command[int]:
        """Let a job wait for some jobs no longer. Raises JobNotFound, WrongState."""
        names = check_names("parent", parents, MAX_BATCH)
        command = Depend(check_name("jid", jid), names, "remove")
        return by(self.actor, "undepend", jid, " ".join(names), command)

    @StepMethod
    def stack(self, jid: str, timeout: float = PATIENCE) -> Steps[LiveStack]:
        """Where a running job is in its code. Raises JobNotFound, WrongState when it is not running, TimeoutError."""
        found: LiveStack = yield ask_worker(self._client, jid, timeout)
        return found


def queue_names(ask: Planner, given: Sequence[str]) -> Plan[list[str]]:
    """Return the queues of names and globs, each once. A name that is that of a queue is no glob."""
    known = yield from ask(QueueNames())
    all_of = frozenset(known)
    found: dict[str, None] = {}
    for name in check_each("queue", given):
        matches = glob(name)
        some = [name] if name in all_of else [one for one in known if matches(one)] if "*" in name else []
        if not some and "*" in name:
            raise HoldfastError(f'no queue matches "{name:.200}"')
        if not some:
            raise unknown("queue", name, known)
        found.update(dict.fromkeys(some))
    return list(found)


def known_queue(ask: Planner, name: str) -> Plan[str]:
    """Return the name of a queue that is known. Raises HoldfastError if it is not."""
    known = yield from ask(QueueNames())
    if check_name("queue", name) not in known:
        raise unknown("queue", name, known)
    return name


def workers_of(ask: Planner, given: Sequence[str]) -> Plan[list[WorkerFacts]]:
    """Return the workers that names stand for, each once."""
    known = yield from all_workers(ask)
    found: dict[str, WorkerFacts] = {}
    for name in check_each("worker", given):
        some = {worker.name: worker for worker in known if is_meant(name, worker.name)}
        if not some:
            raise unknown("worker", name, [worker.name for worker in known])
        found |= some
    return list(found.values())


def recurring_job(ask: Planner, jid: str) -> Plan[RecurringFacts]:
    """Return one recurring job. Raises HoldfastError if it is not known."""
    [found] = yield from ask(RecurGet((check_name("jid", jid),)))
    if found is None:
        page = yield from recurring(ask, "*", "", MAX_BATCH)
        raise unknown("recurring job", jid, [one.jid for one in page.rows])
    return found


def topic(ask: Planner, name: str, limit: int) -> Plan[TopicDetail]:
    """Return one topic with its first messages. Raises HoldfastError if it holds none."""
    [found] = yield from ask(CountTopics((check_name("topic", name),)))
    if not found.queued and not found.reserved:
        page = yield from ask(ListSet("topics", "", None, MAX_BATCH))
        raise unknown("topic", name, page.names)
    queued = yield from _messages(ask, "queued", name, limit)
    return TopicDetail(found, queued, (yield from _messages(ask, "reserved", name, limit)))


def _messages(ask: Planner, state: str, topic: str, limit: int) -> Plan[tuple[Message, ...]]:
    page = yield from ask(ListSet(state, topic, None, limit))
    found: list[Message | None] = []
    yield from in_slices(ask, lambda ids: TopicGet(topic, ids), page.names, found)
    return tuple(one for one in found if one is not None)
