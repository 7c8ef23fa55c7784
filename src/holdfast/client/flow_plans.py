"""The jobs that a flow is put with: which there are, in which order, and what each waits for."""

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, Literal, cast

from msgspec.structs import replace

from holdfast.client.calls import MAX_JOBS, PLACE, AnyGroup, Call, CallEdge, Group, Parent
from holdfast.client.flow_results import Results
from holdfast.client.jobs.dependencies import follow_up_of
from holdfast.client.put_options import make_put
from holdfast.commands.flows import (
    LARGE_GROUP,
    AnyFlowCommand,
    Edge,
    FlowAdd,
    FlowClose,
    FlowJob,
    FlowPut,
    LargeGroup,
    Policy,
)
from holdfast.commands.options import JobWithOptions
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.models.layout import LEVEL
from holdfast.settings import Settings, check_name

_WORDS: Final = 4096
"""Jobs of a large group that one call adds have together about as many words: those without options have nine."""
_NO_OPTION: Final = {
    "jid": "give the flow one: put(flow, jid=…)",
    "only_new": "the same flow is put once",
    "depends": "write call.after(…)",
    "unique_key": "unique jobs cannot be part of a flow",
}
_LONGEST: Final = 180
"""Bytes of the id of a flow with a large group: the numbers of its jobs come behind it, and grow."""
_Above = tuple[Call[object], Sequence[CallEdge]]


class _TooManyJobs(UsageError):
    """A flow has more jobs than are put in one step."""


