"""Jobs: the search, one job, and what is done to jobs by jid or to all that a filter matches."""

from functools import partial
from typing import Any, Final

import msgspec

from holdfast.commands.operations import Action
from holdfast.console.operation_spec import ACTIONS as JOB_ACTIONS
from holdfast.console.operation_spec import INVERSE, Spec
from holdfast.console.operations import DryRun
from holdfast.console.search import SearchPage
from holdfast.errors import Refused, UsageError
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Question, Refusal, Repeal, View


class JobsQuery(msgspec.Struct, frozen=True):
    """A search: the filter, where it continues, and how many rows to show."""

    q: str = ""
    after: str = ""
    limit: int = 25


class JobsPage(msgspec.Struct, frozen=True):
    """A page of the jobs that a filter matches."""

    now_ms: int
    query: JobsQuery
    found: SearchPage


async def jobs(ctx: Context, query: JobsQuery) -> JobsPage:
    """Return a page of the jobs that a filter matches."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.jobs(query.q, after=query.after, limit=query.limit, wants="t")
    return JobsPage(ctx.now_ms, query, found)


# What is done to jobs.

_INLINE: Final = 100
"""So many jobs are changed while the browser waits; more are an operation in the background."""
_WORDS_FROM: Final = 1000
_REPORTED: Final = 20


class Change(Body, frozen=True, kw_only=True):
    """Jobs by jid, or all that the filter `q` matches; `value` of the action; `rate` in changes a second (0: any)."""

    jid: list[str] = []
    q: str = ""
    value: str = ""
    rate: float = 0.0
    dry_run: bool = False


class Planned(msgspec.Struct, frozen=True):
    """What an action on a filter would change."""

    dry_run: DryRun


async def change(action: Action, ctx: Context, body: Change) -> Done | Question:
    """Change jobs by jid at once, or all that a filter matches as an operation, after a dry run."""
    if bool(body.jid) == bool(body.q):
        raise UsageError("expected either jids or a filter q")
    if body.jid:
        return await _change_some(action, ctx, body)
    spec = Spec(action=action, filter=body.q, value=body.value, rate=body.rate, who=ctx.user.name)
    if body.dry_run or not body.confirm:
        dry = await ctx.console.dry_run(spec)
        return (
            Done(text=_of_dry_run(action, dry), changed=0, result=dry)
            if body.dry_run
            else _question(action, dry)
        )
    id = await ctx.site.operations.start(ctx.console, spec)
    return Done(
        text=f"Started: {action} all jobs that match {body.q!r:.200}.",
        changed=0,
        operation=id,
        keys=("operations",),
        place=ctx.path("operations", id),
    )


def _of_dry_run(action: Action, dry: DryRun) -> str:
    return f"{dry.matched - dry.refused} of {dry.matched} matching jobs would change ({action})."


def _question(action: Action, dry: DryRun) -> Question:
    changing = dry.matched - dry.refused
    details = [f"{count} {state}" for state, count in dry.by_state.most_common()]
    details += [f"{count} in queue {queue}" for queue, count in dry.by_queue.most_common(5)]
    if dry.refused:
        details.append(f"{dry.refused} are left alone: their state does not allow it")
    word = action if action in ("cancel", "delete") and changing > _WORDS_FROM else ""
    return Question(
        title=f"{action.capitalize()} {changing} jobs?",
        text=f"{dry.looked} jobs were looked at ({dry.index}).",
        button=f"{action.capitalize()} {changing} jobs",
        details=tuple(details),
        examples=tuple(dry.examples),
        word=word,
    )


async def _change_some(action: Action, ctx: Context, body: Change) -> Done:
    results = await ctx.console.act(action, *body.jid, value=body.value)
    refused = tuple(Refusal(jid, str(why)) for jid, why in results if isinstance(why, Refused))
    if refused and len(results) == 1:
        raise next(why for _, why in results if isinstance(why, Refused))
    changed = [jid for jid, result in results if result is True]
    return Done(
        text=_sentence(action, changed, results, refused),
        changed=len(changed),
        refused=refused[:_REPORTED],
        keys=("jobs", "failed", "queues", *(f"job:{jid}" for jid in changed[:50])),
        gone=tuple(changed) if action in ("cancel", "delete") else (),
        undo=_repeal(action, changed, body),
    )


def _sentence(action: Action, changed: list[str], results: list[Any], refused: tuple[Refusal, ...]) -> str:
    count = (
        f"Job {changed[0][:9]}" if len(results) == 1 and changed else f"{len(changed)} of {len(results)} jobs"
    )
    if not changed and not refused:
        return f"Nothing to change ({action})."
    return f"{count}: {action} done." + (f" {len(refused)} refused: {refused[0].why}" if refused else "")


def _repeal(action: Action, changed: list[str], body: Change) -> Repeal | None:
    """Return what undoes an action whose value is all that is needed for that."""
    if action not in ("track", "untrack", "tag", "untag") or not changed:
        return None
    return Repeal("jobs", INVERSE[action], {"jid": changed, "value": body.value})


VIEWS: Final = (
    View(
        path="/jobs",
        template="jobs.html",
        load=jobs,
        query=JobsQuery,
        summary="A page of the jobs that a filter matches.",
    ),
)
ACTIONS: Final = tuple(
    ActionRoute(
        noun="jobs",
        verb=action,
        body=Change,
        run=partial(change, action),
        summary=f"{action.capitalize()} jobs.",
    )
    for action in JOB_ACTIONS
)
