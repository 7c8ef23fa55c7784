"""Operations on many jobs, with what stops, resumes and undoes them, and the audit log."""

from typing import Final

import msgspec

from holdfast.commands.admin import AuditLine
from holdfast.console.operations.operations import Operation
from holdfast.console.read.queries import Page
from holdfast.errors import UsageError
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, View

_MOST: Final = 64


_COLOURS: Final = {
    "running": "running",
    "stopped": "paused",
    "done": "complete",
    "failed": "failed",
    "undone": "recurring",
}


def title_of(one: Operation) -> str:
    """Return what an operation does, in a few words."""
    value = f" {one.spec.value}" if one.spec.value and one.spec.action != "data" else ""
    return f"Undo by {one.spec.action}" if one.spec.undoes else f"{one.spec.action.capitalize()}{value}"


def state_of(one: Operation, now_ms: int) -> tuple[str, str]:
    """Return the icon and the word for the state of an operation."""
    if one.is_planned(now_ms):
        return "scheduled", "scheduled"
    if one.is_orphaned:
        return "stalled", "program is gone"
    return _COLOURS.get(one.state, "recurring"), one.state


class OperationsQuery(msgspec.Struct, frozen=True):
    """Where the list continues."""

    after: str = ""
    limit: int = 25


class OperationsPage(msgspec.Struct, frozen=True):
    """A page of operations, the newest first."""

    now_ms: int
    operations: Page[Operation]
    query: OperationsQuery

    @property
    def first(self) -> int:
        """The number of the first row."""
        return int(self.query.after or 0) + 1

    title_of = staticmethod(title_of)
    state_of = staticmethod(state_of)


async def operations(ctx: Context, query: OperationsQuery) -> OperationsPage:
    """Return a page of operations. The last hundred are kept."""
    ctx.now_ms = await ctx.console.now_ms()
    if not (query.after or "0").isdecimal() or len(query.after) > 6:
        raise UsageError(f"after: expected the cursor that the page before returned, got {query.after!r:.80}")
    first, size = int(query.after or 0), min(query.limit, _MOST)
    found = await ctx.console.operations(offset=first, limit=size)
    more = str(first + size) if len(found) == size else ""
    return OperationsPage(ctx.now_ms, Page(tuple(ctx.site.mask.within(one) for one in found), more), query)


class OperationPage(msgspec.Struct, frozen=True):
    """One operation. `rate` is in changes a second since its start, `left_seconds` how long the rest takes; None if unknown."""

    now_ms: int
    operation: Operation
    rate: float | None
    left_seconds: float | None

    @property
    def title(self) -> str:
        """What it does."""
        return title_of(self.operation)

    @property
    def state(self) -> tuple[str, str]:
        """The icon and the word for its state."""
        return state_of(self.operation, self.now_ms)

    @property
    def share(self) -> float:
        """The part that is done, from 0 to 1."""
        is_over = self.operation.state in ("done", "undone")
        return 1.0 if is_over else self.operation.share


async def operation(ctx: Context, id: str, _: msgspec.Struct) -> OperationPage:
    """Return one operation with its first refusals."""
    ctx.now_ms = await ctx.console.now_ms()
    found = ctx.site.mask.within(await ctx.console.operation(id))
    is_running = found.state == "running"
    seconds = ((ctx.now_ms if is_running else found.updated_ms) - found.created_ms) / 1000
    rate = found.changed / seconds if seconds > 0 else None
    looks = found.looked / seconds if seconds > 0 else 0.0
    rest = max(found.spec.candidates - found.looked, 0)
    return OperationPage(ctx.now_ms, found, rate, rest / looks if is_running and looks else None)


# What is done to operations.


class OneOperation(Body, frozen=True, kw_only=True):
    """An operation, by its id."""

    id: str


def _keys(*ids: str) -> tuple[str, ...]:
    return ("operations", *(f"op:{id}" for id in ids))


async def stop(ctx: Context, body: OneOperation) -> Done:
    """Stop an operation after the jobs that it changes at this moment."""
    before = await ctx.console.operation(body.id)
    was_running = await ctx.console.stop_operation(body.id)
    text = (
        "Operation stopped; it can be resumed." if was_running else f"Nothing to stop: it is {before.state}."
    )
    if was_running and before.spec.starts_ms and not before.looked:
        text = "Undone before any job was changed."
    return Done(text=text, changed=int(was_running), keys=_keys(body.id), operation=body.id)


async def resume(ctx: Context, body: OneOperation) -> Done:
    """Resume an operation that was stopped, or whose program has ended, where it was."""
    id = await ctx.site.operations.resume(ctx.console, body.id)
    return Done(text="Operation resumed.", keys=_keys(id), operation=id)


async def undo(ctx: Context, body: OneOperation) -> Done:
    """Undo what an operation changed, by another operation."""
    id = await ctx.site.operations.undo(ctx.console, body.id)
    return Done(text="Undo started.", keys=_keys(body.id, id), operation=id, place=ctx.path("operations", id))


# The audit log.


class AuditQuery(msgspec.Struct, frozen=True):
    """Which lines: those with these texts in who acted, and in what was done or its target; and where the list continues."""

    who: str = ""
    what: str = ""
    after: str = ""
    first: int = 1
    limit: int = 50


class AuditPage(msgspec.Struct, frozen=True):
    """A page of the audit log, newest first."""

    now_ms: int
    lines: Page[AuditLine]
    query: AuditQuery


async def audit(ctx: Context, query: AuditQuery) -> AuditPage:
    """Return a page of the audit log."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.audit_lines(
        before=query.after, limit=query.limit, who=query.who, what=query.what
    )
    rows = tuple(ctx.site.mask.within(line) for line in found.rows)
    return AuditPage(ctx.now_ms, msgspec.structs.replace(found, rows=rows), query)


VIEWS: Final = (
    View(
        path="/operations",
        template="operations.html",
        load=operations,
        query=OperationsQuery,
        summary="A page of operations on many jobs.",
    ),
    View(
        path="/operations/{name}",
        template="operation.html",
        load=operation,
        summary="One operation, by its id.",
    ),
    View(path="/audit", template="audit.html", load=audit, query=AuditQuery, summary="A page of the audit log."),
)  # fmt: skip
ACTIONS: Final = (
    ActionRoute(noun="operations", verb="stop", body=OneOperation, run=stop, summary="Stop an operation."),
    ActionRoute(
        noun="operations",
        verb="resume",
        body=OneOperation,
        run=resume,
        summary="Resume an operation that was stopped, or whose program has ended.",
    ),
    ActionRoute(
        noun="operations", verb="undo", body=OneOperation, run=undo, summary="Undo what an operation changed."
    ),
)
