"""How numbers and names are written for people: durations, times, sizes, counts with their nouns, lists of names.

A length of time that people type is read here too. Terminal, log and sentences have a blank between a number and its unit,
and `min` for minutes; the `narrow_` forms of pages, which have little room, have spaces at which no line ends, and `m`.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from time import gmtime, strftime
from typing import Final

THIN: Final = "\u202f"
"""The narrow space of pages, between a number and its unit and between thousands; no line ends there."""
MINUS: Final = "\u2212"
_WIDE: Final = "\u00a0"
_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000
_LENGTHS: Final = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_LENGTH: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhdw])")
_NOUNS: Final = (
    (_DAY_MS, "day"),
    (_HOUR_MS, "hour"),
    (60_000, "minute"),
    (1000, "second"),
    (1, "millisecond"),
)


# Counts and lists.


def counted(count: int, noun: str, nouns: str = "", comma: str = ",") -> str:
    """Return a number with its noun: `1 job`, `2 jobs`, with `nouns` as `1 job waits`, `2 jobs wait`.

    `comma` is what stands between thousands: `1,234 jobs` for ","; pages pass a thin space.
    """
    number = f"{count:,}".replace(",", comma)
    return f"{number} {noun}" if count == 1 else f"{number} {nouns or f'{noun}s'}"


def times(count: int) -> str:
    """Return how often: `once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def name_or_count(noun: str, names: Sequence[str]) -> str:
    """Return one thing by its name, several by their number: `Worker mail-1`, `3 workers`. A `noun` with a capital begins a sentence."""
    if len(names) == 1:
        return f"{noun} {names[0]}"
    return counted(len(names), noun.lower())


def listed(names: Sequence[str], most: int = 32) -> str:
    """Return names in a row, the first `most` of them: `a, b, c`, `a, b and 1,230 more`."""
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more:,} more"


def either(names: Sequence[str]) -> str:
    """Return names of which any may be meant: `a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def with_counts(counts: Mapping[str, int]) -> str:
    """Return names with their numbers: `1.0 (2), 1.1 (3)`."""
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items())


# Sizes.


def _in_largest_unit(count: float) -> tuple[float, str]:
    amount, units = count, ["B", "kB", "MB", "GB", "TB"]
    while abs(amount) >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return amount, units[0]


def size(count: float) -> str:
    """Return a number of bytes: `812 B`, `3.7 MB`, `64.0 GB`. A kB has 1000 of them."""
    amount, unit = _in_largest_unit(count)
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def narrow_size(count: float) -> str:
    """Return a number of bytes for pages, in three digits: `812 B`, `3.7 MB`, `64 GB`."""
    amount, unit = _in_largest_unit(count)
    return f"{amount:.3g}{THIN}{unit}"


# Durations.


def _in_two_units(seconds: float, gap: str = " ", between: str = " ", minute: str = "min") -> str:
    whole = round(seconds)
    for large, unit, small, part in ((86_400, "d", 3600, "h"), (3600, "h", 60, minute), (60, minute, 1, "s")):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large}{gap}{unit}" + (f"{between}{rest}{gap}{part}" if rest else "")
    return f"{whole}{gap}s"


def duration(seconds: float) -> str:
    """Return a duration in at most two units: `2.5 s`, `3 min 20 s`, `4 h 5 min`, `3 d 2 h`."""
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    return _in_two_units(seconds)


def narrow_duration(seconds: float) -> str:
    """Return a duration for pages, in at most two units: `310 ms`, `1.8 s`, `3 m 10 s`, `2 h`; `–` for anything but a number."""
    left = abs(seconds)
    if not isfinite(seconds):
        return "–"
    sign = MINUS if seconds < 0 else ""
    if 0 < left < 0.9995:
        return f"{sign}{left * 1000:.{0 if left >= 0.01 else 1}f}".removesuffix(".0") + f"{THIN}ms"
    if left < 9.95:
        return f"{sign}{left:.1f}".removesuffix(".0") + f"{THIN}s"
    return sign + _in_two_units(left, THIN, _WIDE, "m")


def axis_duration(seconds: float) -> str:
    """Return a duration for the axis of a chart, in one unit: `1 ms`, `1.5 s`, `20 m`, `7 d`."""
    for unit in "dhms":
        if seconds >= _LENGTHS[unit]:
            return f"{seconds / _LENGTHS[unit]:.3g} {unit}"
    return f"{seconds * 1000:.3g} ms"


def span(ms: float) -> str:
    """Return milliseconds in one unit, for sentences and columns: `310 ms`, `4 s`, `12 min`, `3 h`, `2 d`; `0 ms` for less than none."""
    seconds = max(ms, 0) / 1000
    for length, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{max(ms, 0):.0f} ms"


