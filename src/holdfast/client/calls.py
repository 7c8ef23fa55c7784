"""Calls of function jobs, and the flows that are built of them: `chain(fetch.call(url), parse, store)`. A call is a plan: nothing is sent."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain as chain_of
from itertools import islice
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    overload,
)

import msgspec
from msgspec import Raw

from holdfast.client.descriptors import AnyClient
from holdfast.code.job_options import PutChanges
from holdfast.code.registry import Registered
from holdfast.commands.flows import Policy
from holdfast.errors import UsageError
from holdfast.settings import HasJid, Settings, check_name

if TYPE_CHECKING:
    from holdfast.client.flow_results import Results

A = TypeVar("A")
B = TypeVar("B")
R = TypeVar("R")
P = ParamSpec("P")
S1 = TypeVar("S1")
S2 = TypeVar("S2")
S3 = TypeVar("S3")
S4 = TypeVar("S4")
A_contra = TypeVar("A_contra", contravariant=True)
B_contra = TypeVar("B_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

OnFailure = Literal["fail", "run", "wait"]
_POLICIES: Final = ("fail", "run", "wait")
PLACE: Final = b"null"
"""What stands in the data of a call for a result that is not known yet."""


class FlowFailure(msgspec.Struct, frozen=True):
    """Why a job of a flow did not complete: its failure group, or `cancelled`, and the message."""

    group: str
    message: str


class FlowOutcome(msgspec.Struct, Generic[R], frozen=True):
    """How a job ended, as a step after it gets that with `on_failure="run"`: `ok`, then its `result`, or its `failure`."""

    ok: bool
    result: R | None = None
    failure: FlowFailure | None = None


class Accepts(Protocol[A_contra, R_co]):
    """A step: a function job, or a `partial` of one, that takes what comes before it as its first argument."""

    @property
    def flow_step(self) -> Callable[[A_contra], R_co]: ...


class AcceptsMore(Protocol[A_contra, P, R_co]):
    """A function job that takes what comes before it, and more arguments."""

    @property
    def flow_step(self) -> Callable[Concatenate[A_contra, P], R_co]: ...


class AcceptsTwo(Protocol[A_contra, B_contra, R_co]):
    """A step that takes two results."""

    @property
    def flow_step(self) -> Callable[[A_contra, B_contra], R_co]: ...


class CalledJob(Protocol):
    """The function job of a call."""

    @property
    def app(self) -> AnyClient: ...
    @property
    def registered(self) -> Registered: ...
    @property
    def changes(self) -> PutChanges: ...
    @property
    def stored_name(self) -> str: ...
    def put_options(self) -> tuple[str, dict[str, object]]: ...
    def write(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Raw: ...
    def write_behind(
        self, places: Sequence[bytes], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Raw, list[int]]: ...


class CallEdge(NamedTuple):
    """A parent of a call: another call, a group, or the jid of a job that exists; `passes` its result as the next argument."""

    parent: "Parent"
    policy: Policy
    passes: bool


class Call(Generic[R_co]):
    """A call of a function job, for `put_many`, `schedule` and flows, with its arguments checked and encoded."""

    __slots__ = ("args", "before", "data", "edges", "job", "kwargs", "rescues", "starts")

    def __init__(
        self,
        job: CalledJob,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        edges: Sequence[CallEdge] = (),
        before: Sequence[CallEdge] = (),
        rescues: "Sequence[Partial[Any, Any]]" = (),
    ) -> None:
        self.job, self.args, self.kwargs = job, args, kwargs
        self.edges, self.before, self.rescues = tuple(edges), tuple(before), tuple(rescues)
        self.data, self.starts = self.written()

    @property
    def settings(self) -> Settings:
        """The settings of the client of the function."""
        return self.job.app.settings

    @property
    def entry(self) -> Registered:
        """The function."""
        return self.job.registered

    @property
    def changes(self) -> PutChanges:
        """The options of the put."""
        return self.job.changes

    def written(self, whole: "AnyGroup | None" = None) -> tuple[Raw, list[int]]:
        """Return its data, and where in them what comes before begins. The group `whole` has one place, others one for each call."""
        passing = [edge.parent for edge in self.edges if edge.passes]
        if not passing:
            return self.job.write(self.args, self.kwargs), []
        places = [PLACE if parent is whole else _place_of(parent) for parent in passing]
        return self.job.write_behind(places, self.args, self.kwargs)

    @overload
    def then(self, step: Accepts[R_co, B], /, *, on_failure: Literal["fail", "wait"] = ...) -> "Call[B]": ...
    @overload
    def then(self, step: "Accepts[FlowOutcome[R_co], B]", /, *, on_failure: Literal["run"]) -> "Call[B]": ...
    def then(self, step: object, /, *, on_failure: OnFailure = "fail") -> "Call[object]":
        """Return a call of `step` with the result of this one as its first argument: `fetch.call(url).then(parse)`.

        `step` is a function job, or `parse.partial(…)` with the arguments behind it. If this call does not complete, the step `fail`s in
        `<queue>-ParentFailed`, `run`s with a FlowOutcome, or `wait`s until it is retried and complete. Raises UsageError.
        """
        return _following(step, [self], on_failure)

    def after(self, *parents: "Parent | HasJid", on_failure: OnFailure = "fail") -> "Call[R_co]":
        """Return this call so that it starts after others, without their results: `charge.call(7).after(audit.call(7))`.

        `parents` are calls, groups, or jobs that exist. Of a chain, its first job waits. Raises UsageError.
        """
        before = [*self.before, *_orders(parents, on_failure)]
        return Call(self.job, self.args, self.kwargs, self.edges, before, self.rescues)

    def on_failure(self, step: "Accepts[FlowFailure, object]", /) -> "Call[R_co]":
        """Return this call with a step that runs only if it fails or is cancelled: `charge.call(7).on_failure(refund.partial(order=7))`.

        The step gets a FlowFailure. It runs once, after the last attempt; if the call completes, it is skipped. Of a chain it runs for any
        call in it. Raises UsageError.
        """
        rescue = _checked_step(step)
        made: Call[R_co] = Call(
            self.job, self.args, self.kwargs, self.edges, self.before, [*self.rescues, rescue]
        )
        made.rescuers()  # checks the arguments
        return made

    def rescuers(self) -> "list[Call[object]]":
        """Return the calls that run only if this one does not complete."""
        edges = [CallEdge(self, "rescue", True)]
        return [Call(step.job, step.args, step.kwargs, edges) for step in self.rescues]

    @staticmethod
    def ends_as(result: object) -> object:
        """Return the type of the result of a job that returns a call with a result of this type."""
        return result

    def __repr__(self) -> str:
        return f"<Call {self.entry.name} {bytes(self.data).decode():.80}>"


MAX_JOBS: Final = 512
"""The most jobs that are put in one step."""


class Group(Generic[R]):
    """Calls that run side by side; what follows gets the list of their results, in the order of the calls.

    `calls` are the first 512 of them. A larger group, `is_large`, takes the others from their iterable when it is put.
    """

    __slots__ = ("_others", "before", "calls", "is_large")

    def __init__(self, calls: Iterable[Call[R]], before: Sequence[CallEdge] = ()) -> None:
        others = iter(calls)
        self.calls = tuple(islice(others, MAX_JOBS))
        further = list(islice(others, 1)) if len(self.calls) == MAX_JOBS else []
        self.is_large = bool(further)
        # A sequence can be gone through again, an iterator cannot.
        self._others: Iterable[Call[R]] | None = (
            calls if isinstance(calls, Sequence) else chain_of(self.calls, further, others)
        )
        for call in self.calls:
            _check_call(call)
        self.before = tuple(before)

    def members(self) -> Iterator[Call[R]]:
        """Go through all calls. Raises UsageError where an earlier put used up their iterator, and for what is no call."""
        members = self._others
        if members is None:
            raise UsageError(
                "the calls of this group were used up by an earlier put: make it again, or of a list"
            )
        if not isinstance(members, Sequence):
            self._others = None
        for call in members:
            _check_call(call)
            yield call

    @overload
    def then(self, step: Accepts[list[R], B], /, *, on_failure: Literal["fail", "wait"] = ...) -> Call[B]: ...
    @overload
    def then(
        self, step: "Accepts[Results[R], B]", /, *, on_failure: Literal["fail", "wait"] = ...
    ) -> Call[B]: ...
    @overload
    def then(self, step: Accepts[list[FlowOutcome[R]], B], /, *, on_failure: Literal["run"]) -> Call[B]: ...
    @overload
    def then(
        self, step: "Accepts[Results[FlowOutcome[R]], B]", /, *, on_failure: Literal["run"]
    ) -> Call[B]: ...
    def then(self, step: object, /, *, on_failure: OnFailure = "fail") -> Call[object]:
        """Return a call of `step` with the list of all results: `group(count.call(p) for p in pages).then(total)`.

        It starts when all calls have ended; with `fail` it fails at the first one that does not complete. Of an empty group it
        starts at once, with an empty list. A step may take `Results[int]` instead of `list[int]`: results that are read in pieces, of
        any number of calls. Raises UsageError.
        """
        return _following(step, [self], on_failure)

    def after(self, *parents: "Parent | HasJid", on_failure: OnFailure = "fail") -> "Group[R]":
        """Return this group so that its calls start after others. Raises UsageError, also for a group of more than 512 calls."""
        if self.is_large:
            raise UsageError(f"a group of more than {MAX_JOBS} calls cannot start after others")
        return Group(self.calls, [*self.before, *_orders(parents, on_failure)])

    @property
    def settings(self) -> Settings:
        """The settings of the client of the functions. Raises UsageError for a group without calls."""
        if not self.calls:
            raise UsageError("a flow has at least one job, and this group is empty")
        return self.calls[0].settings

    @staticmethod
    def ends_as(result: Any) -> object:
        """Return the type of the result of a job that returns a group of calls with results of this type."""
        return list[result]

    def __repr__(self) -> str:
        return f"<Group of {'more than ' if self.is_large else ''}{len(self.calls)}>"


def _check_call(call: object) -> None:
    if not isinstance(call, Call):
        raise UsageError(f"group: expected calls such as count.call(7), got {call!r:.80}")


class Partial(Generic[A, R_co]):
    """A step with the arguments behind its first one: `store.partial(table="x")`."""

    __slots__ = ("args", "job", "kwargs")

    def __init__(self, job: CalledJob, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        self.job, self.args, self.kwargs = job, args, kwargs

    @property
    def flow_step(self) -> Callable[[A], R_co]:
        """The step, for type checkers."""
        return cast("Callable[[A], R_co]", self.job)


class Join(Generic[A, B]):
    """Two calls whose results a step takes as its first two arguments."""

    __slots__ = ("first", "second")

    def __init__(self, first: Call[A], second: Call[B]) -> None:
        self.first, self.second = first, second

    def then(self, step: AcceptsTwo[A, B, R], /, *, on_failure: Literal["fail", "wait"] = "fail") -> Call[R]:
        """Return a call of `step` with both results: `join(user.call(7), cart.call(7)).then(invoice)`. Raises UsageError."""
        return _following(step, [self.first, self.second], on_failure)


AnyGroup = Group[Any]
Parent = Call[object] | AnyGroup | str
"""A call, a group, or the jid of a job that exists."""


def join(first: Call[A], second: Call[B], /) -> Join[A, B]:
    """Return two calls for one step that takes both results. They run side by side."""
    return Join(first, second)


def group(calls: Iterable[Call[R]], /) -> Group[R]:
    """Return calls that run side by side: `group(count.call(page) for page in pages)`. Raises UsageError.

    There may be any number: those behind the first 512 are taken from `calls` only when the group is put.
    """
    return Group(calls)


@overload
def chain(first: Call[A], s1: Accepts[A, S1], /) -> Call[S1]: ...
@overload
def chain(first: Call[A], s1: Accepts[A, S1], s2: Accepts[S1, S2], /) -> Call[S2]: ...
@overload
def chain(first: Call[A], s1: Accepts[A, S1], s2: Accepts[S1, S2], s3: Accepts[S2, S3], /) -> Call[S3]: ...
@overload
def chain(
    first: Call[A], s1: Accepts[A, S1], s2: Accepts[S1, S2], s3: Accepts[S2, S3], s4: Accepts[S3, S4], /
) -> Call[S4]: ...
def chain(first: Call[object], *steps: object) -> Call[object]:
    """Return a call, followed by steps that each take the result before them: `chain(fetch.call(url), parse, store)`.

    Each has `on_failure="fail"`; longer chains, and other policies, are written with `then`. Raises UsageError.
    """
    made = first
    for step in steps:
        made = _following(step, [made], "fail")
    return made


def _place_of(parent: "Parent") -> bytes:
    if isinstance(parent, Group) and not parent.is_large:
        return b"[%s]" % b",".join([PLACE] * len(parent.calls))
    return PLACE


def _following(step: object, parents: Sequence[object], on_failure: OnFailure) -> "Call[Any]":
    for parent in parents:
        if not isinstance(parent, (Call, Group)):
            raise UsageError(f"a flow begins with a call such as fetch.call(url), got {parent!r:.80}")
    policy = _checked_policy(on_failure)
    edges = [CallEdge(cast("Parent", parent), policy, True) for parent in parents]
    partial = _checked_step(step)
    return Call(partial.job, partial.args, partial.kwargs, edges)


def _checked_step(step: object) -> "Partial[Any, Any]":
    if isinstance(step, Partial):
        return cast("Partial[Any, Any]", step)  # type: ignore[redundant-cast]
    if not getattr(step, "is_function_job", False):
        raise UsageError(
            f"a step is a function job, or its partial(…) without the first argument, got {step!r:.80}"
        )
    return Partial(cast("CalledJob", step), (), {})


def _checked_policy(on_failure: OnFailure) -> OnFailure:
    if on_failure not in _POLICIES:
        raise UsageError(f"on_failure: expected one of {', '.join(_POLICIES)}, got {on_failure!r:.80}")
    return on_failure


def _orders(parents: Sequence[object], on_failure: OnFailure) -> list[CallEdge]:
    policy = _checked_policy(on_failure)
    return [CallEdge(_checked_parent(parent), policy, False) for parent in parents]


def _checked_parent(parent: object) -> "Parent":
    if isinstance(parent, (Call, Group)):
        return cast("Call[object] | Group[object]", parent)
    jid = getattr(parent, "jid", parent)
    if not isinstance(jid, str):
        raise UsageError(f"after: expected calls, groups, or jobs that exist, got {parent!r:.80}")
    return check_name("after", jid)
