"""How values are written on pages: the filters of the templates."""

import difflib
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from markupsafe import Markup, escape

from holdfast.printable import printable_json

_THIN: Final = "\u202f"  # a narrow space at which no line ends
_MINUS: Final = "\u2212"
_MILLION: Final = 1_000_000
_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_MOST_NODES: Final = 2000
_DEEPEST: Final = 40
_OPEN: Final = 3
"""Values of JSON deeper than this are folded at first."""
_MASKED: Final = "••••"


# Text.


def shown(text: object) -> str:
    """Return text with what is not printable as escapes: controls, and characters that would change the direction of others."""
    return printable_json(str(text).replace("\t", "    "))


_UNIT: Final = re.compile(r"(?<=\d) (?=(?:ms|s|min|h|d|kB|MB|jobs?|of)\b)")


def sentence(text: object) -> str:
    """Return a sentence of ours for display, in which no line ends between a number and its unit."""
    return _UNIT.sub("\u00a0", shown(text))


def verbatim(text: object) -> Markup:
    """Return text for the value of a field, unchanged; only lone surrogates, which no page can hold, are replaced."""
    return escape(str(text).encode("utf-8", "replace").decode())


def digest(name: object) -> str:
    """Return a short id for a name of any characters."""
    return hashlib.sha256(str(name).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def short_jid(jid: str) -> str:
    """Return the first and last digits of a jid that this library made, others as they are: pages cut them by the room that there is.

    The digits of the time come first in such a jid, so that those of jobs put together differ only at the end.
    """
    if re.fullmatch(r"[0-9a-f]{32}", jid):
        return f"{jid[:8]}…{jid[-4:]}"
    return shown(jid)


# Numbers.


def number(value: float) -> str:
    """Return a number with thin spaces between thousands; whole ones never shortened, others to three digits."""
    if isinstance(value, float) and not value.is_integer():
        if not math.isfinite(value):
            return "–"
        text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    else:
        text = f"{int(value):,}"
    return text.replace(",", _THIN).replace("-", _MINUS)


def percent(share: float) -> str:
    """Return a share of 1 in percent: ``88 %``, ``0.4 %``."""
    value = share * 100
    return f"{value:.1f}{_THIN}%" if 0 < abs(value) < 1 else f"{value:.0f}{_THIN}%"


def size(count: float) -> str:
    """Return a number of bytes in the largest unit that fits: ``812 B``, ``1.2 kB``, ``64 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.3g}{_THIN}{unit}"
        count /= 1000
    return f"{count:.3g}{_THIN}TB"


# Times.


def duration(seconds: float) -> str:
    """Return seconds in at most two units: ``310 ms``, ``1.8 s``, ``3 m 10 s``, ``2 h``."""
    if not math.isfinite(seconds):
        return "–"
    sign, left = (_MINUS, -seconds) if seconds < 0 else ("", seconds)
    if 0 < left < 0.9995:
        return f"{sign}{left * 1000:.{0 if left >= 0.01 else 1}f}".removesuffix(".0") + f"{_THIN}ms"
    if left < 9.95:
        return f"{sign}{left:.1f}".removesuffix(".0") + f"{_THIN}s"
    return sign + _two_units(left)


def _two_units(seconds: float) -> str:
    left = round(seconds)
    for index, (length, unit) in enumerate(_UNITS):
        if left >= length:
            first, rest = divmod(left, length)
            if unit == "s":
                return f"{first}{_THIN}s"
            step, name = _UNITS[index + 1]
            second = rest // step
            return f"{first}{_THIN}{unit}" + (f"\u00a0{second}{_THIN}{name}" if second else "")
    return f"0{_THIN}s"


def ago(when_ms: float, now_ms: float, bare: bool = False) -> str:
    """Return how long ago a time was, or when it will be: ``3 m 10 s ago``, ``in 4 h``; `bare`: without these words."""
    seconds = (now_ms - when_ms) / 1000
    text = _two_units(abs(seconds)).replace(" ", "\u00a0")
    if bare:
        return text
    if abs(seconds) < 0.5:
        return "now"
    return f"{text}\u00a0ago" if seconds > 0 else f"in\u00a0{text}"


def _moment(when_ms: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(when_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # the time of another program
        return None


def iso(when_ms: float) -> str:
    """Return a time for programs: ``2026-11-23T19:31:46.120Z``."""
    found = _moment(when_ms)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z") if found else ""


def clock(when_ms: float) -> str:
    """Return a time as ``2026-11-23 19:31:46 UTC``."""
    found = _moment(when_ms)
    return found.strftime("%Y-%m-%d %H:%M:%S UTC") if found else str(when_ms)


def clock_time(when_ms: float) -> str:
    """Return the time of day, ``19:31``, in UTC."""
    found = _moment(when_ms)
    return found.strftime("%H:%M") if found else "–"


# Values of JSON.


def json_html(value: object) -> Markup:
    """Return a value of JSON as folds of HTML; what is deeper or more than a page can show is left out, and that is said."""
    budget = [_MOST_NODES]
    html = _value(value, "", "", 0, budget)
    if budget[0] < 0:
        html += f'<p class="dim">Cut here: this value has more than {_MOST_NODES} parts.</p>'
    return Markup(html)  # each name and value in it is escaped below


def _value(value: object, label: str, end: str, depth: int, budget: list[int]) -> str:
    """Return the HTML of a value; `label` is HTML. Text, as `Markup` is slow in thousands of small parts."""
    budget[0] -= 1
    if budget[0] < 0:
        return ""
    if _has_parts(value):
        if depth >= _DEEPEST:
            return f'<div>{label}<span class="dim">too deep to show</span>{end}</div>'
        return _fold(cast("Mapping[str, object] | Sequence[object]", value), label, end, depth, budget)
    return f"<div>{label}{_scalar(value)}{end}</div>"


def _has_parts(value: object) -> bool:
    return isinstance(value, (Mapping, list, tuple)) and bool(cast("Sequence[object]", value))


def _fold(
    value: Mapping[str, object] | Sequence[object], label: str, end: str, depth: int, budget: list[int]
) -> str:
    left, right = "{}" if isinstance(value, Mapping) else "[]"
    inside = "".join(_entries(value, depth, budget))
    count = f"{len(value)} {'part' if len(value) == 1 else 'parts'}"
    is_open = " open" if depth < _OPEN else ""
    summary = f'{label}{left}<span class="fold"> {count} {right}{end}</span>'
    return (
        f'<details{is_open}><summary>{summary}</summary><div class="in">{inside}</div>{right}{end}</details>'
    )


def _entries(value: Mapping[str, object] | Sequence[object], depth: int, budget: list[int]) -> Iterator[str]:
    pairs = list(value.items()) if isinstance(value, Mapping) else [("", one) for one in value]
    for index, (name, one) in enumerate(pairs):
        if budget[0] <= 0:
            budget[0] = -1
            return
        label = f'<span class="jk">{_quoted(name)}</span>: ' if isinstance(value, Mapping) else ""
        yield _value(one, label, "," if index < len(pairs) - 1 else "", depth + 1, budget)


def _scalar(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return f'<span class="jb">{json.dumps(value)}</span>'
    if isinstance(value, (int, float)):
        return f'<span class="jn">{json.dumps(value)}</span>'
    if value == _MASKED:
        return f'<span class="jm" title="masked">{_MASKED}</span>'
    if isinstance(value, (Mapping, list, tuple)):
        return "{}" if isinstance(value, Mapping) else "[]"
    return f'<span class="js">{_quoted(value)}</span>'


def _quoted(text: object) -> str:
    return str(escape(printable_json(json.dumps(str(text), ensure_ascii=False))))


# Text of programs.


def trace_html(text: str) -> Markup:
    """Return a traceback with the lines of libraries dimmed and its last line marked."""
    lines = shown(text).rstrip("\n").split("\n")
    found: list[Markup] = []
    in_library = False
    for index, line in enumerate(lines):
        if line.lstrip().startswith('File "'):
            in_library = "site-packages" in line or "/lib/python" in line or "<frozen" in line
        elif not line.startswith("    "):
            in_library = False
        kind = "err" if index == len(lines) - 1 else "lib" if in_library else ""
        found.append(Markup('<span class="{}">{}</span>').format(kind, line) if kind else escape(line))
    return Markup("\n").join(found)


def diff_rows(before: object, after: object) -> list[tuple[bool, str | None, str | None]]:
    """Return the lines of two values side by side: whether they differ, the one before, the one after (None: no such line)."""
    left, right = _lines(before), _lines(after)
    rows: list[tuple[bool, str | None, str | None]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for index in range(max(b - a, d - c)):
            one = left[a + index] if index < b - a else None
            other = right[c + index] if index < d - c else None
            rows.append((kind != "equal", one, other))
    return rows


def _lines(value: object) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return text.splitlines()[:_MOST_NODES]


def counted(found: Mapping[str, int]) -> str:
    """Return names with their numbers: `1.0 (2), 1.1 (3)`."""
    return ", ".join(f"{name} ({count})" for name, count in found.items())


def column(given: str | Sequence[str]) -> tuple[str, str, str]:
    """Return label, class and sort key of a column that was given as its label alone or as some of the three."""
    found = (given,) if isinstance(given, str) else tuple(given)
    label, kind, by = (*found, "", "")[:3]
    return label, kind, by


_ROW: Final = re.compile(r"<tr\b[^>]*>(.*?)</tr>", re.DOTALL)
_CELL: Final = re.compile(r"<td\b([^>]*)>(.*?)</td>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")
_SHOWS: Final = re.compile(r"<(?:input|button|svg|summary|i)\b")
"""What a reader sees or uses although it has no text."""
_BLANK: Final = frozenset(("", "–", "0"))


def empty_columns(rows: str) -> list[int]:
    """Return the numbers of the columns, from 1, in which all rows of a table are blank or 0. `rows` is HTML of our templates."""
    found: set[int] | None = None
    for row in _ROW.finditer(rows):
        cells = _CELL.findall(row[1])
        if not cells or any("colspan" in attributes for attributes, _ in cells):
            continue  # the head of a group, or a sentence in place of rows
        numbers = range(1, len(cells) + 1) if found is None else found
        found = {at for at in numbers if at <= len(cells) and _is_blank(cells[at - 1][1])}
        if not found:
            break
    return sorted(found or ())


def _is_blank(cell: str) -> bool:
    return _TAG.sub("", cell).strip() in _BLANK and not _SHOWS.search(cell)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "sentence": sentence,
    "shown": shown,
    "verbatim": verbatim,
    "digest": digest,
    "short_jid": short_jid,
    "number": number,
    "percent": percent,
    "size": size,
    "duration": duration,
    "ago": ago,
    "iso": iso,
    "clock": clock,
    "clock_time": clock_time,
    "json_html": json_html,
    "trace_html": trace_html,
    "diff_rows": diff_rows,
    "counted": counted,
    "column": column,
    "empty_columns": empty_columns,
}
GLOBALS: Final[Mapping[str, Any]] = {}
