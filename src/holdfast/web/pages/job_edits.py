"""Change the data and the dependencies of one job, and show its masked parts."""

import hashlib
import json
from typing import Any, Final, Literal

from holdfast.console.actions import Part
from holdfast.console.operations.spec import merged, patch_of
from holdfast.console.plain import stored
from holdfast.console.read.job_queries import JobDetail
from holdfast.errors import Refused, UsageError, WrongState
from holdfast.text import counted
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Question, View


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
    text = "The data was changed" if changed else "The data was not changed"
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
    """Return the new data. Raises UsageError for text that is not JSON, and if the form did not show all of the data."""
    if bool(body.data) == bool(body.patch):
        raise UsageError("expected either data or a patch")
    if body.patch:
        return merged(stored(data), patch_of(body.patch))
    if ctx.data(data) != stored(data):
        raise UsageError("parts of this data are masked here: change it with a merge patch")
    try:
        return json.loads(body.data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"data: expected JSON: {error}") from None


def _question_of_edit(body: Edit, before: Any, after: Any) -> Question:
    queue = f"queue {body.queue}" if body.queue else "its queue"
    then = {"": "", "retry": " and retry it", "move": f" and put it into {queue}"}[body.then]
    return Question(
        title=f"Change the data of this job{then}?",
        text="The data does not change." if before == after else "The data changes like this.",
        button="Save and requeue" if body.then else "Save",
        diff=() if before == after else (before, after),
    )


class Undepend(Body, frozen=True, kw_only=True):
    """Dependencies to remove from a job; without `parent`, all of them."""

    jid: str
    parent: list[str] = []


async def undepend(ctx: Context, body: Undepend) -> Done:
    """Remove dependencies of a job."""
    await ctx.console.undepend(body.jid, *body.parent)
    others = counted(len(body.parent), "job") if body.parent else "other jobs"
    named_one = body.parent[0][:9] if len(body.parent) == 1 else others
    return Done(
        text=f"Job {body.jid[:9]} no longer waits for {named_one}.",
        keys=("jobs", "queues", *(f"job:{jid}" for jid in (body.jid, *body.parent))),
    )


class Reveal(Body, frozen=True, kw_only=True):
    """A part of a job that is masked: its data, its result, or the message of its failure."""

    jid: str
    part: Part = "data"


async def reveal(ctx: Context, body: Reveal) -> Done | Question:
    """Show a part of a job without masking; the audit log names who saw it."""
    found = await ctx.console.reveal(body.jid, body.part)
    value = found.decode(errors="replace") if body.part == "message" else stored(found)
    if body.confirm == "api":
        return Done(text=f"The {body.part} of {body.jid:.200}.", changed=0, result=value)
    ctx.site.hub.changed("audit")
    return Question(
        title=f"The {body.part} of job {body.jid[:9]}",
        text="Parts of this are masked elsewhere. The audit log records that you viewed it.",
        values=(value,),
    )


VIEWS: Final[tuple[View, ...]] = ()
ACTIONS: Final = (
    ActionRoute(noun="jobs", verb="edit", body=Edit, run=edit, summary="Change the data of a job."),
    ActionRoute(
        noun="jobs", verb="undepend", body=Undepend, run=undepend, summary="Remove dependencies of a job."
    ),
    ActionRoute(
        noun="jobs",
        verb="reveal",
        body=Reveal,
        run=reveal,
        role="admin",
        summary="Show a part of a job that is masked elsewhere, with a line in the audit log.",
    ),
)
