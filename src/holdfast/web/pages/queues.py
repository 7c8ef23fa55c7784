"""Queues: all of them, one of them with its jobs by state, and its statistics of a day."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, Literal, cast

import msgspec

from holdfast.code.put_options import OPTIONS, Kind
from holdfast.commands.queues import BOUNDS, QueueOption
from holdfast.commands.recurring import RecurringFacts
from holdfast.console.operations.spec import Spec
from holdfast.console.put import NamedCode, value_of
from holdfast.console.read.charts import Steps as ChartSteps
from holdfast.console.read.charts import per_minute
from holdfast.console.read.marks import Mark
from holdfast.console.read.queries import Page, QueueDetail
from holdfast.console.read.queue_figures import JOB_TABS, QueueFigures, QueueJobs, filter_of
from holdfast.errors import UsageError
from holdfast.models import Counts, Sample
from holdfast.settings import OWN_THROTTLE, check_whole
from holdfast.text import name_or_count
from holdfast.web.context import Context
from holdfast.web.pages.job_actions import Change, change
from holdfast.web.views import ActionRoute, Body, Done, Question, Repeal, View

# What is done to queues: pause and resume them, put jobs, set their limits, purge and forget them.


class NamedQueues(Body, frozen=True, kw_only=True):
    """Some queues."""

    name: list[str]


async def _known(ctx: Context, body: NamedQueues) -> list[str]:
    """Return the names of the queues, each of which is known. Raises UsageError, UnknownName."""
    if not body.name:
        raise UsageError("name: expected at least one queue")
    return [await ctx.console.known_queue(name) for name in dict.fromkeys(body.name)]


class PauseQueues(NamedQueues, frozen=True, kw_only=True):
    """Queues to pause, for `seconds` (0: until they are resumed). `expire` also ends the leases of their running jobs."""

    seconds: float = 0.0
    expire: bool = False


async def pause(ctx: Context, body: PauseQueues) -> Done:
    """Pause queues. Unknown ones are refused before anything is changed."""
    names = await _known(ctx, body)
    count = await ctx.console.pause(*names, why=body.reason, seconds=body.seconds)
    done = _done(
        f"{name_or_count('Queue', names)} paused.", names, count, Repeal("queues", "resume", {"name": names})
    )
    if not body.expire:
        return done
    for name in names:
        spec = Spec(action="expire", filter=filter_of(name, "running"), who=ctx.user.name)
        await ctx.site.operations.start(ctx.console, spec)
    return _done(
        f"{name_or_count('Queue', names)} paused; the leases of running jobs end.", names, count, done.undo
    )


async def resume(ctx: Context, body: NamedQueues) -> Done:
    """Resume queues. Unknown ones are refused before anything is changed."""
    names = await _known(ctx, body)
    count = await ctx.console.resume(*names)
    if not count:
        return _done(f"{name_or_count('Queue', names)}: nothing to change, not paused.", names, count, None)
    return _done(
        f"{name_or_count('Queue', names)} resumed.", names, count, Repeal("queues", "pause", {"name": names})
    )


class ForgetQueues(NamedQueues, frozen=True, kw_only=True):
    """Empty queues to remove from the list, with their settings and statistics."""


async def forget(ctx: Context, body: ForgetQueues) -> Done | Question:
    """Forget empty queues."""
    names = await _known(ctx, body)
    if not body.confirm:
        return Question(
            title=f"Forget {name_or_count('queue', names)}?",
            text="Its settings and statistics are deleted. A queue that has jobs, including failed ones, is refused.",
            button="Forget",
        )
    for name in names:
        await ctx.console.forget_queue(name)
    done = _done(f"{name_or_count('Queue', names)} forgotten.", names, len(names), None)
    return Done(text=done.text, changed=done.changed, keys=done.keys, place="/queues")


class PurgeQueue(Body, frozen=True, kw_only=True):
    """A queue, and the states of its jobs to cancel, with commas between."""

    name: str
    states: str = "waiting"
    dry_run: bool = False


STATES: Final = ("waiting", "scheduled", "throttled", "depends", "stalled", "running", "failed")
"""The states whose jobs can be purged."""


async def purge(ctx: Context, body: PurgeQueue) -> Done | Question:
    """Cancel all jobs of a queue in some states, after a dry run."""
    name = await ctx.console.known_queue(body.name)
    states = [one.strip() for one in body.states.split(",") if one.strip()]
    for one in states or [body.states]:
        if one not in STATES:
            raise UsageError(f"states: expected some of {', '.join(STATES)}, got {one!r:.80}")
    query = filter_of(name, ",".join(dict.fromkeys(states)))
    return await change(
        "cancel", ctx, Change(q=query, confirm=body.confirm, reason=body.reason, dry_run=body.dry_run)
    )


class SetQueue(Body, frozen=True, kw_only=True):
    """A limit of a queue, "" to remove it. `heartbeat` is the length of its leases in seconds, `throttle` how many run at once.

    `seen` is the value that was shown to whoever sets it ("": none): if it was changed meanwhile, nothing is done.
    """

    name: str
    option: Literal["max-waiting", "max-losses", "heartbeat", "throttle"]
    value: str | float = ""
    seen: str | None = None


async def set_limit(ctx: Context, body: SetQueue) -> Done:
    """Set or remove a limit of a queue."""
    name = await ctx.console.known_queue(body.name)
    text = f"{body.value:g}" if isinstance(body.value, (int, float)) else body.value.strip()
    if body.option == "heartbeat":
        await ctx.console.configure(f"{name}-heartbeat", text or None, seen=body.seen)
    elif body.option == "throttle":
        await _throttle(ctx, name, text, body.seen)
    else:
        seen: int | Literal[""] | None = None
        if body.seen is not None:
            seen = _number("seen", body.option, body.seen) or ""
        await ctx.console.set_queue(name, body.option, _number(body.option, body.option, text), seen=seen)
    keys = ("queues", f"queue:{name}", "throttles", "config")
    return Done(text=f"{body.option} of {name} is {text or 'not set'}.", keys=keys)


def _number(what: str, option: QueueOption, text: str) -> int | None:
    if not text:
        return None
    return check_whole(what, int(text) if text.isdecimal() else text, *BOUNDS[option])


async def _throttle(ctx: Context, name: str, text: str, shown: str | None) -> None:
    seen = None if shown is None else _maximum("seen", shown or "0")
    await ctx.console.set_throttle(OWN_THROTTLE + name, _maximum("throttle", text or "0"), seen=seen)
    if not text:  # the maximum is 0 now, so the limit can be removed unseen
        await ctx.console.delete_throttle(OWN_THROTTLE + name)


def _maximum(what: str, text: str) -> int:
    return check_whole(what, int(text) if text.isdecimal() else text, 0, 1 << 31)


class PutFields(Body, frozen=True, kw_only=True):
    """A job: its queue, its code (the name of a function, or of a class), and its data as JSON.

    Of a function the data are an array of its arguments or an object of named ones. With `klass` in place of `code` they are any
    JSON value, as the gateway takes them. `tags` have commas between. Options that are "" have the defaults of a put.
    """

    queue: str
    code: str = ""
    klass: str = ""
    kind: Literal["function", "class"] = "function"
    data: Any = ""
    tags: str = ""
    tag: list[str] = []
    throttle: list[str] = []
    depends: list[str] = []


_TYPES: Final[Mapping[Kind, Any]] = {
    "whole": int | str, "seconds": float | str, "switch": bool, "text": str, "backoff": float | str,
}  # fmt: skip
_FIELDS: Final[list[Any]] = [
    (name, _TYPES[option.kind], option.kind != "switch" and "")
    for name, option in OPTIONS.items()
    if not option.is_list
]
PutJob: Final = cast(
    "type[PutFields]",
    msgspec.defstruct(
        "PutJob",
        _FIELDS,
        bases=(PutFields,),
        namespace={"__doc__": PutFields.__doc__},
        frozen=True,
        kw_only=True,
    ),
)


async def put(ctx: Context, body: PutFields) -> Done:
    """Put a job by the name of its code, which is not imported here."""
    if bool(body.code.strip()) == bool(body.klass):
        raise UsageError("expected either code, a function or class, or klass")
    is_class = bool(body.klass) or body.kind == "class"
    code = NamedCode(body.klass or body.code.strip(), is_class, ctx.site.client.settings.max_data)
    data = code.data(_json_of(body))
    jid = await ctx.console.put_job(body.queue, code, data, _options(body))
    if getattr(jid, "is_new", True) is False:
        # It is the job of an earlier put: it is not to be cancelled by an undo of this one.
        done = "was replaced" if body.on_conflict == "replace" else "stands, and no job was put"  # type: ignore[attr-defined]
        return Done(
            text=f"Job {jid[:9]} holds this unique key: it {done}.",
            keys=("queues", f"queue:{body.queue}", "jobs", f"job:{jid}"),
            changed=int("replaced" in done),
            place=ctx.path("jobs", jid),
            result={"jid": str(jid)},
        )
    return Done(
        text=f"Put job {jid[:9]} into {body.queue}.",
        keys=("queues", f"queue:{body.queue}", "jobs"),
        undo=Repeal("jobs", "cancel", {"jid": [jid]}),
        place=ctx.path("jobs", jid),
        result={"jid": jid},
    )


def _json_of(body: PutFields) -> str | bytes | None:
    """Return the data as JSON text: with `klass` any value, else the text of a form, or a value that is not text."""
    data: object = body.data
    if isinstance(data, str) and not (body.klass and data):
        return data if data.strip() else None
    return msgspec.json.encode(data)


def _options(body: PutFields) -> dict[str, Any]:
    names = [*body.tag, *(name.strip() for name in body.tags.split(",") if name.strip())]
    single = {name: _given(getattr(body, name)) for name, _, _ in _FIELDS}
    lists = {"tags": names, "throttles": body.throttle, "depends": body.depends}
    given = {**single, "only_new": single["only_new"] or None, "jid": getattr(body, "jid", "") or None}
    return {**given, **{name: value or None for name, value in lists.items()}}


def _given(value: float | str) -> object:
    """Return a number that was written in a form; other text is refused where the option is checked."""
    return value if not isinstance(value, str) else value_of(value.strip()) if value.strip() else None


def _done(text: str, names: list[str], count: int, undo: Repeal | None) -> Done:
    return Done(text=text, changed=count, keys=("queues", *(f"queue:{name}" for name in names)), undo=undo)


def _action(
    verb: str,
    body: type[Body],
    run: Callable[..., Any],
    summary: str,
    role: Any = "operator",
    place: str = "",
) -> ActionRoute:
    return ActionRoute(noun="queues", verb=verb, body=body, run=run, summary=summary, role=role, place=place)


ACTIONS: Final = (
    _action("pause", PauseQueues, pause, "Pause queues."),
    _action("resume", NamedQueues, resume, "Resume queues."),
    _action("put", PutJob, put, "Put a job."),
    _action("purge", PurgeQueue, purge, "Cancel all jobs of a queue in some states."),
    _action("set", SetQueue, set_limit, "Set or remove a limit of a queue.", "admin", "option"),
    _action("forget", ForgetQueues, forget, "Remove empty queues from the list.", "admin"),
)


_DAY_MS: Final = 86_400_000


class QueuesQuery(msgspec.Struct, frozen=True):
    """Which queues, in which order: `sort` is name or a number, behind a "-" the largest one first."""

    filter: str = ""
    sort: str = "name"
    after: str = ""
    first: int = 0
    limit: int = 25


class QueuesPage(msgspec.Struct, frozen=True):
    """A page of queues."""

    now_ms: int
    queues: tuple[QueueFigures, ...]
    next: str
    total: int
    query: QueuesQuery

    @property
    def groups(self) -> list[tuple[str, list[QueueFigures]]]:
        """The queues in the order of their names, those that share a prefix such as ``mail.`` together; "" for names without a prefix."""
        if self.query.sort.removeprefix("-") != "name":
            return [("", list(self.queues))]
        found = [(prefix, list(rows)) for prefix, rows in groupby(self.queues, _prefix)]
        shared = [(prefix if len(rows) > 1 else "", rows) for prefix, rows in found]
        return [
            (prefix, [row for _, rows in some for row in rows])
            for prefix, some in groupby(shared, lambda one: one[0])
        ]


def _prefix(row: QueueFigures) -> str:
    """Return the name of a queue up to its first dot, colon or slash, "" if it has none."""
    return row.counts.name[: found.end()] if (found := re.search(r"[.:/]", row.counts.name)) else ""


async def queues(ctx: Context, query: QueuesQuery) -> QueuesPage:
    """Return a page of the queues whose name matches a glob; text without `*` is found anywhere in the name."""
    ctx.now_ms = await ctx.console.now_ms()
    pattern = query.filter if "*" in query.filter else f"*{query.filter}*"
    name = query.sort.removeprefix("-")
    reverse = (name == "name") == query.sort.startswith("-")
    found = await ctx.console.queues(
        pattern, sort=name, reverse=reverse, after=query.after, limit=min(query.limit, _MOST_ROWS)
    )
    rows = await ctx.console.queue_figures(found.rows)
    return QueuesPage(ctx.now_ms, tuple(rows), found.next, found.total, query)


_MOST_ROWS: Final = 50
"""Queues on one page: two commands of the store for each."""


class QueueQuery(msgspec.Struct, frozen=True):
    """Which tab of a queue; of the statistics the day (2026-11-26; "": today), scale and period of the charts.

    `scale` is fine, or protocol: the 148 buckets of older programs, as jobs a minute. `first` is how many rows came
    before this page.
    """

    tab: str = "stats"
    date: str = ""
    scale: str = "fine"
    range: str = "90m"
    after: str = ""
    first: int = 0
    limit: int = 25


class Durations(msgspec.Struct, frozen=True):
    """How long jobs waited or ran on a day, and on the day before: (seconds, jobs), and a summary in seconds.

    `per_minute` has the 148 buckets of older programs as (label, jobs a minute), if the query asks for them.
    """

    moments: tuple[tuple[float, int], ...]
    before: tuple[tuple[float, int], ...]
    per_minute: tuple[tuple[str, float], ...]
    count: int
    total: float
    mean: float
    std: float
    median: float
    p95: float
    longest: float


class DayStats(msgspec.Struct, frozen=True):
    """The statistics of a queue on one day, with the dates of the days around it ("": that day is still to come)."""

    date: str
    date_before: str
    date_after: str
    failed: int
    failures: int
    lost: int
    retried: int
    wait: Durations
    run: Durations
    throughput: ChartSteps
    backlog: tuple[int | None, ...]
    marks: tuple[Mark, ...] = ()


class QueueLimits(msgspec.Struct, frozen=True):
    """What can be set for a queue: "" is not set. `lease` is the length of a lease in seconds that applies."""

    max_waiting: str
    max_losses: str
    heartbeat: str
    throttle: str
    lease: float


class QueuePage(msgspec.Struct, frozen=True):
    """One queue; of the tabs only what `tab` names is there."""

    now_ms: int
    name: str
    tab: str
    detail: QueueDetail
    growth: float | None
    rate: float
    query: QueueQuery
    stats: DayStats | None = None
    jobs: QueueJobs | None = None
    recurring: Page[RecurringFacts] | None = None
    limits: QueueLimits | None = None

    @property
    def counts(self) -> Counts:
        """How many jobs the queue has in each state."""
        return self.detail.counts

    @property
    def drains_in(self) -> float | None:
        """Seconds until nothing waits at the rate of the last minutes; None if it does not drain."""
        return self.detail.drains_in

    @property
    def filters(self) -> Mapping[str, str]:
        """The filters that match its jobs, by state."""
        return {state: filter_of(self.name, state) for state in JOB_TABS}

    @property
    def verbs(self) -> tuple[str, ...]:
        """What can be done to several jobs of the state that is shown."""
        return _VERBS[self.tab]

    def tabs(self, ctx: Context) -> list[tuple[str, str, int | None, str, str]]:
        """The tabs: name, words, number of jobs, URL, and the key of the number in the live stream."""
        return [
            (
                tab,
                tab.capitalize(),
                getattr(self.counts, tab, None),
                ctx.url(ctx.path("queues", self.name), tab=tab),
                f"q.{self.name}.{tab}",
            )
            for tab in TABS
        ]


_VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "running": ("expire", "tag", "track", "cancel"),
    "waiting": ("move", "priority", "tag", "track", "delay", "cancel"),
    "throttled": ("move", "priority", "tag", "cancel"),
    "scheduled": ("run", "delay", "move", "cancel"),
    "stalled": ("expire", "fail", "move", "cancel"),
    "depends": ("priority", "tag", "track", "cancel"),
    "failed": ("retry", "move", "tag", "track", "cancel"),
}
TABS: Final = ("stats", *JOB_TABS[:-1], "recurring", "failed", "settings")
"""The tabs of a queue, in their order."""


async def queue(ctx: Context, name: str, query: QueueQuery) -> QueuePage:
    """Return one queue. An unknown tab shows the statistics."""
    console = ctx.console
    now = ctx.now_ms = await console.now_ms()
    day = _day(query.date, now)
    detail = await console.queue(name, day_ms=day)
    lately = [step for step in detail.series if step.when_ms > now - 600_000]
    minutes = sum(step.seconds for step in lately) / 60
    page = QueuePage(
        now,
        name,
        query.tab if query.tab in TABS else "stats",
        detail,
        detail.growth,
        round(sum(step.completed for step in lately) / minutes, 1) if minutes else 0.0,
        query,
    )
    return msgspec.structs.replace(page, **await _tab(ctx, page, day))


async def _tab(ctx: Context, page: QueuePage, day: int) -> Mapping[str, Any]:
    console, name, query = ctx.console, page.name, page.query
    if page.tab == "stats":
        return {"stats": await _stats(ctx, page, day)}
    if page.tab == "recurring":
        found = await console.recurring_of(name, after=query.after, limit=query.limit)
        masked = [
            msgspec.structs.replace(one, data=msgspec.json.encode(ctx.data(one.data))) for one in found.rows
        ]
        return {"recurring": msgspec.structs.replace(found, rows=tuple(masked))}
    if page.tab == "settings":
        return {"limits": _limits(page.detail, await console.queue_heartbeat(name))}
    jobs = await console.queue_jobs(name, page.tab, after=query.after, limit=query.limit)
    mask = ctx.site.mask.text
    rows = tuple(msgspec.structs.replace(row, message=mask(row.message)) for row in jobs.jobs.rows)
    return {"jobs": msgspec.structs.replace(jobs, jobs=msgspec.structs.replace(jobs.jobs, rows=rows))}


def _day(date: str, now_ms: int) -> int:
    """Return the beginning of a day of UTC in ms, that of today for "". Raises UsageError."""
    if not date:
        return now_ms - now_ms % _DAY_MS
    try:
        return round(datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        raise UsageError(f"date: expected a day such as 2026-11-26, got {date!r:.80}") from None


def _date(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


async def _stats(ctx: Context, page: QueuePage, day: int) -> DayStats:
    query, stats = page.query, page.detail.stats
    before = await ctx.console.queue_stats(page.name, max(day - _DAY_MS, 1))
    steps = await ctx.console.throughput([page.name], query.range)
    return DayStats(
        _date(day),
        _date(day - _DAY_MS),
        _date(day + _DAY_MS) if day + _DAY_MS <= page.now_ms else "",
        stats.failed,
        stats.failures,
        stats.lost,
        stats.retried,
        _durations(stats.wait, before.wait, query.scale),
        _durations(stats.run, before.run, query.scale),
        steps,
        await ctx.console.backlog(page.name, steps),
        await ctx.console.marks(steps, page.name),
    )


def _durations(sample: Sample, before: Sample, scale: str) -> Durations:
    if scale not in ("fine", "protocol"):
        raise UsageError(f"scale: expected fine or protocol, got {scale!r:.80}")
    return Durations(
        tuple(sample.moments()),
        tuple(before.moments()),
        tuple(per_minute(sample)) if scale == "protocol" else (),
        sample.count,
        sample.count * sample.mean,
        sample.mean,
        sample.std,
        *(sample.percentile(percent) for percent in (50, 95, 100)),
    )


def _limits(detail: QueueDetail, heartbeat: str) -> QueueLimits:
    values = [str(detail.options.get(option, "")) for option in ("max-waiting", "max-losses")]
    maximum = str(detail.throttle.maximum or "")
    return QueueLimits(values[0], values[1], heartbeat, maximum, detail.counts.heartbeat_ms / 1000)


VIEWS: Final = (
    View(path="/queues", template="queues.html", load=queues, query=QueuesQuery, summary="A page of queues."),
    View(path="/queues/{name}", template="queue.html", load=queue, query=QueueQuery, summary="One queue."),
)
