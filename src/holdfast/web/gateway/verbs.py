"""The verbs of the gateway: one table, made of the command classes."""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.commands import COMMANDS, Command
from holdfast.commands.flows import FlowPut
from holdfast.commands.jobs import Outcome, Put
from holdfast.commands.options import ExtraOptions
from holdfast.errors import UsageError
from holdfast.settings import MAX_BATCH, check_name
from holdfast.text import one_line
from holdfast.web.gateway import exceptions
from holdfast.web.gateway.fields import (
    JID,
    FieldPart,
    GatewayField,
    builder,
    constant,
    fields_of,
    flattened,
    parts_of,
    request_type,
)
from holdfast.web.gateway.flows import FlowHandle, members
from holdfast.web.gateway.results import in_json, outcome

_CORE: Final = re.compile(r"\s*Core: \S+\s*$")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `(.*)`)?", re.DOTALL)
_AT: Final = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)
_OF_LEASES: Final = ("complete", "complete_x", "heartbeat", "fail", "retry", "advance", "report")
"""The verbs of one lease, of which several can be in one request."""


class Verb(msgspec.Struct, frozen=True):
    """A verb of the gateway: the command that it makes of a request.

    `functions` are the functions of the core that it may call. `batch` is the class of a request with `jobs`, in place of `request`:
    each of these overrides the fields beside it.
    """

    name: str
    kind: type[msgspec.Struct]
    functions: tuple[str, ...]
    summary: str
    request: type[msgspec.Struct]
    make: Callable[[Any], Command[Any]]
    batch: type[msgspec.Struct] | None = None
    reads: bool = False

    def read(self, body: bytes) -> msgspec.Struct:
        """Return the request in a body. Raises UsageError with the field that is wrong."""
        try:
            return _decoder(self.request).decode(body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            if self.batch is None or not _has_jobs(body):
                raise self._refused(error, self.request) from None
        try:
            return _decoder(self.batch).decode(body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise self._refused(error, self.batch) from None

    def singles(self, batch: Any) -> list[msgspec.Struct]:
        """Return the requests in a batch. Raises UsageError for a job that lacks a field."""
        given = {name: value for name, value in _given(batch) if name != "jobs"}
        return [self._single(given | dict(_given(job)), at) for at, job in enumerate(batch.jobs)]

    def _single(self, given: Mapping[str, Any], at: int) -> msgspec.Struct:
        try:
            return self.request(**given)
        except TypeError:
            missing = [
                field.name
                for field in msgspec.structs.fields(self.request)
                if field.required and field.name not in given
            ]
            raise UsageError(f"jobs[{at}] needs the field {', '.join(missing)}") from None

    def make_as(self, request: Any, who: str) -> Command[Any]:
        """Return the command of a request, as a user. Raises UsageError."""
        made = self.make(request)
        if "who" in self.kind.__struct_fields__:
            changed: Any = cast("Any", made)
            made = msgspec.structs.replace(changed, who=check_name("user", who))
        return made

    def is_batch(self, request: object) -> bool:
        """Return whether a request is one for several jobs."""
        return self.batch is not None and type(request) is self.batch

    def result(self, command: Command[Any], found: Any) -> Any:
        """Return the result of one command as values for JSON."""
        if self.name == "heartbeat":
            return found / 1000
        if self.name == "await":
            jids: Sequence[str] = cast("Any", command).jids
            return [outcome(jid, cast("Outcome", one)) for jid, one in zip(jids, found, strict=True)]
        if self.name == "flow_put":
            put = cast("FlowPut", command)
            return FlowHandle(put.flow, found, [one.job.jid for one in put.jobs])
        if self.name == "flow_steps":
            return members(found)
        names = exceptions.NAMED_RESULTS.get(self.name)
        return in_json(found) if names is None else dict(zip(names, in_json(list(found)), strict=True))

    def _refused(self, error: Exception, kind: type[msgspec.Struct]) -> UsageError:
        text = str(error)
        unknown, placed = _UNKNOWN.fullmatch(text), _AT.fullmatch(text)
        if unknown:
            outer = kind.__struct_fields__
            name = one_line(unknown[1])[:100]
            if unknown[2] and kind is self.batch and name in outer:
                return UsageError(f"{self.name}: {name!r} belongs beside jobs, and applies to all of them")
            elsewhere = unknown[2] and name in _all_fields(kind)
            if elsewhere:
                return UsageError(f"{self.name}: {unknown[2].removeprefix('$.')} has no field {name!r}")
            known = outer if not unknown[2] else tuple(_all_fields(kind))
            return UsageError(f"{self.name} has no field {name!r}; {nearest(name, known)}")
        if placed:
            return UsageError(f"{one_line(placed[2])[:200] or 'the request'}: {_lowered(placed[1])}")
        if isinstance(error, RecursionError):
            return UsageError("the body is nested too deep")
        if isinstance(error, msgspec.ValidationError):
            return UsageError(f"{self.name}: {_lowered(text)}")
        return UsageError(f"the body is not JSON: {_lowered(text)}")


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, or all."""
    close = get_close_matches(name, known, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"it has {', '.join(known) or 'none'}"


@cache
def verbs() -> Mapping[str, Verb]:
    """Return the verbs by name, made at the first use."""
    return {
        name: _verb(name, kind) for name, kind in sorted(COMMANDS.items()) if name not in exceptions.LEFT_OUT
    }


def _verb(name: str, command: type[msgspec.Struct]) -> Verb:
    kind = exceptions.REPLACED.get(name, command)
    special = {**_defaults(kind), **exceptions.SPECIAL.get(name, {})}
    parts = parts_of(kind, special)
    fields = [*fields_of(parts), *exceptions.MORE_FIELDS.get(name, ())]
    request = request_type(name, fields)
    make = exceptions.MADE.get(name) or builder(kind, parts)
    if name == "put":
        make = _put_maker(make)
    if name in exceptions.MAKERS:
        make = exceptions.MAKERS[name](make)
    return Verb(
        name,
        kind,
        exceptions.MORE_FUNCTIONS.get(name, (name,)),
        _summary(kind),
        request,
        make,
        _batch(name, fields),
        bool(getattr(command, "reads", False)),
    )


def _put_maker(with_options: Callable[[Any], Any]) -> Callable[[Any], Command[str]]:
    """Return what makes the command of a put: the short form, if the request has no options."""
    short = builder(Put, parts_of(Put, {"jid": JID, **exceptions.SPECIAL["put"]}))
    fields = fields_of([flattened(ExtraOptions)])
    nothing = request_type("options", fields)()
    defaults = [(one.name, getattr(nothing, one.name)) for one in fields]

    def make(request: Any) -> Command[str]:
        for name, default in defaults:
            if getattr(request, name) != default:
                return cast("Command[str]", with_options(request))
        return cast("Command[str]", short(request))

    return make


def _defaults(kind: type[msgspec.Struct]) -> dict[str, FieldPart]:
    """Return the parts of fields that no request has: who calls is known, and how a pop waits is the gateway's business."""
    found = {field.name: field for field in msgspec.structs.fields(kind)}
    parts = {"who": constant("")} if "who" in found else {}
    if "mode" in found and type(found["mode"].default) is int:
        parts["mode"] = constant(found["mode"].default)
    return parts


def _batch(name: str, fields: Sequence[GatewayField]) -> type[msgspec.Struct] | None:
    if name != "put" and name not in _OF_LEASES:
        return None
    each = () if name == "put" else ("jid", "token")  # that each job has to have
    optional = [
        one
        if one.name in ("worker", "queue", *each)
        else one._replace(type=one.type | UnsetType, default=UNSET)
        for one in fields
    ]
    inside = [one for one in optional if one.name not in ("worker", "queue")]
    around = [one for one in optional if one.name not in (*each, "jid")]
    job = request_type(f"{name}_job", inside)
    jobs = Annotated[list[job], Meta(min_length=1, max_length=MAX_BATCH)]  # type: ignore[valid-type]
    return request_type(f"{name}_batch", [*around, GatewayField("jobs", jobs)])


def _summary(kind: type[msgspec.Struct]) -> str:
    first = _CORE.sub("", (kind.__doc__ or "").split("\n\n")[0].replace("\n", " "))
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z`])", " ".join(first.split()))[0]
    return re.sub(r"`(\w+?)_ms`", r"`\1`", sentence).replace(" in milliseconds", "")


@cache
def _decoder(kind: type[msgspec.Struct]) -> "msgspec.json.Decoder[msgspec.Struct]":
    return msgspec.json.Decoder(kind)


def _has_jobs(body: bytes) -> bool:
    """Return whether a body is an object with the field `jobs`."""
    if b'"jobs"' not in body:
        return False
    try:
        return "jobs" in msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


def _given(request: msgspec.Struct) -> list[tuple[str, Any]]:
    values = [(name, getattr(request, name)) for name in request.__struct_fields__]
    return [(name, value) for name, value in values if value is not UNSET]


def _all_fields(kind: type[msgspec.Struct]) -> list[str]:
    """Return the names of the fields of a class, and of those within it."""
    _, components = msgspec.json.schema_components([kind])
    return [name for one in components.values() for name in one.get("properties", {})]


def _lowered(text: str) -> str:
    is_word = text[1:2].islower()  # and no abbreviation such as JSON
    return one_line((text[:1].lower() if is_word else text[:1]) + text[1:])[:300]
