"""Flows over HTTP: jobs name earlier ones by their number, and where in their own data the results of these go."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Protocol, TypeVar, cast

import msgspec
from msgspec import Meta, Raw, UnsetType
from msgspec.structs import replace

from holdfast.bounds import MAX_BATCH, Name, Whole
from holdfast.codecs import MAX_DEPTH
from holdfast.commands.flows import Edge, FlowJob, FlowStep, Policy, StepParents
from holdfast.commands.options import ExtraOptions, JobWithOptions
from holdfast.errors import UsageError
from holdfast.settings import check_name
from holdfast.text import one_line
from holdfast.web.gateway.fields import (
    FieldPart,
    GatewayField,
    builder,
    constant,
    fields_of,
    flattened,
    parts_of,
    request_type,
)

PLACE: Final = b"null"
"""What stands in the data for a result that is not known yet."""
_NUMBER: Final = re.compile(r"0|[1-9]\d{0,6}", re.ASCII)
_SHOWN: Final = 100
K = TypeVar("K", str, int)


class ParentJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job that another one of a flow waits for: the earlier one with the number `job`, from 0 on, or the one that exists as `jid`.

    `into` is a JSON pointer (RFC 6901) to the `null` in the data of the waiting job that becomes the result; without it, no result is
    passed. `on_failure`: if this job does not complete, the waiting one fails (`fail`), runs with an object of `ok`, `result` and
    `failure` (`run`), or waits on (`wait`). With `rescue` it runs only then, with `group` and `message` of the failure.
    """

    job: Whole | UnsetType = msgspec.UNSET
    jid: Name | UnsetType = msgspec.UNSET
    on_failure: Policy = "fail"
    into: Annotated[str, Meta(max_length=1000)] | None = None


class ParentJobs(msgspec.Struct, frozen=True):
    """What a job of a flow waits for: those with the numbers `first` to `last`, or the one with a `jid`, which is not of the flow."""

    on_failure: Policy
    first: int | None = None
    last: int | None = None
    jid: str | None = None


class FlowMember(msgspec.Struct, frozen=True):
    """A job of a flow as it was put."""

    klass: str
    parents: Sequence[ParentJobs]


class FlowHandle(msgspec.Struct, frozen=True):
    """A flow: its id, the jids of its jobs, and whether this request put it (`new`) or an earlier one."""

    flow: str
    new: bool
    jids: Sequence[str]


def members(steps: Sequence[FlowStep]) -> list[FlowMember]:
    """Return the result of a `flow_steps`."""
    return [FlowMember(one.klass, [_parents(parents) for parents in one.parents]) for one in steps]


def _parents(parents: StepParents) -> ParentJobs:
    if parents.jid:
        return ParentJobs(parents.policy, jid=parents.jid)
    return ParentJobs(parents.policy, parents.first, parents.last)


# Places of results.


class _Misplaced(UsageError):
    """What is wrong with the pointer of the parent with a number."""

    def __init__(self, number: int, sentence: str) -> None:
        super().__init__(sentence)
        self.number = number


class _Tree:
    """Pointers, by the parts that they have in common: `number` is that of one that ends here."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.below: dict[str, _Tree] = {}

    def add(self, number: int, pointer: str) -> None:
        """Add a pointer. Raises UsageError."""
        shown = repr(one_line(pointer)[:_SHOWN])
        parts = pointer.split("/")
        if parts[0] or len(parts) > MAX_DEPTH:
            raise _Misplaced(number, f"expected a JSON pointer such as /args/0, got {shown}")
        tree = self
        for part in parts[1:]:
            tree = tree.below.setdefault(part, _Tree())
        if tree.number is not None:
            raise _Misplaced(number, f"another result goes to {shown}")
        tree.number = number

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all pointers."""
        if self.number is not None:
            yield self.number
        for below in self.below.values():
            yield from below.numbers()


def placed(data: bytes, pointers: Mapping[int, str]) -> tuple[bytes, dict[int, int]]:
    """Return JSON with the values at some pointers written as `null`, and the byte at which each of these begins, by the same number.

    Only what lies around the places is written again; other values stay as they are. Raises UsageError for a pointer that leads to no
    `null`, and for two to one place.
    """
    tree = _Tree()
    for number, pointer in pointers.items():
        tree.add(number, pointer)
    writer = _Writer(pointers)
    writer.write(Raw(data), tree)
    return b"".join(writer.parts), writer.starts


