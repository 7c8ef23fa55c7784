"""Recurring jobs: when they put jobs, the jobs that they put last, and what is done to them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Any, Final

import msgspec
from starlette.datastructures import ImmutableMultiDict

from holdfast.code.calendar import MOST_MOMENTS
from holdfast.commands.admin import AuditLine
from holdfast.commands.job_rows import JobRow
from holdfast.commands.recurring import RecurringFacts
from holdfast.console.configuration import version_of
from holdfast.console.plain import stored
from holdfast.console.put import NamedCode
from holdfast.console.read.calendars import NextMoment, Turn, coming, next_moments, own_zone, turns
from holdfast.console.read.queries import HOUR_MS, Page
from holdfast.errors import HoldfastError, UsageError
from holdfast.settings import check_seconds, check_whole
from holdfast.text import every, name_or_count
from holdfast.web.context import Context
from holdfast.web.pages.recurring_form import (
    OF_CALENDARS,
    Preview,
    PreviewRecurring,
    Timing,
    calendar_changes,
    calendar_of_form,
    preview_of,
    sentence_of,
    timing_options,
)
from holdfast.web.views import (
    ActionRoute,
    Again,
    Body,
    Done,
    Refusal,
    Repeal,
    TagsBody,
    View,
    from_form,
)

# The turns of a recurring job: in words, those to come, and those that were missed.

_DAY_MS: Final = 24 * HOUR_MS
_STEP_MS: Final = 600_000
"""What is due within such a step of the day ahead is one point of the drawing."""


def missed_of(facts: RecurringFacts, now_ms: int) -> int:
    """Return how many turns of a recurring job are over without a job: its queue was asked by no worker since."""
    return 0 if facts.paused else facts.missed_by(now_ms)


def upcoming(known: Sequence[RecurringFacts], now_ms: int) -> tuple[int, ...]:
    """Return the times of the next 24 hours at which jobs are put, in epoch milliseconds, to ten minutes."""
    steps: set[int] = set()
    for one in known:
        if one.paused:
            continue
        steps.update(at // _STEP_MS for at in _next_day(one, now_ms))
    return tuple(step * _STEP_MS for step in sorted(steps) if step * _STEP_MS >= now_ms)


def _next_day(one: RecurringFacts, now_ms: int) -> Iterable[int]:
    """Return the times of the next 24 hours at which a recurring job puts jobs, in epoch milliseconds; at most 1,500."""
    if one.calendar is None:
        return range(max(one.next_ms, now_ms), now_ms + _DAY_MS, max(one.interval_ms, _STEP_MS))
    return takewhile(lambda at: at < now_ms + _DAY_MS, islice(coming(one, now_ms), MOST_MOMENTS))


def in_words(facts: RecurringFacts) -> str:
    """Return a schedule in words: `every 15 minutes`, `every day at 03:00 UTC`; of a calendar the expression and its zone."""
    interval_ms = facts.interval_ms
    if facts.calendar is not None:
        return f"{facts.calendar.cron} {facts.calendar.zone}"
    text = every(interval_ms)
    try:
        due = datetime.fromtimestamp(facts.next_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return text
    if interval_ms % _DAY_MS == 0:
        return f"{text} at {due:%H:%M} UTC"
    return f"{text} at minute {due.minute}" if interval_ms % HOUR_MS == 0 else text


_MOST: Final = 512
_RECENT: Final = 10
NEW_INTERVAL: Final = 3600.0
"""The interval in seconds that the form for a new recurring job proposes."""


class RecurringQuery(msgspec.Struct, frozen=True):
    """Recurring jobs of which queues, and which page; `new`: with the form for a new one."""

    filter: str = ""
    new: str = ""
    after: str = ""
    first: int = 1
    limit: int = 25


class RecurringLine(msgspec.Struct, frozen=True):
    """A recurring job, its schedule in words, the states of the jobs that it put last, the oldest first, its missed turns, and the last job that is there."""

    facts: RecurringFacts
    schedule: str
    recent: tuple[str, ...]
    missed: int
    last: "RecentJob | None" = None


class RecurringPage(msgspec.Struct, frozen=True):
    """A page of recurring jobs; `upcoming` are times of the next 24 hours, to ten minutes, at which those
    with an interval of an hour or more put jobs. With the form for a new one: what is `typed` in it, and its next moments.
    """

    now_ms: int
    found: Page[RecurringLine]
    upcoming: tuple[int, ...]
    query: RecurringQuery
    typed: Mapping[str, str] = {}
    preview: Preview = Preview()


async def recurring(ctx: Context, query: RecurringQuery) -> RecurringPage:
    """Return a page of recurring jobs, by queue, the next due one first."""
    ctx.now_ms = await ctx.console.now_ms()
    pattern = query.filter if "*" in query.filter else f"*{query.filter}*"
    page = await ctx.console.recurring(pattern, after=query.after, limit=query.limit)
    recent = await ctx.console.last_jobs(*page.rows, most=_RECENT)
    is_all = not (query.after or page.next)
    known = page.rows if is_all else (await ctx.console.recurring(pattern, limit=_MOST)).rows
    seldom = [one for one in known if one.interval_ms >= HOUR_MS]
    lines = tuple(
        RecurringLine(
            _masked(ctx, one),
            in_words(one),
            tuple(job.state for job in reversed(recent[one.jid])),
            missed_of(one, ctx.now_ms),
            next((_recent(row) for row in recent[one.jid] if row.created_ms), None),
        )
        for one in page.rows
    )
    first = _preview_of(ctx, PreviewRecurring(interval=NEW_INTERVAL)) if query.new else Preview()
    found = Page(lines, page.next, page.total)
    return RecurringPage(ctx.now_ms, found, upcoming(seldom, ctx.now_ms), query, preview=first)


def _masked(ctx: Context, facts: RecurringFacts) -> RecurringFacts:
    return msgspec.structs.replace(facts, data=msgspec.json.encode(ctx.data(facts.data)))


class OneQuery(msgspec.Struct, frozen=True):
    """How many of the jobs that it put last are shown, and how many of its moments."""

    limit: int = 30
    count: int = 20


class RecentJob(msgspec.Struct, frozen=True):
    """A job that a recurring job put."""

    jid: str
    state: str
    queue: str
    worker: str
    created_ms: int
    popped_ms: int
    ended_ms: int


class OneRecurringPage(msgspec.Struct, frozen=True):
    """A recurring job with the jobs that it put last, the newest first. `is_masked`: parts of its data are hidden.

    `next` are its moments to come, `turns` those that are over with what became of them, the oldest first, `last` the last job that ended, and
    `audit` the lines of the audit log about it, the newest first.
    """

    now_ms: int
    facts: RecurringFacts
    schedule: str
    recent: tuple[RecentJob, ...]
    upcoming: tuple[int, ...]
    next: tuple[NextMoment, ...]
    turns: tuple[Turn, ...]
    last: RecentJob | None
    audit: tuple[AuditLine, ...]
    data: Any
    is_masked: bool
    missed: int
    tag: str = ""
    typed: Mapping[str, str] = {}
    preview: Preview = Preview()


def tag_of(facts: RecurringFacts) -> str:
    """Return the entity tag of a recurring job: of what people change of it."""
    return version_of(msgspec.structs.replace(facts, next_ms=0, count=0))


async def _tagged(ctx: Context, body: "EditRecurring | Recurring") -> TagsBody:
    jids = [body.jid] if isinstance(body, EditRecurring) else body.jid
    found = [await ctx.console.recurring_job(jid) for jid in _some(jids)]
    return TagsBody(tag_of(found[0]) if len(found) == 1 else version_of(found), found)


async def one_recurring(ctx: Context, name: str, query: OneQuery) -> OneRecurringPage:
    """Return one recurring job."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.recurring_detail(name, query.limit)
    facts = found.facts
    recent = tuple(_recent(row) for row in found.recent)
    states = {row.jid: row.state for row in recent}
    data = ctx.data(facts.data)
    return OneRecurringPage(
        now_ms=ctx.now_ms,
        facts=_masked(ctx, facts),
        schedule=in_words(facts),
        recent=recent,
        upcoming=upcoming([facts], ctx.now_ms),
        next=_next(facts, ctx.now_ms, query.count),
        turns=turns(facts, states, found.moments, ctx.now_ms, query.limit),
        last=next((row for row in recent if row.ended_ms), None),
        audit=tuple(ctx.site.mask.within(line) for line in found.audit),
        data=data,
        is_masked=data != stored(facts.data),
        missed=missed_of(facts, ctx.now_ms),
        tag=tag_of(facts),
        preview=_preview_of(ctx, calendar_of_form(facts), facts),
    )


