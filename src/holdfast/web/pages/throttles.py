"""Throttles: those of queues and named ones, their jobs, and their limits."""

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.commands.queues import ThrottleFacts
from holdfast.console.configuration import version_of
from holdfast.console.read.queries import Page, Throttle
from holdfast.console.read.throttle_list import ThrottleDetail
from holdfast.errors import UsageError, WrongState
from holdfast.text import counted, duration
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Repeal, TagsBody, View

_NONE, _FOR_EVER = -2, -1


class ThrottlesQuery(msgspec.Struct, frozen=True):
    """The throttles of which queues; which page of named ones (`after`), and of those of queues (`queues_after`)."""

    filter: str = ""
    after: str = ""
    queues_after: str = ""
    first: int = 1
    limit: int = 25


class ThrottlesPage(msgspec.Struct, frozen=True):
    """Pages of the named throttles, and of those of queues, also of queues without a limit."""

    now_ms: int
    named: Page[Throttle]
    queues: Page[Throttle]
    query: ThrottlesQuery


async def throttles(ctx: Context, query: ThrottlesQuery) -> ThrottlesPage:
    """Return pages of throttles."""
    ctx.now_ms = await ctx.console.now_ms()
    pattern = query.filter if "*" in query.filter else f"*{query.filter}*"
    named = await ctx.console.named_throttles(pattern, after=query.after, limit=query.limit)
    queues = await ctx.console.queue_throttles(pattern, after=query.queues_after, limit=query.limit)
    return ThrottlesPage(ctx.now_ms, named, queues, query)


class ThrottleQuery(msgspec.Struct, frozen=True):
    """Which pages of the jobs that hold a slot, and of those that wait for one (`after`)."""

    holders_after: str = ""
    after: str = ""
    first: int = 1
    limit: int = 25


class ThrottlePage(msgspec.Struct, frozen=True):
    """One throttle with the jobs that hold its slots, and those that wait for one."""

    now_ms: int
    detail: ThrottleDetail
    query: ThrottleQuery

    @property
    def tag(self) -> str:
        """The entity tag of its limit."""
        return tag_of(self.detail.throttle.facts)


def tag_of(facts: ThrottleFacts) -> str:
    """Return the entity tag of a limit: its maximum, and whether it has an end."""
    return version_of([facts.maximum, min(facts.ttl_ms, 0)])


async def _tagged(ctx: Context, body: "Limit | One") -> TagsBody:
    facts = await ctx.console.throttle_facts(body.id)
    return TagsBody(tag_of(facts), facts)


async def throttle(ctx: Context, name: str, query: ThrottleQuery) -> ThrottlePage:
    """Return one throttle."""
    ctx.now_ms = await ctx.console.now_ms()
    detail = await ctx.console.throttle_detail(
        name, holders_after=query.holders_after, waiters_after=query.after, limit=query.limit
    )
    return ThrottlePage(ctx.now_ms, detail, query)


# What is done to throttles.


class Limit(Body, frozen=True, kw_only=True):
    """The limit of a throttle: how many of its jobs run at once (0: any number), for how many seconds (0: unchanged).

    `seen` is the maximum that was shown to whoever sets it: if it was changed meanwhile, nothing is done.
    """

    id: str
    maximum: int | None = None
    seconds: float = 0.0
    seen: int | None = None


async def set_limit(ctx: Context, body: Limit) -> Done:
    """Set how many jobs of a throttle run at once."""
    if body.maximum is None and not body.seconds:
        raise UsageError("expected a maximum, or the seconds after which the limit ends")
    before: ThrottleFacts = ctx.matched or await ctx.console.throttle_facts(body.id)
    seen = before.maximum if ctx.matched and body.seen is None else body.seen
    await ctx.console.set_throttle(body.id, body.maximum, body.seconds, seen=seen)
    maximum = before.maximum if body.maximum is None else body.maximum
    text = f"{_shown(body.id)}: {f'at most {maximum} at once' if maximum else 'no limit'}"
    text += f", for {duration(body.seconds)}." if body.seconds else "."
    return _done(text, body.id, True, undo=None if body.seconds else _repeal(body.id, before))


def _repeal(id: str, before: ThrottleFacts) -> Repeal:
    if before.ttl_ms == _NONE:
        return Repeal("throttles", "delete", {"id": id})
    return Repeal("throttles", "set", {"id": id, "maximum": before.maximum})


class One(Body, frozen=True, kw_only=True):
    """One throttle."""

    id: str


async def delete(ctx: Context, body: One) -> Done:
    """Delete the limit of a throttle: its jobs are no longer limited."""
    before = await ctx.console.throttle_facts(body.id)
    existed = await ctx.console.delete_throttle(body.id)
    undo = (
        Repeal("throttles", "set", {"id": body.id, "maximum": before.maximum})
        if before.ttl_ms == _FOR_EVER
        else None
    )
    return _done(
        f"{_shown(body.id)}: {'limit deleted' if existed else 'it had no limit'}.",
        body.id,
        existed,
        undo=undo,
    )


class Slots(One, frozen=True, kw_only=True):
    """The slots that some jobs hold of a throttle."""

    jid: list[str]


async def release(ctx: Context, body: Slots) -> Done:
    """Take slots of a throttle from jobs, which continue to run."""
    count = await ctx.console.release_throttle(body.id, *body.jid)
    if len(body.jid) == 1 and not count:
        raise WrongState(f"job {body.jid[0]:.200} holds no slot of {body.id:.200}", "HF_WRONG_STATE")
    return _done(
        f"{counted(count, 'slot')} of {_shown(body.id)} released.", body.id, count > 0, jids=body.jid
    )


def _shown(id: str) -> str:
    queue = Throttle(id, ThrottleFacts(0, 0, 0)).queue
    return f"Queue {queue}" if queue else f"Throttle {id}"


def _done(
    text: str, id: str, is_changed: bool, *, undo: Repeal | None = None, jids: Sequence[str] = ()
) -> Done:
    queue = Throttle(id, ThrottleFacts(0, 0, 0)).queue
    keys = (
        "throttles",
        "queues",
        *([f"queue:{queue}"] if queue else []),
        *(f"job:{jid}" for jid in jids[:50]),
    )
    return Done(text=text, changed=int(is_changed), keys=keys, undo=undo)


VIEWS: Final = (
    View(
        path="/throttles",
        template="throttles.html",
        load=throttles,
        query=ThrottlesQuery,
        summary="Pages of throttles.",
    ),
    View(
        path="/throttles/{name}",
        template="throttle.html",
        load=throttle,
        query=ThrottleQuery,
        summary="One throttle.",
    ),
)
ACTIONS: Final = (
    ActionRoute(
        noun="throttles",
        verb="set",
        body=Limit,
        run=set_limit,
        role="admin",
        tagged=_tagged,
        place="id",
        summary="Set the limit of a throttle.",
    ),
    ActionRoute(
        noun="throttles",
        verb="delete",
        body=One,
        run=delete,
        role="admin",
        tagged=_tagged,
        summary="Delete the limit of a throttle.",
    ),
    ActionRoute(
        noun="throttles",
        verb="release",
        body=Slots,
        run=release,
        summary="Release slots of a throttle that jobs hold.",
    ),
)
