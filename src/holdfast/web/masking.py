"""Hide parts of the data of jobs: by path, and by patterns of text."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar, cast

import msgspec

from holdfast.console.plain import stored
from holdfast.errors import UsageError

T = TypeVar("T")
_TEXTS: Final = frozenset(("message", "reason", "text", "note", "stack", "log", "what"))
"""The fields of what the console returns that hold what jobs wrote."""
MASKED: Final = "••••"
_PATTERN: Final = "re:"
_DEEPEST: Final = 100


class Mask:
    """Hides what rules name: `*.password`, `card.*` are paths with `*` for any names; `re:\\b\\d{16}\\b` is a pattern of text.

    A path without a dot matches that name at any depth. Raises UsageError for a pattern that cannot be read.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        self.paths = [rule for rule in rules if not rule.startswith(_PATTERN)]
        self.patterns = [_compiled(rule) for rule in rules if rule.startswith(_PATTERN)]

    def __bool__(self) -> bool:
        return bool(self.paths or self.patterns)

    def __call__(self, value: Any) -> Any:
        """Return the value with what has to be hidden replaced."""
        return self._masked(value, (), 0) if self else value

    def text(self, text: str) -> str:
        """Return a text with what the patterns match replaced."""
        for pattern in self.patterns:
            text = pattern.sub(MASKED, text)
        return text

    def within(self, value: T) -> T:
        """Return a result of the console with what has to be hidden replaced: in stored JSON, and in texts that jobs wrote."""
        return self._within(value, False) if self else value

    def _within(self, value: Any, is_text: bool) -> Any:
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            changed = {name: self._within(one, name in _TEXTS) for name, one in fields.items()}
            return msgspec.structs.replace(value, **changed)
        if isinstance(value, tuple):
            parts = cast("tuple[object, ...]", value)
            return tuple([self._within(one, is_text) for one in parts])
        if isinstance(value, bytes):
            return msgspec.json.encode(self(stored(value))) if value else value
        if isinstance(value, Counter):  # how many there are of each name
            return cast("Counter[str]", value)
        if isinstance(value, Mapping):
            return self(dict(cast("Mapping[str, Any]", value)))
        return self.text(value) if is_text and isinstance(value, str) else value

    def _masked(self, value: Any, path: tuple[str, ...], depth: int) -> Any:
        if path and self._hides(path):
            return MASKED
        if isinstance(value, str):
            return self.text(value)
        if depth >= _DEEPEST:
            return MASKED if isinstance(value, (dict, list)) else value
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {name: self._masked(one, (*path, name), depth + 1) for name, one in members.items()}
        if isinstance(value, list):
            elements = cast("list[object]", value)
            return [self._masked(one, path, depth + 1) for one in elements]
        return value

    def _hides(self, path: tuple[str, ...]) -> bool:
        whole = ".".join(path)
        return any(
            fnmatchcase(whole if "." in rule else path[-1], rule) or fnmatchcase(f".{whole}", rule)
            for rule in self.paths
        )


def _compiled(rule: str) -> re.Pattern[str]:
    try:
        return re.compile(rule.removeprefix(_PATTERN))
    except re.error as error:
        raise UsageError(f"redact: {rule!r} is no pattern: {error}") from None
