"""What a job waits for and what waits for it, step by step; of a flow also what did so before and has ended."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from holdfast.commands.admin import Info
from holdfast.commands.flows import LARGE_GROUP, FlowFacts, FlowGet, FlowStep, FlowSteps
from holdfast.commands.jobs import JobGet
from holdfast.console.search.search import as_counted
from holdfast.errors import JobNotFound
from holdfast.models import JobFacts
from holdfast.settings import MAX_BATCH, check_name, check_whole
from holdfast.wire.plans import Plan, Planner

MAX_DEPTH: Final = 50
MEMBER: Final = re.compile(r"(.+)-(0|[1-9]\d{0,8})", re.DOTALL | re.ASCII)
"""The jid of a job that may be part of a flow: the id of the flow, and its number."""
_Direction = Literal["before", "after"]


class TreeJob(msgspec.Struct):
    """A job of a tree, with the `jobs` that it waits for, or that wait for it.

    `on_failure` is what becomes of the waiting one of this job and the one that it is shown below, "" if that is not known. `more`: how
    many jobs below it are not shown. `is_repeated`: those are shown where it stands first.
    """

    jid: str
    state: str = "gone"
    klass: str = ""
    queue: str = ""
    on_failure: str = ""
    jobs: list["TreeJob"] = []
    more: int = 0
    is_repeated: bool = False


class JobTree(msgspec.Struct, frozen=True):
    """A job of a `flow` ("": of none) with the jobs that it waits for, and those that wait for it."""

    flow: str
    waits_for: TreeJob
    waited_for_by: TreeJob


def job_tree(ask: Planner, jid: str, depth: int, limit: int) -> Plan[JobTree]:
    """Return the tree of a job: `depth` steps and `limit` jobs in each direction, at most. Raises JobNotFound."""
    check_whole("depth", depth, 1, MAX_DEPTH)
    check_whole("limit", limit, 1, MAX_BATCH)
    known = _Known((yield from ask(Info())).now_ms)
    yield from known.read(ask, [check_name("jid", jid)])
    if known.jobs[jid] is None:
        raise JobNotFound(f"job {jid} does not exist", "HF_JOB_NOT_FOUND")
    before = yield from _branch(ask, known, jid, "before", depth, limit)
    after = yield from _branch(ask, known, jid, "after", depth, limit)
    return JobTree(known.flow_of(jid), before, after)


def _branch(
    ask: Planner, known: "_Known", jid: str, direction: _Direction, depth: int, limit: int
) -> Plan[TreeJob]:
    root = known.tree_job(jid)
    level, seen, left = [root], {jid}, limit
    for _ in range(depth):
        below: list[TreeJob] = []
        for parent in level:
            relatives = known.relatives(parent.jid, direction)
            shown = dict(list(relatives.items())[:left])
            parent.jobs = [TreeJob(one, on_failure=policy) for one, policy in shown.items()]
            parent.more, left = len(relatives) - len(shown), left - len(shown)
            if direction == "before":
                parent.more += known.members_of(parent.jid)
            below += parent.jobs
        yield from known.read(ask, [one.jid for one in below])
        level = list[TreeJob]()
        for one in below:
            found = known.tree_job(one.jid)
            one.state, one.klass, one.queue = found.state, found.klass, found.queue
            one.is_repeated = one.jid in seen
            if not one.is_repeated:
                seen.add(one.jid)
                level.append(one)
    for one in level:
        one.more = len(known.relatives(one.jid, direction))
        if direction == "before":
            one.more += known.members_of(one.jid)
    return root


class _Known:
    """The jobs that were read, and the steps of their flows."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self.jobs: dict[str, JobFacts | None] = {}
        self._flows: dict[str, tuple[FlowFacts, Sequence[FlowStep]] | None] = {}

    def read(self, ask: Planner, jids: Iterable[str]) -> Plan[None]:
        """Read jobs that are not known, and their flows."""
        new = [jid for jid in dict.fromkeys(jids) if jid not in self.jobs]
        if not new:
            return
        self.jobs.update(zip(new, (yield from ask(JobGet(new))), strict=True))
        members = [member[1] for jid in new if (member := MEMBER.fullmatch(jid))]
        flows = [flow for flow in dict.fromkeys(members) if flow not in self._flows]
        found = (yield from ask(FlowGet(flows))) if flows else []
        for flow, facts in zip(flows, found, strict=True):
            self._flows[flow] = None if facts is None else (facts, (yield from _steps(ask, flow)))

    def flow_of(self, jid: str) -> str:
        """Return the flow of a job, "" if it is of none."""
        flow = jid.rpartition("-")[0]
        found = self._flows.get(flow) if MEMBER.fullmatch(jid) else None
        return flow if found and _number(jid) < found[0].total else ""

    def tree_job(self, jid: str) -> TreeJob:
        """Return a job that was read, without others."""
        facts, step = self.jobs[jid], self._step(jid)
        if facts is None:
            return TreeJob(jid, klass=step.klass if step else "")
        return TreeJob(jid, as_counted(facts, self._now_ms).state, facts.klass, facts.queue)

    def relatives(self, jid: str, direction: _Direction) -> Mapping[str, str]:
        """Return the jobs that a job waits for, or that wait for it, with what becomes of the waiting one if the other fails."""
        facts = self.jobs[jid]
        found = self._in_flow(jid, direction)
        if facts and direction == "before":
            policies = facts.policies or [""] * len(facts.dependencies)
            pairs = zip(facts.dependencies, policies, strict=True)
            found |= {one: policy for one, policy in pairs if policy or one not in found}
        elif facts:
            found = dict.fromkeys(facts.dependents, "") | found
        return found

    def members_of(self, jid: str) -> int:
        """Return how many jobs are in the large group that a job stands for, 0 for another job."""
        facts, found = self.jobs[jid], self._flows.get(jid.rpartition("-")[0])
        if found is None or found[0].members is None or not facts or facts.klass != LARGE_GROUP:
            return 0
        return found[0].members.total

    def _in_flow(self, jid: str, direction: _Direction) -> dict[str, str]:
        flow = self.flow_of(jid)
        found = self._flows.get(flow) if flow else None
        if found is None:
            return {}
        facts, steps = found
        number = _number(jid)
        if number < len(steps):
            return (_parents if direction == "before" else _children)(steps, flow, number)
        if direction == "after" and facts.members and (number - facts.steps + 1) % facts.members.stride == 0:
            return {f"{flow}-0": ""}
        return {}

    def _step(self, jid: str) -> FlowStep | None:
        found = self._flows.get(self.flow_of(jid))
        return found[1][_number(jid)] if found and _number(jid) < len(found[1]) else None


def _number(jid: str) -> int:
    return int(jid.rpartition("-")[2])


def _steps(ask: Planner, flow: str) -> Plan[Sequence[FlowStep]]:
    """Return what the jobs of a flow wait for; nothing of one that was forgotten, or put before that was kept."""
    try:
        return (yield from ask(FlowSteps(flow)))
    except JobNotFound:
        return []


def _parents(steps: Sequence[FlowStep], flow: str, number: int) -> dict[str, str]:
    return {
        jid: one.policy
        for one in steps[number].parents
        for jid in ([one.jid] if one.jid else [f"{flow}-{at}" for at in range(one.first, one.last + 1)])
    }


def _children(steps: Sequence[FlowStep], flow: str, number: int) -> dict[str, str]:
    return {
        f"{flow}-{at}": one.policy
        for at, step in enumerate(steps)
        for one in step.parents
        if not one.jid and one.first <= number <= one.last
    }
