"""One call of a function job, as it is put: its arguments, written, and the moments at which it is wanted."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, cast

from msgspec import Raw

from holdfast.code.registry import Registered
from holdfast.errors import UsageError
from holdfast.settings import check_list, check_name, check_seconds

R_co = TypeVar("R_co", covariant=True)


class Bound(Generic[R_co]):
    """A call with its arguments, checked and written; `put_many` takes it."""

    __slots__ = ("data", "entry")

    def __init__(self, entry: Registered, data: Raw) -> None:
        self.entry = entry
        self.data = data

    def __repr__(self) -> str:
        return f"<Bound {self.entry.name} {bytes(self.data).decode():.80}>"


def data_of_all(entry: Registered, calls: Iterable[object], limit: int) -> Iterator[Raw]:
    """The data of each call that `put_many` was given. Raises UsageError saying which of them does not fit."""
    for number, call in enumerate(check_list("put_many", calls)):
        try:
            yield _data_of(entry, call, limit)
        except UsageError as error:
            raise UsageError(f"{error} (in item {number} of put_many)") from error


def _data_of(entry: Registered, call: object, limit: int) -> Raw:
    if isinstance(call, Bound):
        bound = cast("Bound[object]", call)
        if bound.entry is not entry:
            raise UsageError(f"{bound!r} is not a call of {entry.name}")
        return bound.data
    # A named tuple is a value like any other; a plain one stands for the parentheses of a call.
    if type(call) is tuple:
        return entry.arguments.write(cast("tuple[object, ...]", call), {}, limit)
    if isinstance(call, Mapping):
        named = cast("Mapping[str, Any]", call)
        for name in named:
            check_name("the name of an argument", name)
        return entry.arguments.write((), named, limit)
    return entry.arguments.write((call,), {}, limit)


def seconds_of(what: str, span: object, low: float = 0.0) -> float:
    """Return a span of time in seconds. Raises UsageError for one below `low`, and for no span at all."""
    return check_seconds(what, span.total_seconds() if isinstance(span, timedelta) else span, low)


def moment_of(what: str, moment: object) -> float:
    """Return a moment in epoch seconds: a datetime with its time zone, or such a number. Raises UsageError."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise UsageError(f"{what} has no time zone: say datetime(…, tzinfo=…), or datetime.now(UTC) + …")
        moment = moment.timestamp()
    if isinstance(moment, bool) or not isinstance(moment, (int, float)):
        raise UsageError(f"{what} must be a datetime or epoch seconds, not {moment!r:.80}")
    return check_seconds(what, moment)
