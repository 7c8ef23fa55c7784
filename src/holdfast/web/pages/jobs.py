"""Jobs: the search, with what the jobs that it finds have in common, and the export of all that it finds."""

import csv
import io
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final, Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response, StreamingResponse

from holdfast.commands.job_rows import JobRow
from holdfast.console.filters import Filter, parse, term
from holdfast.console.plain import name_in_json, plain
from holdfast.console.search.search import SearchPage
from holdfast.errors import FilterError, HoldfastError
from holdfast.logs import logger
from holdfast.text import one_line
from holdfast.web.context import Context
from holdfast.web.gate import wants_json
from holdfast.web.views import ActionRoute, View

SIZES: Final = (25, 50, 100)
_WINDOW: Final = 500
"""Matching jobs that facets are counted over."""
_MOST_VALUES: Final = 8
MOST_EXPORTED: Final = 100_000


class JobsQuery(msgspec.Struct, frozen=True):
    """A search: the filter, where it continues, and how many rows to show; or `export` all that it finds."""

    q: str = ""
    after: str = ""
    limit: int = 25
    export: Literal["", "csv", "jsonl"] = ""


class FacetValue(msgspec.Struct, frozen=True):
    """A value that some of the jobs have, how many, and the filter of these."""

    value: str
    count: int
    q: str


class Facet(msgspec.Struct, frozen=True):
    """The values of a field, the most frequent first, and how many more there are."""

    field: str
    values: tuple[FacetValue, ...]
    more: int


class Problem(msgspec.Struct, frozen=True):
    """What is wrong with a filter: the sentence, and the place, as the filter before and from there on."""

    text: str
    before: str
    behind: str


class JobsPage(msgspec.Struct, frozen=True):
    """A page of the jobs that a filter matches.

    Facets are counted over the first `window` jobs from here on; `is_whole`: these are all there are. `exact` is the job whose
    jid is the filter.
    """

    now_ms: int
    query: JobsQuery
    found: SearchPage | None
    facets: tuple[Facet, ...] = ()
    window: int = 0
    is_whole: bool = False
    problem: Problem | None = None

    @property
    def http_status(self) -> int:
        """400 if the filter cannot be read."""
        return 400 if self.problem else 200


async def jobs(ctx: Context, query: JobsQuery) -> JobsPage | Response:
    """Return a page of the jobs that a filter matches, or all of them as a file."""
    ctx.now_ms = await ctx.console.now_ms()
    try:
        parse(query.q)
    except FilterError as error:
        if wants_json(ctx.request.scope):
            raise
        return JobsPage(ctx.now_ms, query, None, problem=_problem(error))
    async with ctx.searching():
        return await (export(ctx, query) if query.export else _found(ctx, query))


async def _found(ctx: Context, query: JobsQuery) -> JobsPage | Response:
    if not wants_json(ctx.request.scope) and await _is_jid(ctx, query):
        return RedirectResponse(ctx.url(ctx.path("jobs", query.q.strip())), 303)
    limit = query.limit if query.limit in SIZES or wants_json(ctx.request.scope) else SIZES[0]
    found = await ctx.console.jobs(query.q, after=query.after, limit=limit, wants="te")
    facets, window, is_whole = await facets_of(ctx, query.q, found, limit)
    return JobsPage(ctx.now_ms, query, ctx.site.mask.within(found), facets, window, is_whole)


def _problem(error: FilterError) -> Problem:
    sentence = str(error).split("\n")[0].removeprefix("filter: ")
    return Problem(sentence, error.text[: error.position], error.text[error.position :])


async def _is_jid(ctx: Context, query: JobsQuery) -> bool:
    """Return whether a filter of one word is the jid of a job: then a search leads to its page."""
    word = query.q.strip()
    if query.after or len(word) < 8 or any(one in word for one in ' :<>=~"(),*'):
        return False
    return bool((await ctx.console.jobs(term("jid", word))).jobs)


# What the jobs have in common.

_FIELDS: Final[Sequence[tuple[str, Callable[[JobRow], Sequence[str]]]]] = (
    ("state", lambda row: (row.state,)),
    ("queue", lambda row: (row.queue,)),
    ("klass", lambda row: (row.klass,)),
    ("tag", lambda row: row.tags),
    ("group", lambda row: (row.group,) if row.group else ()),
    ("worker", lambda row: (row.worker,) if row.worker else ()),
    ("priority", lambda row: (str(row.priority),) if row.priority else ()),
)