def _recent(row: JobRow) -> RecentJob:
    return RecentJob(row.jid, row.state, row.queue, row.worker, row.created_ms, row.popped_ms, row.ended_ms)


def _next(facts: RecurringFacts, now_ms: int, count: int) -> tuple[NextMoment, ...]:
    """Return the moments to come. Raises UsageError for a count that is too large."""
    return next_moments(coming(facts, now_ms), now_ms, check_whole("count", count, 1, _MOST), own_zone(facts))


def _preview_of(ctx: Context, body: PreviewRecurring, facts: RecurringFacts | None = None) -> Preview:
    return preview_of(body, ctx.site.client.settings, ctx.now_ms, facts)


# What is done to recurring jobs.


class Recurring(Body, frozen=True, kw_only=True):
    """Some recurring jobs."""

    jid: list[str]


class PauseRecurring(Recurring, frozen=True, kw_only=True):
    """Recurring jobs to pause for `seconds` (0: until they are resumed), and why: lists show that."""

    reason: str = ""
    seconds: float = 0.0


async def run(ctx: Context, body: Recurring) -> Done:
    """Put a job of each recurring job now, beside its schedule."""
    put: dict[str, str] = {}
    refused: list[Refusal] = []
    for jid in _some(body.jid):
        try:
            put[jid] = await ctx.console.run_recurring(jid)
        except HoldfastError as error:
            if len(body.jid) == 1:
                raise
            refused.append(Refusal(jid, str(error)))
    text = f"{name_or_count('Job', list(put.values()))} {'was' if len(put) == 1 else 'were'} put."
    return _done(text, len(put), [*put, *put.values()], refused=tuple(refused), result=put)