def every(interval_ms: int) -> str:
    """Return an interval in words, without rounding: `every hour`, `every 15 minutes`, `every 1,500 milliseconds`."""
    length, noun = next(found for found in _NOUNS if interval_ms % found[0] == 0)
    count = interval_ms // length
    return f"every {noun}" if count == 1 else f"every {counted(count, noun)}"


def bound(seconds: float) -> str:
    """Return the bound of a length of time, for errors: `0.5 seconds`, `2,678,400 seconds (31 days)`, `3,162,240,000 seconds (100 years)`."""
    if abs(seconds) < 1_000_000:
        return f"{seconds:g} seconds"
    days = round(seconds / 86_400)
    words = counted(days, "day") if abs(days) < 1000 else counted(round(days / 365.25), "year")
    return f"{seconds:,.0f} seconds ({words})"


def typed_length(ms: int) -> str:
    """Return milliseconds as people type them, without rounding: `2h`, `1d12h`, `500ms`, `0s`. `parse_length` reads it."""
    rest, parts = ms, ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, round(_LENGTHS[unit] * 1000))
        parts += f"{count}{unit}" if count else ""
    return parts or "0s"


def parse_length(text: str) -> float | None:
    """Return the seconds of a length of time that was typed: `30s`, `2h`, `1d12h`, `1.5h`; None for any other text."""
    if not text or _LENGTH.sub("", text):
        return None
    return sum([float(number) * _LENGTHS[unit] for number, unit in _LENGTH.findall(text)])


# Times.


def _utc(when_ms: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(when_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # the time of another program
        return None


def clock(when_ms: float) -> str:
    """Return a time: `2026-11-23 19:31:46 UTC`; the number itself where no calendar has it."""
    found = _utc(when_ms)
    return found.strftime("%Y-%m-%d %H:%M:%S UTC") if found else str(when_ms)


def clock_time(when_ms: float) -> str:
    """Return a time of day in UTC: `19:31`; `–` where no calendar has it."""
    found = _utc(when_ms)
    return found.strftime("%H:%M") if found else "–"


def short_clock(when_ms: float) -> str:
    """Return a time of these days: `28 Nov 03:12:05 UTC`."""
    return strftime("%-d %b %H:%M:%S UTC", gmtime(when_ms / 1000))


def iso(when_ms: float) -> str:
    """Return a time for programs: `2026-11-23T19:31:46.120Z`; "" where no calendar has it."""
    found = _utc(when_ms)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z") if found else ""


def moment(when_ms: float, now_ms: float = 0) -> str:
    """Return a time, with how long ago that was if it is given what time it is: `2026-11-23 19:31:46 UTC (4 h ago)`; "" for 0."""
    if not when_ms:
        return ""
    return f"{clock(when_ms)} ({ago(when_ms, now_ms)})" if now_ms and _utc(when_ms) else clock(when_ms)


def ago(when_ms: float, now_ms: float) -> str:
    """Return how long ago something was, or when it will be: `3 min 20 s ago`, `in 4 h`; "" for a time of 0."""
    if not when_ms:
        return ""
    seconds = round((now_ms - when_ms) / 1000)
    return f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"


def brief_ago(when_ms: float, now_ms: float) -> str:
    """Return the same for a column, in one unit: `3 min ago`, `in 4 h`; "" for a time of 0."""
    if not when_ms:
        return ""
    return f"{span(now_ms - when_ms)} ago" if now_ms >= when_ms else f"in {span(when_ms - now_ms)}"


def narrow_ago(when_ms: float, now_ms: float, bare: bool = False) -> str:
    """Return the same for pages: `3 m 10 s ago`, `in 4 h`, `now`; `bare`: without these words."""
    seconds = (now_ms - when_ms) / 1000
    text = _in_two_units(abs(seconds), THIN, _WIDE, "m")
    if bare:
        return text
    if abs(seconds) < 0.5:
        return "now"
    return f"{text}{_WIDE}ago" if seconds > 0 else f"in{_WIDE}{text}"


def age(when_ms: float, now_ms: float) -> str:
    """Return how old something is, for a column: `3 min`; "" for a time of 0."""
    return span(max(now_ms - when_ms, 0)) if when_ms else ""


# Make text from outside safe to show: it cannot move the cursor, change colours, or look like a log line of
# ours.

_LINES: Final = "\n\t"


def printable(text: str, keep: str = _LINES) -> str:
    """Return `text` with "?" for each character that is not printable and not in `keep` (line ends and tabs)."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else "?" for letter in text)


def one_line(text: str) -> str:
    """Return `text` on one line, runs of white space as one blank, otherwise like `printable`."""
    return printable(" ".join(text.split()), keep="")


def indented(text: str) -> str:
    """Return `printable(text)` with all lines but the first indented, so that none looks like a separate log line."""
    return printable(text).replace("\n", "\n    ")


def printable_json(text: str) -> str:
    """Return a JSON text with each character that is not printable escaped; its value stays the same."""
    if text.isprintable():
        return text
    return re.sub(r"[^\n -~]", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    if letter.isprintable():
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
