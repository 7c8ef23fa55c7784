"""How values are written on pages: the filters of the templates."""

import difflib
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from markupsafe import Markup, escape

from holdfast.text import (
    MINUS,
    THIN,
    clock,
    clock_time,
    counted,
    iso,
    narrow_ago,
    narrow_duration,
    narrow_size,
    printable_json,
    with_counts,
)

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
_THOUSANDS: Final = re.compile(r"(?<!\S)\(?\d{1,3}(,\d{3})+(?=[\s.;:)]|$)")


def thousands(text: object) -> str:
    """Return a sentence of ours for display, with thin spaces in place of the commas in its numbers."""
    return _THOUSANDS.sub(lambda found: found[0].replace(",", THIN), shown(text))


def sentence(text: object) -> str:
    """Return the same, with no line end between a number and its unit."""
    return _UNIT.sub("\u00a0", thousands(text))


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
    return text.replace(",", THIN).replace("-", MINUS)


def percent(share: float) -> str:
    """Return a share of 1 in percent: ``88 %``, ``0.4 %``."""
    value = share * 100
    return f"{value:.1f}{THIN}%" if 0 < abs(value) < 1 else f"{value:.0f}{THIN}%"


# Values of JSON.


def json_html(value: object) -> Markup:
    """Return a value of JSON as folds of HTML; what is deeper or more than a page can show is left out, with a note."""
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
    count = counted(len(value), "part")
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
    "thousands": thousands,
    "shown": shown,
    "verbatim": verbatim,
    "digest": digest,
    "short_jid": short_jid,
    "number": number,
    "percent": percent,
    "size": narrow_size,
    "duration": narrow_duration,
    "ago": narrow_ago,
    "iso": iso,
    "clock": clock,
    "clock_time": clock_time,
    "json_html": json_html,
    "trace_html": trace_html,
    "diff_rows": diff_rows,
    "counted": partial(counted, comma=THIN),
    "with_counts": with_counts,
    "column": column,
    "empty_columns": empty_columns,
}
GLOBALS: Final[Mapping[str, Any]] = {}
