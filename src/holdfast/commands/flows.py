"""Commands about flows: jobs that are put together and wait for each other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, cast

import msgspec
from msgspec.structs import replace

from holdfast.bounds import MAX_BATCH, Count, Milliseconds, Name, Names, Whole
from holdfast.commands.base import AuditedChange, CommandBase, Reply, Word, raise_refusal
from holdfast.commands.dependencies import FollowUp
from holdfast.commands.leases import Held
from holdfast.models import text
from holdfast.models.layout import STATES

_STATES: Final = ("gone", *STATES)
SKIPS: Final = b"\0"
"""What the result of a job begins with that skips the steps behind it; the reason follows."""
LARGE_GROUP: Final = "holdfast.group"
"""The klass of the job that stands for a large group."""
ENDED: Final = frozenset(("complete", "failed", "gone"))
_OPEN: Final = "unfinished"
"""What the counts of a large group say of jobs that have not ended, where each one is not looked at."""
MAX_STATES: Final = 4096
"""The most jobs that FlowStates looks at."""
Policy = Literal["fail", "run", "wait", "rescue"]


class Edge(msgspec.Struct, frozen=True, gc=False):
    """A job that another one waits for, and what becomes of that one.

    `policy`: `fail` (it fails if the parent does not complete), `run` (it runs at any end of the parent), `wait` (it waits until the
    parent is complete), `rescue` (it runs if the parent does not complete, and is skipped otherwise). What the parent ended with takes the place of `length` bytes of its data from byte `start` on; -1: it gets nothing.
    """

    parent: Name
    policy: Policy = "fail"
    start: int = -1
    length: int = 0

    def words(self) -> tuple[str, str]:
        """The option and its value."""
        return "edge", f"{self.policy} {self.start} {self.length} {self.parent}"


class LargeGroup(msgspec.Struct, frozen=True, gc=False):
    """Any number of jobs that a job of a flow stands for: they are added by FlowAdd.

    `policy` is that of an edge. The job that stands for them ends with all results as a list, or with where they are (`pages`), which
    FlowResults reads. Each member is `stride` jobs, of which the last one counts.
    """

    policy: Policy = "fail"
    gather: Literal["list", "pages"] = "list"
    stride: int = 1

    def words(self) -> tuple[str, str]:
        """The option and its value."""
        return "group", f"{self.policy} {self.gather} {self.stride}"


class FlowJob(FollowUp, frozen=True, gc=False):
    """One job of a flow. The first one of a flow may stand for a large group."""

    edges: Sequence[Edge] = ()
    group: LargeGroup | None = None

    def words(self) -> list[Word]:
        """The words of its queue and budgets, then those of the job and its edges."""
        words = super().words()
        at = len(words) - len(self.job.options.words())
        more = [*self.edges, *([self.group] if self.group else ())]
        words[at] = int(words[at]) + len(more)
        return words + [word for one in more for word in one.words()]

    def renamed(self, names: Mapping[str, str]) -> "FlowJob":
        """Return the same under another jid, with the parents that `names` has under theirs."""
        edges = [replace(edge, parent=names.get(edge.parent, edge.parent)) for edge in self.edges]
        return replace(self, job=replace(self.job, jid=names[self.job.jid]), edges=edges)


class FlowPut(CommandBase, frozen=True, gc=False):
    """Put up to 512 jobs that wait for each other, all of them or none. Returns False if the flow was put before.

    The jid of each is the id of the flow, a hyphen and its number, from 0 on; it waits for earlier ones, or for jobs that exist. Raises
    JobNotFound for another parent, JobExists, DependencyRefused, QueueFull, TooMany. Core: verbs/flow.lua.
    """

    verb: ClassVar[str] = "flow_put"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    flow: Name
    label: Name
    jobs: Sequence[FlowJob]

    def words(self) -> Sequence[Word]:
        return (self.flow, self.label, *(word for job in self.jobs for word in job.words()))

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class EndWithFlow(CommandBase, frozen=True, gc=False):
    """Put a flow, as FlowPut, with which a job ends whose lease is held: it waits for the jobs with the numbers `last`, without a lease.

    It is complete when these are, with the result of the one of them, or, with `as_list`, the list of their results, which is kept for
    `keep_ms`; it fails if they do. Returns the new state, `depends`. Raises LeaseLost, JobExists and what FlowPut does. Core: verbs/flow.lua.
    """

    verb: ClassVar[str] = "end_with_flow"
    settles: ClassVar[bool] = True

    worker: Name
    job: Held
    flow: Name
    label: Name
    jobs: Sequence[FlowJob]
    last: Sequence[int]
    as_list: bool = False
    keep_ms: Milliseconds = 0
    data: bytes = b""

    def words(self) -> Sequence[Word]:
        words: list[Word] = [self.worker, self.job.jid, self.job.token, self.data, self.keep_ms]
        words += ("list" if self.as_list else "one", self.flow, self.label, len(self.last), *self.last)
        return words + [word for job in self.jobs for word in job.words()]

    def read(self, reply: Reply) -> str:
        result = text(reply[0])
        if result in STATES:
            return result
        raise_refusal(reply[0])
        return text(reply[1])


class Adder(msgspec.Struct, frozen=True, gc=False):
    """A running job of a large group that adds others to it: its lease, and how often this run has added before."""

    worker: Name
    jid: Name
    token: int
    times: Whole

    def words(self) -> tuple[Word, ...]:
        """Its words."""
        return (self.worker, self.jid, self.token, self.times)


class FlowAdd(CommandBase, frozen=True, gc=False):
    """Add up to 512 jobs to the large group of a flow, which have the numbers from `start` on. Returns how many are new.

    With `repeat` those that were added before stay as they are; else WrongState is raised if others came first. An `adder` may
    add to a closed group, too, and what a former run of it added stays as it is: then 0 is returned. Raises JobNotFound, LeaseLost, FlowClosed, JobExists, QueueFull, TooMany. Core: verbs/flow.lua.
    """

    verb: ClassVar[str] = "flow_add"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    flow: Name
    start: Whole
    jobs: Sequence[FlowJob]
    repeat: bool = False
    adder: Adder | None = None

    def words(self) -> Sequence[Word]:
        adder = ("", "", 0, 0) if self.adder is None else self.adder.words()
        return (
            self.flow,
            self.start,
            int(self.repeat),
            *adder,
            *(word for job in self.jobs for word in job.words()),
        )

    def read(self, reply: Reply) -> int:
        return int(reply)

    def at(self, start: int) -> "FlowAdd":
        """Return the same with other numbers."""
        if start == self.start:
            return self
        names = {f"{self.flow}-{self.start + n}": f"{self.flow}-{start + n}" for n in range(len(self.jobs))}
        return FlowAdd(self.flow, start, [job.renamed(names) for job in self.jobs], self.repeat, self.adder)


class FlowClose(CommandBase, frozen=True, gc=False):
    """Close the large group of a flow: it gets no more jobs, and what follows may start once they have ended.

    Returns False if it was closed before. Raises JobNotFound. Core: verbs/flow.lua.
    """

    verb: ClassVar[str] = "flow_close"
    request_id_at: ClassVar[int] = 0

    flow: Name

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("close flow", self.flow)

    def words(self) -> Sequence[Word]:
        return (self.flow,)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


AnyFlowCommand = FlowPut | FlowAdd | FlowClose
"""What puts a flow."""


class MemberCounts(msgspec.Struct, frozen=True, gc=False):
    """The large group of a flow: how many members it has, of how many jobs each, how they ended, whether more may be added, and when it
    got the last ones."""

    total: Whole
    stride: Whole
    complete: Whole
    failed: Whole
    cancelled: Whole
    is_open: bool
    added_ms: Whole


class FlowFacts(msgspec.Struct, frozen=True, gc=False):
    """A flow: with how many jobs it was put, when, a name for people, and the number of the job that ends it.

    Those of a large group, `members`, have the numbers behind.
    """

    id: str
    steps: Whole
    created_ms: Whole
    label: str
    last: Whole
    members: MemberCounts | None = None

    @property
    def total(self) -> int:
        """How many jobs it has."""
        return self.steps + (self.members.total * self.members.stride if self.members else 0)

    @property
    def jids(self) -> list[str]:
        """The jids of its jobs, in their order."""
        return [f"{self.id}-{number}" for number in range(self.total)]


class FlowGet(CommandBase, frozen=True, gc=False):
    """Look up flows. Returns the facts of each, None for an unknown one. Core: verbs/flow_reading.lua."""

    verb: ClassVar[str] = "flow_get"
    reads: ClassVar[bool] = True

    flows: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.flows)

    def read(self, reply: Reply) -> list[FlowFacts | None]:
        return [
            FlowFacts(flow, int(row[0]), int(row[1]), text(row[2]), int(row[-1]), _members(row[3:-1]))
            if row
            else None
            for flow, row in zip(self.flows, reply, strict=True)
        ]


def _members(row: Reply) -> MemberCounts | None:
    """Return what the rest of a row says of a large group."""
    if not row:
        return None
    total, stride, complete, failed, cancelled, is_open, added = map(int, row)
    return MemberCounts(total, stride, complete, failed, cancelled, bool(is_open), added)


def state_of(states: Sequence[str], last: Sequence[int]) -> str:
    """Return the state of a flow by those of its jobs, of which `last` end it.

    `running` while any has not ended; then `failed` if one has; `gone` if a last one is not kept any more, because it was cancelled, or
    completed long ago; else `complete`.
    """
    if not ENDED.issuperset(states):
        return "running"
    if "failed" in states:
        return "failed"
    return "gone" if any(states[number] == "gone" for number in last) else "complete"


def counts_of(facts: FlowFacts, states: Sequence[str]) -> dict[str, int]:
    """Return how many jobs of a flow are in each state, given those that it was put with; of a large group as far as it is counted:
    its calls are `complete`, `failed`, `gone` (cancelled), or `unfinished`."""
    counts, members = Counter(states), facts.members
    if members is not None:
        ended = {"complete": members.complete, "failed": members.failed, "gone": members.cancelled}
        counts.update({state: count for state, count in ended.items() if count})
        if members.is_open or members.total > sum(ended.values()):
            counts[_OPEN] += members.total - sum(ended.values())
    return dict(counts)


def to_cancel(facts: FlowFacts, numbers: Sequence[int]) -> list[str]:
    """Return the jids of jobs in the order in which they are cancelled: those that others wait for after these, so that none begins
    because another one was cancelled; those of a large group last."""
    ordered = sorted(numbers, key=lambda number: (number >= facts.steps, -number))
    return [f"{facts.id}-{number}" for number in ordered]


def summary_of(facts: FlowFacts, states: Sequence[str], last: Sequence[int] = ()) -> str:
    """Return the state of a flow, as `state_of`, given the states of the jobs that it was put with."""
    members = facts.members
    if members is None:
        return state_of(states, last or [facts.last])
    if members.is_open or members.complete + members.failed + members.cancelled < members.total:
        return "running"
    return state_of([*states, *(["failed"] if members.failed else ())], last or [facts.last])


class FlowStates(CommandBase, frozen=True, gc=False):
    """Return the state of up to 4096 jobs of a flow from the number `start` on; `gone` for one that is not kept any more.

    Raises JobNotFound. Core: verbs/flow_reading.lua.
    """

    verb: ClassVar[str] = "flow_states"
    reads: ClassVar[bool] = True

    flow: Name
    start: Whole = 0
    count: Count = MAX_STATES

    def words(self) -> Sequence[Word]:
        return (self.flow, self.start, min(self.count, MAX_STATES))

    def read(self, reply: Reply) -> list[str]:
        return [_STATES[int(code)] for code in reply]


class FlowResults(CommandBase, frozen=True, gc=False):
    """Return what up to 512 members of a large group ended with, from the one at `start` on: JSON, None where there is nothing.

    Fewer where they are long. Of a group with policy `run` each is `ok`, `result` and `failure`. Raises JobNotFound. Core: verbs/flow_reading.lua.
    """

    verb: ClassVar[str] = "flow_results"
    reads: ClassVar[bool] = True

    flow: Name
    start: Whole = 0
    count: Count = MAX_BATCH

    def words(self) -> Sequence[Word]:
        return (self.flow, self.start, min(self.count, MAX_BATCH))

    def read(self, reply: Reply) -> list[bytes | None]:
        return [bytes(one) if one else None for one in reply]


class StepParents(msgspec.Struct, frozen=True, gc=False):
    """What a job of a flow waits for: the jobs of it with the numbers `first` to `last`, or the job `jid` that is not of it."""

    policy: Policy
    first: int = 0
    last: int = 0
    jid: str = ""


class FlowStep(msgspec.Struct, frozen=True, gc=False):
    """A job of a flow as it was put: its klass, and what it waits for."""

    klass: str
    parents: Sequence[StepParents] = ()


class FlowSteps(CommandBase, frozen=True, gc=False):
    """Return what each job of a flow is and waits for, in their order. Raises JobNotFound. Core: verbs/flow_reading.lua."""

    verb: ClassVar[str] = "flow_steps"
    reads: ClassVar[bool] = True

    flow: Name

    def words(self) -> Sequence[Word]:
        return (self.flow,)

    def read(self, reply: Reply) -> list[FlowStep]:
        return [FlowStep(text(row[0]), _parents(row[1:])) for row in reply]


def _parents(row: Reply) -> list[StepParents]:
    """Return what the words of a step say: first, last and policy of each."""
    return [_parent(*row[at : at + 3]) for at in range(0, len(row), 3)]


def _parent(first: Reply, last: Reply, policy: Reply) -> StepParents:
    named = cast("Policy", text(policy))
    if isinstance(first, int):
        return StepParents(named, first, int(last))
    return StepParents(named, jid=text(first))


class FlowList(CommandBase, frozen=True, gc=False):
    """List flows, the newest first. Returns the cursor of the next page ("" after the last one), how many there are, and the ids.

    The store keeps 10,000 flows for 7 days. Core: verbs/flow_reading.lua.
    """

    verb: ClassVar[str] = "flow_list"
    reads: ClassVar[bool] = True

    cursor: str = ""
    count: Count = 100

    def words(self) -> Sequence[Word]:
        return (self.cursor, min(self.count, MAX_BATCH))

    def read(self, reply: Reply) -> tuple[str, int, list[str]]:
        return text(reply[0]), int(reply[1]), [text(flow) for flow in reply[2:]]


class FlowForget(CommandBase, frozen=True, gc=False):
    """Take flows off the list; their jobs stay as they are. Returns for each whether it was there. Core: verbs/flow_reading.lua."""

    verb: ClassVar[str] = "flow_forget"
    request_id_at: ClassVar[int] = 0

    flows: Names

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("forget flow", ", ".join(self.flows))

    def words(self) -> Sequence[Word]:
        return tuple(self.flows)

    def read(self, reply: Reply) -> list[bool]:
        return [bool(one) for one in reply]


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind
    for kind in (
        FlowPut,
        EndWithFlow,
        FlowAdd,
        FlowClose,
        FlowGet,
        FlowStates,
        FlowSteps,
        FlowResults,
        FlowList,
        FlowForget,
    )
}
