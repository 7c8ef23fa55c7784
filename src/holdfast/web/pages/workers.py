"""Workers: all of them, one with what its slots run and the queues that it asks, and what is done to them."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.client.stacks import LiveStack
from holdfast.commands.workers import HeldJob
from holdfast.console.read.fleet import Fleet, Grouping, QueueStep, WorkerRow, row_of
from holdfast.console.search.filter_values import written
from holdfast.errors import Refused, UsageError
from holdfast.text import name_or_count
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Question, Repeal, View

_STACK_SECONDS: Final = 2.0
_SHOWN: Final = 200
"""The largest number of jobs of one worker that are shown."""
_FAILURES: Final = 100


class WorkersQuery(msgspec.Struct, frozen=True):
    """Which workers: those that take jobs of a `queue`, those with a text `q` in their name or host; grouped `by` host or version."""

    queue: str = ""
    q: str = ""
    by: Grouping = ""
    after: str = ""
    limit: int = 25


class WorkersPage(msgspec.Struct, frozen=True):
    """A page of workers."""

    now_ms: int
    fleet: Fleet
    query: WorkersQuery

    @property
    def first(self) -> int:
        """The number of the first row."""
        return int(self.query.after or 0) + 1

    @staticmethod
    def filter(name: str) -> str:
        """Return the filter of the jobs that a worker holds."""
        return f"worker:{written(name)} (state:running or state:stalled)"

    @property
    def groups(self) -> list[tuple[str, list[WorkerRow]]]:
        """The rows in groups, in their order; one group without a name if they are not grouped."""
        found: dict[str, list[WorkerRow]] = {}
        for row in self.fleet.workers.rows:
            name = getattr(row, self.query.by) or "unknown" if self.query.by else ""
            found.setdefault(name, []).append(row)
        return list(found.items())


async def workers(ctx: Context, query: WorkersQuery) -> WorkersPage:
    """Return a page of workers."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.fleet(
        queue=query.queue, name=query.q, by=query.by, after=query.after, limit=query.limit
    )
    return WorkersPage(ctx.now_ms, found, query)


class WorkerQuery(msgspec.Struct, frozen=True):
    """One worker: `stack` is the jid of a job whose stack is wanted, `failures` looks for jobs that failed here."""

    stack: str = ""
    failures: bool = False


class Slot(msgspec.Struct, frozen=True):
    """A job that a worker holds, its class, and the length of its lease in seconds."""

    job: HeldJob
    klass: str
    lease_seconds: float

    def left(self, now_ms: int) -> float:
        """Return the seconds until the lease ends, 0 if it has ended."""
        return max(self.job.expires_ms - now_ms, 0) / 1000

    def share(self, now_ms: int) -> float:
        """Return the part of the lease that is left, from 0 to 1."""
        return min(self.left(now_ms) / self.lease_seconds, 1.0) if self.lease_seconds else 0.0


class Stack(msgspec.Struct, frozen=True):
    """Where a job is in its code, or why that is not known."""

    jid: str
    pid: int = 0
    text: str = ""
    note: str = ""
    problem: str = ""


class Failures(msgspec.Struct, frozen=True):
    """The groups of the jobs that failed here: how many of the newest of each. `complete`: all failed jobs were looked at."""

    groups: tuple[tuple[str, int], ...]
    looked: int
    complete: bool


class WorkerPage(msgspec.Struct, frozen=True, kw_only=True):
    """One worker."""

    now_ms: int
    name: str
    worker: WorkerRow
    running: tuple[Slot, ...]
    stalled: tuple[Slot, ...]
    holds: int
    steps: tuple[QueueStep, ...]
    filter: str
    query: WorkerQuery
    stack: Stack | None = None
    failures: Failures | None = None

    @property
    def idle(self) -> int:
        """How many slots run nothing."""
        return max(self.worker.slots - len(self.running), 0)