async def pause(ctx: Context, body: PauseRecurring) -> Done:
    """Pause recurring jobs: they put no jobs until they are resumed, and what they miss is left out."""
    seconds = check_seconds("seconds", body.seconds)
    until_ms = await ctx.console.now_ms() + round(seconds * 1000) if seconds else 0
    return await _switch(ctx, body.jid, True, body.reason, until_ms)


async def resume(ctx: Context, body: Recurring) -> Done:
    """Resume recurring jobs, from their first occurrence that is not over."""
    return await _switch(ctx, body.jid, False)


async def _switch(ctx: Context, jids: Sequence[str], on: bool, why: str = "", until_ms: int = 0) -> Done:
    changed = [jid for jid in _some(jids) if await ctx.console.pause_recurring(jid, on, why, until_ms)]
    verb, undone = ("paused", "resume") if on else ("resumed", "pause")
    undo = Repeal("recurring", undone, {"jid": changed}) if changed else None
    text = (
        f"{name_or_count('Recurring job', changed)} {verb}."
        if changed
        else f"Nothing to change: already {verb}."
    )
    return _done(text, len(changed), changed, undo=undo)


async def delete(ctx: Context, body: Recurring) -> Done:
    """Delete recurring jobs; the jobs that they put stay."""
    jids = _some(body.jid)
    if len(jids) == 1:
        await ctx.console.recurring_job(jids[0])
    existed = await ctx.console.delete_recurring(*jids)
    gone = [jid for jid, was_there in zip(jids, existed, strict=True) if was_there]
    return _done(
        f"{name_or_count('Recurring job', gone)} deleted.",
        len(gone),
        gone,
        gone=tuple(gone),
        place="/recurring",
    )


