"""Commands about flows: jobs that are put together and wait for each other."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, cast

import msgspec

from holdfast.bounds import MAX_BATCH, Count, Name, Names, Whole
from holdfast.commands.base import CommandBase, Reply, Word
from holdfast.commands.dependencies import FollowUp
from holdfast.models import text
from holdfast.models.layout import STATES

_STATES: Final = ("gone", *STATES)
Policy = Literal["fail", "run", "wait"]


class Edge(msgspec.Struct, frozen=True, gc=False):
    """A job that another one waits for, and what becomes of that one.

    `policy`: `fail` (it fails if the parent does not complete), `run` (it runs at any end of the parent), `wait` (it waits until the
    parent is complete). What the parent ended with takes the place of `length` bytes of its data from byte `start` on; -1: it gets nothing.
    """

    parent: Name
    policy: Policy = "fail"
    start: int = -1
    length: int = 0

    def words(self) -> tuple[str, str]:
        """The option and its value."""
        return "edge", f"{self.policy} {self.start} {self.length} {self.parent}"


class FlowJob(FollowUp, frozen=True, gc=False):
    """One job of a flow."""

    edges: Sequence[Edge] = ()

    def words(self) -> list[Word]:
        """The words of its queue and budgets, then those of the job and its edges."""
        words = super().words()
        at = len(words) - len(self.job.options.words())
        words[at] = int(words[at]) + len(self.edges)
        return words + [word for edge in self.edges for word in edge.words()]


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


class FlowFacts(msgspec.Struct, frozen=True, gc=False):
    """A flow: how many jobs it has, when it was put, and a name for people."""

    id: str
    total: Whole
    created_ms: Whole
    label: str

    @property
    def jids(self) -> list[str]:
        """The jids of its jobs, in their order."""
        return [f"{self.id}-{number}" for number in range(self.total)]


class FlowGet(CommandBase, frozen=True, gc=False):
    """Look up flows. Returns the facts of each, None for an unknown one. Core: verbs/flow.lua."""

    verb: ClassVar[str] = "flow_get"
    reads: ClassVar[bool] = True

    flows: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.flows)

    def read(self, reply: Reply) -> list[FlowFacts | None]:
        return [
            FlowFacts(flow, int(row[0]), int(row[1]), text(row[2])) if row else None
            for flow, row in zip(self.flows, reply, strict=True)
        ]


class FlowStates(CommandBase, frozen=True, gc=False):
    """Return the state of each job of a flow, in their order; `gone` for one that is not kept any more. Raises JobNotFound.

    Core: verbs/flow.lua.
    """

    verb: ClassVar[str] = "flow_states"
    reads: ClassVar[bool] = True

    flow: Name

    def words(self) -> Sequence[Word]:
        return (self.flow,)

    def read(self, reply: Reply) -> list[str]:
        return [_STATES[int(code)] for code in reply]


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
    """Return what each job of a flow is and waits for, in their order. Raises JobNotFound. Core: verbs/flow.lua."""

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

    The store keeps 10,000 flows for 7 days. Core: verbs/flow.lua.
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
    """Take flows off the list; their jobs stay as they are. Returns for each whether it was there. Core: verbs/flow.lua."""

    verb: ClassVar[str] = "flow_forget"
    request_id_at: ClassVar[int] = 0

    flows: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.flows)

    def read(self, reply: Reply) -> list[bool]:
        return [bool(one) for one in reply]


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (FlowPut, FlowGet, FlowStates, FlowSteps, FlowList, FlowForget)
}
