"""Handles of flows: what becomes of them, and how that is changed."""

from asyncio import sleep as async_sleep
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from time import monotonic, sleep
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar, cast

from msgspec.structs import replace

from holdfast.client.calls import MAX_JOBS, Call, Group
from holdfast.client.descriptors import AnyClient
from holdfast.client.flow_plans import FlowPlan
from holdfast.client.flow_results import Results
from holdfast.client.put_handles import AsyncHandle, Handle, decoder_of
from holdfast.code.current import running
from holdfast.code.steps import Steps, await_steps, run_steps
from holdfast.commands.flows import (
    ENDED,
    MAX_STATES,
    Adder,
    FlowClose,
    FlowFacts,
    FlowGet,
    FlowStates,
    counts_of,
    summary_of,
    to_cancel,
)
from holdfast.commands.jobs import CancelBy
from holdfast.commands.operations import Act
from holdfast.errors import JobNotFound, UsageError, WrongState
from holdfast.models.layout import FLAGS, STATES
from holdfast.settings import check_timeout

R_co = TypeVar("R_co", covariant=True)

_PIECE: Final = 100
"""Jobs that one call cancels or retries: a call does a limited amount of work."""
_ADDERS: Final = 100
"""How often in a row other programs may add calls before ours."""
_LOOKS: Final = (0.05, 1.0)
"""Seconds between two looks at which jobs have ended: at first, and at most."""


class FlowOutline(NamedTuple):
    """What a handle knows of a flow: the functions of the jobs that it was put with, which of these end it, whether it has one result,
    and the function of the calls of a group whose results are read for it, None if it has no such group."""

    returns: Sequence[object]
    last: Sequence[int]
    one: bool
    members: object = None


class AnyFlowHandle(Generic[R_co]):
    """The base of the sync and the async handle of a flow: its id, and the jids of the jobs that it was put with."""

    __slots__ = ("_outline", "app", "is_new", "jid", "jids")

    def __init__(
        self,
        app: AnyClient,
        jid: str,
        outline: FlowOutline,
        is_new: bool | None,
    ) -> None:
        self.app, self.jid = app, jid
        self.jids = [f"{jid}-{number}" for number in range(len(outline.returns))]
        """Those of a large group have the numbers behind them."""
        self.is_new = is_new
        """Whether this put made the flow; None where no put did."""
        self._outline = outline

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.jid} of {len(self.jids)}>"

    def _facts(self) -> Steps[FlowFacts]:
        [facts] = yield self.app.run(FlowGet([self.jid]))
        return found(self.jid, facts)

    def _summary(self) -> Steps[tuple[FlowFacts, list[str]]]:
        facts: FlowFacts = yield from self._facts()
        states: list[str] = yield self.app.run(FlowStates(self.jid, 0, facts.steps))
        return facts, states

    def _state(self) -> Steps[str]:
        facts, states = yield from self._summary()
        return summary_of(facts, states, self._outline.last)

    def _progress(self) -> Steps[float]:
        facts, states = yield from self._summary()
        counts = counts_of(facts, states)
        return sum(counts.get(state, 0) for state in ENDED) / max(sum(counts.values()), 1)

    def _states(self) -> Steps[list[str]]:
        """Return the states of all jobs, by their numbers."""
        states: list[str] = []
        while True:
            piece: list[str] = yield self.app.run(FlowStates(self.jid, len(states)))
            states += piece
            if len(piece) < MAX_STATES:
                return states

    def _numbers(self, wanted: frozenset[str]) -> Steps[list[int]]:
        """Return the numbers of all jobs in these states."""
        states = yield from self._states()
        return [number for number, state in enumerate(states) if state in wanted]

    def _returns_of(self, number: int) -> object:
        """Return the function of a job, for its result; Any if it is not known."""
        returns = self._outline.returns
        return returns[number] if number < len(returns) else self._outline.members or Any

    def _cancel(self) -> Steps[int]:
        facts = yield from self._facts()
        open_ones = yield from self._numbers(_NOT_OVER)
        cancelled = 0
        for piece in _pieces(to_cancel(facts, open_ones)):
            cancelled += sum((yield self.app.run(CancelBy(piece, self.app.worker_name))))
        return cancelled

    def _retry(self) -> Steps[int]:
        failed = yield from self._numbers(frozenset(("failed",)))
        retried = 0
        for piece in _pieces([f"{self.jid}-{number}" for number in failed]):
            results = yield self.app.run(Act("retry", [(jid, "") for jid in piece]))
            retried += sum(one is True for one in results)
        return retried

    def _results(self, facts: FlowFacts) -> Results[Any]:
        """Return the results of a large group that nothing follows."""
        count = facts.members.total if facts.members else 0
        return Results(self.jid, count, decoder_of(self._outline.members), run=self.app.run)

    def _adder(self) -> Adder | None:
        """Return the running job as the one that adds, None if it is not counted in this flow: then only an open flow gets more."""
        current = running.get()
        if current is None:
            return None
        facts = current.facts
        if not facts.flags & FLAGS["FLOW"] or facts.jid.rpartition("-")[0] != self.jid:
            return None
        current.additions += 1
        return Adder(facts.worker, facts.jid, facts.token, current.additions)

    def _add(self, calls: Iterable[Call[object]]) -> Steps[int]:
        group = Group(calls)
        if not group.calls:
            return 0
        facts = yield from self._facts()
        if facts.members is None:
            raise UsageError(
                f"add: flow {self.jid} was not put with open=True, and has no group of more than {MAX_JOBS} jobs"
            )
        plan = FlowPlan(group, self.jid, self.app.settings, group, True)
        added, start = 0, facts.total
        for command in plan.additions(group, start, repeat=False):
            adder = self._adder()
            for _ in range(_ADDERS):
                try:
                    added += yield self.app.run(replace(command.at(start), adder=adder))
                    break
                except WrongState:
                    start = (yield from self._facts()).total
            else:
                raise WrongState(f"flow {self.jid}: other programs add calls all the time", "HF_WRONG_STATE")
            start += len(command.jobs)
        return added