def _some(jids: Sequence[str]) -> list[str]:
    """Return jids, each once. Raises UsageError if there is none."""
    if not jids:
        raise UsageError("jid: expected at least one recurring job")
    return list(dict.fromkeys(jids))


class EditRecurring(Body, frozen=True, kw_only=True):
    """Attributes of a recurring job to change; what is left out stays.

    `interval` is in seconds, `data` JSON ("": as they are), `tags` all of its tags, separated by commas. `cron`, `zone`, `missed`, `overlap`, `jitter`, `start` and
    `end` are those of `add`, for one that follows a calendar; of `start` and `end`, "" is none.
    """

    jid: str
    interval: float | None = None
    data: Any = ""
    klass: str | None = None
    queue: str | None = None
    priority: int | None = None
    retries: int | None = None
    backlog: int | None = None
    tags: str | None = None
    cron: str | None = None
    zone: str | None = None
    missed: str | int | None = None
    overlap: str | None = None
    jitter: float | None = None
    start: str | float | None = None
    end: str | float | None = None


async def edit(ctx: Context, body: EditRecurring) -> Done:
    """Change attributes of a recurring job. Jobs that were put stay as they are."""
    facts = await ctx.console.recurring_job(body.jid)
    changes = _changes(facts, body)
    if changes:
        await ctx.console.update_recurring(body.jid, **changes)
    tags = facts.tags if body.tags is None else _split(body.tags)
    added, removed = (
        [one for one in tags if one not in facts.tags],
        [one for one in facts.tags if one not in tags],
    )
    if added:
        await ctx.console.tag_recurring(body.jid, *added)
    if removed:
        await ctx.console.tag_recurring(body.jid, *removed, remove=True)
    names = [*changes, *(["tags"] if added or removed else [])]
    text = (
        f"{name_or_count('Recurring job', [body.jid])}: {', '.join(names)} changed."
        if names
        else "Nothing to change."
    )
    return _done(text, len(names), [body.jid])


def _changes(facts: RecurringFacts, body: EditRecurring) -> dict[str, Any]:
    """Return what differs from the present attributes."""
    present: dict[str, object] = {
        "interval": facts.interval_ms / 1000,
        "klass": facts.klass,
        "queue": facts.queue,
        "priority": facts.priority,
        "retries": facts.retries,
        "backlog": facts.backlog,
    }
    found = {
        name: value
        for name, before in present.items()
        if (value := getattr(body, name)) is not None and value != before
    }
    data = _data_of(body.data)
    if data is not msgspec.UNSET and data != stored(facts.data):
        found["data"] = data
    return found | calendar_changes(facts, {name: getattr(body, name) for name in OF_CALENDARS})


def _data_of(given: object) -> object:
    """Return data that were given as a value, or as JSON text; UNSET for "". Raises UsageError."""
    if not isinstance(given, str):
        return given
    if not given.strip():
        return msgspec.UNSET
    try:
        return msgspec.json.decode(given.encode())
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise UsageError(f"data: expected JSON: {error}") from None


class AddRecurring(Timing, frozen=True, kw_only=True):
    """A new recurring job: its code and data, and when it puts jobs.

    `klass` names a function, or with `is_class` a class or module. `data` are JSON: of a function an array of its arguments,
    or an object of named ones.
    """

    queue: str
    klass: str
    is_class: bool = False
    jid: str = ""
    data: Any = ""
    priority: int = 0
    retries: int | None = None
    tags: str = ""


