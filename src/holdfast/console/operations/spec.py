"""What an operation on many jobs does: an action, its value, and the filter that names the jobs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast, get_args

import msgspec

from holdfast.bounds import MAX_DELAY, Priority, Retries
from holdfast.codecs import decode
from holdfast.commands.job_rows import JobRow
from holdfast.commands.operations import Action
from holdfast.console.filters import Filter, parse
from holdfast.console.search.search import STATES
from holdfast.errors import CodecError, UsageError
from holdfast.settings import check_bounded, check_name, check_whole

MOST_JOBS: Final = 1_000_000_000
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
_OPEN: Final = tuple(state for state in STATES if state != "complete")
_FAMILY: Final = ("depends", *(state for state in _OPEN if state != "depends"))
"""Children before their parents."""
_WAITING: Final = ("scheduled", "waiting")
APPLIES: Final[Mapping[str, Sequence[str]]] = {
    "retry": ("failed",),
    "fail": ("waiting", "stalled"),
    "expire": ("running", "stalled"),
    "run": ("scheduled",),
    "delay": _WAITING,
    "cancel": _FAMILY,
    "delete": tuple(state for state in _FAMILY if state not in ("running", "stalled")),
    "priority": _OPEN,
    "retries": _OPEN,
    "data": tuple(state for state in _OPEN if state != "running"),
}
"""The states whose jobs an action can change; all states for the others."""
INVERSE: Final[Mapping[str, Action]] = {
    "retry": "fail",
    "fail": "retry",
    "move": "move-back",
    "priority": "priority",
    "retries": "retries",
    "tag": "untag",
    "untag": "tag",
    "track": "untrack",
    "untrack": "track",
    "delay": "run",
}
"""The action that undoes each one that can be undone, with the value that the core noted."""
DELETES: Final[Sequence[Action]] = ("cancel", "delete")
_NEEDS_VALUE: Final = frozenset(("delay", "priority", "retries", "data", "tag", "untag"))


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation does: `action` with `value` for each job that `filter` matches.

    `value` is a queue for move and retry ("": that of the job), a number for priority and retries, seconds for delay, tags
    separated by commas for tag and untag, and a JSON merge patch (RFC 7396) for data. `rate` is the largest number of
    changes a second, `most` that of jobs to change; 0 for any. `undoes` is the id of the operation that this one undoes.
    With `dependents` the jobs that wait for a cancelled one are cancelled too. Nothing is changed before `starts_ms` (0: at once).
    """

    action: Action
    filter: str = ""
    value: str = ""
    who: str = ""
    rate: float = 0.0
    candidates: int = 0
    undoes: str = ""
    planned_ms: int = 0
    most: int = 0
    dependents: bool = False
    starts_ms: int = 0

    @property
    def query(self) -> Filter:
        """The parsed filter."""
        return parse(self.filter)

    @property
    def common(self) -> str:
        """The value as the core takes it, for all jobs together."""
        if self.action == "delay":
            return str(round(float(self.value) * 1000))
        if self.action in ("tag", "untag"):
            return "\n".join(name.strip() for name in self.value.split(","))
        return "" if self.action == "data" else self.value


def check_spec(spec: Spec) -> Spec:
    """Return a spec whose action, value and filter are possible. Raises UsageError."""
    check_value(spec)
    check_whole("most", spec.most, 0, MOST_JOBS)
    query = spec.query
    if not str(query):
        raise UsageError("the filter is empty, and would match every job; write jid:* if you mean that")
    return msgspec.structs.replace(spec, filter=str(query))


def check_value(spec: Spec) -> None:
    """Raise UsageError unless there is such an action, and it takes such a value."""
    if spec.action not in ACTIONS:
        raise UsageError(f"there is no action {spec.action!r:.80}: expected one of {', '.join(ACTIONS)}")
    if spec.dependents and spec.action not in DELETES:
        raise UsageError(f"dependents: only cancel and delete can include them, not {spec.action}")
    if spec.action in _NEEDS_VALUE and not spec.value:
        raise UsageError(f"{spec.action} needs a value")
    if spec.action in ("move", "retry", "fail"):
        if spec.value:
            check_name("queue", spec.value)
    elif spec.action in ("tag", "untag"):
        for name in spec.common.split("\n"):
            check_name("tag", name)
    elif spec.action == "data":
        patch_of(spec.value)
    elif spec.action in _NEEDS_VALUE:
        _check_number(spec)
    elif spec.value:
        raise UsageError(f"{spec.action} takes no value, got {spec.value!r:.80}")


_BOUNDS: Final = {"priority": Priority, "retries": Retries}


def _check_number(spec: Spec) -> None:
    try:
        number = float(spec.value)
    except ValueError:
        raise UsageError(f"{spec.action}: expected a number, got {spec.value!r:.80}") from None
    if spec.action in _BOUNDS:
        check_bounded(spec.action, int(number) if number.is_integer() else number, _BOUNDS[spec.action])
    elif not 0 <= number <= MAX_DELAY:
        raise UsageError(f"delay: expected seconds from 0 to a hundred years, got {spec.value!r:.80}")


def patch_of(text: str) -> dict[str, Any]:
    """Return a JSON merge patch. Raises UsageError for anything but a JSON object."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the patch is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"the patch must be a JSON object, not {text!r:.80}")
    return cast("dict[str, Any]", found)


def merged(value: object, patch: object) -> object:
    """Return a JSON value changed by a merge patch (RFC 7396): null removes a member, objects are merged."""
    if not isinstance(patch, dict):
        return patch
    result: dict[str, object] = dict(cast("dict[str, object]", value)) if isinstance(value, dict) else {}
    for name, change in cast("dict[str, object]", patch).items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), change)
    return result


def pairs_of(spec: Spec, rows: Sequence[JobRow]) -> list[tuple[str, str | bytes]]:
    """Return what an action gets for each job; data that cannot be read are left out."""
    if spec.action in DELETES:  # children are mostly put later than their parents
        return [(row.jid, "") for row in reversed(rows)]
    if spec.action != "data":
        return [(row.jid, "") for row in rows]
    patch, pairs = patch_of(spec.value), list[tuple[str, str | bytes]]()
    for row in rows:
        try:
            changed = msgspec.json.encode(merged(decode(row.data), patch))
        except CodecError:
            continue
        pairs.append((row.jid, hashlib.sha1(row.data).hexdigest().encode() + changed))
    return pairs
