"""The rules for what a person should look at, written once: the overview lists what they find, the doctor sums it up.

Each rule reads a bounded number of things beside the facts that both have.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import Final

from holdfast.client.plans import all_failure_groups
from holdfast.client.queue_names import as_argument
from holdfast.client.reasons import argument, silence
from holdfast.client.recurring import declared_templates
from holdfast.code.calendar import Calendar, check_cron, check_zone, zone_of
from holdfast.code.failure import error_line
from holdfast.commands.failures import PARENT_FAILED, FailureGroup
from holdfast.commands.flows import FlowFacts, FlowGet, FlowList, FlowStates, counts_of
from holdfast.commands.job_rows import JobRow
from holdfast.commands.jobs import JobGet
from holdfast.commands.operations import Operations, Scan
from holdfast.commands.queues import ThrottleFacts, ThrottleGet, ThrottleNames
from holdfast.commands.recurring import RecurGet, RecurringFacts, RecurUnplanned, Unplanned
from holdfast.commands.views import ListSet
from holdfast.commands.workers import WorkerFacts
from holdfast.console.health.attention import Attention, NamespaceFacts, RuleFindings, Severity, is_silent
from holdfast.console.operations.operations import operation_of
from holdfast.console.read.queries import Servers, servers_of
from holdfast.console.search.filter_values import Exact
from holdfast.errors import UsageError
from holdfast.models import Counts, JobFacts
from holdfast.text import counted, one_line, short_clock, span
from holdfast.wire.plans import Plan, Planner

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_LONG_ENDED: Final = 5 * _MINUTE
_NEWEST_FLOWS: Final = 100
MANY: Final = 20
"""The smallest number of jobs that counts as a surge or a flood."""
SURGE: Final = 3.0
_MANY_FAILURES: Final = 10_000
_QUEUES: Final = 50
"""The largest number of queues of which a rule reads more than the counts."""
_MOST_THROTTLES, _MOST_FULL, _HOLDERS, _RELEASED = 200, 10, 64, 5
_DEPENDING_QUEUES, _DEPENDING, _PARENTS = 20, 32, 100
_FOLLOWING, _FLOWS = 256, 20
"""How many jobs of each group `…-ParentFailed` are read, and how many flows."""
_PAUSED, _TEMPLATES = ("9007199254740990", ""), 64
"""The score from which on the recurring jobs of a queue are paused ones, and how many of them are looked at."""
_NEXT: Final = 64
"""The number of waiting jobs that are read to find out which recurring job put them."""

# Queues.


def no_worker(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for queues in which jobs wait and from which no worker takes jobs."""
    servers = yield from _servers(ask, facts)
    programs = sum("queues" not in worker.facts for worker in _alive(facts))
    found = [
        _unserved(facts, one, servers[one.name], programs)
        for one in facts.queues
        if one.waiting and not one.paused and not servers[one.name].taking
    ]
    return RuleFindings("Every queue with waiting jobs has a worker.", found)


def _unserved(facts: NamespaceFacts, one: Counts, servers: Servers, programs: int) -> Attention:
    age = facts.now - _oldest(one)
    text = f"{counted(one.waiting, 'job waits', 'jobs wait')}, the first for {span(age)}, and "
    command = f"holdfast worker -q {as_argument(one.name)}{facts.flags}"
    if servers.quiet:
        text += "its workers are quiet: they take no jobs until they are resumed"
        command = f"holdfast workers resume{facts.flags} {argument(servers.quiet[0])}"
    elif servers.silent:
        seen = {worker.name: worker.seen_ms for worker in servers.silent}
        text += f"no worker takes jobs from this queue; {silence(seen, facts.now)}"
    else:
        text += "no worker takes jobs from this queue"
    if programs:
        text += f"; programs that pop jobs themselves ({programs}) may serve it"
    severity: Severity = "note" if programs or age < _MINUTE else "urgent"
    return Attention(severity, "no-worker", one.name, text, command, jobs=one.waiting)


def _oldest(one: Counts) -> int:
    """Return since when the next job waits: it was queued, or became due and no pop has made it ready."""
    return one.oldest_ms or one.next_ms


