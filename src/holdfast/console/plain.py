"""What the console returns as plain values, for JSON: the same for all that show it.

Fields keep their names. `created_ms` becomes `created`, in seconds, None where there is none; stored JSON is
decoded; fields for internal use are left out.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.client.explanation import Explanation
from holdfast.code.put_options import kept_options
from holdfast.models import HistoryEntry, JobFacts

_HIDDEN: Final = frozenset(("flags", "options", "planned_ms", "policies", "trend_from_ms"))


def plain(value: object, read: Callable[[bytes], Any] | None = None) -> Any:
    """Return a result of the console as plain values. `read` makes a value of stored JSON; None: it is decoded."""
    if isinstance(value, HistoryEntry):
        return value.as_dict()
    if isinstance(value, Explanation):
        checks = [
            {name: getattr(one, name) for name in ("check", "verdict", "text", "fix")} for one in value.checks
        ]
        return {"text": value.text, "checks": checks}
    if isinstance(value, JobFacts):
        return {**_fields(value, read), **_options(value)}
    if isinstance(value, msgspec.Struct):
        return _fields(value, read)
    if isinstance(value, bytes):
        return (read or stored)(value)
    if isinstance(value, Mapping):
        return {str(name): plain(one, read) for name, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, read) for one in cast("list[object]", value)]
    return str(value) if isinstance(value, str) else value


def _fields(value: msgspec.Struct, read: Callable[[bytes], Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in value.__struct_fields__:
        field, written = getattr(value, name), name_in_json(name)
        if written:
            found[written] = plain(field, read) if written == name else _seconds(field)
    return found


def _seconds(milliseconds: float | None) -> float | None:
    return milliseconds / 1000 if milliseconds and milliseconds > 0 else None


def name_in_json(field: str) -> str:
    """Return the name of a field in JSON, "" if it is left out; of a time in milliseconds the name without `_ms`."""
    return "" if field in _HIDDEN else field.removesuffix("_ms")


def _options(facts: JobFacts) -> dict[str, Any]:
    return {
        "max_losses": facts.max_losses,
        **kept_options(facts.options),
        "lease_ends": facts.expires_ms / 1000 if facts.expires_ms else None,
    }


def stored(data: bytes) -> Any:
    """Return stored JSON as a value; text that is not JSON, from another program, stays text."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return data.decode(errors="replace")
