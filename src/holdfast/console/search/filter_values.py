"""The fields of a search filter, and the values that they are compared with: how each is written, and what it matches."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, floor, inf
from typing import Any, Final, Literal, cast, get_args

import msgspec

from holdfast.codecs import decode
from holdfast.errors import CodecError
from holdfast.models import State
from holdfast.text import parse_length, typed_length

Need = Literal["data", "tags", "group", "failure", "due"]
Operator = Literal[":", "!=", "~", "<", "<=", ">", ">="]
Kind = Literal["text", "flag", "number", "time", "data"]
TextTest = Callable[[str], bool]

STATES: Final[tuple[str, ...]] = get_args(State)


class Field(msgspec.Struct, frozen=True, gc=False):
    """A field of a job: `attribute` is that of the row, `need` the part of a row that is costly to read."""

    kind: Kind
    meaning: str
    attribute: str = ""
    need: Need | None = None
    choices: tuple[str, ...] = ()


FIELDS: Final[Mapping[str, Field]] = {
    "state": Field("text", ", ".join(STATES[:-1]) + f" or {STATES[-1]}", "state", choices=STATES),
    "queue": Field("text", "name of the queue", "queue"),
    "klass": Field("text", "name of the code that performs the job", "klass"),
    "jid": Field("text", "name of the job", "jid"),
    "worker": Field("text", "worker that runs the job, or ran it last", "worker"),
    "tag": Field("text", "one of the tags", "tags", "tags"),
    "group": Field("text", "failure group of a failed job", "group", "group"),
    "message": Field("text", "failure message", "message", "failure"),
    "data": Field("data", "value at a path in the data: data.order.id", "data", "data"),
    "is": Field("flag", "tracked, or late: past due, or the lease has ended", choices=("tracked", "late")),
    "priority": Field("number", "priority; higher runs first", "priority"),
    "retries": Field("number", "retries of the job", "retries"),
    "remaining": Field("number", "retries left", "remaining"),
    "attempts": Field("number", "attempts so far", "attempts"),
    "losses": Field("number", "lost leases so far", "losses"),
    "size": Field("number", "size of the data in bytes", "data", "data"),
    "created": Field("time", "when the job was first put", "created_ms"),
    "queued": Field("time", "when it was put into its queue", "queued_ms"),
    "popped": Field("time", "when the last attempt started", "popped_ms"),
    "ended": Field("time", "when the last attempt ended", "ended_ms"),
    "failed": Field("time", "when it failed", "failed_ms", "failure"),
    "due": Field("time", "when a scheduled job is due, or a lease ends", "due_ms", "due"),
}
SYNONYMS: Final[Mapping[str, str]] = {"class": "klass", "started": "popped", "done": "ended"}

_SAFE: Final = re.compile(r"[\w.:/@+-]+")
SAFE_WORD: Final = re.compile(r"(?!(?:and|or|not)\Z)\w[\w./@+-]*", re.IGNORECASE)
SAFE_SEGMENT: Final = re.compile(r"[\w-]+")
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def escaped(text: str) -> str:
    """Return `text` with backslash escapes for what is not printable."""
    if text.isprintable():
        return text
    return "".join([one if one.isprintable() else _SHORT.get(one) or _code(one) for one in text])


def _code(letter: str) -> str:
    number = ord(letter)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def written(text: str, safe: re.Pattern[str] = _SAFE) -> str:
    """Return `text` as a filter has it: in double quotes, unless all of it is `safe` without."""
    if safe.fullmatch(text):
        return text
    return '"' + escaped(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def json_scalar(text: str) -> float | bool | msgspec.UnsetType | None:
    """Return the number, boolean or null that a JSON text is; UNSET for any other text."""
    try:
        value = decode(text) if len(text) <= 40 else msgspec.UNSET
    except CodecError:
        return msgspec.UNSET
    return value if value is None or isinstance(value, (int, float)) else msgspec.UNSET


class Value(msgspec.Struct, frozen=True, gc=False):
    """What a field is compared with."""


class Exact(Value, frozen=True, gc=False):
    """This text; after `~`, a text that contains it."""

    text: str

    def __str__(self) -> str:
        return written(self.text)


class Glob(Value, frozen=True, gc=False):
    """A text of these parts, two at least, with anything between them."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, parts: Sequence[str]) -> "Glob":
        """Return the glob of these parts; two stars in a row are one."""
        return cls((parts[0], *filter(None, parts[1:-1]), parts[-1]))

    def __str__(self) -> str:
        return "*".join([part and written(part) for part in self.parts])

    def test(self) -> TextTest:
        """Return the function that tests a text. It reads the text once, unlike a regular expression."""
        first, *middle, last = self.parts

        def matches(text: str) -> bool:
            if not text.startswith(first) or not text.endswith(last):
                return False
            at, end = len(first), len(text) - len(last)
            for part in middle:
                found = text.find(part, at, end)
                if found < 0:
                    return False
                at = found + len(part)
            return at <= end

        return matches


ANYTHING: Final = Glob(("", ""))


class Scalar(Value, frozen=True, gc=False):
    """In data: this JSON number, true, false or null, or the string of the same text."""

    text: str

    def __str__(self) -> str:
        return self.text


class Number(Value, frozen=True, gc=False):
    """A number."""

    value: float

    def __str__(self) -> str:
        return repr(self.value)

    def ends(self, now_ms: int, sign: int) -> tuple[float, float]:
        """Return the number twice, as the first and the last."""
        return self.value, self.value


class Age(Value, frozen=True, gc=False):
    """An age in milliseconds: before now, or after now for a future time."""

    value: int

    def __str__(self) -> str:
        return typed_length(self.value)

    def ends(self, now_ms: int, sign: int) -> tuple[float, float]:
        """Return the moment twice; `sign` is -1 for a past time, 1 for one to come."""
        moment = now_ms + sign * self.value
        return moment, moment


