"""What is done to jobs: by jid, or to all that a filter matches, after a dry run; and to the data and dependencies of one."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import msgspec
from starlette.exceptions import HTTPException

from holdfast.commands.job_rows import JobRow
from holdfast.commands.operations import Action
from holdfast.console.filters import term
from holdfast.console.job_queries import JobDetail
from holdfast.console.operation_spec import ACTIONS as JOB_ACTIONS
from holdfast.console.operation_spec import INVERSE, Spec, check_spec, merged, patch_of
from holdfast.console.operations import DryRun
from holdfast.console.plain import stored
from holdfast.errors import Refused, UsageError, WrongState
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Question, Refusal, Repeal, View

_INLINE: Final = 100
"""Up to so many jobs are changed while the browser waits; more are an operation in the background."""
_WORDS_FROM: Final = 1000
"""Above so many jobs a deletion needs the role admin, and its name typed."""
_MOST_LOOKED: Final = 100_000
"""Jobs that a dry run of a page looks at."""
_REPORTED: Final = 20
_DELETES: Final = ("cancel", "delete")
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
    "delay": ("Start in so many seconds", "60"),
    "priority": ("Priority (higher runs first)", "0"),
    "retries": ("Retries", "5"),
    "tag": ("Tags, separated by commas", ""),
    "untag": ("Tags, separated by commas", ""),
    "data": ("JSON merge patch (null removes a member)", "{}"),
}
"""The actions that need a value: what it is called, and what it usually is."""
_ANY_VALUE: Final[Mapping[str, str]] = {
    "delay": "0", "priority": "0", "retries": "0", "tag": "tag", "untag": "tag", "data": "{}",
}  # fmt: skip
"""Values with which jobs are counted before the value is known."""


class Change(Body, frozen=True, kw_only=True):
    """Jobs by jid, or all that the filter `q` matches; `value` of the action; `rate` in changes a second (0: any).

    A form may have both: then the filter counts, for it means "all that match".
    """

    jid: list[str] = []
    q: str = ""
    value: str = ""
    rate: float = 0.0
    dry_run: bool = False


def named(action: str) -> str:
    """Return an action as people call it."""
    return _NAMES.get(action, action)


async def change(action: Action, ctx: Context, body: Change) -> Done | Question:
    """Change jobs by jid at once, or all that a filter matches; what is large or deletes is asked before."""
    if not body.jid and not body.q:
        raise UsageError("nothing is selected: expected jids or a filter q")
    if body.jid and body.q and body.confirm == "api":
        raise UsageError("expected either jids or a filter q, got both")
    if body.q:
        return await _change_matching(action, ctx, body)
    if body.dry_run:
        raise UsageError("dry_run: expected a filter q, got jids")
    question = _question_of_some(action, ctx, body)
    return question or await _change_some(action, ctx, body, list(dict.fromkeys(body.jid)))


# All that a filter matches.


async def _change_matching(action: Action, ctx: Context, body: Change) -> Done | Question:
    spec = Spec(action=action, filter=body.q, value=body.value, rate=body.rate, who=ctx.user.name)
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
            return await _change_some(action, ctx, body, [row.jid for row in page.jobs])
    id = await ctx.site.operations.start(ctx.console, spec)
    return Done(
        text=f"Started: {named(action)} all jobs that match {body.q!r:.200}.",
        changed=0,
        operation=id,
        keys=("operations",),
        place=ctx.path("operations", id),
    )


def _check_allowed(ctx: Context, action: Action, body: Change, dry: DryRun) -> None:
    """Raise unless so many jobs may be deleted by this user, who has typed the word for it."""
    if dry.matched - dry.refused <= _WORDS_FROM and dry.complete:
        return
    if not ctx.can("admin"):
        raise HTTPException(403, f"To {action} more than {_WORDS_FROM:,} jobs needs the role admin.")
    if body.confirm not in (action, "api"):
        raise UsageError(f'to {action} more than {_WORDS_FROM:,} jobs, type "{action}"')


def _of_dry_run(action: Action, dry: DryRun) -> str:
    return f"{_counted(dry)} of {dry.matched:,} matching jobs would change ({action})."


def _counted(dry: DryRun) -> str:
    return ("" if dry.complete else "at least ") + f"{dry.matched - dry.refused:,}"


async def _question_of_all(ctx: Context, spec: Spec) -> Question:
    """Return the question before a change of all that match: what it would change, counted by a dry run."""
    counted = msgspec.structs.replace(spec, value=spec.value or _ANY_VALUE.get(spec.action, ""))
    dry = ctx.site.mask.within(await ctx.console.dry_run(counted, most=_MOST_LOOKED))
    details = [f"{count:,} {state}" for state, count in dry.by_state.most_common()]
    details += [f"{count:,} in queue {queue}" for queue, count in dry.by_queue.most_common(5)]
    if dry.refused:
        details.append(f"{dry.refused:,} are left alone: their state does not allow it")
    if spec.action in _DELETES:
        details.append("This cannot be undone. Jobs that others depend on are left alone.")
    many = dry.matched - dry.refused > _WORDS_FROM or not dry.complete
    return Question(
        title=f"{named(spec.action).capitalize()} {_counted(dry)} jobs?",
        text=f"Filter: {spec.filter}. {dry.looked:,} jobs were looked at ({dry.index}).",
        button=f"{named(spec.action).capitalize()} {_counted(dry)} jobs",
        details=tuple(details),
        examples=tuple(dry.examples),
        word=spec.action if spec.action in _DELETES and many else "",
        inputs=_inputs(spec.action, spec.value),
    )


def _inputs(action: str, value: str) -> tuple[tuple[str, str, str], ...]:
    if value or action not in _ASKED:
        return ()
    label, usual = _ASKED[action]
    return ((label, "value", usual),)


# Some jobs.


def _question_of_some(action: Action, ctx: Context, body: Change) -> Question | None:
    """Return the question before a change of some jobs, None where there is nothing to ask.

    With a script the buttons ask by themselves before jobs are deleted.
    """
    inputs, count = _inputs(action, body.value), len(body.jid)
    deletes = action in _DELETES and "hx-request" not in ctx.request.headers
    if body.confirm or not (inputs or deletes or count > _INLINE):
        return None
    jobs = "this job" if count == 1 else f"{count} jobs"
    details = ("This cannot be undone. Jobs that others depend on are left alone.",) if deletes else ()
    return Question(
        title=f"{named(action).capitalize()} {jobs}?",
        text=", ".join(body.jid[:5]) + (f" and {count - 5} more" if count > 5 else ""),
        button=f"{named(action).capitalize()} {jobs}",
        details=details,
        inputs=inputs,
    )


async def _change_some(action: Action, ctx: Context, body: Change, jids: Sequence[str]) -> Done:
    if not jids:
        return Done(text="No job matches.", changed=0)
    before = await _before(action, ctx, jids)
    results = await ctx.console.act(action, *jids, value=body.value)
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
    count = f"{len(changed):,}" if len(changed) == len(results) else f"{len(changed):,} of {len(results):,}"
    return f"{count} jobs: {_DONE[action]}." + (
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


# The data and the dependencies of one job.


class Edit(Body, frozen=True, kw_only=True):
    """New data of a job as JSON, or a merge patch; `seen` is the digest of the data that the change was made of.

    `then` puts the job to work again: `retry` a failed one, `move` into `queue` ("": its own).
    """

    jid: str
    data: str = ""
    patch: str = ""
    seen: str = ""
    then: Literal["", "retry", "move"] = ""
    queue: str = ""


def digest_of(data: bytes) -> str:
    """Return the digest of the data of a job, by which a form names what it shows."""
    return hashlib.sha256(data).hexdigest()[:16]


async def edit(ctx: Context, body: Edit) -> Done | Question:
    """Change the data of a job that does not run, after its difference was shown; and put it to work again if asked."""
    found = await ctx.console.job(body.jid)
    if not isinstance(found, JobDetail):
        raise UsageError("this is a recurring job: change it on its page")
    data = found.facts.data
    if body.seen and body.seen != digest_of(data):
        raise WrongState(f"the data of {body.jid} was changed meanwhile", "HF_WRONG_STATE")
    new = _new_data(ctx, body, data)
    if not body.confirm:
        return _question_of_edit(body, ctx.data(data), ctx.site.mask(new))
    changed = await ctx.console.edit(body.jid, new, seen=data)
    again = await _put_again(ctx, body)
    text = "The data were changed" if changed else "The data stayed as they are"
    return Done(
        text=f"Job {body.jid[:9]}: {text}{again}.",
        changed=int(changed or bool(again)),
        keys=("jobs", "failed", "queues", f"job:{body.jid}"),
    )


async def _put_again(ctx: Context, body: Edit) -> str:
    if not body.then:
        return ""
    [(_, result)] = await ctx.console.act(body.then, body.jid, value=body.queue)
    if isinstance(result, Refused):
        raise result
    return ", and the job waits again" if result else ""


def _new_data(ctx: Context, body: Edit, data: bytes) -> Any:
    """Return the new data. Raises UsageError for what is no JSON, and where the form could not show all of them."""
    if bool(body.data) == bool(body.patch):
        raise UsageError("expected either data or a patch")
    if body.patch:
        return merged(stored(data), patch_of(body.patch))
    if ctx.data(data) != stored(data):
        raise UsageError("parts of these data are masked here: change them by a merge patch")
    try:
        return json.loads(body.data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"data: this is no JSON: {error}") from None


def _question_of_edit(body: Edit, before: Any, after: Any) -> Question:
    queue = f"queue {body.queue}" if body.queue else "its queue"
    then = {"": "", "retry": " and retry it", "move": f" and put it into {queue}"}[body.then]
    return Question(
        title=f"Change the data of this job{then}?",
        text="The data stay as they are." if before == after else "This is what changes.",
        button="Save and requeue" if body.then else "Save",
        diff=() if before == after else (before, after),
    )


class Undepend(Body, frozen=True, kw_only=True):
    """Jobs that a job waits for no longer; none: all that it waits for."""

    jid: str
    parent: list[str] = []


async def undepend(ctx: Context, body: Undepend) -> Done:
    """Let a job wait for some jobs no longer."""
    await ctx.console.undepend(body.jid, *body.parent)
    others = f"{len(body.parent)} jobs" if body.parent else "other jobs"
    named_one = body.parent[0][:9] if len(body.parent) == 1 else others
    return Done(
        text=f"Job {body.jid[:9]} waits for {named_one} no longer.",
        keys=("jobs", "queues", *(f"job:{jid}" for jid in (body.jid, *body.parent))),
    )


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
    ActionRoute(noun="jobs", verb="edit", body=Edit, run=edit, summary="Change the data of a job."),
    ActionRoute(
        noun="jobs", verb="undepend", body=Undepend, run=undepend, summary="Remove dependencies of a job."
    ),
)
