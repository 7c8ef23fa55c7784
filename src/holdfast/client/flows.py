"""Put a flow, and follow what becomes of it."""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from time import monotonic
from typing import Any, Final, Generic, TypeVar, cast

from holdfast.client.calls import PLACE, AnyGroup, Call, CallEdge, Group, Parent
from holdfast.client.descriptors import AnyClient
from holdfast.client.jobs.dependencies import follow_up_of
from holdfast.client.put_handles import AsyncHandle, Handle
from holdfast.client.put_options import make_put
from holdfast.commands.flows import Edge, FlowFacts, FlowJob, FlowPut, FlowStates
from holdfast.commands.jobs import Cancel
from holdfast.commands.operations import Act
from holdfast.errors import JobNotFound, UsageError
from holdfast.ids import mint_jid
from holdfast.settings import Settings, check_name, check_timeout

R_co = TypeVar("R_co", covariant=True)

MAX_JOBS: Final = 512
_ENDED: Final = frozenset(("complete", "failed", "gone"))
_PIECE: Final = 100
"""Jobs that one call cancels or retries: a call does a limited amount of work."""
_NO_OPTION: Final = {
    "jid": "give the flow one: put(flow, jid=…)",
    "only_new": "the same flow is put once",
    "depends": "write call.after(…)",
    "unique_key": "unique jobs cannot be part of a flow",
}


class FlowPlan:
    """The jobs of a flow in the order in which they are put, parents first."""

    def __init__(self, flow: Call[object] | AnyGroup, jid: str, settings: Settings) -> None:
        self.id, self._settings = jid, settings
        self.calls: list[Call[object]] = []
        self.jobs: list[FlowJob] = []
        self._numbers: dict[int, int] = {}
        last = [flow] if isinstance(flow, Call) else list(flow.calls)
        for call in last:
            self._add(call, flow.before if isinstance(flow, Group) else ())
        self.last = [self._numbers[id(call)] for call in last]
        self.is_group = isinstance(flow, Group)
        if not self.calls:
            raise UsageError("a flow has at least one job, and this group is empty")

    def command(self) -> FlowPut:
        """Return the command that puts it. Raises UsageError."""
        label = self.calls[-1].entry.name.rpartition(".")[2]
        return FlowPut(self.id, label, self.jobs)

    def _add(self, last: Call[object], inherited: Sequence[CallEdge]) -> None:
        """Add a call behind all that it waits for; the first jobs of it wait for those of `inherited`, too.

        Without recursion: a chain may be longer than Python's stack.
        """
        stack: list[tuple[Call[object], Sequence[CallEdge], list[CallEdge] | None]] = [
            (last, inherited, None)
        ]
        while stack:
            call, inherited, edges = stack.pop()
            if id(call) in self._numbers:
                continue
            if edges is None:
                edges, parents = _parents_of(call, inherited)
                stack.append((call, inherited, edges))
                stack += [(parent, above, None) for parent, above in reversed(parents)]
                continue
            if len(self.calls) == MAX_JOBS:
                raise UsageError(f"a flow has at most {MAX_JOBS} jobs")
            number = self._numbers[id(call)] = len(self.calls)
            self.calls.append(call)
            self.jobs.append(self._job(call, number, edges))

    def _job(self, call: Call[object], number: int, edges: Sequence[CallEdge]) -> FlowJob:
        queue, options = call.job.put_options()
        for name in options:
            if name in _NO_OPTION:
                raise UsageError(f"a job of a flow has no {name}: {_NO_OPTION[name]}")
        if call.entry.unique:
            raise UsageError(f"{call.entry.name} is unique, and unique jobs cannot be part of a flow")
        put = make_put(
            self._settings, queue, call.job.stored_name, call.data, {**options, "jid": f"{self.id}-{number}"}
        )
        one = follow_up_of(put)
        own = self._edges(call, edges)
        parents = Counter(edge.parent for edge in own)
        if parents and max(parents.values()) > 1:
            raise UsageError(
                f"{call!r} waits for the same call twice: make it two calls, or use its result once"
            )
        return FlowJob(one.queue, one.job, one.priority, one.retries, one.delay_ms, one.max_losses, own)

    def _edges(self, call: Call[object], edges: Sequence[CallEdge]) -> list[Edge]:
        starts, made = iter(call.starts), list[Edge]()
        for parent, policy, passes in edges:
            start = next(starts) if passes else -1
            if not isinstance(parent, Group):
                jid = parent if isinstance(parent, str) else self._jid(parent)
                made.append(Edge(jid, policy, start, len(PLACE) if passes else 0))
                continue
            for at, member in enumerate(parent.calls):
                place = start + 1 + at * (len(PLACE) + 1) if passes else -1
                made.append(Edge(self._jid(member), policy, place, len(PLACE) if passes else 0))
        return made

    def _jid(self, call: Call[object]) -> str:
        return f"{self.id}-{self._numbers[id(call)]}"