_NOT_OVER: Final = frozenset(STATES) - {"complete"}


def _pieces(jids: Sequence[str]) -> list[list[str]]:
    return [list(jids[at : at + _PIECE]) for at in range(0, len(jids), _PIECE)]


def _deadline(timeout: float | None) -> float | None:
    seconds = check_timeout(timeout)
    return None if seconds is None else monotonic() + seconds


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - monotonic())


class FlowHandle(AnyFlowHandle[R_co]):
    """A flow that was put by a Client."""

    __slots__ = ()

    def parts(self) -> list[Handle[object]]:
        """Return a handle of each job, in the order in which they were put: parents first, a group of any number of jobs last."""
        total = len(self.jids) if self._outline.members is None else run_steps(self._facts()).total
        return [self._part(number) for number in range(total)]

    def as_ended(self, timeout: float | None = None) -> Iterator[Handle[object]]:
        """Go through the handles of its jobs as they end, until all have. Raises TimeoutError after `timeout` seconds."""
        deadline, watch = _deadline(timeout), _Ended()
        while True:
            for number in watch.new_ones(run_steps(self._states())):
                yield self._part(number)
            if watch.is_over and not _is_open(run_steps(self._facts())):
                return
            sleep(watch.pause(deadline))

    def _part(self, number: int) -> Handle[object]:
        return Handle(self.app, f"{self.jid}-{number}", self._returns_of(number))

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result of the last call, of a group for the list of all, at most `timeout` seconds; None: for ever.

        Raises JobFailed, JobCancelled, JobNotFound, TimeoutError, as `Handle.result`.
        """
        deadline = _deadline(timeout)
        results = [self._part(number).result(_left(deadline)) for number in self._outline.last]
        if self._outline.one:
            return cast("R_co", results[0])
        if self._outline.members is None:
            return cast("R_co", results)
        return cast("R_co", list(self._results(run_steps(self._facts()))))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the last call, or all of a group, have ended. Returns False after `timeout` seconds."""
        deadline = _deadline(timeout)
        return all(self._part(number).wait(_left(deadline)) for number in self._outline.last)

    def add(self, calls: Iterable[Call[object]]) -> int:
        """Add calls to the group of a flow that was put with `open=True`. Returns how many jobs that were.

        A running job of the group may add others as long as it runs, closed or not: `app.flow(jid).add(…)`; if it runs again, what it added
        before counts, in the order of its additions. Raises FlowClosed, LeaseLost, UsageError, QueueFull: then those in front of it were
        added.
        """
        return run_steps(self._add(calls))

    def close(self) -> bool:
        """Add no more calls: what follows the group may start once all have ended. Returns False if it was closed before."""
        return self.app.run(FlowClose(self.jid)) is True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Close the flow, unless an exception was raised: then it can be put again, to go on."""
        if kind is None:
            self.close()

    @property
    def counts(self) -> dict[str, int]:
        """How many of its jobs are in each state; `gone` are complete or cancelled ones that are not kept any more."""
        return dict(Counter(run_steps(self._states())))

    @property
    def state(self) -> str:
        """`running` while any of its jobs has not ended; then `failed` if one has; `gone` if the last one is not kept any more, because
        it was cancelled, or completed long ago; else `complete`."""
        return run_steps(self._state())

    @property
    def progress(self) -> float:
        """The part of its jobs that have ended, from 0 to 1."""
        return run_steps(self._progress())

    def cancel(self) -> int:
        """Cancel its jobs that are not complete, the last ones first. Returns how many. Raises DependencyRefused."""
        return run_steps(self._cancel())

    def retry(self) -> int:
        """Retry its failed jobs; those that failed because an earlier one did wait for that again. Returns how many."""
        return run_steps(self._retry())


class AsyncFlowHandle(AnyFlowHandle[R_co]):
    """A flow that was put by an AsyncClient. `await handle` is `await handle.result()`."""

    __slots__ = ()

    async def parts(self) -> list[AsyncHandle[object]]:
        """Return a handle of each job, in the order in which they were put."""
        is_known = self._outline.members is None
        total = len(self.jids) if is_known else (await await_steps(self._facts())).total
        return [self._part(number) for number in range(total)]

    async def as_ended(self, timeout: float | None = None) -> AsyncIterator[AsyncHandle[object]]:
        """Go through the handles of its jobs as they end, until all have. Raises TimeoutError after `timeout` seconds."""
        deadline, watch = _deadline(timeout), _Ended()
        while True:
            for number in watch.new_ones(await await_steps(self._states())):
                yield self._part(number)
            if watch.is_over and not _is_open(await await_steps(self._facts())):
                return
            await async_sleep(watch.pause(deadline))

    def _part(self, number: int) -> AsyncHandle[object]:
        return AsyncHandle(self.app, f"{self.jid}-{number}", self._returns_of(number))

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result, as `FlowHandle.result`."""
        deadline = _deadline(timeout)
        results = [await self._part(number).result(_left(deadline)) for number in self._outline.last]
        if self._outline.one:
            return cast("R_co", results[0])
        if self._outline.members is None:
            return cast("R_co", results)
        of_group = self._results(await await_steps(self._facts()))
        return cast("R_co", [one async for one in of_group])

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the last call, or all of a group, have ended, as `FlowHandle.wait`."""
        deadline = _deadline(timeout)
        for number in self._outline.last:
            if not await self._part(number).wait(_left(deadline)):
                return False
        return True

    async def add(self, calls: Iterable[Call[object]]) -> int:
        """Add calls to the group of an open flow, as `FlowHandle.add`."""
        return await await_steps(self._add(calls))

    async def close(self) -> bool:
        """Add no more calls, as `FlowHandle.close`."""
        return await self.app.run(FlowClose(self.jid)) is True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        """Close the flow, unless an exception was raised."""
        if kind is None:
            await self.close()

    @property
    async def counts(self) -> dict[str, int]:
        """How many of its jobs are in each state: `await handle.counts`."""
        return dict(Counter(await await_steps(self._states())))

    @property
    async def state(self) -> str:
        """`running`, `failed`, `gone` or `complete`: `await handle.state`."""
        return await await_steps(self._state())

    @property
    async def progress(self) -> float:
        """The part of its jobs that have ended: `await handle.progress`."""
        return await await_steps(self._progress())

    async def cancel(self) -> int:
        """Cancel its jobs that are not complete, as `FlowHandle.cancel`."""
        return await await_steps(self._cancel())

    async def retry(self) -> int:
        """Retry its failed jobs, as `FlowHandle.retry`."""
        return await await_steps(self._retry())

    def __await__(self) -> Generator[object, None, R_co]:
        return self.result().__await__()


class _Ended:
    """Which jobs of a flow have ended since the last look."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._pause, self.is_over = _LOOKS[0], False

    def new_ones(self, states: Sequence[str]) -> list[int]:
        """Return the numbers of the jobs that have ended since the last look."""
        new = [n for n, state in enumerate(states) if state in ENDED and n not in self._seen]
        self._seen.update(new)
        self.is_over = len(self._seen) == len(states)
        if new:
            self._pause = _LOOKS[0]
        return new

    def pause(self, deadline: float | None) -> float:
        """Return how many seconds to wait until the next look. Raises TimeoutError after `deadline`."""
        left = _left(deadline)
        if left == 0:
            raise TimeoutError("jobs of the flow have not ended in time")
        self._pause = min(2 * self._pause, _LOOKS[1])
        return self._pause if left is None else min(self._pause, left)


def _is_open(facts: FlowFacts) -> bool:
    return facts.members is not None and facts.members.is_open


def outline_of(made: FlowPlan) -> FlowOutline:
    """Return what a handle knows of a flow that is put."""
    returns: list[object] = [Any if call is None else call.entry for call in made.calls]
    members = None
    if made.large is not None:
        members = made.large.calls[0].entry if made.large.calls else Any
    return FlowOutline(returns, made.last, not made.is_group, members)


def outline_found(facts: FlowFacts) -> FlowOutline:
    """Return what a handle knows of a flow that was looked up."""
    is_group = facts.members is not None and facts.steps == 1
    return FlowOutline([Any] * facts.steps, [facts.last], not is_group, Any if facts.members else None)


def found(jid: str, facts: FlowFacts | None) -> FlowFacts:
    """Return the facts of a flow. Raises JobNotFound where it does not exist."""
    if facts is None:
        raise JobNotFound(f"flow {jid} does not exist", "HF_JOB_NOT_FOUND")
    return facts
