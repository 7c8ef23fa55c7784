"""The arguments of a function job, checked and encoded at the put, decoded and checked again by the worker; and its result.

At the put, arguments that are not plain JSON values are also decoded, so that a worker can read every put that succeeds,
and nothing of them is lost: unknown keys of a TypedDict are refused, and fields that the declared class does not have, as
those of a subclass. A worker refuses unknown keys of TypedDicts, too; unknown fields of classes it leaves out, because
programs of a newer release may send them.
"""

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from holdfast.code.failure import text_of
from holdfast.code.outcomes import result_of
from holdfast.codecs import MAX_DATA, decode, encode_value, from_plain, to_plain
from holdfast.errors import CodecError, UsageError
from holdfast.settings import unknown_option
from holdfast.text import counted

T = TypeVar("T")
V = TypeVar("V")

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NO_PLACE: Final = 1 << 30
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_SAME: Final = frozenset((int, str, bool))
"""Types whose values are the same after encoding and decoding."""
_encode_same: Final = msgspec.json.Encoder().encode
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What decoding raises for data that are not JSON, not UTF-8, or nested too deep."""
_SURE: Final = _SAME | {float, type(None)}
_OF_OTHER_CLASS: Final = re.compile(
    r"Expected `object[^`]*`, got `((?!int|str|bool|float|null|array|object)\w+)`"
)
_PLAIN: Final = _SURE | {list, tuple, dict}


class _Parameter(NamedTuple):
    """A parameter of a function: `decode` turns JSON into its value.

    `annotation` is None if any JSON value fits; then `undecodable` has the reason why a worker can decode it only to plain JSON
    values. `place` is its position, 1 << 30 if it has none. `lossy` is what decoding may leave out of its values.
    """

    name: str
    place: int
    required: bool
    annotation: Any
    decode: Callable[[bytes], object]
    undecodable: str = ""
    lossy: int = 0


class _Envelope(msgspec.Struct, gc=False):
    """The data of a function job: `{"args": […], "kwargs": {…}}`; either may be missing."""

    args: list[msgspec.Raw] = []
    kwargs: dict[str, msgspec.Raw] = {}


_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode


_HEAD: Final = b'{"args":['


class _Place(NamedTuple):
    """An argument that is not known yet: the JSON that stands for it."""

    text: bytes


def _check_text(value: Any, why: str) -> None:
    """Raise UsageError for a key that would become text. Of an annotation that is Any it is known that the worker gets plain JSON."""
    if not all(isinstance(key, str) for key in value):
        raise UsageError(f"its keys would become text in the worker, because {why}")


def _check_keys(value: Any, built: Any) -> None:
    """Raise UsageError if a worker would build a dict with other keys."""
    if isinstance(built, dict) and built.keys() != value.keys():
        names = f"{list(value)!r:.100} would become {list(cast('dict[object, object]', built))!r:.100}"
        raise UsageError(f"its keys would be others in the worker: {names}")


class Arguments:
    """The parameters of one function. Annotations are evaluated at the first use, when all names exist."""

    def __init__(self, function: Callable[..., object], title: str) -> None:
        self._function = function
        self._title = title
        self._ready = False
        self._positional: list[_Parameter] = []
        self._named: dict[str, _Parameter] = {}
        self._rest: _Parameter | None = None
        self._rest_named: _Parameter | None = None
        self._required: list[tuple[int, str]] = []

    def write(
        self, args: Sequence[object], kwargs: Mapping[str, object], limit: int = MAX_DATA
    ) -> msgspec.Raw:
        """Return the data of a put, as JSON. Raises UsageError naming an argument that does not fit or cannot be encoded."""
        values, named = self._bind(args, kwargs, partial(self._written, limit))
        try:
            pairs = [b"%s:%s" % (_encode_same(parameter.name), value) for parameter, value in named]
        except UnicodeError as error:
            raise UsageError(f"{self._title}: the name of an argument cannot be encoded: {error}") from None
        return msgspec.Raw(b'%s%s],"kwargs":{%s}}' % (_HEAD, b",".join(values), b",".join(pairs)))

    def write_behind(
        self,
        places: Sequence[bytes],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        limit: int = MAX_DATA,
    ) -> tuple[msgspec.Raw, list[int]]:
        """Return the data of a put whose first arguments are not known yet, and where the JSON in `places` that stands for each begins.

        Raises UsageError as `write` does.
        """
        values, named = self._bind(
            [*map(_Place, places), *args], kwargs, partial(self._place_or_value, limit)
        )
        starts = [len(_HEAD) + sum(len(value) + 1 for value in values[:at]) for at in range(len(places))]
        pairs = [b"%s:%s" % (_encode_same(parameter.name), value) for parameter, value in named]
        return msgspec.Raw(b'%s%s],"kwargs":{%s}}' % (_HEAD, b",".join(values), b",".join(pairs))), starts

    def _place_or_value(self, limit: int, parameter: _Parameter, value: object) -> bytes:
        return value.text if isinstance(value, _Place) else self._written(limit, parameter, value)

    def read(self, data: bytes) -> tuple[list[object], dict[str, object]]:
        """Return the arguments in the data of a job, with the types of the annotations.

        Raises UsageError naming an argument that does not fit, CodecError for data that are not JSON, and anything that
        the code of an annotation raises.
        """
        try:
            envelope = _decode_envelope(data)
        except msgspec.ValidationError as error:
            raise UsageError(
                f'{self._title} takes {{"args": […], "kwargs": {{…}}}} as its data: {error}'
            ) from None
        except _UNREADABLE as error:
            raise CodecError(f"the data of {self._title} are not JSON: {error}") from None
        values, named = self._bind(envelope.args, envelope.kwargs, self._read_back)
        return values, {parameter.name: value for parameter, value in named} if named else {}

    def by_name(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[list[object], dict[str, object]]:
        """Return arguments without a name, and those with one by name: the same for each way to write a call."""
        known = self._positional
        named = {parameter.name: value for parameter, value in zip(known, args, strict=False)}
        return list(args[len(known) :]), {**named, **kwargs}

    def _bind(
        self, args: Sequence[V], kwargs: Mapping[str, V], convert: Callable[[_Parameter, V], T]
    ) -> tuple[list[T], list[tuple[_Parameter, T]]]:
        if not self._ready:
            self._inspect()
        given, known, rest = len(args), self._positional, self._rest
        if given > len(known) and rest is None:
            raise UsageError(
                f"{self._title} takes at most {counted(len(known), 'argument')} by position, not {given}"
            )
        named = [(self._parameter(name, given), value) for name, value in kwargs.items()] if kwargs else []
        for place, name in self._required:
            if place >= given and name not in kwargs:
                raise self._missing(given, kwargs)
        values = [
            convert(known[at] if at < len(known) else cast("_Parameter", rest), value)
            for at, value in enumerate(args)
        ] if args else []  # fmt: skip
        return values, [(parameter, convert(parameter, value)) for parameter, value in named] if named else []

    def _parameter(self, name: str, given: int) -> _Parameter:
        parameter = self._named.get(name)
        if parameter is None:
            if self._rest_named is None:
                raise unknown_option(self._title, name, tuple(self._named), "argument")
            return self._rest_named._replace(name=name)
        if parameter.place < given:
            raise UsageError(f"{self._title} got the argument {name!r} twice")
        return parameter

    def _missing(self, given: int, kwargs: Mapping[str, object]) -> UsageError:
        names = [repr(name) for place, name in self._required if place >= given and name not in kwargs]
        what = "arguments" if len(names) > 1 else "argument"
        return UsageError(f"{self._title} requires the {what} {', '.join(names)}, missing from the call")

    def _written(self, limit: int, parameter: _Parameter, value: object) -> bytes:
        kind = type(value)
        if kind in _SAME and kind is parameter.annotation:
            try:
                return _encode_same(value)
            except (ValueError, OverflowError):
                pass  # half a character, or a number too large: reported below
        try:
            if parameter.annotation is None:
                if parameter.undecodable and kind not in _PLAIN:
                    raise UsageError(
                        f"a worker could not build this {type(value).__name__} again, because {parameter.undecodable}"
                    )
                body = encode_value(value, limit)
                if kind is dict and parameter.undecodable:
                    _check_text(value, parameter.undecodable)
                return body
            if kind not in _PLAIN and isinstance(value, (str, int, float)) and not isinstance(value, Enum):
                value = to_plain(value)
            msgspec.convert(value, parameter.annotation, str_keys=True, dec_hook=from_plain)
            body = encode_value(value, limit)
            # Values of the right class may contain wrong ones, which would fail only in the worker.
            built = parameter.decode(body)
            if parameter.lossy:
                check_complete(body, built)
            if kind is dict:
                _check_keys(value, built)
        except (msgspec.ValidationError, _Incomplete) as error:
            raise self._mismatch(parameter, error) from None
        except UsageError as error:
            kind = CodecError if isinstance(error, CodecError) else UsageError
            raise kind(f"{self._title}: argument {parameter.name!r}: {error}") from error
        return body

    def _read_back(self, parameter: _Parameter, body: Any) -> object:
        try:
            value = parameter.decode(body)
            if parameter.lossy == _KEYS:
                check_complete(body, value, only_keys=True)
            return value
        except (msgspec.ValidationError, _Incomplete) as error:
            raise self._mismatch(parameter, error) from None
        except (CodecError, *_UNREADABLE) as error:
            raise CodecError(f"{self._title}: argument {parameter.name!r} cannot be read: {error}") from None

    def _mismatch(self, parameter: _Parameter, error: Exception) -> UsageError:
        sentence = f"{self._title}: argument {parameter.name!r} does not fit: {error}"
        found = _OF_OTHER_CLASS.search(str(error))
        if found is not None:
            sentence += (
                f"; a worker could not build a {found[1]} again: name {found[1]} in the annotation, or give an object of a "
                "class that it names (a subclass is another class)"
            )
        return UsageError(sentence)

    def annotation_at(self, place: int) -> object:
        """Return the annotation of the argument at a position, None where any JSON value fits."""
        if not self._ready:
            self._inspect()
        if place < len(self._positional):
            return self._positional[place].annotation
        return None if self._rest is None else self._rest.annotation

    def takes(self, name: str) -> bool:
        """Return whether a call may give an argument by this name."""
        if not self._ready:
            self._inspect()
        return name in self._named or self._rest_named is not None

    def _inspect(self) -> None:
        hints = hints_of(self._function)
        for place, parameter in enumerate(inspect.signature(self._function).parameters.values()):
            # A keyword-only parameter is never filled by position.
            place = place if parameter.kind in _POSITIONAL else _NO_PLACE
            unpacked = _unpacked(parameter, hints)
            if unpacked is not None:
                for entry in unpacked:
                    self._named[entry.name] = entry
                    if entry.required:
                        self._required.append((_NO_PLACE, entry.name))
                continue
            is_required = parameter.default is parameter.empty
            self._add(
                parameter, _parameter_of(parameter.name, place, is_required, parameter.annotation, hints)
            )
        self._ready = True

    def _add(self, parameter: inspect.Parameter, entry: _Parameter) -> None:
        kind = parameter.kind
        if kind is parameter.VAR_POSITIONAL:
            self._rest = entry
            return
        if kind is parameter.VAR_KEYWORD:
            self._rest_named = entry
            return
        if kind in _POSITIONAL:
            self._positional.append(entry)
        if kind in _BY_NAME:
            self._named[entry.name] = entry
        if entry.required:
            self._required.append((entry.place, entry.name))


def _unpacked(parameter: inspect.Parameter, hints: Mapping[str, object]) -> list[_Parameter] | None:
    """Return the arguments that `**names: Unpack[TypedDict]` stands for; None for any other parameter."""
    hint = hints.get(parameter.name)
    if parameter.kind is not parameter.VAR_KEYWORD or typing.get_origin(hint) is not typing.Unpack:
        return None
    [table] = typing.get_args(hint)
    of_keys = typing.get_type_hints(table)
    required = cast("frozenset[str]", table.__required_keys__)
    return [_parameter_of(name, _NO_PLACE, name in required, of_keys[name], of_keys) for name in of_keys]


def hints_of(function: Callable[..., object]) -> dict[str, object]:
    """The annotations of a function, looked up; those that cannot be are left out, the others count."""
    try:
        return typing.get_type_hints(function)
    except Exception:
        found: dict[str, object] = {}
        for name, annotation in getattr(function, "__annotations__", {}).items():
            try:
                one = types.SimpleNamespace(__annotations__={name: annotation})
                found |= typing.get_type_hints(one, getattr(function, "__globals__", {}))
            except Exception:
                # An annotation that exists only for type checkers must not make the job fail.
                continue
        return found


def _parameter_of(
    name: str, place: int, required: bool, written: object, hints: Mapping[str, object]
) -> _Parameter:
    """Return a parameter whose annotation was `written` so, and is in `hints` where it could be looked up."""
    if written is inspect.Parameter.empty:
        return _Parameter(name, place, required, None, decode, "it has no annotation")
    if name not in hints:
        return _Parameter(name, place, required, None, decode, f"{written!r} is not known when the job runs")
    annotation = hints[name]
    if annotation is Any or annotation is object:
        return _Parameter(name, place, required, None, decode)
    try:
        decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder(annotation, dec_hook=from_plain)
    except Exception as error:
        return _Parameter(
            name, place, required, None, decode, f"its annotation cannot be read from JSON ({error})"
        )
    return _Parameter(name, place, required, annotation, decoder.decode, lossy=_lossy(annotation))


_FIELDS: Final = 1
_KEYS: Final = 2
_WITH_FIELDS: Final = frozenset(("StructType", "DataclassType", "CustomType"))


def _lossy(annotation: object) -> int:
    """Return what decoding may leave out of values of a type: _KEYS of TypedDicts, _FIELDS of classes only, or 0 for nothing."""
    if isinstance(annotation, type) and annotation in _PLAIN:
        return 0
    from msgspec import inspect as described  # few programs need it

    try:
        pending: list[object] = [described.type_info(annotation)]
    except Exception:
        return _KEYS  # not known
    seen: dict[int, object] = {}
    while pending:
        one = pending.pop()
        if isinstance(one, tuple):
            pending += one
        elif isinstance(one, (described.Type, described.Field)) and id(one) not in seen:
            seen[id(one)] = one
            pending += [getattr(one, name) for name in one.__struct_fields__]
    kinds = {type(one).__name__ for one in seen.values()}
    return _KEYS if "TypedDictType" in kinds else _FIELDS if kinds & _WITH_FIELDS else 0


class _Incomplete(UsageError):
    """A part of a value has no place in the declared type."""


def check_complete(body: bytes, built: object, *, only_keys: bool = False) -> None:
    """Raise UsageError if what was decoded from a JSON text lacks some of it: keys of TypedDicts, or fields of classes."""
    left = _left_out(decode(body), built, only_keys, "$")
    if left:
        raise _Incomplete(left)


def _left_out(plain: object, built: object, only_keys: bool, at: str) -> str:
    """Return what of a JSON value a built one lacks, "" for nothing."""
    pairs: list[tuple[str, Any, Any]] = []
    if isinstance(plain, list):
        items = cast("list[object]", plain)
        others = cast("Sequence[Any]", built) if isinstance(built, (list, tuple)) else ()
        if len(others) == len(items):
            pairs = [(f"{at}[{i}]", *pair) for i, pair in enumerate(zip(items, others, strict=True))]
    elif isinstance(plain, dict):
        table = cast("dict[str, Any]", plain)
        known = _content(table, built)
        if known is None:
            return ""
        is_dict = isinstance(built, dict)
        for name in table if is_dict or not only_keys else ():
            if name not in known:
                what = "the TypedDict has no key" if is_dict else f"{type(built).__name__} has no field"
                return f"{what} {name!r:.80} - at `{at:.80}`"
        pairs = [(f"{at}.{name}", table[name], known[name]) for name in table if name in known]
    for place, one, other in pairs:
        left = _left_out(one, other, only_keys, place)
        if left:
            return left
    return ""


def _content(plain: Mapping[str, Any], built: object) -> Mapping[str, Any] | None:
    """Return what a built value has, by the names of the JSON object that it was built from; None if that is not known."""
    if isinstance(built, dict):
        content: dict[Any, Any] = built  # pyright: ignore[reportUnknownVariableType]
        if all(type(key) is str for key in content):
            return content
        # Keys of another type are in the order of the JSON object.
        return dict(zip(plain, content.values(), strict=True)) if len(plain) == len(content) else None
    kind: Any = type(built)
    if isinstance(built, msgspec.Struct):
        fields = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        tag = kind.__struct_config__.tag_field
        return {name: getattr(built, field) for name, field in fields} | ({tag: None} if tag else {})
    if hasattr(kind, "model_validate") and hasattr(kind, "model_dump"):
        return cast("dict[str, Any]", to_plain(built))
    for names in (
        getattr(kind, "__dataclass_fields__", ()),
        [each.name for each in getattr(kind, "__attrs_attrs__", ())],
    ):
        if names:
            return {name: getattr(built, name, None) for name in names}
    return None


class ResultType:
    """The declared result of a function."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._parameter: _Parameter | None = None

    def mismatch(self, value: object, body: bytes) -> str:
        """Return why a result, whose JSON is `body`, is not of the declared type, "" if it is: both types, and where they differ."""
        expected = self._parameter or self._declared()
        kind = type(value)
        if expected.annotation is None or (kind is expected.annotation and kind in _SURE):
            return ""
        try:
            built = expected.decode(body)
            if expected.lossy:
                check_complete(body, built)
        except Exception as error:  # of any kind: the classes that check their values are the user's
            declared = inspect.formatannotation(expected.annotation)
            return (
                f"it is declared as {declared}, and the function returned {kind.__name__}: {text_of(error)}"
            )
        return ""

    def _declared(self) -> _Parameter:
        hints = hints_of(self._function)
        declared = result_of(hints.get("return", Any))
        found = _parameter_of("return", 0, True, declared, {"return": declared})
        self._parameter = found
        return found
