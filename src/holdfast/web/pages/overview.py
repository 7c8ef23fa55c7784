"""The first page: what needs attention, how much there is of everything, the busiest queues, the largest failure groups."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from holdfast.commands.failures import FailureGroup
from holdfast.commands.job_rows import JobRow
from holdfast.commands.workers import WorkerFacts
from holdfast.console.health.attention import KINDS, Attention, is_silent, silent_ms
from holdfast.console.read.charts import Steps as ChartSteps
from holdfast.console.read.job_lists import TrackedPage
from holdfast.console.read.marks import Mark
from holdfast.console.read.overview import Overview, number_of
from holdfast.console.read.queue_figures import MOST, QueueFigures
from holdfast.console.search.filter_values import Exact
from holdfast.models import Sample
from holdfast.settings import MAX_BATCH
from holdfast.text import counted, narrow_duration
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Repeal, View

_QUEUES: Final = 12
_FINDINGS: Final = 5
_GROUPS: Final = 5
_SNOOZED: Final = 50
_TRACKED: Final = 8
_WORKERS: Final = 8


class OverviewQuery(msgspec.Struct, frozen=True):
    """The period of the charts (90m, 24h, 7d, or FROM-TO in epoch seconds), and `all` for each finding."""

    range: str = "90m"
    findings: Literal["", "all"] = ""


class Remedy(msgspec.Struct, frozen=True):
    """An action that helps: its noun and verb, its fields, and the words of its button."""

    noun: str
    verb: str
    fields: Mapping[str, Any]
    button: str


class Finding(msgspec.Struct, frozen=True):
    """Something that needs attention, the page that shows it, and the action that helps, if there is a simple one.

    `noun` is what its subject is; `together` are the words for several of its kind.
    """

    attention: Attention
    noun: str
    together: str
    place: str
    remedy: Remedy | None = None


class Tracked(msgspec.Struct, frozen=True):
    """The first tracked jobs, and how many of the first 5,000 are in each state, the largest number first."""

    jobs: tuple[JobRow, ...]
    states: tuple[tuple[str, int], ...]
    total: int


class WorkerUse(msgspec.Struct, frozen=True):
    """A worker as the overview shows it: in how many of its slots a job runs, and whether it sends no heartbeats.

    From `silent_ms` on it is silent, unless it sends one before.
    """

    facts: WorkerFacts
    slots: int
    busy: int
    is_silent: bool
    silent_ms: int


class OverviewPage(msgspec.Struct, frozen=True):
    """The overview. `findings` are the most urgent five; `next_ms` is when the next scheduled job is due (0: none)."""

    now_ms: int
    sentence: str
    overview: Overview
    next_ms: int
    findings: tuple[Finding, ...]
    queues: tuple[QueueFigures, ...]
    groups: tuple[FailureGroup, ...]
    tracked: Tracked
    workers: tuple[WorkerUse, ...]
    throughput: ChartSteps
    wait: Sample
    query: OverviewQuery
    marks: tuple[Mark, ...] = ()


async def overview(ctx: Context, query: OverviewQuery) -> OverviewPage:
    """Return the overview. It reads the figures of the busiest queues, and of jobs only the tracked ones."""
    console = ctx.console
    each = query.findings == "all"
    found = await console.overview(MOST, each=each)
    ctx.now_ms = found.now_ms
    steps = await console.throughput([one.name for one in found.queues], query.range)
    shown = found.queues[:_QUEUES]
    workers = await console.workers(limit=_WORKERS)
    running = {one.name: one.running for one in (await console.fleet(limit=MAX_BATCH)).workers.rows}
    tracked = await console.tracked("", limit=_TRACKED)
    return OverviewPage(
        found.now_ms,
        _sentence(found, steps),
        msgspec.structs.replace(found, queues=(), failures=(), snoozed=found.snoozed[:_SNOOZED]),
        min((one.next_ms for one in found.queues if one.next_ms), default=0),
        tuple(_finding(ctx, one) for one in found.attention[: None if each else _FINDINGS]),
        tuple(await console.queue_figures(shown)),
        tuple(sorted(found.failures, key=lambda one: (-one.count, one.name))[:_GROUPS]),
        _tracked(ctx.site.mask.within(tracked)),
        tuple(_use(one, running.get(one.name, 0), found.now_ms) for one in workers.rows),
        steps,
        await console.waits([one.name for one in shown]),
        query,
        await console.marks(steps),
    )


def _use(worker: WorkerFacts, running: int, now_ms: int) -> WorkerUse:
    slots = number_of(worker, "slots")
    return WorkerUse(worker, slots, min(running, slots), is_silent(worker, now_ms), silent_ms(worker))


def _tracked(found: TrackedPage) -> Tracked:
    states = Counter(found.counts).most_common()
    return Tracked(tuple(one.job for one in found.rows), tuple(states), found.total)


_QUIET: Final = 4
"""Minutes without a popped job, while some wait, after which the first sentence of the page reports it."""


def _sentence(found: Overview, steps: ChartSteps) -> str:
    """Return one sentence: the most urgent finding, or how it goes."""
    if found.attention or not found.queue_count:
        return found.sentence
    popped = steps.of("popped")
    quiet = next((at for at, value in enumerate(reversed(popped)) if value > 0), len(popped))
    minutes = quiet * steps.step_seconds // 60
    if found.totals["waiting"] and not found.totals["running"] and minutes >= _QUIET:
        return f"No job has started for {counted(minutes, 'minute')}."
    return found.sentence


_SECTIONS: Final[Mapping[str, str]] = {
    "failure group": "failed",
    "queue": "queues",
    "flow": "flows",
    "worker": "workers",
    "throttle": "throttles",
    "recurring job": "recurring",
    "operation": "operations",
    "store": "about",
}
"""The section of the application that shows each noun."""
_TABS: Final = {
    "depends-failed": "depends",
    "stalled": "stalled",
    "no-worker": "waiting",
    "waiting-long": "waiting",
}


def _finding(ctx: Context, one: Attention) -> Finding:
    noun, together = KINDS[one.kind]
    section = _SECTIONS[noun]
    if one.count > 1:
        return Finding(one, noun, together, ctx.url(f"/{section}"))
    if noun == "store":
        return Finding(one, noun, together, ctx.url(f"/{section}"))
    tab = _TABS.get(one.kind, "")
    return Finding(one, noun, together, ctx.url(ctx.path(section, one.subject), tab=tab), _remedy(one))


def _remedy(one: Attention) -> Remedy | None:
    if one.kind == "paused":
        return Remedy("queues", "resume", {"name": one.subject}, "Resume")
    if one.kind == "worker-gone":
        return Remedy("jobs", "expire", {"q": f"worker:{Exact(one.subject)}"}, "End its leases…")
    return None


# What is done to findings.


class Findings(Body, frozen=True, kw_only=True):
    """Findings of a kind (`surge`), or all about a noun (`failure group`), on one subject ("": any)."""

    about: str
    subject: str = ""


class Snooze(Findings, frozen=True, kw_only=True):
    """Findings to snooze for `seconds`, or (0) until they grow."""

    seconds: float = 0.0


_KEYS: Final = ("counts", "failed")


async def snooze(ctx: Context, body: Snooze) -> Done:
    """Snooze findings, for all operators."""
    made = await ctx.console.snooze(body.about, body.subject, seconds=body.seconds)
    what = body.subject or "They"
    until = (
        f"for {narrow_duration(body.seconds)}, or until it grows much larger"
        if made.until_ms
        else "until it grows"
    )
    undo = Repeal("attention", "unsnooze", {"about": body.about, "subject": body.subject})
    return Done(text=f"{what} snoozed {until}.", keys=_KEYS, undo=undo, result=made)


async def unsnooze(ctx: Context, body: Findings) -> Done:
    """Show findings again that were snoozed."""
    was_snoozed = await ctx.console.unsnooze(body.about, body.subject)
    text = f"{body.subject or 'They'} shown again." if was_snoozed else "It was not snoozed."
    return Done(text=text, changed=int(was_snoozed), keys=_KEYS)


VIEWS: Final = (
    View(
        path="/",
        template="overview.html",
        load=overview,
        query=OverviewQuery,
        summary="Findings, and the number of jobs in each state.",
    ),
)
ACTIONS: Final = (
    ActionRoute(noun="attention", verb="snooze", body=Snooze, run=snooze, summary="Snooze findings."),
    ActionRoute(
        noun="attention", verb="unsnooze", body=Findings, run=unsnooze, summary="Show snoozed findings again."
    ),
)