async def add(ctx: Context, body: AddRecurring) -> Done:
    """Add a recurring job. One of the same jid is refused."""
    if body.jid and await _is_known(ctx, body.jid):
        raise UsageError(
            f"there is a recurring job {body.jid!r:.200} already: change that one, or choose another jid"
        )
    code = NamedCode(body.klass, body.is_class, ctx.site.client.settings.max_data)
    data = _data_of(body.data)
    text = None if data is msgspec.UNSET else msgspec.json.encode(data)
    timing = timing_options(body)
    interval = body.interval if timing.pop("interval", None) is not None else None
    options = code.options(
        {
            "jid": body.jid or None,
            **timing,
            "priority": body.priority,
            "retries": body.retries,
            "tags": _split(body.tags) or None,
        }
    )
    jid = await ctx.console.add_recurring(body.queue, body.klass, code.data(text), interval, options)
    place = ctx.path("recurring", jid)
    return _done(
        f"{name_or_count('Recurring job', [jid])} added.", 1, [jid], place=place, result={"jid": jid}
    )


async def preview(ctx: Context, body: PreviewRecurring) -> Done:
    """Return when a recurring job would put jobs, as `result`; nothing is changed."""
    ctx.now_ms = await ctx.console.now_ms()
    facts = await ctx.console.recurring_job(body.jid) if body.changes else None
    found = _preview_of(ctx, body, facts)
    if found.error:
        raise UsageError(found.error)
    return Done(text=sentence_of(found), changed=0, result=found)


async def form_again(ctx: Context, form: ImmutableMultiDict[str, str]) -> Again:
    """Return the page with the form that was sent, with what was typed in it and its next moments."""
    typed = {name: form[name] for name in form if name != "back"}
    is_change = bool(typed.get("changes"))
    page: RecurringPage | OneRecurringPage
    if is_change:
        page = await one_recurring(ctx, typed.get("jid", ""), OneQuery())
    else:
        page = await recurring(ctx, RecurringQuery(new="1"))
    try:
        given = from_form(PreviewRecurring, form)
        found = _preview_of(ctx, given, page.facts if isinstance(page, OneRecurringPage) else None)
    except UsageError as error:  # a number that is none
        found = Preview(error=str(error))
    shown = msgspec.structs.replace(page, typed=typed, preview=found)
    if is_change:
        return Again(ctx.path("recurring", typed["jid"]), "recurring_job.html", shown)
    return Again("/recurring", "recurring.html", shown)


async def _is_known(ctx: Context, jid: str) -> bool:
    try:
        await ctx.console.recurring_job(jid)
    except HoldfastError:
        return False
    return True


def _split(text: str) -> list[str]:
    return [name for one in text.split(",") if (name := one.strip())]


def _done(text: str, count: int, jids: Sequence[str], **more: Any) -> Done:
    keys = ("recurring", "queues", *(f"job:{jid}" for jid in jids[:50]))
    return Done(text=text, changed=count, keys=keys, **more)


VIEWS: Final = (
    View(
        path="/recurring",
        template="recurring.html",
        load=recurring,
        query=RecurringQuery,
        summary="A page of recurring jobs.",
    ),
    View(
        path="/recurring/{name}",
        template="recurring_job.html",
        load=one_recurring,
        query=OneQuery,
        summary="One recurring job.",
    ),
)
_VERBS: Final[Mapping[str, tuple[type[Body], Any, str]]] = {
    "run": (Recurring, run, "Put a job of each recurring job now."),
    "pause": (PauseRecurring, pause, "Pause recurring jobs."),
    "resume": (Recurring, resume, "Resume recurring jobs."),
    "delete": (Recurring, delete, "Delete recurring jobs."),
    "edit": (EditRecurring, edit, "Change attributes of a recurring job."),
    "add": (AddRecurring, add, "Add a recurring job."),
    "preview": (PreviewRecurring, preview, "Return when a recurring job would put jobs; nothing is changed."),
}
_FORMS: Final = ("add", "edit", "preview")
ACTIONS: Final = tuple(
    ActionRoute(
        noun="recurring",
        verb=verb,
        body=body,
        run=act,
        summary=summary,
        tagged=None if issubclass(body, Timing) else _tagged,
        again=form_again if verb in _FORMS else None,
        part="recurring_preview.html" if verb == "preview" else "",
    )
    for verb, (body, act, summary) in _VERBS.items()
)
