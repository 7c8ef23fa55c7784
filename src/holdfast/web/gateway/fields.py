"""The fields of a verb over HTTP, made of the fields of its command class.

Times and lengths are in seconds here and lose their `_ms`, data and results are JSON values inline, a lease is a jid and a token.
A field of a command may so become several fields of a request: `Part` has these, and how its value is read from a request.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from holdfast.bounds import MAX_BATCH, MAX_DELAY, Name, OptionalName, Whole, meta
from holdfast.code.backoff import backoff_words
from holdfast.code.job_options import RESULT_KEEP
from holdfast.code.put_options import OPTIONS
from holdfast.codecs import MAX_DATA_CAP, encode_data
from holdfast.commands.leases import Done, Held, Lease
from holdfast.commands.options import ExtraOptions, JobWithOptions
from holdfast.ids import mint_jid
from holdfast.settings import check_name

Value = Callable[[Any], object]
"""Reads the value of a field of a command from a request."""

Data = Raw | UnsetType
Seconds = Annotated[float, Meta(ge=0, le=MAX_DELAY)]
Backoff = float | str | dict[str, float | str]
ALIASES: Final[Mapping[str, str]] = {
    **{option.field: name for name, option in OPTIONS.items() if option.stored},
    "keep_ms": "keep",
    "leases": "jobs",
}
"""The names of fields here where they are not those of the command without `_ms`."""


class GatewayField(NamedTuple):
    """One field of a request. Without a default it is required."""

    name: str
    type: Any
    default: Any = msgspec.NODEFAULT


class FieldPart(NamedTuple):
    """What becomes of one field of a command."""

    fields: tuple[GatewayField, ...]
    value: Value


def constant(fixed: object) -> FieldPart:
    """Return the part of a field that requests do not have."""

    def value(_: Any) -> object:
        return fixed

    return FieldPart((), value)


def same(field: GatewayField) -> FieldPart:
    """Return the part of a field that is in the request as it is in the command."""

    def value(request: Any) -> object:
        return getattr(request, field.name)

    return FieldPart((field,), value)


_EMPTY_LIST: Final[Any] = msgspec.field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
NO_SPECIAL: Final[Mapping[str, FieldPart]] = {}


def parts_of(kind: type[msgspec.Struct], special: Mapping[str, FieldPart] = NO_SPECIAL) -> list[FieldPart]:
    """Return the parts of a command class, or of a struct within one, in the order of its fields."""
    return [special.get(field.name) or _part(field) for field in msgspec.structs.fields(kind)]


def fields_of(parts: Sequence[FieldPart]) -> list[GatewayField]:
    """Return the fields of all parts, each once."""
    found: dict[str, GatewayField] = {}
    for part in parts:
        for field in part.fields:
            found.setdefault(field.name, field)
    return list(found.values())


def request_type(name: str, fields: Sequence[GatewayField]) -> type[msgspec.Struct]:
    """Return the class of a request. It refuses fields that it does not have."""
    defined: list[Any] = [
        (one.name, one.type) if one.default is msgspec.NODEFAULT else tuple(one) for one in fields
    ]
    return msgspec.defstruct(name, defined, kw_only=True, forbid_unknown_fields=True, frozen=True, gc=False)


def builder(kind: Callable[..., Any], parts: Sequence[FieldPart]) -> Callable[[Any], Any]:
    """Return the function that makes a command of a request."""
    values = [part.value for part in parts]
    return lambda request: kind(*[value(request) for value in values])


def _part(field: msgspec.structs.FieldInfo) -> FieldPart:
    kind, name = field.type, field.encode_name
    if kind is Held or (_is_union(kind) and Lease in get_args(kind)):
        return _LEASE
    if kind is JobWithOptions or kind is ExtraOptions:
        return flattened(kind)
    element = _element(kind)
    if element is Done or element is Lease:
        return list_of(ALIASES.get(name, name), cast("type[msgspec.Struct]", element))
    if bytes in (kind, *get_args(kind)):
        return _data(field)
    if name.endswith("_ms"):
        return _time(field)
    return _plain(field)


def _lease_of(request: Any) -> Lease:
    return Lease(check_name("jid", request.jid), request.token, getattr(request, "worker", ""))


_LEASE: Final = FieldPart((GatewayField("jid", Name), GatewayField("token", Whole)), _lease_of)


def flattened(kind: type[msgspec.Struct], special: Mapping[str, FieldPart] = NO_SPECIAL) -> FieldPart:
    """Return the part of a struct whose fields are fields of the request itself."""
    parts = parts_of(kind, {**_OF_OPTIONS, **special})
    return FieldPart(tuple(fields_of(parts)), builder(kind, parts))


@cache
def _made(kind: type[msgspec.Struct]) -> tuple[type[msgspec.Struct], Callable[[Any], Any]]:
    """Return the class of the objects that stand for a struct, and what makes one of the other."""
    parts = parts_of(kind)
    return request_type(kind.__name__, fields_of(parts)), builder(kind, parts)


def list_of(name: str, kind: type[msgspec.Struct], *, required: bool = True) -> FieldPart:
    """Return the part of a list of structs, which are objects in the request."""
    element, make = _made(kind)
    default: Any = msgspec.NODEFAULT if required else _EMPTY_LIST
    typed: Any = Annotated[list[element], Meta(max_length=MAX_BATCH)]  # type: ignore[valid-type]

    def value(request: Any) -> object:
        return [make(one) for one in getattr(request, name)]

    return FieldPart((GatewayField(name, typed, default),), value)


# Data, times.


def _data(field: msgspec.structs.FieldInfo) -> FieldPart:
    name, default = field.encode_name, field.default

    def value(request: Any) -> object:
        given = getattr(request, name)
        return default if given is UNSET else encode_data(bytes(given), MAX_DATA_CAP)

    return FieldPart((GatewayField(name, Data, UNSET),), value)


def _keep(request: Any) -> int:
    """Return the milliseconds for which a result is kept: an hour, unless it is given, or the job is put again."""
    keep: float | UnsetType = request.keep
    if keep is not UNSET:
        return round(keep * 1000)
    return 0 if request.result is UNSET or getattr(request, "next_queue", None) else round(RESULT_KEEP * 1000)


KEEP: Final = FieldPart((GatewayField("keep", Seconds | UnsetType, UNSET),), _keep)


def _time(field: msgspec.structs.FieldInfo) -> FieldPart:
    name = ALIASES.get(field.encode_name, field.encode_name.removesuffix("_ms"))
    if name == "keep" and field.default == 0:
        return KEEP
    bounds = meta(_without_none(field.type))
    kind: Any = Annotated[float, Meta(ge=_in_seconds(bounds.ge), le=_in_seconds(bounds.le))]
    default: Any = field.default

    def value(request: Any) -> object:
        given = getattr(request, name)
        return None if given is None else round(given * 1000)

    if default is msgspec.NODEFAULT:
        return FieldPart((GatewayField(name, kind),), value)
    kind = kind | None if default is None else kind
    return FieldPart((GatewayField(name, kind, None if default is None else default / 1000),), value)


# Names, numbers and the rest.


def _plain(field: msgspec.structs.FieldInfo) -> FieldPart:
    name, kind = field.encode_name, _as_json(field.type)
    inner = _without_none(field.type)
    default: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = msgspec.field(default_factory=field.default_factory)
    elif default == () and get_origin(field.type) is not tuple:
        default = _EMPTY_LIST
    if inner in (Name, OptionalName) and NoneType not in get_args(field.type):
        return FieldPart((GatewayField(name, kind, default),), _name(name))
    if _element(inner) is Name:
        return FieldPart((GatewayField(name, kind, default),), _names(name))
    return same(GatewayField(name, kind, default))


def _name(name: str) -> Value:
    def value(request: Any) -> object:
        given = getattr(request, name)
        return check_name(name, given) if given else given

    return value


def _names(name: str) -> Value:
    def value(request: Any) -> object:
        given = getattr(request, name)
        return given if given is None else [check_name(name, one) for one in given]

    return value


def _as_json(kind: Any) -> Any:
    """Return the type of a field in a request: lists for sequences, objects for mappings."""
    if NoneType in get_args(kind):
        inner = _without_none(kind)
        return kind if _is_union(inner) else _as_json(inner) | None
    if get_origin(kind) is Annotated:
        inner = _as_json(get_args(kind)[0])
        return Annotated[inner, meta(kind)]
    if get_origin(kind) is Sequence:
        return list[get_args(kind)]  # type: ignore[misc]
    return dict[str, str] if get_origin(kind) is Mapping else kind


def _without_none(kind: Any) -> Any:
    """Return a type without its None: what is left of it if that is one type."""
    if not _is_union(kind):
        return kind
    left = [one for one in get_args(kind) if one is not NoneType]
    return left[0] if len(left) == 1 else kind


def _in_seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _element(kind: Any) -> object:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return get_args(kind)[0] if get_origin(kind) is Sequence else None


def _is_union(kind: object) -> bool:
    return get_origin(kind) in (Union, UnionType)


# Parts that are not made by these rules.


def _backoff(request: Any) -> str:
    return "" if request.backoff is None else backoff_words(request.backoff)


def _result_keep(request: Any) -> int | None:
    return None if request.result_keep is None else round(request.result_keep * 1000)


def _jid(request: Any) -> object:
    return mint_jid() if request.jid is None else check_name("jid", request.jid)


JID: Final = FieldPart((GatewayField("jid", Name | None, None),), _jid)
"""A jid that is generated if none is given."""
_OF_OPTIONS: Final[Mapping[str, FieldPart]] = {
    "jid": JID,
    "backoff": FieldPart((GatewayField("backoff", Backoff | None, None),), _backoff),
    "keep_ms": FieldPart((GatewayField("result_keep", Seconds | None, None),), _result_keep),
    "needs": constant(0),
}
