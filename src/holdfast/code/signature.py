"""The arguments of a function job, checked when it is put and again when it is performed."""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.errors import UsageError

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class _Parameter(NamedTuple):
    name: str
    annotation: Any  # None: anything goes
    required: bool


class Envelope(msgspec.Struct, gc=False):
    """The data of a function job: `{"args": […], "kwargs": {…}}`, either of which may be missing."""

    args: list[Any] = []
    kwargs: dict[str, Any] = {}


decode_envelope: Final = msgspec.json.Decoder(Envelope).decode


class Arguments:
    """What one function accepts. Annotations are looked up at the first use, when all names exist."""

    def __init__(self, function: Callable[..., Any], title: str) -> None:
        self._function = function
        self._title = title
        self._ready = False
        self._positional: list[_Parameter] = []
        self._named: dict[str, _Parameter] = {}
        self._rest: _Parameter | None = None
        self._rest_named: _Parameter | None = None
        self._required: list[tuple[int, _Parameter]] = []

    def fit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return `args` and `kwargs` as the annotations want them. Raises UsageError naming the argument."""
        if not self._ready:
            self._read()
        given = len(args)
        known = self._positional
        if given > len(known) and self._rest is None:
            raise UsageError(f"{self._title} takes at most {len(known)} arguments by position, not {given}")
        values = [
            self._convert(known[place] if place < len(known) else self._rest, value)
            for place, value in enumerate(args)
        ]
        named = (
            {name: self._named_value(name, value, given) for name, value in kwargs.items()} if kwargs else {}
        )
        for place, parameter in self._required:
            if place >= given and parameter.name not in named:
                raise UsageError(f"{self._title} misses its argument {parameter.name!r}")
        return values, named

    def _named_value(self, name: str, value: Any, given: int) -> Any:
        parameter = self._named.get(name)
        if parameter is None:
            if self._rest_named is None:
                raise UsageError(f"{self._title} has no argument {name!r}")
            return self._convert(self._rest_named._replace(name=name), value)
        if any(taken.name == name for taken in self._positional[:given]):
            raise UsageError(f"{self._title} was given its argument {name!r} twice")
        return self._convert(parameter, value)

    def _convert(self, parameter: _Parameter | None, value: Any) -> Any:
        if parameter is None or parameter.annotation is None or type(value) is parameter.annotation:
            return value
        try:
            return msgspec.convert(value, parameter.annotation, str_keys=True)
        except msgspec.ValidationError as error:
            raise UsageError(f"{self._title}: argument {parameter.name!r} does not fit: {error}") from None

    def _read(self) -> None:
        try:
            hints = typing.get_type_hints(self._function)
        except Exception:
            # An annotation that exists only for type checkers is no reason to refuse the job.
            hints = {}
        for place, parameter in enumerate(inspect.signature(self._function).parameters.values()):
            self._learn(place, parameter, _checkable(hints.get(parameter.name)))
        self._ready = True

    def _learn(self, place: int, parameter: inspect.Parameter, annotation: Any) -> None:
        entry = _Parameter(parameter.name, annotation, parameter.default is parameter.empty)
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
            # A keyword-only parameter is never filled by position.
            self._required.append((place if kind in _POSITIONAL else 1 << 30, entry))


def _checkable(annotation: Any) -> Any:
    """Return `annotation` if values can be checked against it, None if anything must pass."""
    if annotation is None or annotation is Any or annotation is object:
        return None
    try:
        msgspec.json.Decoder(annotation)
    except Exception:
        return None
    return annotation
