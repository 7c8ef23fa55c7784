"""Read the sets of the store page by page, for both clients."""

from typing import Any, cast

from holdfast.client.descriptors import AsyncHandle, CommandMethod, PlanMethod, SyncHandle
from holdfast.client.explanation import Explanation, explained
from holdfast.commands import Command
from holdfast.commands.failures import FailureGroup
from holdfast.commands.views import NAMELESS, SETS, Cursor, Direction, ListSet, Page
from holdfast.errors import UsageError
from holdfast.settings import MAX_BATCH, check_name, check_page, check_whole
from holdfast.wire.plans import Plan, Planner, all_failure_groups, unfailed


def _view(state: str, doc: str) -> PlanMethod[..., list[str]]:
    def make(view: Any, ask: Planner, offset: int = 0, count: int = 25) -> Plan[list[str]]:
        return _page(ask, state, view.name, *check_page(offset, count))

    make.__doc__ = doc + " Leaves out the first `offset`, answers up to `count` (25). Core: verbs/list.lua."
    return PlanMethod(make)


class QueueJobsVerbs:
    """The jids of one queue by state, the earliest first. What waits is seen by `queue.peek`."""

    _client: Any

    def __init__(self, name: str, client: Any) -> None:
        self.name = name
        self._client = client

    running = _view("running", "Jobs that somebody holds, the lease that ends first before the others.")
    stalled = _view(
        "stalled", "Jobs whose lease ended unnoticed, the one that ended first before the others."
    )
    scheduled = _view("scheduled", "Jobs that are due later, the next one first.")
    depends = _view("depends", "Jobs that wait for other jobs, the one that has waited longest first.")
    throttled = _view("throttled", "Jobs set aside by a throttle, the one set aside longest ago first.")
    recurring = _view("recurring", "Recurring jobs of this queue, the one that is due next first.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class QueueJobs(QueueJobsVerbs, SyncHandle):
    """The jobs of a queue of a blocking client: `queue.jobs.running()`."""


class AsyncQueueJobs(QueueJobsVerbs, AsyncHandle):
    """The jobs of a queue of an async client: `await queue.jobs.running()`."""


def _page(ask: Planner, state: str, queue: str, offset: int, count: int) -> Plan[list[str]]:
    """The names from place `offset` on, read in pages, because a set is read behind a member, not from a place."""
    found: list[str] = []
    seen, after = 0, None
    while len(found) < count:
        size = min(offset + count - seen, MAX_BATCH)
        page = yield from ask(ListSet(state, queue, after, size))
        found += page.names[max(offset - seen, 0) :]
        seen, after = seen + len(page.names), page.next
        if after is None:
            break
    return found


MAX_UNFAILED = 1_000_000


class ListVerbs:
    """What can be listed."""

    _client: Any

    @CommandMethod
    def listing(
        self,
        set: str,
        name: str = "",
        after: Cursor | None = None,
        count: int = 100,
        *,
        direction: Direction = "",
    ) -> Command[Page]:
        """One page of a set, up to 512 entries, behind the cursor `after`; its `next` is the cursor of the following page.

        `set` is waiting, running, stalled, scheduled, depends, throttled, recurring or failed (of the queue `name`), group
        (a failure group), tagged (a tag), holders or pending (of a throttle), queued or reserved (messages of a topic),
        completed, tracked, workers, queues or topics.
        Waiting jobs come in the order of pops. `direction` is `up` or `down`, the set's own when left out: the newest
        first for failed, completed and tracked jobs. Raises UsageError. Core: verbs/list.lua.
        """
        if not isinstance(set, str) or set not in SETS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"there is no set {set!r}: name one of {', '.join(sorted(SETS))}")
        whose = "" if set in NAMELESS else check_name("name", name)
        return ListSet(
            set,
            whose,
            check_cursor(after),
            check_whole("count", count, 1, MAX_BATCH),
            check_direction(direction),
        )

    @CommandMethod
    def explain(self, jid: str) -> Command[Explanation]:
        """Say why a job runs or does not: its state, one sentence, and ordered checks, all of one instant.

        A job that is not there is no error: its `exists` is False. Raises UsageError. Core: verbs/explain.lua.
        """
        return explained(check_name("jid", jid), self._client.settings.flags)

    @PlanMethod
    def failure_groups(self, ask: Planner) -> Plan[list[FailureGroup]]:
        """Every failure group, the latest failure first: its size, first and last failure, newest jid, and how many
        failed in each of the last 48 hours. Core: verbs/inspect.lua.
        """
        return all_failure_groups(ask)

    @PlanMethod
    def unfail(self, ask: Planner, group: str, queue: str, count: int = 500) -> Plan[int]:
        """Put up to `count` failed jobs of `group` to work in `queue`, the oldest failures first; answers how many.

        Their retries are renewed; priority, data and history stay. Raises UsageError, StoreFull. Core: verbs/unfail.lua.
        """
        check_whole("count", count, 1, MAX_UNFAILED)
        return unfailed(ask, check_name("queue", queue), check_name("group", group), count)


def check_direction(direction: Direction) -> Direction:
    """Return which way a list is read, "" for its own. Raises UsageError."""
    if direction not in ("", "up", "down"):
        raise UsageError(f"direction is up or down, not {direction!r}")
    return direction


def check_cursor(after: object) -> Cursor | None:
    """Return a cursor as pages give it: a score and a name. Raises UsageError."""
    if after is None:
        return None
    pair: tuple[Any, ...] = tuple(cast("Any", after)) if isinstance(after, (tuple, list)) else ()
    if len(pair) != 2:
        raise UsageError(f"after is the next of a page, a score and a name, not {after!r:.80}")
    return check_name("after", pair[0]), check_name("after", pair[1])
