"""`Console` and `AsyncConsole`: everything that operators see and do, over a client. With the async one all is awaited.

console = Console(client, actor="ada@laptop")
page = console.jobs("state:failed queue:mail-* created<2h")
console.act("retry", page.jobs[0].jid)
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.client.config import setting_command
from holdfast.client.descriptors import (
    AnyClient,
    AsyncMethods,
    CommandMethod,
    PlanMethod,
    StepMethod,
    SyncMethods,
    run_plan,
)
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.admin import AuditLine, Info, PatternFacts, Patterns
from holdfast.commands.failures import FailureGroup
from holdfast.commands.jobs import Outcome
from holdfast.commands.operations import Action
from holdfast.commands.queues import ThrottleDelete, ThrottleRelease
from holdfast.commands.recurring import RecurCancel, RecurPause, RecurringFacts, RecurRun, RecurUpdate
from holdfast.commands.topics import TopicCounts
from holdfast.commands.workers import HeldJob, WorkerFacts, WorkerForget
from holdfast.console import actions
from holdfast.console.filters import parse
from holdfast.console.health import snooze
from holdfast.console.health.snooze import Snooze
from holdfast.console.operations import operations
from holdfast.console.operations.dry_run import DryRun, dry_run
from holdfast.console.operations.operations import Operation, RunningOperation
from holdfast.console.operations.spec import Spec
from holdfast.console.read import job_queries, namespace_queries, queries
from holdfast.console.read.flows import FlowVerbs
from holdfast.console.read.job_queries import FailureDetail, JobDetail
from holdfast.console.read.metrics import MOST_QUEUES, Metric, figures, metrics
from holdfast.console.read.named import ConsoleQueueVerbs, ConsoleTopicVerbs, NamedVerbs
from holdfast.console.read.overview import Overview, overview, snoozed
from holdfast.console.read.queries import Page, Throttle, WorkerDetail
from holdfast.console.search.search import SearchPage, search
from holdfast.console.transfer import TransferVerbs
from holdfast.errors import Refused, WrongState
from holdfast.settings import MAX_BATCH, check_name, check_names, check_throttle, check_whole
from holdfast.wire.plans import Plan, Planner

MOST_LOOKED: Final = 1_000_000_000
LONGEST_PAUSE: Final = 10.0  # seconds between two heartbeats of an operation that is run slowly


def _now(ask: Planner) -> Plan[int]:
    info = yield from ask(Info())
    return info.now_ms


def _ignore(_: object) -> None: ...


class ConsoleVerbs(TransferVerbs, NamedVerbs, ConsoleQueueVerbs, ConsoleTopicVerbs, FlowVerbs):
    """The queries and actions of operators. `actor` is who acts, for the audit log; without it nothing is audited."""

    _client: AnyClient

    def __init__(self, client: AnyClient, actor: str = "") -> None:
        self._client = client.acting_as(actor) if actor else client
        self.actor = actor
        self.runner = f"{socket.gethostname()[:60]}-{os.getpid()}"

    @property
    def flags(self) -> str:
        """What a command line needs to reach the same store and namespace, with a blank before it; "" for nothing."""
        return self._client.settings.flags

    # What there is.

    @PlanMethod
    def now_ms(self, ask: Planner) -> Plan[int]:
        """The time of the store in milliseconds."""
        return _now(ask)

    @PlanMethod
    def overview(self, ask: Planner, most: int = 12, *, each: bool = False) -> Plan[Overview]:
        """Counts of everything, what needs attention (`each`: not gathered by kind), the `most` busiest queues and latest groups."""
        size = check_whole("most", most, 0, 10_000)
        return (yield from overview(ask, self._client.shard, (yield from _now(ask)), size, each))

    @PlanMethod
    def snoozes(self, ask: Planner) -> Plan[tuple[Snooze, ...]]:
        """The snoozes, the oldest first."""
        return snooze.snoozes(ask)

    @PlanMethod
    def snooze(self, ask: Planner, about: str, subject: str = "", *, seconds: float = 0) -> Plan[Snooze]:
        """Leave findings out of the overview for a number of seconds (0: until they grow), for all operators.

        `about` is a kind of finding, or a noun (`failure group`) for all kinds about that; a subject of "" is any. Raises UsageError, UnknownName.
        """
        now, shard = (yield from _now(ask)), self._client.shard
        return (yield from snoozed(ask, shard, self.actor, now, about, subject, seconds))

    @PlanMethod
    def unsnooze(self, ask: Planner, about: str, subject: str = "") -> Plan[bool]:
        """Show findings again that were snoozed. Returns whether they were."""
        return snooze.remove(ask, self.actor, about, subject)

    @PlanMethod
    def metrics(self, ask: Planner, most_queues: int = MOST_QUEUES) -> Plan[list[Metric]]:
        """The figures for monitoring. Up to `most_queues` queues have series of their own."""
        found = yield from figures(
            ask,
            self._client.shard,
            (yield from _now(ask)),
            check_whole("most_queues", most_queues, 0, 10_000),
        )
        return metrics(found)

    @PlanMethod
    def jobs(
        self, ask: Planner, filter: str = "", *, after: str = "", limit: int = 25, wants: str = ""
    ) -> Plan[SearchPage]:
        """A page of the jobs that a filter matches. It looks at up to 5,000 jobs; its cursor continues.

        `wants` names what else the rows should have: `d` data, `t` tags, `e` failures. Raises FilterError.
        """
        query = parse(filter)
        size = check_whole("limit", limit, 1, MAX_BATCH)
        return (yield from search(ask, query, (yield from _now(ask)), size, after, wants))

    @PlanMethod
    def job(self, ask: Planner, jid: str) -> Plan[JobDetail | RecurringFacts]:
        """One job with its runs, relatives and explanation, or the recurring job of that jid. Raises JobNotFound."""
        return job_queries.job(ask, jid, self._client.settings.flags)

    @PlanMethod
    def outcome(self, ask: Planner, jid: str) -> Plan[Outcome]:
        """How a job ended, with its result as long as that is kept. Its status is `open` before, and `gone` if nothing is known."""
        return job_queries.outcome(ask, jid)

    @StepMethod
    def wait_for(self, jid: str, seconds: float) -> Steps[Outcome]:
        """Wait until a job has ended, and return how; `open` if it has not ended after `seconds`."""
        client: Any = self._client
        outcome: Outcome = yield client.wait_for(jid, seconds)
        return outcome

    @PlanMethod
    def failures(self, ask: Planner, pattern: str = "*") -> Plan[list[FailureGroup]]:
        """The failure groups, the one with the latest failure first."""
        return job_queries.failures(ask, pattern)

    @PlanMethod
    def failed_queues(self, ask: Planner, *groups: str) -> Plan[dict[str, tuple[str, ...]]]:
        """The queues of the newest jobs of failure groups, by group."""
        return job_queries.failed_queues(ask, groups)

    @PlanMethod
    def failure(self, ask: Planner, group: str, sample: int = job_queries.SAMPLE) -> Plan[FailureDetail]:
        """One failure group, and what its newest `sample` jobs have in common."""
        return job_queries.failure(ask, group, sample)

    @PlanMethod
    def recurring(
        self, ask: Planner, pattern: str = "*", *, after: str = "", limit: int = 100
    ) -> Plan[Page[RecurringFacts]]:
        """A page of recurring jobs, by queue, the next due one first."""
        return namespace_queries.recurring(ask, pattern, after, limit)

    @PlanMethod
    def vanished_recurring(self, ask: Planner, module: str = "") -> Plan[list[RecurringFacts]]:
        """The recurring jobs that code declared, in `module` if it is given, and declares no more."""
        return namespace_queries.vanished_recurring(ask, module)

    @PlanMethod
    def topics(self, ask: Planner, *, after: str = "", limit: int = 100) -> Plan[Page[TopicCounts]]:
        """A page of topics with their counts."""
        return namespace_queries.topics(ask, after, limit)

    @PlanMethod
    def workers(self, ask: Planner, *, after: str = "", limit: int = 64) -> Plan[Page[WorkerFacts]]:
        """A page of workers, most recently seen first."""
        return queries.workers(ask, after, limit)

    @PlanMethod
    def worker(self, ask: Planner, name: str) -> Plan[WorkerDetail]:
        """One worker, and what each of its slots runs since when."""
        return queries.worker(ask, name)

    @PlanMethod
    def held(self, ask: Planner, worker: str = "") -> Plan[list[HeldJob]]:
        """The jobs that a worker holds, or all of them, the one held longest first."""
        return queries.held(ask, worker)

    @PlanMethod
    def throttles(self, ask: Planner, *, after: str = "", limit: int = 100) -> Plan[Page[Throttle]]:
        """A page of throttles that have a limit, in no order."""
        return queries.throttles(ask, after, limit)

    @PlanMethod
    def throttle(self, ask: Planner, id: str, limit: int = 25) -> Plan[Throttle]:
        """One throttle with its first holders and waiters."""
        return queries.throttle(ask, id, limit)

    @PlanMethod
    def tags(self, ask: Planner, *, after: str = "", limit: int = 100) -> Plan[Page[tuple[str, int]]]:
        """A page of tags with the number of their jobs, most used first."""
        return namespace_queries.tags(ask, after, limit)

    @PlanMethod
    def settings(self, ask: Planner) -> Plan[namespace_queries.NamespaceSettings]:
        """Every setting with its value, default and meaning."""
        return namespace_queries.settings(ask)

    @CommandMethod
    def patterns(self) -> Command[PatternFacts]:
        """The patterns and priorities of queues."""
        return Patterns()

    @PlanMethod
    def audit(self, ask: Planner, *, before: str = "", limit: int = 25) -> Plan[Page[AuditLine]]:
        """A page of the audit log, newest first."""
        return namespace_queries.audit(ask, before, limit)

    # What is done to single things.

    @PlanMethod
    def act(
        self, ask: Planner, action: Action, *jids: str, value: str = "", dependents: bool = False
    ) -> Plan[list[tuple[str, bool | Refused]]]:
        """Change jobs: retry, move, cancel, delete, expire, run, delay, priority, retries, tag, untag, track or untrack.

        `value`, `dependents`: see `Spec`. Returns for each jid True (changed), False (nothing to change) or why it was refused.
        """
        return actions.act(ask, self.actor, Spec(action=action, value=value, dependents=dependents), jids)

    @PlanMethod
    def edit(
        self, ask: Planner, jid: str, data: object = None, *, patch: str = "", seen: bytes | None = None
    ) -> Plan[bool]:
        """Replace the data of a job that does not run, or apply a JSON merge patch. Raises WrongState.

        `seen` are the data that the change was made of: any others are left alone.
        """
        return actions.edit(ask, self.actor, jid, data, patch, seen)

    @PlanMethod
    def quiet(self, ask: Planner, *workers: str) -> Plan[dict[str, list[str]]]:
        """Let workers finish their jobs and take no more. Returns by name the workers that it stands for."""
        return actions.quiet(ask, workers, True)

    @PlanMethod
    def resume_workers(self, ask: Planner, *workers: str) -> Plan[dict[str, list[str]]]:
        """Let quiet workers take jobs again. Returns by name the workers that it stands for."""
        return actions.quiet(ask, workers, False)

    @CommandMethod
    def forget_workers(self, *workers: str) -> Command[int]:
        """Delete workers from the list; their jobs continue. Returns how many were known."""
        return WorkerForget(check_names("worker", workers, MAX_BATCH))

    @CommandMethod
    def set_throttle(
        self, id: str, maximum: int | None, seconds: float = 0, *, seen: int | None = None
    ) -> Command[int]:
        """Set how many jobs of a throttle run at once (0: any number, None: the present limit), without end or for a number of seconds.

        `seen` is the maximum that it has to have. Raises WrongState.
        """
        return actions.set_throttle(id, maximum, seconds, seen)

    @CommandMethod
    def delete_throttle(self, id: str) -> Command[bool]:
        """Delete the limit of a throttle. Returns whether it had one."""
        return ThrottleDelete(check_throttle(id))

    @CommandMethod
    def release_throttle(self, id: str, *jids: str) -> Command[int]:
        """Take slots of a throttle from jobs, which continue. Returns how many held one."""
        return ThrottleRelease(check_throttle(id), check_names("jid", jids, MAX_BATCH))

    @CommandMethod
    def configure(self, name: str, value: object, *, seen: str | None = None) -> Command[object]:
        """Write a setting, or with None reset it to its default, if it has the value that was `seen`.

        Raises UsageError, WrongState.
        """
        return setting_command(name, value, seen)

    @CommandMethod
    def pause_recurring(self, jid: str, on: bool = True, why: str = "", until_ms: int = 0) -> Command[bool]:
        """Pause a recurring job, until `until_ms` (epoch) if that is not 0, or (`on` False) let it continue. Returns whether that changed anything."""
        return RecurPause(check_name("jid", jid), on, self.actor, actions.checked_reason(why), until_ms)

    @CommandMethod
    def run_recurring(self, jid: str) -> Command[str]:
        """Put a job of a recurring job now, beside its schedule. Returns its jid."""
        return RecurRun(check_name("jid", jid))

    @CommandMethod
    def edit_recurring(self, change: RecurUpdate) -> Command[bool]:
        """Change attributes of a recurring job."""
        return actions.checked_edit(change)

    @CommandMethod
    def delete_recurring(self, *jids: str) -> Command[list[bool]]:
        """Delete recurring jobs; jobs that were put stay. Returns whether each existed."""
        return RecurCancel(check_names("jid", jids, MAX_BATCH))

    # What is done to all jobs that a filter matches.

    @PlanMethod
    def dry_run(
        self, ask: Planner, spec: Spec, most: int = MOST_LOOKED, on_page: Callable[[DryRun], None] = _ignore
    ) -> Plan[DryRun]:
        """Count the jobs that an operation would change, with examples; looks at up to `most` jobs."""
        return (yield from dry_run(ask, spec, (yield from _now(ask)), most, on_page))

    @PlanMethod
    def start_operation(self, ask: Planner, spec: Spec) -> Plan[RunningOperation]:
        """Note an operation in the store and the audit log; `run_operation` runs it."""
        named = msgspec.structs.replace(spec, who=spec.who or self.actor)
        return (yield from operations.start(ask, named, self.runner, (yield from _now(ask))))

    @PlanMethod
    def resume_operation(self, ask: Planner, id: str) -> Plan[RunningOperation]:
        """Take over an operation that was stopped, or whose program has ended; `run_operation` runs it."""
        return (yield from operations.resume(ask, id, self.runner, (yield from _now(ask))))

    @PlanMethod
    def undo_operation(self, ask: Planner, id: str) -> Plan[RunningOperation]:
        """Begin to undo an operation; `run_operation` runs that. Possible for an hour. Raises WrongState."""
        return (yield from operations.undo(ask, id, self.actor, self.runner, (yield from _now(ask))))

    @PlanMethod
    def stop_operation(self, ask: Planner, id: str) -> Plan[bool]:
        """Stop an operation, whoever runs it. Returns whether it was running."""
        return operations.stop(ask, id, self.actor)

    @StepMethod
    def run_operation(
        self, running: RunningOperation, on_step: Callable[[RunningOperation], None] = _ignore
    ) -> Steps[Operation]:
        """Run an operation to its end, or until somebody stops it. Each step is reported."""
        now: int = (yield run_plan(self._client, _now)) if running.spec.starts_ms else 0
        begun, rate = time.monotonic() + max(running.spec.starts_ms - now, 0) / 1000, running.spec.rate
        while not running.is_over and begun > time.monotonic():
            yield self._pause(min(begun - time.monotonic(), LONGEST_PAUSE))
            try:
                yield run_plan(self._client, operations.keep, running)
            except WrongState:
                running.is_over = True  # it was stopped before it began
        while not running.is_over:
            try:
                yield run_plan(self._client, self._step, running)
                on_step(running)
                due = begun + running.changed / rate if rate else 0.0
                while not running.is_over and due > time.monotonic():
                    yield self._pause(min(due - time.monotonic(), LONGEST_PAUSE))
                    yield run_plan(self._client, operations.keep, running)
            except WrongState:
                break  # it was stopped, or taken over
        found: Operation = yield run_plan(self._client, self._operation, running.id)
        return found

    def _step(self, ask: Planner, running: RunningOperation) -> Plan[int]:
        rate = running.spec.rate
        count = min(max(int(rate), 1), operations.AT_ONCE) if rate else operations.AT_ONCE
        return operations.step(ask, running, count)

    def _operation(self, ask: Planner, id: str) -> Plan[Operation]:
        return (yield from namespace_queries.operation(ask, id, (yield from _now(ask))))

    def _pause(self, seconds: float) -> Any:
        raise NotImplementedError

    @PlanMethod
    def operations(self, ask: Planner, *, offset: int = 0, limit: int = 25) -> Plan[list[Operation]]:
        """The operations on many jobs, the newest first."""
        return (yield from namespace_queries.operations(ask, offset, limit, (yield from _now(ask))))

    @PlanMethod
    def operation(self, ask: Planner, id: str) -> Plan[Operation]:
        """One operation with its first refusals. Raises OperationNotFound."""
        return self._operation(ask, id)


class Console(ConsoleVerbs, SyncMethods):
    """The console of a sync client."""

    def _pause(self, seconds: float) -> Any:
        time.sleep(max(seconds, 0))


class AsyncConsole(ConsoleVerbs, AsyncMethods):
    """The console of an async client."""

    def _pause(self, seconds: float) -> Any:
        return asyncio.sleep(max(seconds, 0))