class FlowPlan:
    """The jobs of a flow in the order in which they are put, parents first.

    `large` is the group of it that has any number of calls, None if there is none: job 0 stands for it, and its own jobs have the
    numbers behind all others. `is_open`: it is not closed yet.
    """

    def __init__(
        self,
        flow: Call[object] | AnyGroup,
        jid: str,
        settings: Settings,
        large: AnyGroup | None,
        is_open: bool,
    ) -> None:
        self.id, self.large, self.is_open = jid, large, is_open
        self._settings = settings
        self.jobs: list[FlowJob] = []
        self.calls: list[Call[object] | None] = []
        self._numbers: dict[int, int] = {}
        self._followers: list[tuple[Call[object], CallEdge]] = []
        self._inner: dict[int, Call[object]] = {}
        if large is not None:
            self._numbers[id(large)] = 0
            self.calls.append(None)
        self.is_group = isinstance(flow, Group)
        ends: Sequence[Call[object]] = flow.calls if isinstance(flow, Group) else [flow]
        for one in () if flow is large else ends:
            self._add(one, flow.before if isinstance(flow, Group) else ())
        self.last = [0] if flow is large else [self._numbers[id(one)] for one in ends]
        if not self.calls:
            raise UsageError("a flow has at least one job, and this group is empty")
        self.jobs = _with_levels(self.jobs, self.calls[len(self.calls) - len(self.jobs) :])
        if large is not None:
            self.jobs.insert(0, self._standing(large))

    def commands(self) -> Iterator[AnyFlowCommand]:
        """Go through the commands that put it; the first one returns whether it is new. Raises UsageError."""
        put = FlowPut(self.id, self.label(), self.jobs)
        if self.large is None:
            yield put
            return
        additions = self.additions(self.large, len(self.jobs), repeat=True)
        first = list(islice(additions, 1))  # what is wrong in these calls is found before anything is put
        yield put
        yield from first
        yield from additions
        if not self.is_open:
            yield FlowClose(self.id)

    def additions(self, group: AnyGroup, start: int, *, repeat: bool) -> Iterator[FlowAdd]:
        """Go through the commands that add the calls of a group, whose jobs have the numbers from `start` on. Raises UsageError."""
        piece: list[FlowJob] = []
        weight = 0
        for call in group.members():
            jobs = self._member(call, start + len(piece))
            words = sum(len(job.words()) for job in jobs)
            if piece and (weight + words > _WORDS or len(piece) + len(jobs) > MAX_JOBS):
                yield FlowAdd(self.id, start, piece, repeat)
                start, piece, weight = start + len(piece), [], 0
            piece += jobs
            weight += words
        if piece:
            yield FlowAdd(self.id, start, piece, repeat)

    def label(self) -> str:
        """Return a name for people: that of its last function."""
        named = self.calls[-1] or (self.large.calls[0] if self.large and self.large.calls else None)
        return "group" if named is None else named.entry.name.rpartition(".")[2]

    def _add(self, last: Call[object], inherited: Sequence[CallEdge]) -> None:
        for call, edges in self._ordered(last, inherited, self._numbers):
            self._append(call, edges)
            for rescuer in call.rescuers():
                self._append(rescuer, rescuer.edges)

    def _append(self, call: Call[object], edges: Sequence[CallEdge]) -> None:
        if len(self.calls) == MAX_JOBS:
            raise _TooManyJobs(f"a flow has at most {MAX_JOBS} jobs, and one group of any number")
        self._numbers[id(call)] = len(self.calls)
        self.jobs.append(self._job(call, len(self.calls), edges, self._numbers))
        self.calls.append(call)
        self._followers += [(call, edge) for edge in edges if edge.parent is self.large]

    def _member(self, last: Call[object], start: int) -> list[FlowJob]:
        """Return the jobs of one call of the large group, the first of which has the number `start`."""
        numbers: dict[int, int] = {}
        jobs: list[FlowJob] = []
        calls: list[Call[object]] = []
        for call, edges in self._ordered(last, (), numbers):
            if id(call) in self._inner:
                raise UsageError(f"{call!r} is part of two calls of a large group")
            if call.rescues:
                raise UsageError(
                    "on_failure: a call in a group of more than 512 jobs has none; give it to the step behind"
                )
            if call is not last:
                self._inner[id(call)] = call
            numbers[id(call)] = start + len(jobs)
            jobs.append(self._job(call, start + len(jobs), edges, numbers))
            calls.append(call)
        return _with_levels(jobs, calls, {jobs[-1].job.jid})

    def _ordered(
        self, last: Call[object], inherited: Sequence[CallEdge], numbers: dict[int, int]
    ) -> Iterator[tuple[Call[object], list[CallEdge]]]:
        """Go through a call and all that it waits for, parents first, each with its edges; not through those that have a number.

        The first jobs of it wait for those of `inherited`, too. Without recursion: a chain may be longer than Python's stack.
        """
        stack: list[tuple[Call[object], Sequence[CallEdge], list[CallEdge] | None]] = [
            (last, inherited, None)
        ]
        while stack:
            call, inherited, edges = stack.pop()
            if id(call) in numbers:
                continue
            if edges is not None:
                yield call, edges
                continue
            edges, parents = self._parents_of(call, inherited)
            stack.append((call, inherited, edges))
            stack += [(parent, above, None) for parent, above in reversed(parents)]

    def _parents_of(
        self, call: Call[object], inherited: Sequence[CallEdge]
    ) -> tuple[list[CallEdge], list[_Above]]:
        """Return the edges of a call, and its parents with what their first jobs wait for, too."""
        before, edges = [*inherited, *call.before], list(call.edges)
        parents = [one for edge in edges for one in self._calls_of(edge.parent, before)]
        if not parents and not any(edge.parent is self.large for edge in edges):
            # Nothing comes before it, or only groups without calls: it is one of the first jobs.
            edges += before
            parents = [one for edge in before for one in self._calls_of(edge.parent, ())]
        return edges, parents

    def _calls_of(self, parent: Parent, before: Sequence[CallEdge]) -> list[_Above]:
        if not isinstance(parent, Group):
            return [(parent, before)] if isinstance(parent, Call) else []
        before = [*before, *parent.before]
        if parent is not self.large:
            return [(call, before) for call in parent.calls]
        if before:
            raise UsageError(
                f"a group of more than {MAX_JOBS} jobs, or one that is open, cannot start after others"
            )
        return []

    def _job(
        self, call: Call[object], number: int, edges: Sequence[CallEdge], numbers: dict[int, int]
    ) -> FlowJob:
        queue, options = call.job.put_options()
        for name in options:
            if name in _NO_OPTION:
                raise UsageError(f"a job of a flow has no {name}: {_NO_OPTION[name]}")
        if call.entry.unique:
            raise UsageError(f"{call.entry.name} is unique, and unique jobs cannot be part of a flow")
        data, starts = (call.data, call.starts) if self.large is None else call.written(self.large)
        put = make_put(
            self._settings, queue, call.job.stored_name, data, {**options, "jid": f"{self.id}-{number}"}
        )
        one, own = follow_up_of(put), self._edges(starts, edges, numbers)
        if max(Counter(edge.parent for edge in own).values(), default=0) > 1:
            raise UsageError(
                f"{call!r} waits for the same call twice: make it two calls, or use its result once"
            )
        return FlowJob(one.queue, one.job, one.priority, one.retries, one.delay_ms, one.max_losses, own)

    def _edges(self, starts: Sequence[int], edges: Sequence[CallEdge], numbers: dict[int, int]) -> list[Edge]:
        places, made = iter(starts), list[Edge]()
        for parent, policy, passes in edges:
            start, length = next(places) if passes else -1, len(PLACE) if passes else 0
            if parent is self.large:
                # The policy is that of the job that stands for it.
                made.append(Edge(f"{self.id}-0", "fail", start, length))
            elif isinstance(parent, Group):
                for at, member in enumerate(parent.calls):
                    place = start + 1 + at * (len(PLACE) + 1) if passes else -1
                    made.append(Edge(f"{self.id}-{numbers[id(member)]}", policy, place, length))
            else:
                jid = parent if isinstance(parent, str) else f"{self.id}-{numbers[id(parent)]}"
                made.append(Edge(jid, policy, start, length))
        return made

    def _standing(self, large: AnyGroup) -> FlowJob:
        """Return the job that stands for the large group."""
        policies: set[Policy] = {edge.policy for _, edge in self._followers}
        if len(policies) > 1:
            raise UsageError(
                f"the steps behind a group of more than {MAX_JOBS} jobs have one on_failure, got {', '.join(sorted(policies))}"
            )
        policy: Policy = policies.pop() if policies else "fail"
        stride = len(self._member(large.calls[0], 0)) if large.calls else 1
        self._inner.clear()
        if self.jobs:
            queue = self.jobs[0].queue
        elif large.calls:
            queue = large.calls[0].job.put_options()[0]
        else:
            raise UsageError("an open group without a call needs a step behind it: group([]).then(total)")
        job = JobWithOptions(LARGE_GROUP, b"{}", f"{self.id}-0")
        return FlowJob(queue, job, group=LargeGroup(policy, self._gather(), stride))

    def _gather(self) -> Literal["list", "pages"]:
        """Return how the followers of the large group take its results. Raises UsageError where they differ."""
        ways: set[Literal["list", "pages"]] = set()
        for call, edge in self._followers:
            if not edge.passes:
                continue
            place = [one.parent for one in call.edges if one.passes].index(edge.parent)
            annotation = call.entry.arguments.annotation_at(place)
            ways.add("pages" if getattr(annotation, "__origin__", annotation) is Results else "list")
        if len(ways) > 1:
            raise UsageError(
                "the steps behind a large group take its results as a list, or all of them as Results[…]"
            )
        return ways.pop() if ways else "pages"