_Above = tuple[Call[object], Sequence[CallEdge]]


def _parents_of(call: Call[object], inherited: Sequence[CallEdge]) -> tuple[list[CallEdge], list[_Above]]:
    """Return the edges of a call, and its parents with what their first jobs wait for, too."""
    before, edges = [*inherited, *call.before], list(call.edges)
    parents = [one for edge in edges for one in _calls_of(edge.parent, before)]
    if not parents:
        # Nothing comes before it, or only groups without calls: it is one of the first jobs.
        edges += before
        parents = [one for edge in before for one in _calls_of(edge.parent, ())]
    return edges, parents


def _calls_of(parent: Parent, before: Sequence[CallEdge]) -> list[_Above]:
    if isinstance(parent, Group):
        return [(call, [*before, *parent.before]) for call in parent.calls]
    return [(parent, before)] if isinstance(parent, Call) else []


def plan(flow: object, jid: object, settings: Settings) -> FlowPlan:
    """Return the jobs of a flow. Raises UsageError for what is none, and for options that its jobs cannot have."""
    if not isinstance(flow, (Call, Group)):
        raise UsageError(f"put: expected a call, chain(…) or group(…), got {flow!r:.80}")
    name = mint_jid() if jid is None else check_name("jid", jid)
    return FlowPlan(cast("Call[object] | Group[object]", flow), name, settings)


def state_of(states: Sequence[str], last: Sequence[int]) -> str:
    """Return the state of a flow by those of its jobs, of which `last` end it.

    `running` while any has not ended; then `failed` if one has; `gone` if a last one is not kept any more, because it was cancelled, or
    completed long ago; else `complete`.
    """
    if not _ENDED.issuperset(states):
        return "running"
    if "failed" in states:
        return "failed"
    return "gone" if any(states[number] == "gone" for number in last) else "complete"


class AnyFlowHandle(Generic[R_co]):
    """The base of the sync and the async handle of a flow: its id, and the jids of its jobs."""

    __slots__ = ("_last", "_one", "_returns", "app", "is_new", "jid", "jids")

    def __init__(
        self,
        app: AnyClient,
        jids: Sequence[str],
        last: Sequence[int],
        one: bool,
        returns: Sequence[object],
        is_new: bool | None,
    ) -> None:
        self.app = app
        self.jids = list(jids)
        self.jid = self.jids[0].rpartition("-")[0]
        self.is_new = is_new
        """Whether this put made the flow; None where no put did."""
        self._last, self._one, self._returns = list(last), one, list(returns)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.jid} of {len(self.jids)}>"


def _progress(counts: Mapping[str, int]) -> float:
    return sum(counts.get(state, 0) for state in _ENDED) / max(sum(counts.values()), 1)


def _pieces(jids: Sequence[str]) -> list[list[str]]:
    return [list(jids[at : at + _PIECE]) for at in range(0, len(jids), _PIECE)]


def _retries(jids: Sequence[str], states: Sequence[str]) -> list[Act]:
    failed = [jid for jid, state in zip(jids, states, strict=True) if state == "failed"]
    return [Act("retry", [(jid, "") for jid in piece]) for piece in _pieces(failed)]


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - monotonic())


