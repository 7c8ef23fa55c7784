"""Failed jobs by group: the groups, one of them with what its jobs share, and what is done to all jobs of a group."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from holdfast.commands.failures import FailureGroup
from holdfast.commands.job_rows import JobRow
from holdfast.commands.operations import Action
from holdfast.console.health.snooze import GROUP
from holdfast.console.operations.operations import Operation
from holdfast.console.operations.spec import Spec, patch_of
from holdfast.console.page_paths import with_query
from holdfast.console.read.failure_list import FailureList, failed_of, hours_of
from holdfast.console.read.job_queries import Shared
from holdfast.console.search.filter_values import Exact
from holdfast.console.search.search import SearchPage
from holdfast.errors import OperationNotFound, Refused, UnknownName
from holdfast.text import counted, name_or_count
from holdfast.web.context import Context
from holdfast.web.pages.job_actions import Change, change
from holdfast.web.views import ActionRoute, Body, Done, Question, Repeal, View

_DATA: Final = "data."


class FailuresQuery(msgspec.Struct, frozen=True):
    """Which groups: a part of their name, or a glob; of one queue; with a failure in the last hours; in which order."""

    filter: str = ""
    queue: str = ""
    hours: float = 0.0
    sort: str = "-latest"
    after: str = ""
    first: int = 1
    limit: int = 25


class FailuresPage(msgspec.Struct, frozen=True):
    """A page of failure groups, and the failures in each of the last 48 hours of those with most of them.

    `muted` are those of the page that the overview leaves out until they grow.
    """

    now_ms: int
    found: FailureList
    chart: dict[str, Any]
    query: FailuresQuery
    muted: tuple[str, ...] = ()


async def failures(ctx: Context, query: FailuresQuery) -> FailuresPage:
    """Return a page of failure groups."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.failure_list(
        query.filter if "*" in query.filter else f"*{query.filter}*",
        queue=query.queue,
        within=query.hours * 3600,
        sort=query.sort,
        after=query.after,
        limit=query.limit,
    )
    rows = tuple(
        msgspec.structs.replace(line, message=ctx.site.mask.text(line.message)) for line in found.page.rows
    )
    found = msgspec.structs.replace(found, page=msgspec.structs.replace(found.page, rows=rows))
    muted = await _muted(ctx, [line.group for line in found.page.rows])
    return FailuresPage(ctx.now_ms, found, chart_of(found.busiest), query, muted)


async def _muted(ctx: Context, groups: Sequence[FailureGroup]) -> tuple[str, ...]:
    known = await ctx.console.snoozes()
    return tuple(group.name for group in groups if any(one.mutes(group) for one in known))


_COLORS: Final = ("failed", "waiting", "throttled", "scheduled", "depends")