async def worker(ctx: Context, name: str, query: WorkerQuery) -> WorkerPage:
    """Return one worker, what each of its slots runs, and the queues that it asks in their order."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.worker(name)
    row = row_of(found.facts, ctx.now_ms)
    settings = await ctx.console.settings()
    is_region = "fragment" in ctx.request.query_params  # which has neither stack nor failures
    slots = [
        Slot(one, found.klasses.get(one.jid, ""), settings.lease_of(one.queue))
        for one in found.holds[:_SHOWN]
    ]
    return WorkerPage(
        now_ms=ctx.now_ms,
        name=name,
        worker=msgspec.structs.replace(row, running=sum(not one.stalled for one in found.holds)),
        running=tuple(one for one in slots if not one.job.stalled),
        stalled=tuple(one for one in slots if one.job.stalled),
        holds=len(found.holds),
        steps=await ctx.console.queue_steps(*row.queues, host=row.host),
        filter=WorkersPage.filter(name),
        query=query,
        stack=await _stack(ctx, query.stack) if query.stack and not is_region else None,
        failures=await _failures(ctx, name) if query.failures and not is_region else None,
    )


async def _stack(ctx: Context, jid: str) -> Stack:
    try:
        found: LiveStack = await ctx.console.stack(jid, _STACK_SECONDS)
    except (Refused, TimeoutError) as error:
        return Stack(jid, problem=str(error))
    return Stack(jid, found.pid, ctx.site.mask.text(found.stack), found.note)


async def _failures(ctx: Context, name: str) -> Failures:
    found = await ctx.console.jobs(f"state:failed worker:{written(name)}", limit=_FAILURES, wants="e")
    groups = Counter(one.group for one in found.jobs)
    return Failures(tuple(groups.most_common()), found.looked, not found.cursor)


# What is done to workers.


class Workers(Body, frozen=True, kw_only=True):
    """Some workers, each by its name or by that of its worker command, which stands for all of its processes."""

    name: list[str]


def _keys(names: Sequence[str]) -> tuple[str, ...]:
    return ("workers", *(f"worker:{name}" for name in names[:50]))


async def quiet(ctx: Context, body: Workers) -> Done:
    """Make workers finish their jobs and take no more."""
    names = await _meant(ctx, body)
    await ctx.console.quiet(*names)
    verb = "finishes its jobs and takes no more" if len(names) == 1 else "finish their jobs and take no more"
    undo = Repeal("workers", "resume", {"name": names})
    return Done(
        text=f"{name_or_count('Worker', names)} {verb}.", changed=len(names), keys=_keys(names), undo=undo
    )


async def resume(ctx: Context, body: Workers) -> Done:
    """Make quiet workers take jobs again."""
    names = await _meant(ctx, body)
    await ctx.console.resume_workers(*names)
    verb = "takes jobs again" if len(names) == 1 else "take jobs again"
    undo = Repeal("workers", "quiet", {"name": names})
    return Done(
        text=f"{name_or_count('Worker', names)} {verb}.", changed=len(names), keys=_keys(names), undo=undo
    )


async def _meant(ctx: Context, body: Workers) -> list[str]:
    """Return the names of the workers that are meant. Raises UsageError, UnknownName."""
    if not body.name:
        raise UsageError("name: expected at least one worker")
    return [one.name for one in await ctx.console.workers_of(*body.name)]


async def forget(ctx: Context, body: Workers) -> Done | Question:
    """Delete workers from the list; their jobs continue. Of a worker that is alive this is asked first."""
    now_ms = await ctx.console.now_ms()
    found = [row_of(one, now_ms) for one in await ctx.console.workers_of(*body.name)] if body.name else []
    if not found:
        raise UsageError("name: expected at least one worker")
    names = [one.name for one in found]
    alive = [one.name for one in found if not one.is_silent]
    if alive and not body.confirm:
        return Question(
            title="Forget workers that are alive?",
            text=f"{name_or_count('Worker', alive)} sent a heartbeat within the last half minute, and is listed again at the next one.",
            button="Forget",
        )
    count = await ctx.console.forget_workers(*names)
    return Done(
        text=f"{name_or_count('Worker', names)} forgotten.",
        changed=count,
        keys=_keys(names),
        place="/workers",
    )


VIEWS: Final = (
    View(
        path="/workers",
        template="workers.html",
        load=workers,
        query=WorkersQuery,
        summary="A page of workers.",
    ),
    View(
        path="/workers/{name}", template="worker.html", load=worker, query=WorkerQuery, summary="One worker."
    ),
)
ACTIONS: Final = (
    ActionRoute(
        noun="workers",
        verb="quiet",
        body=Workers,
        run=quiet,
        summary="Make workers finish their jobs and take no more.",
    ),
    ActionRoute(
        noun="workers",
        verb="resume",
        body=Workers,
        run=resume,
        summary="Make quiet workers take jobs again.",
    ),
    ActionRoute(
        noun="workers",
        verb="forget",
        body=Workers,
        run=forget,
        role="admin",
        summary="Delete workers from the list; their jobs continue.",
    ),
)