def waiting_long(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for queues whose next job has waited for a minute although workers take from them."""
    servers = yield from _servers(ask, facts)
    served = {name for name, one in servers.items() if one.taking}
    return RuleFindings("No job has waited long in a queue with workers.", list(_backlogs(facts, served)))


def _backlogs(facts: NamespaceFacts, served: set[str]) -> Iterator[Attention]:
    for one in facts.queues:
        age = facts.now - _oldest(one)
        is_full = one.limit and one.running >= one.limit
        if one.waiting and not one.paused and age > _MINUTE and one.name in served and not is_full:
            text = (
                f"the next job has waited for {span(age)}; {one.waiting:,} waiting, {one.running:,} running"
            )
            command = f"holdfast queues show{facts.flags} {argument(one.name)}"
            yield Attention("warning", "waiting-long", one.name, text, command, jobs=one.waiting)


def _alive(facts: NamespaceFacts) -> list[WorkerFacts]:
    return [worker for worker in facts.workers if not worker.quiet and not is_silent(worker, facts.now)]


def _servers(ask: Planner, facts: NamespaceFacts) -> Plan[dict[str, Servers]]:
    """Return the workers of the queues in which jobs wait or run."""
    used = [one.name for one in facts.queues if one.waiting or one.running or one.stalled]
    return (yield from servers_of(ask, facts.workers, used, facts.now))


def paused(_: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for paused queues in which jobs wait, and for those that were paused long ago."""
    yield from ()
    found: list[Attention] = []
    for one in facts.queues:
        age = facts.now - one.paused_since_ms if one.paused_since_ms else 0
        if one.paused and (one.waiting or age > _DAY):
            command = f"holdfast queues resume{facts.flags} {argument(one.name)}"
            text = f"paused {span(age)} ago by {_pause(facts, one)}; {counted(one.waiting, 'job waits', 'jobs wait')}"
            severity: Severity = "warning" if age > _DAY else "note"
            since = round(one.paused_since_ms)
            found.append(
                Attention(severity, "paused", one.name, text, command, jobs=one.waiting, since_ms=since)
            )
    count = sum(one.paused for one in facts.queues)
    return RuleFindings(f"{counted(count, 'queue')} paused, no job waits there.", found)


def _pause(facts: NamespaceFacts, one: Counts) -> str:
    why = f": {one_line(one.paused_why)}" if one.paused_why else ""
    left = one.paused_until_ms - facts.now
    ends = f", until {span(left)} from now" if one.paused_until_ms else ""
    return f"{one_line(one.paused_by) or 'an unnamed user'}{why}{ends}"


def stalled(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for leases that ended, and whose jobs no worker took again."""
    found: list[Attention] = []
    for one in [one for one in facts.queues if one.stalled][:_QUEUES]:
        page = yield from ask(ListSet("stalled", one.name, None, 1))
        if page.entries:
            age = facts.now - float(page.entries[0].score)
            text = f"{counted(one.stalled, 'lease')} ended, the first {span(age)} ago, and no worker has taken the job again"
            is_late = age > _LONG_ENDED
            severity: Severity = "warning" if is_late else "note"
            jobs = f"holdfast jobs list{facts.flags} {quote(f'queue:{Exact(one.name)} state:stalled')}"
            command = f"holdfast worker -q {as_argument(one.name)}{facts.flags}" if is_late else jobs
            found.append(Attention(severity, "stalled", one.name, text, command, jobs=one.stalled))
    return RuleFindings("Every expired lease was taken over by another worker.", found)


# Dependencies.


def dependencies(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for jobs that wait for failed or missing jobs: they wait until an operator acts."""
    having = sorted((one for one in facts.queues if one.depends), key=lambda one: -one.depends)
    found: list[Attention] = []
    for one in having[:_DEPENDING_QUEUES]:
        page = yield from ask(ListSet("depends", one.name, None, _DEPENDING))
        children = [job for job in (yield from ask(JobGet(page.names))) if job] if page.names else []
        parents = list(dict.fromkeys(jid for job in children for jid in job.dependencies))[:_PARENTS]
        jobs = dict(zip(parents, (yield from ask(JobGet(parents))), strict=True)) if parents else {}
        found += _waiting_for_ever(facts, one, children, jobs)
    return RuleFindings("No job waits for a job that failed.", found)


def _waiting_for_ever(
    facts: NamespaceFacts, queue: Counts, children: Sequence[JobFacts], parents: Mapping[str, JobFacts | None]
) -> Iterator[Attention]:
    over = {jid: job for jid, job in parents.items() if job is None or job.state == "failed"}
    waiting = [job for job in children if any(jid in over for jid in job.dependencies)]
    if not waiting:
        return
    child = waiting[0]
    failed = [jid for jid, job in over.items() if job is not None]
    parent = next(jid for jid in child.dependencies if jid in over)
    job = over[parent]
    since = job.failure.when_ms if job and job.failure else child.created_ms
    age = facts.now - since
    what = f"which failed {span(age)} ago" if job else "which does not exist"
    some = f" of the first {len(children)} looked at" if queue.depends > len(children) else ""
    text = f"{counted(len(waiting), 'job waits', 'jobs wait')}{some} for jobs that failed or are missing, such as {one_line(child.jid)} for {one_line(parent)}, {what}"
    command = f"holdfast jobs retry{facts.flags} {argument(*failed[:_RELEASED])}"
    if not failed:
        command = f"holdfast jobs cancel{facts.flags} {argument(child.jid)}"
    severity: Severity = "urgent" if age > _LONG_ENDED else "warning"
    yield Attention(
        severity, "depends-failed", queue.name, text, command, jobs=len(waiting), since_ms=round(since)
    )


# Flows.


def follows(group: FailureGroup) -> bool:
    """Return whether the jobs of a failure group failed only because jobs before them did."""
    return group.name.endswith(PARENT_FAILED)


def flows(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for flows in which jobs failed because a job before them did not complete: one finding for each flow."""
    groups = facts.groups
    if groups is None:
        groups = yield from all_failure_groups(ask)
    first: dict[str, JobRow] = {}
    for group in [one for one in groups if follows(one)][:_QUEUES]:
        page = yield from ask(Scan("group", group.name, None, _FOLLOWING, "e"))
        for row in page.jobs:
            flow = row.jid.rpartition("-")[0]
            if flow and (flow not in first or row.failed_ms < first[flow].failed_ms):
                first[flow] = row
    names = sorted(first, key=lambda flow: -first[flow].failed_ms)[:_FLOWS]
    known = [one for one in ((yield from ask(FlowGet(names))) if names else ()) if one is not None]
    found: list[Attention] = []
    for one in known:
        failed = counts_of(one, (yield from ask(FlowStates(one.id, 0, one.steps)))).get("failed", 0)
        if failed:
            found.append(_failed_flow(facts, one, failed, first[one.id]))
    found += yield from _open_flows(ask, facts)
    return RuleFindings("No flow has failed in the middle, or was left open.", found)


def _open_flows(ask: Planner, facts: NamespaceFacts) -> Plan[list[Attention]]:
    """Look for large groups of the newest flows that were left open: what follows them waits for that."""
    _, _, ids = yield from ask(FlowList("", _NEWEST_FLOWS))
    found: list[Attention] = []
    for flow in (yield from ask(FlowGet(ids))) if ids else ():
        members = None if flow is None else flow.members
        if flow is None or members is None or not members.is_open:
            continue
        age = facts.now - members.added_ms
        if age < _HOUR:
            continue
        text = (
            f"nothing was added to its group of {counted(members.total, 'call')} for {span(age)}, "
            "and it is open: what follows waits until the flow is put again, or closed"
        )
        command, also = (
            f"holdfast flows {verb}{facts.flags} {argument(flow.id)}" for verb in ("close", "show")
        )
        found.append(
            Attention("warning", "flow-open", flow.id, text, command, since_ms=members.added_ms, also=also)
        )
    return found


def _failed_flow(facts: NamespaceFacts, flow: FlowFacts, failed: int, first: JobRow) -> Attention:
    # The core writes "B did not complete, because A did not complete: GROUP: MESSAGE".
    _, _, origin = first.message.partition(", because ")
    why = one_line(error_line(origin or first.message))[:200]
    text = f"{why}; {failed:,} of its {counted(flow.total, 'job')} failed"
    command, also = (f"holdfast flows {verb}{facts.flags} {argument(flow.id)}" for verb in ("retry", "show"))
    return Attention(
        "warning", "flow-failed", flow.id, text, command, jobs=failed, since_ms=first.failed_ms, also=also
    )


# Workers.


def worker_gone(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for workers that hold leases and send no heartbeats."""
    servers = (yield from _servers(ask, facts)) if facts.lost else {}
    seen = {worker.name: span(facts.now - worker.seen_ms) for worker in facts.workers}
    found: list[Attention] = []
    for name, count in facts.lost.most_common():
        silence = f"silent for {seen[name]}" if name in seen else "not on the list of workers"
        text = f"{silence}, and holds {counted(count, 'job')}; other workers take a job when its lease ends, or after this command"
        command = f"holdfast jobs expire{facts.flags} --filter {quote(f'worker:{Exact(name)}')}"
        alone = [
            queue
            for queue, one in servers.items()
            if not one.taking and any(worker.name == name for worker in one.silent)
        ]
        also = ""
        if alone:
            text = f"{silence}, and holds {counted(count, 'job')}; no other worker takes jobs from queue {one_line(alone[0])}"
            command, also = f"holdfast worker -q {as_argument(alone[0])}{facts.flags}", command
        found.append(Attention("urgent", "worker-gone", name, text, command, jobs=count, also=also))
    return RuleFindings("Every worker that holds jobs sends heartbeats.", found)


# Throttles.


def throttles(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for full throttles that jobs wait for, and among these for slots of jobs that do not run any more."""
    full: dict[str, ThrottleFacts] = {}
    if any(one.throttled for one in facts.queues):
        full = yield from _full_throttles(ask)
    found: list[Attention] = []
    for name, one in full.items():
        found.append((yield from _full_throttle(ask, facts, name, one)))
    return RuleFindings("No job waits for a slot of a full throttle.", found)


def _full_throttles(ask: Planner) -> Plan[dict[str, ThrottleFacts]]:
    full: dict[str, ThrottleFacts] = {}
    cursor, names = "0", list[str]()
    while len(names) < _MOST_THROTTLES and len(full) < _MOST_FULL:
        cursor, some = yield from ask(ThrottleNames(cursor))
        names += some
        for name in some:
            one = yield from ask(ThrottleGet(name))
            if one.used >= one.maximum > 0 and one.pending:
                full[name] = one
        if cursor == "0":
            break
    return full


def _full_throttle(ask: Planner, facts: NamespaceFacts, name: str, one: ThrottleFacts) -> Plan[Attention]:
    page = yield from ask(ListSet("holders", name, None, _HOLDERS))
    jobs = (yield from ask(JobGet(page.names))) if page.names else []
    pairs = zip(page.names, jobs, strict=True)
    gone = [jid for jid, job in pairs if job is None or job.state in ("complete", "failed")]
    if gone:
        text = f"jobs that do not run hold {len(gone):,} of its {one.maximum:,} slots, such as {one_line(gone[0])}"
        command = f"holdfast throttles release{facts.flags} {argument(name, *gone[:_RELEASED])}"
        return Attention("urgent", "throttle-left", name, text, command, jobs=one.pending)
    text = f"{one.used:,} of {one.maximum:,} slots are taken, and {counted(one.pending, 'job waits', 'jobs wait')} for one"
    if page.entries:
        since = span(facts.now - float(page.entries[0].score))
        text += f"; {one_line(page.names[0])} has held one for {since}"
    command = f"holdfast throttles show{facts.flags} {argument(name)}"
    return Attention("note", "throttle-full", name, text, command, jobs=one.pending)


# Recurring jobs.


def recurring(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for recurring jobs that put more than runs, that are late, whose plan ends, and that code declares no more."""
    having = [one for one in facts.queues if one.recurring and not one.paused][:_QUEUES]
    servers = yield from _servers(ask, facts)
    found: list[Attention] = []
    for one in having:
        if one.waiting > MANY and servers[one.name].taking:
            found += yield from _flood(ask, facts, one)
        page = yield from ask(ListSet("recurring", one.name, None, 1))
        for jid, late in ((entry.member, facts.now - float(entry.score)) for entry in page.entries):
            if late > _MINUTE and all(other.subject != jid for other in found):
                what = yield from _due_job(ask, jid)
                text = f"{what} is {span(late)} late: it is put when a worker takes jobs from queue {one_line(one.name)}"
                command = f"holdfast worker -q {as_argument(one.name)}{facts.flags}"
                found.append(Attention("warning", "recurring-late", jid, text, command))
    if any(one.recurring for one in facts.queues):
        found += yield from _unplanned(ask, facts)
        found += yield from _vanished(ask, facts)
    return RuleFindings(
        f"{counted(sum(one.recurring for one in having), 'recurring job')}, none is late.", found
    )


def _due_job(ask: Planner, jid: str) -> Plan[str]:
    """Return what is due of a recurring job: of one with a calendar, for which moment."""
    [job] = yield from ask(RecurGet((jid,)))
    own = None if job is None else job.calendar
    if own is None or not own.nominal_ms:
        return "its next job"
    try:
        local = datetime.fromtimestamp(own.nominal_ms / 1000, zone_of(own.zone))
    except UsageError:  # a zone that this machine does not know
        return "its next job"
    return f"its job for {local:%a %d %b %H:%M} {one_line(own.zone)}"


def _unplanned(ask: Planner, facts: NamespaceFacts) -> Plan[list[Attention]]:
    """Return the recurring jobs whose plan ends within an hour although their calendar has more moments: nobody computes more of it."""
    short = yield from ask(RecurUnplanned(facts.now + _HOUR, _TEMPLATES))
    rows = (yield from ask(RecurGet([one.jid for one in short]))) if short else []
    found: list[Attention] = []
    for one, job in zip(short, rows, strict=True):
        why = None if job is None or job.paused else _without_plan(one, facts.now)
        if job is not None and why:
            left = one.last_ms - facts.now
            ends = f"ends {span(left)} from now" if left > 0 else f"ended {span(-left)} ago"
            text = f"its plan {ends}, and then it puts no jobs: {why}"
            command = f"holdfast worker -q {as_argument(job.queue)}{facts.flags}"
            if not why.startswith("no worker"):
                command = f"holdfast recurring show{facts.flags} {argument(one.jid)}"
            found.append(Attention("urgent", "recurring-unplanned", one.jid, text, command))
    return found


def _without_plan(one: Unplanned, now: int) -> str:
    """Return why a calendar is not planned further, "" if it has no moment left."""
    own = one.calendar
    try:
        calendar = Calendar(
            check_cron(own.cron), check_zone(own.zone), 0.0, own.start_ms / 1000, own.end_ms / 1000
        )
        has_more = calendar.first_after(max(one.last_ms, now) / 1000) is not None
    except UsageError as error:
        return one_line(str(error))
    return "no worker computes its next moments" if has_more else ""


def _vanished(ask: Planner, facts: NamespaceFacts) -> Plan[list[Attention]]:
    """Return the recurring jobs that code declared and declares no more."""
    found: list[Attention] = []
    for one in (yield from declared_templates(ask)):
        own = one.declared
        if own is not None and own.vanished_ms:
            ago = span(facts.now - own.vanished_ms)
            text = (
                f"module {one_line(own.module)} does not declare it since {ago} ago, and it still puts jobs"
            )
            command = f"holdfast recurring prune{facts.flags} --module {argument(own.module)}"
            found.append(
                Attention("note", "recurring-vanished", one.jid, text, command, since_ms=own.vanished_ms)
            )
    return found


def _flood(ask: Planner, facts: NamespaceFacts, one: Counts) -> Plan[list[Attention]]:
    """Return the recurring job that put at least half of the next jobs of a queue: their jids are its own and a number."""
    page = yield from ask(ListSet("waiting", one.name, None, _NEXT))
    [(jid, count)] = Counter(name.rpartition("-")[0] for name in page.names).most_common(1) or [("", 0)]
    if not jid or 2 * count < len(page.names):
        return []
    [job] = yield from ask(RecurGet((jid,)))
    if job is None or job.paused:
        return []
    every = span(job.interval_ms)
    text = f"puts a job every {every} into queue {one_line(one.name)}, where {counted(one.waiting, 'job waits', 'jobs wait')}"
    command = f"holdfast recurring pause{facts.flags} {argument(jid)}"
    return [Attention("warning", "recurring-flood", jid, text, command, jobs=one.waiting)]


def recurring_paused(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for paused recurring jobs that have missed a time at which they would have put a job."""
    found: list[Attention] = []
    for one in [one for one in facts.queues if one.recurring][:_QUEUES]:
        page = yield from ask(ListSet("recurring", one.name, _PAUSED, _TEMPLATES))
        rows = (yield from ask(RecurGet(page.names))) if page.names else []
        found += [
            _missing(facts, row)
            for row in rows
            if row is not None and row.paused and row.missed_by(facts.now)
        ]
    return RuleFindings("No paused recurring job has missed a run.", found)


def _missing(facts: NamespaceFacts, one: RecurringFacts) -> Attention:
    missed, since = one.missed_by(facts.now), one.paused_since_ms
    ago = f" {span(facts.now - since)} ago" if since else ""
    why = f": {one_line(one.paused_why)}" if one.paused_why else ""
    text = f"paused{ago} by {one_line(one.paused_by) or 'an unnamed user'}{why}; it has missed {counted(missed, 'run')}, the first at {short_clock(one.next_ms)}"
    commands = [f"holdfast recurring {verb}{facts.flags} {argument(one.jid)}" for verb in ("resume", "run")]
    return Attention(
        "warning", "recurring-paused", one.jid, text, commands[0], since_ms=since, also=commands[1]
    )


# Failures, operations.


def failures(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for failure groups that grow fast, are very large, or hold jobs whose code is not allowed."""
    groups = facts.groups
    if groups is None:
        groups = yield from all_failure_groups(ask)
    total = counted(sum(group.count for group in groups), "failed job")
    found = [one for group in groups for one in _failing(facts, group)]
    return RuleFindings(f"{total} in {counted(len(groups), 'group')}.", found)


def is_surge(trend: Sequence[int]) -> bool:
    """Return whether many jobs failed in the last hour of a trend, and far more than in an hour before it."""
    return trend[-1] > MANY and trend[-1] > SURGE * _average(trend[:-1])


def _average(counts: Sequence[int]) -> float:
    return sum(counts) / max(len(counts), 1)


def surge_text(group: FailureGroup) -> str:
    """Return how many jobs of a failure group failed in this hour, and before."""
    last, before = group.trend[-1], _average(group.trend[:-1])
    return f"{counted(last, 'job')} failed in this hour, {before:,.0f} an hour before; {group.count:,} in the group"


def _failing(facts: NamespaceFacts, group: FailureGroup) -> Iterator[Attention]:
    command = f"holdfast failed show{facts.flags} {argument(group.name)}"
    if is_surge(group.trend) and not follows(group):
        yield Attention(
            "urgent",
            "surge",
            group.name,
            surge_text(group),
            command,
            jobs=group.count,
            since_ms=group.first_ms,
        )
    elif group.name.endswith("-NotAllowed") and group.count:
        text = f"{counted(group.count, 'job names', 'jobs name')} code that their workers may not run"
        yield Attention(
            "warning", "not-allowed", group.name, text, command, jobs=group.count, since_ms=group.first_ms
        )
    elif group.count > _MANY_FAILURES:
        text = f"{counted(group.count, 'failed job')}, kept until retried or cancelled"
        yield Attention(
            "warning", "many-failures", group.name, text, command, jobs=group.count, since_ms=group.first_ms
        )


def operations(ask: Planner, facts: NamespaceFacts) -> Plan[RuleFindings]:
    """Look for changes of many jobs whose program is gone."""
    rows = yield from ask(Operations())
    found: list[Attention] = []
    for one in (operation_of(row, facts.now) for row in rows):
        if one.is_orphaned:
            done = f"{counted(one.changed, 'job')} changed"
            text = f"{one.spec.action} of {one_line(one.spec.filter)}: its program is gone, {one.share:.0%} done, {done}"
            command = f"holdfast operations resume{facts.flags} {argument(one.id)}"
            found.append(Attention("warning", "operation", one.id, text, command))
    return RuleFindings("No operation was interrupted.", found)


Rule = Callable[[Planner, NamespaceFacts], Plan[RuleFindings]]
RULES: Final[Mapping[str, Rule]] = {
    "leases": stalled,
    "silent workers": worker_gone,
    "idle queues": no_worker,
    "backlogs": waiting_long,
    "pauses": paused,
    "dependencies": dependencies,
    "flows": flows,
    "throttles": throttles,
    "recurrences": recurring,
    "paused recurrences": recurring_paused,
    "failures": failures,
    "operations": operations,
}
"""The rules by the name under which the doctor shows them."""
