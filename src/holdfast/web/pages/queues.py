"""Queues, and what is done to them."""

from typing import Final

import msgspec

from holdfast.console.queries import Page, QueueDetail
from holdfast.models import Counts
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Repeal, View


class QueuesQuery(msgspec.Struct, frozen=True):
    """Which queues, in which order."""

    filter: str = "*"
    sort: str = "name"
    after: str = ""
    limit: int = 25


class QueuesPage(msgspec.Struct, frozen=True):
    """A page of queues."""

    now_ms: int
    queues: Page[Counts]
    query: QueuesQuery


async def queues(ctx: Context, query: QueuesQuery) -> QueuesPage:
    """Return a page of the queues whose name matches a glob; text without `*` is found anywhere in the name."""
    ctx.now_ms = await ctx.console.now_ms()
    pattern = query.filter if "*" in query.filter else f"*{query.filter}*"
    found = await ctx.console.queues(pattern, sort=query.sort, after=query.after, limit=query.limit)
    return QueuesPage(ctx.now_ms, found, query)


class QueueQuery(msgspec.Struct, frozen=True):
    """Which tab of a queue, of which day (epoch milliseconds; 0: today)."""

    tab: str = "stats"
    day: int = 0
    after: str = ""
    limit: int = 25


class QueuePage(msgspec.Struct, frozen=True):
    """One queue."""

    now_ms: int
    name: str
    detail: QueueDetail
    query: QueueQuery


async def queue(ctx: Context, name: str, query: QueueQuery) -> QueuePage:
    """Return one queue."""
    ctx.now_ms = await ctx.console.now_ms()
    return QueuePage(ctx.now_ms, name, await ctx.console.queue(name, day_ms=query.day), query)


# What is done to queues.


class Queues(Body, frozen=True, kw_only=True):
    """Some queues."""

    name: list[str]


class Pause(Queues, frozen=True, kw_only=True):
    """Queues to pause, for so many seconds (0: until they are resumed)."""

    seconds: float = 0.0


async def pause(ctx: Context, body: Pause) -> Done:
    """Pause queues."""
    count = await ctx.console.pause(*body.name, why=body.reason, seconds=body.seconds)
    return _done(f"{_named(body.name)} paused.", body, count, Repeal("queues", "resume", {"name": body.name}))


async def resume(ctx: Context, body: Queues) -> Done:
    """Resume queues."""
    count = await ctx.console.resume(*body.name)
    return _done(f"{_named(body.name)} resumed.", body, count, Repeal("queues", "pause", {"name": body.name}))


def _named(names: list[str]) -> str:
    return f"Queue {names[0]}" if len(names) == 1 else f"{len(names)} queues"


def _done(text: str, body: Queues, count: int, undo: Repeal | None) -> Done:
    return Done(
        text=text, changed=count, keys=("queues", *(f"queue:{name}" for name in body.name)), undo=undo
    )


VIEWS: Final = (
    View(path="/queues", template="queues.html", load=queues, query=QueuesQuery, summary="A page of queues."),
    View(path="/queues/{name}", template="queue.html", load=queue, query=QueueQuery, summary="One queue."),
)
ACTIONS: Final = (
    ActionRoute(noun="queues", verb="pause", body=Pause, run=pause, summary="Pause queues."),
    ActionRoute(noun="queues", verb="resume", body=Queues, run=resume, summary="Resume queues."),
)
