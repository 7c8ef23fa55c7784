"""What is done to jobs: by jid, or to all that a filter matches, after a dry run."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException

from holdfast.commands.job_rows import JobRow
from holdfast.commands.operations import Action
from holdfast.console.filters import term
from holdfast.console.operations.dry_run import DryRun
from holdfast.console.operations.operations import AT_ONCE
from holdfast.console.operations.spec import ACTIONS as JOB_ACTIONS
from holdfast.console.operations.spec import DELETES as _DELETES
from holdfast.console.operations.spec import INVERSE, Spec, check_spec
from holdfast.errors import Refused, UsageError
from holdfast.text import counted, duration, listed, name_or_count
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Question, Refusal, Repeal, View

_INLINE: Final = 100
"""Up to this number of jobs are changed while the browser waits; more are an operation in the background."""
WORDS_FROM: Final = 1000
"""A deletion of more jobs than this needs the role admin, and the name of the action typed."""
_MOST_LOOKED: Final = 100_000
"""Jobs that a dry run of a page looks at."""
_REPORTED: Final = 20
_BY_BUTTON: Final = "button"
"""The value of `confirm` from a button that asked for confirmation by its own label, which needs a script."""
_NAMES: Final[Mapping[str, str]] = {
    "run": "run now",
    "expire": "time out",
    "delay": "delay",
    "priority": "set the priority of",
    "retries": "set the retries of",
    "data": "change the data of",
}
_DONE: Final[Mapping[str, str]] = {
    "retry": "retried",
    "fail": "failed",
    "move": "moved",
    "move-back": "moved back",
    "cancel": "cancelled",
    "delete": "deleted",
    "expire": "timed out",
    "run": "due now",
    "delay": "delayed",
    "priority": "priority set",
    "retries": "retries set",
    "data": "data changed",
    "tag": "tagged",
    "untag": "untagged",
    "track": "tracked",
    "untrack": "untracked",
}
_ASKED: Final[Mapping[str, tuple[str, str]]] = {
    "move": ("To queue", ""),
    "delay": ("Delay in seconds", "60"),
    "priority": ("Priority (higher runs first)", "0"),
    "retries": ("Retries", "5"),
    "tag": ("Tags, separated by commas", ""),
    "untag": ("Tags, separated by commas", ""),
    "data": ("JSON merge patch (null removes a member)", "{}"),
}
"""The actions that need a value: its label, and the value that the form proposes."""
_ANY_VALUE: Final[Mapping[str, str]] = {
    "delay": "0", "priority": "0", "retries": "0", "tag": "tag", "untag": "tag", "data": "{}",
}  # fmt: skip
"""Values with which jobs are counted before the value is known."""


class Change(Body, frozen=True, kw_only=True):
    """Jobs by jid, or all that the filter `q` matches; `value` of the action; `rate` in changes a second (0: any).

    If a form has both, the filter counts: it means "all that match". With `dependents`, the jobs that wait for a cancelled or deleted
    job are cancelled or deleted too; without it, jobs that others wait for are left alone.
    """

    jid: list[str] = []
    q: str = ""
    value: str = ""
    rate: float = 0.0
    dry_run: bool = False
    dependents: bool = False


def named(action: str) -> str:
    """Return an action as people call it."""
    return _NAMES.get(action, action)


async def change(action: Action, ctx: Context, body: Change) -> Done | Question:
    """Change jobs by jid at once, or all that a filter matches; what is large or deletes is asked before."""
    if not body.jid and not body.q:
        raise UsageError("nothing is selected: expected jids or a filter q")
    if body.jid and body.q and body.confirm == "api":
        raise UsageError("expected either jids or a filter q, got both")
    if action == "move" and body.confirm and not body.value:
        raise UsageError("value: expected the queue to move to")
    if body.q:
        only_counts = body.dry_run or not body.confirm  # what has begun to change jobs is finished
        async with ctx.searching(is_watched=only_counts):
            return await _change_matching(action, ctx, body)
    if body.dry_run:
        raise UsageError("dry_run: expected a filter q, got jids")
    jids = list(dict.fromkeys(body.jid))
    question = await _question_of_some(action, ctx, body, jids)
    return question or await change_some(action, ctx, body, jids)


# All that a filter matches.


async def _change_matching(action: Action, ctx: Context, body: Change) -> Done | Question:
    spec = Spec(
        action=action,
        filter=body.q,
        value=body.value,
        rate=body.rate,
        who=ctx.user.name,
        dependents=body.dependents,
    )
    if body.dry_run:
        dry = await ctx.console.dry_run(spec, most=_MOST_LOOKED)
        return Done(text=_of_dry_run(action, dry), changed=0, result=ctx.site.mask.within(dry))
    if not body.confirm:
        return await _question_of_all(ctx, spec)
    if action in _DELETES:
        _check_allowed(ctx, action, body, await ctx.console.dry_run(spec, most=_MOST_LOOKED))
    if not body.rate:
        page = await ctx.console.jobs(str(check_spec(spec).query), limit=_INLINE)
        if not page.cursor:
            return await change_some(action, ctx, body, [row.jid for row in page.jobs])
    if _is_undoable(action, ctx, body):
        done = await _delete_later(ctx, spec, f"All jobs that match {body.q!r:.200}")
        return msgspec.structs.replace(done, place=ctx.path("operations", done.operation))
    id = await ctx.site.operations.start(ctx.console, spec)
    return Done(
        text=f"Started: {named(action)} all jobs that match {body.q!r:.200}.",
        changed=0,
        operation=id,
        keys=("operations",),
        place=ctx.path("operations", id),
    )


def _is_undoable(action: Action, ctx: Context, body: Change) -> bool:
    """Return whether jobs are deleted after a while, in which that can be undone: for people, not for programs."""
    return action in _DELETES and body.confirm != "api" and ctx.site.options.undo_seconds > 0


async def _delete_later(ctx: Context, spec: Spec, what: str) -> Done:
    """Note an operation that deletes jobs, and begins when it cannot be undone any more."""
    seconds = ctx.site.options.undo_seconds
    starts_ms = await ctx.console.now_ms() + round(seconds * 1000)
    id = await ctx.site.operations.start(ctx.console, msgspec.structs.replace(spec, starts_ms=starts_ms))
    return Done(
        text=f"{what}: {_DONE[spec.action]} in {duration(seconds)}.",
        changed=0,
        keys=("operations",),
        operation=id,
        undo=Repeal("operations", "stop", {"id": id}),
    )


def _check_allowed(ctx: Context, action: Action, body: Change, dry: DryRun) -> None:
    """Raise unless this user may delete that many jobs, and has typed the name of the action."""
    if dry.matched - dry.refused <= WORDS_FROM and dry.complete:
        return
    if not ctx.can("admin"):
        raise HTTPException(403, f"To {action} more than {WORDS_FROM:,} jobs requires the role admin.")
    if body.confirm not in (action, "api"):
        raise UsageError(f'to {action} more than {WORDS_FROM:,} jobs, type "{action}"')


def _of_dry_run(action: Action, dry: DryRun) -> str:
    return f"{_counted(dry, 'job')} of {dry.matched:,} that match would change ({action})."


def _counted(dry: DryRun, noun: str) -> str:
    return ("" if dry.complete else "at least ") + counted(dry.matched - dry.refused, noun)


async def _question_of_all(ctx: Context, spec: Spec) -> Question:
    """Return the question before a change of all that match: what it would change, counted by a dry run."""
    asked = msgspec.structs.replace(spec, value=spec.value or _ANY_VALUE.get(spec.action, ""))
    dry = ctx.site.mask.within(await ctx.console.dry_run(asked, most=_MOST_LOOKED))
    details = [f"{count:,} {state}" for state, count in dry.by_state.most_common()]
    details += [f"{count:,} in queue {queue}" for queue, count in dry.by_queue.most_common(5)]
    if dry.refused:
        details.append(f"{dry.refused:,} are left unchanged: their state does not allow it")
    many = dry.matched - dry.refused > WORDS_FROM or not dry.complete
    question = Question(
        title=f"{named(spec.action).capitalize()} {_counted(dry, 'job')}?",
        text=f"Filter: {spec.filter}. {counted(dry.looked, 'job')} searched ({dry.index}).",
        button=f"{named(spec.action).capitalize()} {_counted(dry, 'job')}",
        details=tuple(details),
        examples=tuple(dry.examples),
        word=spec.action if spec.action in _DELETES and many else "",
        inputs=_inputs(spec.action, spec.value),
    )
    if spec.action not in _DELETES:
        return question
    page = await ctx.console.jobs(str(check_spec(spec).query), limit=_INLINE)
    jids = () if page.cursor else [row.jid for row in page.jobs]
    return await _with_waiters(ctx, spec.action, question, jids)


async def _with_waiters(ctx: Context, action: Action, question: Question, jids: Sequence[str]) -> Question:
    """Return a question before jobs are deleted with those that wait for them (of no jids: they are too many to look)."""
    seconds = ctx.site.options.undo_seconds
    undo = f"It can be undone for {duration(seconds)}." if seconds else "It cannot be undone."
    found = await ctx.console.waiters(*jids) if jids else None
    if found is not None and not found.count:
        return msgspec.structs.replace(question, details=(*question.details, undo))
    count = f"{found.count:,}{'' if found.is_whole else ' or more'}" if found else ""
    many = f"the {count} jobs that wait" if found else "all jobs that wait"
    others = "the job that waits" if found and found.count == 1 else many
    return msgspec.structs.replace(
        question,
        details=(
            *question.details,
            "Jobs that others wait for are left unchanged, unless you include those.",
            undo,
        ),
        choices=((f"{named(action).capitalize()} {others} for them too", "dependents"),),
        examples=ctx.site.mask.within(found.first) if found else question.examples,
        listed=f"{count} other {'job waits' if found.count == 1 else 'jobs wait'} for them" if found else "",
    )


def _inputs(action: str, value: str) -> tuple[tuple[str, str, str], ...]:
    if value or action not in _ASKED:
        return ()
    label, proposed = _ASKED[action]
    return ((label, "value", proposed),)


# Some jobs.


async def _question_of_some(
    action: Action, ctx: Context, body: Change, jids: Sequence[str]
) -> Question | None:
    """Return the question before a change of some jobs, None where there is nothing to ask."""
    inputs, count = _inputs(action, body.value), len(jids)
    deletes = action in _DELETES
    if body.confirm not in ("", _BY_BUTTON) or not (inputs or deletes or count > _INLINE):
        return None
    jobs = "this job" if count == 1 else counted(count, "job")
    question = Question(
        title=f"{named(action).capitalize()} {jobs}?",
        text=listed(jids, 5),
        button=f"{named(action).capitalize()} {jobs}",
        inputs=inputs,
    )
    if not deletes:
        return question
    question = await _with_waiters(ctx, action, question, jids)
    was_asked = body.confirm == _BY_BUTTON and "hx-request" in ctx.request.headers
    return None if was_asked and not question.choices else question


async def change_some(
    action: Action, ctx: Context, body: Change, jids: Sequence[str], *, children_first: bool = False
) -> Done:
    """Change jobs by jid, without a question; jobs to delete are deleted after a while, if that was asked for by a person.

    `children_first`: of the jids, those that wait for others come before these, and are deleted before these.
    """
    if not jids:
        return Done(text="No job matches.", changed=0)
    if _is_undoable(action, ctx, body):
        with suppress(UsageError):  # the names are too long for a filter: then it is done at once
            named = term("jid", *(_turned(jids) if children_first else jids))
            spec = Spec(action=action, filter=named, who=ctx.user.name, dependents=body.dependents)
            check_spec(spec)
            what = name_or_count("Job", [jid[:9] for jid in jids])
            return await _delete_later(ctx, spec, what)
    before = await _before(action, ctx, jids)
    results = await ctx.console.act(action, *jids, value=body.value, dependents=body.dependents)
    refused = tuple(Refusal(jid, str(why)) for jid, why in results if isinstance(why, Refused))
    if refused and len(results) == 1:
        raise next(why for _, why in results if isinstance(why, Refused))
    changed = [jid for jid, result in results if result is True]
    return Done(
        text=_sentence(action, changed, results, refused),
        changed=len(changed),
        refused=refused[:_REPORTED],
        keys=("jobs", "failed", "queues", "tracked", *(f"job:{jid}" for jid in changed[:50])),
        gone=tuple(changed) if action in _DELETES else (),
        undo=_repeal(action, changed, body, before),
    )


def _turned(jids: Sequence[str]) -> list[str]:
    """Return jids in the order in which an operation that deletes them has to have them: it takes the last one of each chunk first."""
    return [jid for at in range(0, len(jids), AT_ONCE) for jid in reversed(jids[at : at + AT_ONCE])]


async def _before(action: Action, ctx: Context, jids: Sequence[str]) -> tuple[JobRow, ...]:
    """Return jobs as they are before a change whose undoing needs that."""
    if action not in ("move", "priority", "retries") or len(jids) > _INLINE:
        return ()
    try:
        return (await ctx.console.jobs(term("jid", *jids), limit=len(jids))).jobs
    except UsageError:  # the names are too long for a filter
        return ()


def _sentence(action: Action, changed: list[str], results: list[Any], refused: tuple[Refusal, ...]) -> str:
    if not changed and not refused:
        return f"Nothing to change ({named(action)})."
    if len(results) == 1:
        return f"Job {changed[0][:9]}: {_DONE[action]}."
    of = "" if len(changed) == len(results) else f"{len(changed):,} of "
    return f"{of}{counted(len(results), 'job')}: {_DONE[action]}." + (
        f" {len(refused):,} refused: {refused[0].why}" if refused else ""
    )


def _repeal(action: Action, changed: list[str], body: Change, before: Sequence[JobRow]) -> Repeal | None:
    """Return the action that undoes one, where one action does that for all the jobs."""
    if not changed:
        return None
    if action in ("track", "untrack", "tag", "untag"):
        return Repeal("jobs", INVERSE[action], {"jid": changed, "value": body.value})
    if action == "retry" and not body.value:
        return Repeal("jobs", "fail", {"jid": changed})
    was = {str(row.queue if action == "move" else getattr(row, action)) for row in before}
    if len(was) == 1 and {row.jid for row in before} >= set(changed):
        is_idle = {row.state for row in before} <= {"waiting", "throttled"}
        return (
            Repeal("jobs", action, {"jid": changed, "value": was.pop()})
            if action != "move" or is_idle
            else None
        )
    return None


VIEWS: Final[tuple[View, ...]] = ()
ACTIONS: Final = (
    *(
        ActionRoute(
            noun="jobs",
            verb=action,
            body=Change,
            run=partial(change, action),
            summary=f"{named(action).capitalize()} jobs.",
        )
        for action in JOB_ACTIONS
    ),
)