class FlowHandle(AnyFlowHandle[R_co]):
    """A flow that was put by a Client."""

    __slots__ = ()

    def parts(self) -> list[Handle[object]]:
        """Return a handle of each job, in the order in which they were put: parents first."""
        return [Handle(self.app, jid, returns) for jid, returns in zip(self.jids, self._returns, strict=True)]

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result of the last call, of a group for the list of all, at most `timeout` seconds; None: for ever.

        Raises JobFailed, JobCancelled, JobNotFound, TimeoutError, as `Handle.result`.
        """
        seconds = check_timeout(timeout)
        deadline = None if seconds is None else monotonic() + seconds
        parts = self.parts()
        results = [parts[number].result(_left(deadline)) for number in self._last]
        return cast("R_co", results[0] if self._one else results)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the last call, or all of a group, have ended. Returns False after `timeout` seconds."""
        seconds = check_timeout(timeout)
        deadline = None if seconds is None else monotonic() + seconds
        parts = self.parts()
        return all(parts[number].wait(_left(deadline)) for number in self._last)

    @property
    def counts(self) -> dict[str, int]:
        """How many of its jobs are in each state; `gone` are complete or cancelled ones that are not kept any more."""
        return dict(Counter(self.app.run(FlowStates(self.jid))))

    @property
    def state(self) -> str:
        """`running` while any of its jobs has not ended; then `failed` if one has; `gone` if the last one is not kept any more, because
        it was cancelled, or completed long ago; else `complete`."""
        return state_of(self.app.run(FlowStates(self.jid)), self._last)

    @property
    def progress(self) -> float:
        """The part of its jobs that have ended, from 0 to 1."""
        return _progress(self.counts)

    def cancel(self) -> int:
        """Cancel its jobs that are not complete, the last ones first. Returns how many. Raises DependencyRefused."""
        return sum(sum(self.app.run(Cancel(piece))) for piece in _pieces(self.jids[::-1]))

    def retry(self) -> int:
        """Retry its failed jobs; those that failed because an earlier one did wait for that again. Returns how many."""
        states = self.app.run(FlowStates(self.jid))
        return sum(one is True for act in _retries(self.jids, states) for one in self.app.run(act))


class AsyncFlowHandle(AnyFlowHandle[R_co]):
    """A flow that was put by an AsyncClient. `await handle` is `await handle.result()`."""

    __slots__ = ()

    def parts(self) -> list[AsyncHandle[object]]:
        """Return a handle of each job, in the order in which they were put."""
        return [AsyncHandle(self.app, jid, kind) for jid, kind in zip(self.jids, self._returns, strict=True)]

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result, as `FlowHandle.result`."""
        seconds = check_timeout(timeout)
        deadline = None if seconds is None else monotonic() + seconds
        parts = self.parts()
        results = [await parts[number].result(_left(deadline)) for number in self._last]
        return cast("R_co", results[0] if self._one else results)

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the last call, or all of a group, have ended, as `FlowHandle.wait`."""
        seconds = check_timeout(timeout)
        deadline = None if seconds is None else monotonic() + seconds
        parts = self.parts()
        for number in self._last:
            if not await parts[number].wait(_left(deadline)):
                return False
        return True

    @property
    async def counts(self) -> dict[str, int]:
        """How many of its jobs are in each state: `await handle.counts`."""
        return dict(Counter(await self.app.run(FlowStates(self.jid))))

    @property
    async def state(self) -> str:
        """`running`, `failed`, `gone` or `complete`: `await handle.state`."""
        return state_of(await self.app.run(FlowStates(self.jid)), self._last)

    @property
    async def progress(self) -> float:
        """The part of its jobs that have ended: `await handle.progress`."""
        return _progress(await self.counts)

    async def cancel(self) -> int:
        """Cancel its jobs that are not complete, as `FlowHandle.cancel`."""
        return sum([sum(await self.app.run(Cancel(piece))) for piece in _pieces(self.jids[::-1])])

    async def retry(self) -> int:
        """Retry its failed jobs, as `FlowHandle.retry`."""
        states = await self.app.run(FlowStates(self.jid))
        return sum([one is True for act in _retries(self.jids, states) for one in await self.app.run(act)])

    def __await__(self) -> Generator[object, None, R_co]:
        return self.result().__await__()


def handle_arguments(made: FlowPlan, is_new: bool) -> tuple[list[str], list[int], bool, list[object], bool]:
    """Return what a handle of this flow is made of."""
    entries: list[object] = [call.entry for call in made.calls]
    return [job.job.jid for job in made.jobs], made.last, not made.is_group, entries, is_new


def found_arguments(
    jid: str, found: Sequence[FlowFacts | None]
) -> tuple[list[str], list[int], bool, list[object], None]:
    """Return the same of a flow that was looked up. Raises JobNotFound."""
    facts = found[0]
    if facts is None:
        raise JobNotFound(f"flow {jid} does not exist", "HF_JOB_NOT_FOUND")
    return facts.jids, [facts.total - 1], True, [Any] * facts.total, None