async def facets_of(
    ctx: Context, q: str, found: SearchPage, limit: int
) -> tuple[tuple[Facet, ...], int, bool]:
    """Return the values of the fields of the jobs of a page and of those behind it, how many these are, and whether these are all.

    A page that is not full, although there are more jobs, took as long as one may: then only its own jobs count.
    """
    rows, cursor = list(found.jobs), found.cursor
    if cursor and limit <= len(rows) < _WINDOW:
        page = await ctx.console.jobs(q, after=cursor, limit=_WINDOW - len(rows), wants="t")
        rows, cursor = [*rows, *page.jobs], page.cursor
    query = parse(q)
    return tuple(_facet(query, name, read, rows) for name, read in _FIELDS), len(rows), not cursor


def _facet(q: Filter, name: str, read: Callable[[JobRow], Sequence[str]], rows: Sequence[JobRow]) -> Facet:
    counts = Counter(value for row in rows for value in read(row))
    before, is_choice = str(q), _is_choice(q)
    values = tuple(
        FacetValue(value, count, _narrowed(before, is_choice, name, value))
        for value, count in counts.most_common(_MOST_VALUES)
    )
    return Facet(name, values, len(counts) - len(values))


def narrowed(q: str, field: str, value: str) -> str:
    """Return a filter narrowed to the jobs with a value of a field."""
    query = parse(q)
    return _narrowed(str(query), _is_choice(query), field, value)


def _narrowed(before: str, is_choice: bool, field: str, value: str) -> str:
    text = f"{field}:{value}" if field == "priority" else term(field, value)
    return text if not before else f"({before}) {text}" if is_choice else f"{before} {text}"


def _is_choice(query: Filter) -> bool:
    return type(query.root).__name__ == "AnyOf"


# Export.

_CSV: Final = tuple(name for name in map(name_in_json, JobRow.__struct_fields__) if name)
_AT_ONCE: Final = 250
_KINDS: Final = {"csv": "text/csv", "jsonl": "application/x-ndjson"}


async def export(ctx: Context, query: JobsQuery) -> Response:
    """Return all jobs that a filter matches as CSV or as lines of JSON, up to 100,000; they are sent as they are found."""
    first = await ctx.console.jobs(query.q, limit=_AT_ONCE, wants="dte")
    headers = {
        "Content-Disposition": f'attachment; filename="jobs.{query.export}"',
        "X-Holdfast-Most": str(MOST_EXPORTED),
    }
    lines = _lines(ctx, query, first)
    return StreamingResponse(lines, media_type=_KINDS[query.export], headers=headers)


async def _lines(ctx: Context, query: JobsQuery, page: SearchPage) -> AsyncGenerator[bytes]:
    """Yield an export in pieces. After an error in the middle, the last line gives the reason."""
    left = MOST_EXPORTED
    if query.export == "csv":
        yield _csv_line(_CSV)
    try:
        while True:
            rows = [ctx.site.mask.within(row) for row in page.jobs[:left]]
            left -= len(rows)
            yield b"".join(_csv_of(row) if query.export == "csv" else _json_of(row) for row in rows)
            if not page.cursor or not left:
                break
            async with ctx.searching(is_watched=False):  # the response itself ends with its client
                page = await ctx.console.jobs(query.q, after=page.cursor, limit=_AT_ONCE, wants="dte")
    except (HoldfastError, HTTPException) as error:
        logger.warning("an export was cut short: %s", error)
        yield _ending(query, f"cut short: {one_line(str(error))}")
    else:
        if page.cursor:
            yield _ending(query, f"cut short after {MOST_EXPORTED:,} jobs")


def _ending(query: JobsQuery, text: str) -> bytes:
    return _csv_line([f"# {text}"]) if query.export == "csv" else json.dumps({"note": text}).encode() + b"\n"


def _json_of(row: JobRow) -> bytes:
    return json.dumps(plain(row), ensure_ascii=False).encode(errors="replace") + b"\n"


def _csv_of(row: JobRow) -> bytes:
    values = plain(row) | {"tags": ", ".join(row.tags), "data": row.data.decode(errors="replace")}
    return _csv_line(["" if values[name] is None else str(values[name]) for name in _CSV])


def _csv_line(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow([neutral(cell) for cell in cells])
    return text.getvalue().encode(errors="replace")


def neutral(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe comes before what could begin one."""
    begins = cell.lstrip()[:1] in ("=", "+", "-", "@") or cell[:1] in ("\t", "\r", "\n")
    return f"'{cell}" if begins and not _is_number(cell) else cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


VIEWS: Final = (
    View(
        path="/jobs",
        template="jobs.html",
        load=jobs,
        query=JobsQuery,
        summary="A page of the jobs that a filter matches, or all of them as a file.",
    ),
)
ACTIONS: Final[tuple[ActionRoute, ...]] = ()
