"""Hide parts of the data of jobs: by path, and by patterns of text."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar, cast

import msgspec

from holdfast.commands.admin import AuditLine
from holdfast.console.plain import stored
from holdfast.errors import JobFailed, UsageError

T = TypeVar("T")
_TEXTS: Final = frozenset(
    ("message", "reason", "text", "note", "stack", "log", "what", "filter", "refused", "refusals")
)
"""The fields of what the console returns that hold what jobs and people wrote."""
_JSON: Final = frozenset(("body", "detail", "spec", "value"))
"""The fields that are text, and may hold JSON."""
_WITH_DATA: Final = ("edit", "bulk data")
"""What in the audit log has new data of jobs, behind an arrow; of long ones only the beginning."""
_ARROW: Final = " → "
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
        """Return the value with what has to be hidden replaced, numbers that a pattern matches too."""
        return self._masked(value, (), 0, True) if self else value

    def text(self, text: str) -> str:
        """Return a text with what the patterns match replaced."""
        for pattern in self.patterns:
            text = pattern.sub(MASKED, text)
        return text

    def json_text(self, text: str) -> str:
        """Return a text, which may be JSON, with what has to be hidden replaced; JSON that was cut is hidden whole."""
        if not self or text.lstrip()[:1] not in ("{", "["):
            return self.text(text)
        value: Any = stored(text.encode(errors="replace"))
        if isinstance(value, str):
            return MASKED
        found = self(value)
        if isinstance(found, dict):  # a value in it may be JSON again
            members = cast("dict[str, Any]", found)
            found = {
                name: self.json_text(one) if isinstance(one, str) else one for name, one in members.items()
            }
        return text if found == value and not _has_doubles(text) else msgspec.json.encode(found).decode()

    def within(self, value: T) -> T:
        """Return a result of the console with what has to be hidden replaced: in stored JSON, and in texts that jobs wrote."""
        return self._within(value, "") if self else value

    def _within(self, value: Any, field: str) -> Any:
        if isinstance(value, AuditLine):
            return self._line(value)
        if isinstance(value, msgspec.Struct):
            changed = {name: self._within(getattr(value, name), name) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **changed)
        if isinstance(value, (tuple, list)):
            parts = [self._within(one, field) for one in cast("list[object]", value)]
            return tuple(parts) if isinstance(value, tuple) else parts
        if isinstance(value, bytes):
            return msgspec.json.encode(self(stored(value))) if value else value
        if isinstance(value, JobFailed):
            return JobFailed(value.group, self.text(value.message), value.jid)
        if isinstance(value, Counter):  # how many there are of each name
            return cast("Counter[str]", value)
        if isinstance(value, Mapping):
            return self._masked(dict(cast("Mapping[str, Any]", value)), (), 0, field == "data")
        if not isinstance(value, str):
            return value
        return self.text(value) if field in _TEXTS else self.json_text(value) if field in _JSON else value

    def _line(self, line: AuditLine) -> AuditLine:
        """Return a line of the audit log with what has to be hidden in its detail replaced."""
        if line.what in _WITH_DATA:
            # The first arrow: data may have others.
            before, arrow, last = line.detail.partition(_ARROW)
            parts = [self.json_text(before)]
            if arrow:
                parts.append(self.json_text(last) if _is_json(last) else MASKED)
        else:
            parts = [self.json_text(part) for part in line.detail.split(_ARROW)]
        return msgspec.structs.replace(line, detail=_ARROW.join(parts))

    def _masked(self, value: Any, path: tuple[str, ...], depth: int, numbers: bool) -> Any:
        if path and self._hides(path):
            return MASKED
        if isinstance(value, str):
            return self.text(value)
        if depth >= _DEEPEST:
            return MASKED if isinstance(value, (dict, list)) else value
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {
                self.text(name): self._masked(one, (*path, name), depth + 1, numbers)
                for name, one in members.items()
            }
        if isinstance(value, list):
            elements = cast("list[object]", value)
            return [self._masked(one, path, depth + 1, numbers) for one in elements]
        if numbers and type(value) in (int, float) and any(one.search(str(value)) for one in self.patterns):
            return MASKED
        return value

    def _hides(self, path: tuple[str, ...]) -> bool:
        whole = ".".join(path)
        return any(
            fnmatchcase(whole if "." in rule else path[-1], rule) or fnmatchcase(f".{whole}", rule)
            for rule in self.paths
        )


def _has_doubles(text: str) -> bool:
    """Return whether an object in JSON has two members of one name, of which only the last one was looked at."""
    found: list[bool] = []
    json.loads(text, object_pairs_hook=lambda pairs: found.append(len(pairs) > len(dict(pairs))))
    return any(found)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _compiled(rule: str) -> re.Pattern[str]:
    try:
        return re.compile(rule.removeprefix(_PATTERN))
    except re.error as error:
        raise UsageError(f"redact: {rule!r} is not a valid pattern: {error}") from None
