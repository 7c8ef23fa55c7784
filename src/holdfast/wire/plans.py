"""Plans and their runners.

A plan is a generator that yields steps (lists of calls) and is sent their replies. Plans are the same for sync and async
clients. A refusal by the store is an `ErrorReply` among the replies; a `LinkError` is thrown into the plan when a step did
not complete.

Runners pass the steps of a plan to a link, and the replies back to the plan; one blocks, one is awaited.

What workers use of a client (an async client: awaited where it sends):

    client.root                      the namespace's root, `hf:{<namespace>}:`
    client.settings                  the frozen Settings
    client.shard                     `.info` (CoreInfo: heartbeat, grace) once met; `.wake_key(queue)`,
                                     `.result_channel(jid)`, `.worker_channel(worker)`
    client.run(command)              one command; async: gathered with the other calls of this loop iteration
    client.run_all([command, …])     one pipeline; the result or the HoldfastError of each, in order
    client.runner.run(plan)          any plan; `exchange(client.shard, command)` is the plan of one command
    client.link.wake_up()            a WakeUp: `wait(keys, timeout) -> key | None`; sync also `send(keys, timeout)`,
                                     `fileno()` for a selector, `receive()`, and `interrupt()`
    client.link.listener()           a Listener: `subscribe(*channels)`, `receive(timeout) -> (channel, bytes) | None`

A wake-up or listener is a connection of its own. They raise ConnectionLost and connect again at the next use. Links,
request ids and jids may be used after a fork: a child opens its own connections and makes new ids.
"""

import re
from collections.abc import Callable, Generator, Sequence
from typing import Final, Protocol, TypeVar, cast

import msgspec

from holdfast.commands import Command, Reply, Word
from holdfast.commands.attributes import Tracked
from holdfast.commands.failures import (
    MAX_UNFAILED,
    START,
    Failed,
    FailureGroup,
    FailureGroups,
    Failures,
    Unfail,
)
from holdfast.commands.jobs import JobGet
from holdfast.commands.outcomes import MAX_OUTCOMES, Timeout
from holdfast.commands.queues import CountQueues, Peek, QueueNames
from holdfast.commands.views import ListSet
from holdfast.errors import JobNotFound, Refused, WrongState
from holdfast.models import Counts, JobFacts
from holdfast.settings import MAX_BATCH

R = TypeVar("R")
S = TypeVar("S")

TOO_MANY: Final = "HF_TOO_MANY"
COUNTED_AT_ONCE: Final = 64
_THROWN = re.compile(r"(?:[\w.]+:\d+: )?(.*) script: (?:\w+, )?on @[\w.]+:\d+\.", re.DOTALL)
"""The text of an error thrown in a script: the store adds the line before and the script after it."""

_RIGHTS: Final = frozenset({"NOPERM", "NOAUTH", "WRONGPASS"})
_DENIED_INSIDE: Final = ("ACL failure in script", "can't run this command or subcommand")
"""The error text for a forbidden command inside the core: of Valkey and Redis from 7.2, and of Redis 7.0."""

Call = tuple[Word, ...]
Replies = list[Reply]


class Step(msgspec.Struct, frozen=True, gc=False):
    """Calls that are sent together on one connection, after `pause` seconds; without calls, with a pause, only that."""

    calls: list[Call]
    pause: float = 0.0


class ErrorReply(msgspec.Struct, frozen=True, gc=False):
    """An error reply of the store: its whole text."""

    text: str

    @property
    def code(self) -> str:
        """The first word: `OOM`, `BUSY`, `HF_LEASE_LOST`…"""
        return self.text.partition(" ")[0]

    @property
    def is_denied(self) -> bool:
        """Whether the user of the connection lacks a permission, for this call or for a command inside the core."""
        return self.code in _RIGHTS or any(text in self.text for text in _DENIED_INSIDE)

    @property
    def sentence(self) -> str:
        """The text for users, without the line of the script."""
        thrown = _THROWN.fullmatch(self.text)
        return thrown[1] if thrown else self.text


def error_reply(error: Exception) -> ErrorReply:
    """Return the error text as the store sent it: the driver removes some code words."""
    code = getattr(error, "status_code", None)
    text = str(error)
    if isinstance(code, str) and code != "ERR" and not text.startswith(code):
        return ErrorReply(f"{code} {text}")
    return ErrorReply(text)


class LinkError(Exception):
    """A step that did not complete. `sent`: some of it may have reached the store.

    `after`: it was not tried, because the store is unavailable; try again after this many seconds. `refused`: nothing listens
    there, or the name is not known.
    """

    def __init__(
        self,
        detail: str,
        *,
        sent: bool = True,
        timed_out: bool = False,
        after: float = 0.0,
        refused: bool = False,
    ) -> None:
        super().__init__(detail)
        self.refused = refused
        self.after = after
        self.sent = sent
        self.timed_out = timed_out


def is_demoted(replies: Replies) -> bool:
    """Return whether the node refuses writes: a new connection may lead to its successor."""
    return any(type(reply) is ErrorReply and reply.code == "READONLY" for reply in replies)


Plan = Generator[Step, Replies, R]


class Planner(Protocol):
    """A function that turns a command into a plan: `exchange`, bound to a shard."""

    def __call__(self, command: Command[R]) -> Plan[R]: ...


