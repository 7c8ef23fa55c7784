"""`queue.jobs`: the jids of a queue by state, in both colours."""

from typing import Any

from holdfast.client.colours import AsyncHandle, Planned, SyncHandle
from holdfast.commands.listing import ListSet
from holdfast.settings import MAX_BATCH, check_page
from holdfast.wire.plans import Ask, Plan


def _view(state: str, doc: str) -> Planned[..., list[str]]:
    def make(view: Any, ask: Ask, offset: int = 0, count: int = 25) -> Plan[list[str]]:
        return _page(ask, state, view.name, *check_page(offset, count))

    make.__doc__ = (
        doc + " Leaves out the first `offset`, answers up to `count` (25). Core: verbs/listing.lua."
    )
    return Planned(make)


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


def _page(ask: Ask, state: str, queue: str, offset: int, count: int) -> Plan[list[str]]:
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