class _Writer:
    """Writes JSON, and notes where the places in it begin."""

    def __init__(self, pointers: Mapping[int, str]) -> None:
        self._pointers = pointers
        self.parts: list[bytes] = []
        self.starts: dict[int, int] = {}
        self._size = 0

    def write(self, value: Raw, tree: _Tree) -> None:
        """Write a value that has the places of a tree. It is as deep as the pointers, whose depth is limited."""
        text = bytes(value).strip()
        if tree.number is not None:
            if text != PLACE or tree.below:
                raise self._no_place(tree)
            self.starts[tree.number] = self._size
            self._add(PLACE)
        elif text[:1] == b"{":
            entries: dict[str, Raw] = msgspec.json.decode(text, type=dict[str, Raw])
            heads = [(msgspec.json.encode(name) + b":", name, one) for name, one in entries.items()]
            self._write_entries(
                b"{}", heads, {_name(part): below for part, below in tree.below.items()}, tree
            )
        elif text[:1] == b"[":
            listed: list[Raw] = msgspec.json.decode(text, type=list[Raw])
            places = {int(part): below for part, below in tree.below.items() if _NUMBER.fullmatch(part)}
            self._write_entries(b"[]", [(b"", at, one) for at, one in enumerate(listed)], places, tree)
        else:
            raise self._no_place(tree)

    def _write_entries(
        self,
        braces: bytes,
        entries: Sequence[tuple[bytes, K, Raw]],
        places: Mapping[K, _Tree],
        tree: _Tree,
    ) -> None:
        missing = dict(places)
        self._add(braces[:1])
        for at, (head, name, value) in enumerate(entries):
            self._add(b"," * (at > 0) + head)
            below = missing.pop(name, None)
            if below is None:
                self._add(bytes(value))
            else:
                self.write(value, below)
        self._add(braces[1:])
        if missing or len(places) < len(tree.below):
            raise self._no_place(next(iter(missing.values()), tree))

    def _add(self, part: bytes) -> None:
        self.parts.append(part)
        self._size += len(part)

    def _no_place(self, tree: _Tree) -> _Misplaced:
        number = min(tree.numbers())
        shown = one_line(self._pointers[number])[:_SHOWN]
        return _Misplaced(number, f"the data of the job have no null at {shown!r}")


def _name(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


# Jobs of a request.


class GivenJob(Protocol):
    """A job of a request, which also has the other options of a put."""

    queue: str
    klass: str
    throttles: Sequence[str]
    parents: Sequence[ParentJob]


class GivenFlow(Protocol):
    """The request of a `flow_put`."""

    flow: str
    label: str | None
    jobs: Sequence[GivenJob]


_OPTIONS: Final = flattened(
    ExtraOptions,
    {
        "depends": constant(()),
        "unique_key": constant(""),
        "unique_for": constant(""),
        "on_conflict": constant(""),
        "debounce_max_ms": constant(0),
    },
)
_PARENTS: Final = GatewayField(
    "parents",
    Annotated[list[ParentJob], Meta(max_length=MAX_BATCH)],
    msgspec.field(default_factory=list[ParentJob]),
)
_PARTS: Final = parts_of(
    FlowJob,
    {
        "job": flattened(JobWithOptions, {"jid": constant(""), "options": _OPTIONS}),
        "edges": constant(())._replace(fields=(_PARENTS,)),
        "group": constant(None),
    },
)
_Job: Final = request_type("FlowJob", fields_of(_PARTS))
_Jobs: Final = Annotated[list[_Job], Meta(min_length=1, max_length=MAX_BATCH)]  # type: ignore[valid-type]
_make: Final = builder(FlowJob, _PARTS)


def _label(request: GivenFlow) -> str:
    klass = request.jobs[-1].klass
    return check_name("label", request.label or klass.rpartition(".")[2] or klass)


def _jobs(request: GivenFlow) -> list[FlowJob]:
    return [_job(request, number, one) for number, one in enumerate(request.jobs)]


def _job(request: GivenFlow, number: int, given: GivenJob) -> FlowJob:
    """Return one job of a flow. Raises UsageError with the parent that is wrong."""
    made: FlowJob = _make(given)
    parents = given.parents
    jids = [_parent_jid(request, number, at, one) for at, one in enumerate(parents)]
    if len(set(jids)) < len(jids):
        twice = next(jid for jid in jids if jids.count(jid) > 1)
        raise UsageError(f"jobs[{number}].parents: it waits for {one_line(twice)[:_SHOWN]!r} twice")
    into = {at: one.into for at, one in enumerate(parents) if one.into is not None}
    data, starts = made.job.data, dict[int, int]()
    if into:
        try:
            data, starts = placed(data, into)
        except _Misplaced as error:
            raise UsageError(f"jobs[{number}].parents[{error.number}].into: {error}") from None
    edges = [
        Edge(jid, one.on_failure, starts.get(at, -1), len(PLACE) if at in starts else 0)
        for at, (jid, one) in enumerate(zip(jids, parents, strict=True))
    ]
    return replace(made, job=replace(made.job, jid=f"{request.flow}-{number}", data=data), edges=edges)


def _parent_jid(request: GivenFlow, number: int, at: int, parent: ParentJob) -> str:
    where = f"jobs[{number}].parents[{at}]"
    if (parent.job is msgspec.UNSET) is (parent.jid is msgspec.UNSET):
        raise UsageError(
            f"{where}: give either job, the number of an earlier job, or jid, that of a job that exists"
        )
    if isinstance(parent.job, int):
        if parent.job >= number:
            raise UsageError(
                f"{where}.job: expected the number of an earlier job, less than {number}, got {parent.job}"
            )
        return f"{request.flow}-{parent.job}"
    jid = check_name(f"{where}.jid", cast("str", parent.jid))
    head, _, tail = jid.rpartition("-")
    if head == request.flow and _NUMBER.fullmatch(tail) and int(tail) < len(request.jobs):
        raise UsageError(
            f"{where}.jid: {one_line(jid)[:_SHOWN]} is a job of this flow; give its number as job"
        )
    return jid


PUT: Final[Mapping[str, FieldPart]] = {
    "label": FieldPart((GatewayField("label", Name | None, None),), _label),
    "jobs": FieldPart((GatewayField("jobs", _Jobs),), _jobs),
}
"""The parts of a `flow_put`, by the name of the command's field."""