def chart_of(groups: Sequence[FailureGroup]) -> dict[str, Any]:
    """Return the failures in each of the last 48 hours as a chart of one line for each group; {} if there is none."""
    hours = [hours_of(one) for one in groups]
    if not hours:
        return {}
    series = [
        {"label": group.name, "color": color, "values": [count for _, count in found]}
        for group, color, found in zip(groups, _COLORS, hours, strict=False)
    ]
    return {"x": [when // 1000 for when, _ in hours[0]], "series": series, "unit": " an hour"}


class FailureQuery(msgspec.Struct, frozen=True):
    """Which of its messages is shown; a job that was retried as a probe; the operation that changed the data; which page."""

    message: str = ""
    probe: str = ""
    edited: str = ""
    after: str = ""
    first: int = 1
    limit: int = 25


class FailurePage(msgspec.Struct, frozen=True):
    """One failure group: its messages by how often they occur, what its jobs share, one failure whole, and its jobs.

    `probe` is the job that was retried as a probe, `edited` the operation that changed the data of all.
    """

    now_ms: int
    group: FailureGroup
    filter: str
    messages: tuple[tuple[str, int], ...]
    shares: tuple[Shared, ...]
    latest: JobRow | None
    chart: dict[str, Any]
    jobs: SearchPage
    query: FailureQuery
    probe: JobRow | None = None
    edited: Operation | None = None
    is_muted: bool = False


async def failure(ctx: Context, name: str, query: FailureQuery) -> FailurePage:
    """Return one failure group, with a page of its jobs, the newest failure first."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.failure(name)
    filter = failed_of(name)
    jobs = await ctx.console.jobs(filter, after=query.after, limit=query.limit, wants="te")
    rows = _masked(ctx, jobs.jobs)
    return FailurePage(
        ctx.now_ms,
        found.group,
        filter,
        tuple((ctx.site.mask.text(text), count) for text, count in found.messages),
        tuple(one for one in found.shares if _may_show(ctx, one)),
        await _latest(ctx, filter, query.message, _masked(ctx, found.newest)),
        chart_of([found.group]),
        msgspec.structs.replace(jobs, jobs=rows),
        query,
        await _job(ctx, query.probe),
        await _operation(ctx, query.edited),
        bool(await _muted(ctx, [found.group])),
    )


def _masked(ctx: Context, rows: Sequence[JobRow]) -> tuple[JobRow, ...]:
    """Return rows without their data and with masked messages."""
    return tuple(
        msgspec.structs.replace(row, data=b"", message=ctx.site.mask.text(row.message)) for row in rows
    )


def _may_show(ctx: Context, shared: Shared) -> bool:
    """Return whether a shared value is one that masking leaves as it is."""
    value: Any = shared.value
    path = shared.what.removeprefix(_DATA).split(".") if shared.what.startswith(_DATA) else [shared.what]
    for name in reversed(path):
        value = {name: value}
    return bool(ctx.site.mask(value) == value)


async def _latest(ctx: Context, filter: str, message: str, newest: Sequence[JobRow]) -> JobRow | None:
    """Return the newest failure, or the newest one with a message."""
    if not message:
        return newest[0] if newest else None
    found = await ctx.console.jobs(f"{filter} message~{Exact(message[:300])}", limit=1, wants="te")
    return next(iter(_masked(ctx, found.jobs)), None)


async def _job(ctx: Context, jid: str) -> JobRow | None:
    if not jid:
        return None
    found = await ctx.console.jobs(f"jid:{Exact(jid)}", limit=1)
    return next(iter(_masked(ctx, found.jobs)), JobRow(jid, state="gone"))


async def _operation(ctx: Context, id: str) -> Operation | None:
    if not id:
        return None
    try:
        return ctx.site.mask.within(await ctx.console.operation(id))
    except OperationNotFound:
        return None


# What is done to the jobs of groups.


class Groups(Body, frozen=True, kw_only=True):
    """Some failure groups; `value` and `rate` as those of actions on jobs."""

    name: list[str]
    value: str = ""
    rate: float = 0.0
    dry_run: bool = False


async def of_groups(action: Action, ctx: Context, body: Groups) -> Done | Question:
    """Change all failed jobs of some groups, after a dry run."""
    names = [str(Exact(name)) for name in dict.fromkeys(body.name)]
    if len(names) == 1:
        failed_of(body.name[0])
    asked = Change(
        q=f"state:failed group:{','.join(names)}" if names else "",
        value=body.value,
        rate=body.rate,
        dry_run=body.dry_run,
        confirm=body.confirm,
    )
    if names and not (await ctx.console.jobs(asked.q, limit=1)).jobs:
        raise UnknownName(f'there is no failed job in a group "{body.name[0]:.200}"')
    done = await change(action, ctx, asked)
    is_over = isinstance(done, Done) and done.changed and not done.place
    if is_over and len(names) == 1 and _asked_on_page_of(ctx, body.name[0]):
        return msgspec.structs.replace(done, place="/failed")
    return done


def _asked_on_page_of(ctx: Context, group: str) -> bool:
    """Return whether an action comes from the page of a group, which is gone when its jobs are."""
    path = urlsplit(ctx.request.headers.get("referer", "")).path
    return path.rstrip("/") == ctx.url(ctx.path("failed", group))


class Named(Body, frozen=True, kw_only=True):
    """Some failure groups, by name."""

    name: list[str]


async def mute(ctx: Context, body: Named) -> Done:
    """Leave failure groups out of the overview until they grow, for all operators."""
    for name in body.name:
        await ctx.console.snooze(GROUP, name)
    undo = Repeal("failed", "unmute", {"name": body.name})
    return Done(
        text=f"{name_or_count('Group', body.name)} muted until {'it grows' if len(body.name) == 1 else 'they grow'}.",
        changed=len(body.name),
        keys=("failed",),
        undo=undo,
    )


async def unmute(ctx: Context, body: Named) -> Done:
    """Let the overview show failure groups again."""
    names = [name for name in body.name if await ctx.console.unsnooze(GROUP, name)]
    text = f"{name_or_count('Group', names)} unmuted." if names else "Nothing to change: not muted."
    return Done(text=text, changed=len(names), keys=("failed",))


class Group(Body, frozen=True, kw_only=True):
    """One failure group."""

    name: str


async def probe(ctx: Context, body: Group) -> Done:
    """Retry the newest job of a group. The page of the group then shows what becomes of it, and offers the others."""
    page = await ctx.console.jobs(failed_of(body.name), limit=1)
    if not page.jobs:
        raise UnknownName(f'there is no failed job in a group "{body.name:.200}"')
    jid = page.jobs[0].jid
    [(_, changed)] = await ctx.console.act("retry", jid)
    if isinstance(changed, Refused):
        raise changed
    is_only = page.candidates == 1
    place = ctx.path("jobs", jid) if is_only else with_query(ctx.path("failed", body.name), {"probe": jid})
    return Done(
        text=f"Job {jid} was retried" + (", the only one of its group." if is_only else " as a probe."),
        keys=("failed", "queues", f"job:{jid}"),
        gone=(jid,),
        place=place,
        result={"jid": jid},
    )


class Edit(Group, frozen=True, kw_only=True):
    """A JSON merge patch for the data of all jobs of a group: null removes a member, objects are merged."""

    patch: str


async def edit(ctx: Context, body: Edit) -> Done | Question:
    """Change the data of all jobs of a group by a merge patch; they stay failed until they are retried."""
    patch_of(body.patch)
    spec = Spec(action="data", filter=failed_of(body.name), value=body.patch, who=ctx.user.name)
    if not body.confirm:
        dry = await ctx.console.dry_run(spec)
        return Question(
            title=f"Change the data of {counted(dry.matched - dry.refused, 'job')}?",
            text="This patch is applied to the data of each job. The jobs stay failed; retry them afterwards.",
            button=f"Change {counted(dry.matched - dry.refused, 'job')}",
            details=(body.patch[:500],),
        )
    id = await ctx.site.operations.start(ctx.console, spec)
    return Done(
        text="Changing the data of the jobs. Retry them when this is done.",
        changed=0,
        operation=id,
        keys=("operations",),
        place=with_query(ctx.path("failed", body.name), {"edited": id}),
    )


VIEWS: Final = (
    View(
        path="/failed",
        template="failed.html",
        load=failures,
        query=FailuresQuery,
        summary="A page of failure groups.",
    ),
    View(
        path="/failed/{name}",
        template="failure.html",
        load=failure,
        query=FailureQuery,
        summary="One failure group.",
    ),
)
_OF_GROUPS: Final[tuple[Action, ...]] = ("retry", "move", "cancel")
ACTIONS: Final = (
    *[
        ActionRoute(
            noun="failed",
            verb=action,
            body=Groups,
            run=partial(of_groups, action),
            summary=f"{action.capitalize()} all failed jobs of some groups.",
        )
        for action in _OF_GROUPS
    ],
    ActionRoute(
        noun="failed", verb="mute", body=Named, run=mute, summary="Hide failure groups from the overview."
    ),
    ActionRoute(
        noun="failed",
        verb="unmute",
        body=Named,
        run=unmute,
        summary="Show failure groups on the overview again.",
    ),
    ActionRoute(
        noun="failed", verb="probe", body=Group, run=probe, summary="Retry the newest job of a failure group."
    ),
    ActionRoute(
        noun="failed",
        verb="edit",
        body=Edit,
        run=edit,
        summary="Change the data of all jobs of a failure group by a JSON merge patch.",
    ),
)