def _with_levels(
    jobs: Sequence[FlowJob], calls: Sequence[Call[object] | None], taken: AbstractSet[str] = frozenset()
) -> list[FlowJob]:
    """Return jobs, of which those need a worker of this release that keep no result, but have it taken: older ones would not send it.

    `taken` are jids of which that is known already.
    """
    wanted = taken | {
        edge.parent for job in jobs for edge in job.edges if edge.start >= 0 and edge.policy != "rescue"
    }
    return [
        _with_level(job) if job.job.jid in wanted and call is not None and not _keeps(call) else job
        for job, call in zip(jobs, calls, strict=True)
    ]


def _keeps(call: Call[object]) -> bool:
    return bool(call.changes.get("result_keep", call.entry.keep_ms))


def _with_level(job: FlowJob) -> FlowJob:
    options = replace(job.job.options, needs=LEVEL)
    return replace(job, job=replace(job.job, options=options))


def plan(flow: object, jid: object, settings: Settings, is_open: bool = False) -> FlowPlan:
    """Return the jobs of a flow. Raises UsageError for what is none, and for options that its jobs cannot have."""
    if not isinstance(flow, (Call, Group)):
        raise UsageError(f"put: expected a call, chain(…) or group(…), got {flow!r:.80}")
    whole = cast("Call[object] | AnyGroup", flow)
    name = mint_jid() if jid is None else check_name("jid", jid)
    groups = _groups_of(whole)
    large = [one for one in groups if one.is_large]
    if len(large) > 1:
        raise UsageError(f"a flow has at most one group of more than {MAX_JOBS} calls")
    if is_open and len(groups) != 1:
        raise UsageError(
            f"put: an open flow has one group, to which calls are added, and this has {len(groups)}"
        )
    if (large or is_open) and len(name.encode()) > _LONGEST:
        raise UsageError(
            f"jid: that of a flow with a large group has at most {_LONGEST} bytes, got {name!r:.80}"
        )
    if large or is_open:
        return FlowPlan(whole, name, settings, groups[0] if is_open else large[0], is_open)
    try:
        return FlowPlan(whole, name, settings, None, False)
    except _TooManyJobs:
        if len(groups) != 1:
            raise
    return FlowPlan(whole, name, settings, groups[0], False)


def _groups_of(flow: Call[object] | AnyGroup) -> list[AnyGroup]:
    """Return the groups of a flow, without those that lie in large ones."""
    stack: list[Parent] = [flow]
    seen: dict[int, Parent] = {}
    while stack:
        one = stack.pop()
        if isinstance(one, str) or id(one) in seen:
            continue
        seen[id(one)] = one
        edges = one.before if isinstance(one, Group) else [*one.edges, *one.before]
        stack += [edge.parent for edge in edges]
        if isinstance(one, Group) and not one.is_large:
            stack += one.calls
    return [one for one in seen.values() if isinstance(one, Group)]