def in_slices(
    ask: Planner, command_of: Callable[[Sequence[S]], Command[list[R]]], names: Sequence[S], found: list[R]
) -> Plan[None]:
    """Call `ask` for slices of up to 512 `names`, smaller ones if the core refuses a call as too large, until a reply is empty.

    Appends the replies to `found` as they come. Raises any other refusal.
    """
    at, size = 0, MAX_BATCH
    while at < len(names):
        some = names[at : at + size]
        try:
            results = yield from ask(command_of(some))
        except Refused as refused:
            if refused.code != TOO_MANY or len(some) == 1:
                raise
            size = len(some) // 2
            continue
        if not results:
            break
        found += results
        at, size = at + len(some), min(2 * size, MAX_BATCH)


def found_jobs(ask: Planner, jids: Sequence[str]) -> Plan[list[JobFacts | None]]:
    """Return the facts of any number of jobs, None for an unknown one."""
    found: list[JobFacts | None] = []
    yield from in_slices(ask, JobGet, jids, found)
    return found


def peeked_jobs(ask: Planner, queue: str, offset: int, count: int) -> Plan[list[JobFacts]]:
    """Return the facts of up to `count` jobs that would be popped next, without the first `offset`."""
    found: list[JobFacts] = []
    places = range(offset, offset + count)
    yield from in_slices(ask, lambda some: Peek(queue, some[0], len(some)), places, found)
    return found


def failed_jobs(ask: Planner, group: str, offset: int, count: int) -> Plan[tuple[int, list[JobFacts]]]:
    """Return the size of a failure group, and the facts of one page of its jobs that still exist."""
    total, jids = yield from ask(Failed(group, offset, count))
    if not jids:
        return total, []
    found = yield from found_jobs(ask, jids)
    return total, [facts for facts in found if facts is not None]


def all_counts(ask: Planner) -> Plan[list[Counts]]:
    """Return the counts of every known queue, in order of first use."""
    names = yield from ask(QueueNames())
    return (yield from counts_of(ask, names))


def counts_of(ask: Planner, names: Sequence[str]) -> Plan[list[Counts]]:
    """Return the counts of these queues, in calls that are short even if all of them are busy."""
    rows: list[Counts] = []
    for at in range(0, len(names), COUNTED_AT_ONCE):
        rows += yield from ask(CountQueues(names[at : at + COUNTED_AT_ONCE]))
    return rows


def failed_counts(ask: Planner) -> Plan[dict[str, int]]:
    """Return how many jobs each failure group holds."""
    found: dict[str, int] = {}
    cursor: str | None = START
    while cursor is not None:
        cursor, some = yield from ask(Failures(cursor))
        found.update(some)
    return found


def all_failure_groups(ask: Planner) -> Plan[list[FailureGroup]]:
    """Return every failure group, the one with the latest failure first."""
    found: dict[str, FailureGroup] = {}
    cursor: str | None = START
    while cursor is not None:
        cursor, some = yield from ask(FailureGroups(cursor))
        found.update({group.name: group for group in some})
    return sorted(found.values(), key=lambda group: (-group.last_ms, group.name))


def unfailed(ask: Planner, queue: str, group: str, count: int) -> Plan[int]:
    """Put up to `count` failed jobs of `group` into `queue`, in steps. Returns how many."""
    moved = 0
    while moved < count:
        step = min(count - moved, MAX_UNFAILED)
        some = yield from ask(Unfail(queue, group, step))
        if not some:
            break
        moved += some
    return moved


def stopped(ask: Planner, queue: str) -> Plan[int]:
    """End the leases of all running jobs of a queue, which should be paused. Returns how many."""
    count = 0
    for state in ("running", "stalled"):
        after, more = None, True
        while more:
            page = yield from ask(ListSet(state, queue, after, MAX_OUTCOMES))
            after, more = page.next, page.next is not None
            if page.names:
                count += yield from _timed_out(ask, page.names)
    return count


def _timed_out(ask: Planner, jids: Sequence[str]) -> Plan[int]:
    """End leases; one by one if the call for all is refused because one of them has ended."""
    try:
        return (yield from ask(Timeout(jids)))
    except (WrongState, JobNotFound):
        if len(jids) == 1:
            return 0
    count = 0
    for jid in jids:
        count += yield from _timed_out(ask, (jid,))
    return count


def tracked_jobs(ask: Planner) -> Plan[tuple[list[JobFacts], list[str]]]:
    """Return the facts of the tracked jobs, those tracked longest first, and the tracked jids without a job."""
    marks = yield from ask(Tracked())
    there = [mark.jid for mark in marks if mark.exists]
    found = yield from found_jobs(ask, there)
    jobs = [facts for facts in found if facts is not None]
    return jobs, [mark.jid for mark in marks if not mark.exists]


class SyncSender(Protocol):
    """The part of a link that a Runner uses."""

    def send(self, step: Step) -> Replies: ...


class AsyncSender(Protocol):
    """The part of a link that an AsyncRunner uses."""

    async def send(self, step: Step) -> Replies: ...


class Runner:
    """Run plans in blocking code."""

    def __init__(self, link: SyncSender) -> None:
        self.link = link

    def run(self, plan: Plan[R]) -> R:
        """Run a plan to its end and return its result."""
        send = self.link.send
        try:
            step = next(plan)
            while True:
                try:
                    replies = send(step)
                except LinkError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(replies)
        except StopIteration as done:
            return cast("R", done.value)


class AsyncRunner:
    """Run plans on an event loop."""

    def __init__(self, link: AsyncSender) -> None:
        self.link = link

    async def run(self, plan: Plan[R]) -> R:
        """Run a plan to its end and return its result."""
        send = self.link.send
        try:
            step = next(plan)
            while True:
                try:
                    replies = await send(step)
                except LinkError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(replies)
        except StopIteration as done:
            return cast("R", done.value)