class Moment(Value, frozen=True, gc=False):
    """A day, minute, second or millisecond: its first millisecond and its length."""

    value: int
    length: int

    def __str__(self) -> str:
        when = EPOCH + timedelta(milliseconds=self.value)
        precision = next(name for name, length in PRECISIONS.items() if length == self.length)
        if precision == "days":
            return f"{when.date()}"
        return when.isoformat(timespec=precision).replace("+00:00", "Z")

    def ends(self, now_ms: int, sign: int) -> tuple[float, float]:
        """Return the first and the last millisecond."""
        return self.value, self.value + self.length - 1


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
PRECISIONS: Final = {"days": 86_400_000, "minutes": 60_000, "seconds": 1000, "milliseconds": 1}

Point = Number | Age | Moment

_MAX_AGE: Final = 1000 * 366 * 86_400_000
_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def point(kind: Kind, text: str) -> Point | None:
    """Return the number, age or moment that a text is; None for any other text."""
    if kind == "time":
        return _age(text) or _moment(text.upper())
    number = json_scalar(text)
    return Number(number) if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def _age(text: str) -> Age | None:
    seconds = parse_length(text)
    if seconds is None or seconds > _MAX_AGE / 1000:
        return None
    return Age(round(1000 * seconds))


def _moment(text: str) -> Moment | None:
    found = _DATE.fullmatch(text)
    if not found:
        return None
    try:
        when = datetime.fromisoformat(text)
        start = (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    precision = (
        "milliseconds" if found[2] else "seconds" if found[1] else "minutes" if ":" in text else "days"
    )
    return Moment((start - EPOCH) // timedelta(milliseconds=1), PRECISIONS[precision])


class Range(Value, frozen=True, gc=False):
    """From one number or time to another, both included."""

    low: Point
    high: Point

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


_OPPOSITE: Final[Mapping[Operator, Operator]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bounds(op: Operator, value: Value, now_ms: int, sign: int) -> tuple[float, float]:
    """Return the least and the greatest whole number that a comparison allows."""
    if isinstance(value, Range):
        low, high = value.low, value.high
        if isinstance(low, Age) and sign < 0:
            low, high = high, low  # what is older is earlier
        return low.ends(now_ms, sign)[0], high.ends(now_ms, sign)[1]
    first, last = cast("Point", value).ends(now_ms, sign)
    if isinstance(value, Age) and sign < 0:
        op = _OPPOSITE[op]  # what is younger is later
    match op:
        case "<":
            return -inf, ceil(first) - 1
        case "<=":
            return -inf, last
        case ">":
            return floor(last) + 1, inf
        case ">=":
            return first, inf
        case _:
            return first, last


def text_test(op: Operator, values: Iterable[Value]) -> TextTest:
    """Return the function that compares a text with these values, of which one suffices."""
    texts = [value.text for value in values if isinstance(value, (Exact, Scalar))]
    if op == "~":
        needles = [text.casefold() for text in texts]
        return lambda text: any(map(text.casefold().__contains__, needles))
    exact = frozenset(texts)
    globs = [value.test() for value in values if isinstance(value, Glob)]
    if not globs:
        return exact.__contains__
    if not exact and len(globs) == 1:
        return globs[0]
    return lambda text: text in exact or any(glob(text) for glob in globs)


Find = Callable[[object], Iterable[object]]


def finder(path: Sequence[str | None]) -> Find:
    """Return the function that finds the values at a path; there is none below UNSET."""
    if None not in path:
        return _straight([key for key in path if key is not None])
    steps = [children if key is None else _straight([key]) for key in path]

    def find(value: object) -> Iterable[object]:
        level: Iterable[object] = [value]
        for step in steps:
            level = [child for item in level for child in step(item)]
        return level

    return find


def _straight(path: Sequence[str]) -> Find:
    steps = [(key, _index(key)) for key in path]

    def find(value: object) -> Iterable[object]:
        for key, index in steps:
            if isinstance(value, dict):
                value = cast("dict[str, object]", value).get(key, msgspec.UNSET)
            elif isinstance(value, list) and 0 <= index < len(cast("list[object]", value)):
                value = cast("list[object]", value)[index]
            else:
                return ()
        return () if value is msgspec.UNSET else (value,)

    return find


def _index(key: str) -> int:
    """Return the index that a segment is, -1 if it is none."""
    return int(key) if key.isascii() and key.isdecimal() and len(key) < 10 else -1


def children(value: object) -> Iterable[object]:
    """Return the elements of a list or the values of an object."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def keys_of(value: object) -> Iterable[str]:
    """Return the keys of an object."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else ()


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def data_test(op: Operator, values: Sequence[Value]) -> Callable[[Any], bool]:
    """Return the function that tests one value of the data."""
    if op in _COMPARE:
        compare, limit = _COMPARE[op], cast("Number", values[0]).value
        return lambda value: type(value) in (int, float) and compare(value, limit)
    texts = text_test(op, values)
    if op == "~":
        return lambda value: texts(value if type(value) is str else _json_text(value))
    if ANYTHING in values:
        return lambda value: True
    scalars = [json_scalar(value.text) for value in values if isinstance(value, Scalar)]
    numbers = frozenset([one for one in scalars if type(one) in (int, float)])
    ranges = [bounds(":", value, 0, 1) for value in values if isinstance(value, Range)]

    def test(value: Any) -> bool:
        if type(value) is str:
            return texts(value)
        if type(value) in (int, float):
            return value in numbers or any(low <= value <= high for low, high in ranges)
        return any(value is one for one in scalars)

    return test


def _json_text(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return ""
