"""One job: what it is, what happened to it, why it is running or not, and what can be done. Also a recurring job, and a deleted one."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.client.reasons import argument

if TYPE_CHECKING:
    from holdfast.web.context import Context

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Literal, cast

from starlette.responses import Response

from holdfast.client.reasons import Check
from holdfast.client.stacks import UNDER_WAY, LiveStack
from holdfast.code.failure import error_line
from holdfast.code.registry import find
from holdfast.commands.admin import AuditLine
from holdfast.commands.jobs import Outcome
from holdfast.commands.recurring import RecurringFacts
from holdfast.console.filters import term
from holdfast.console.operations.spec import APPLIES
from holdfast.console.plain import stored
from holdfast.console.read.flows import FlowPlace
from holdfast.console.read.job_lists import Family
from holdfast.console.read.job_queries import Attempt, JobDetail, logged
from holdfast.console.read.queries import Throttle
from holdfast.errors import HoldfastError, JobNotFound, UsageError
from holdfast.models import HistoryEntry, JobFacts
from holdfast.web.context import Context
from holdfast.web.gate import wants_json
from holdfast.web.pages.job_edits import digest_of
from holdfast.web.views import ActionRoute, View

# Read the tracebacks in failure messages: which frames are those of the application, and which those of
# libraries.

_FRAME: Final = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_LIBRARY: Final = re.compile(
    r"(^|[/\\])(site-packages|dist-packages)[/\\]|[/\\]lib[/\\]python3[^/\\]*[/\\]|[/\\]holdfast[/\\](work|code|client|wire)[/\\]"
    r"|^<(frozen|string)"
)
_MOST: Final = 2000
"""Lines that are read; what is longer is shown in the raw message."""


class Frame(msgspec.Struct, frozen=True):
    """A place in code: file, line, function, and the lines of code below it."""

    file: str
    line: int
    function: str
    code: tuple[str, ...] = ()
    is_library: bool = False


class Part(msgspec.Struct, frozen=True):
    """A part of a message: lines of text, or frames that are all of libraries or all of the application.

    `kind` is text, application or library.
    """

    kind: str
    lines: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()


def parts_of(message: str) -> tuple[Part, ...]:
    """Return a message as its parts; one part of text if there is no traceback in it."""
    pieces = groupby(_pieces(message.splitlines()[:_MOST]), key=_kind)
    return tuple(_part(kind, list(some)) for kind, some in pieces)


def _kind(piece: Frame | str) -> str:
    if isinstance(piece, str):
        return "text"
    return "library" if piece.is_library else "application"


def _part(kind: str, pieces: list[Frame | str]) -> Part:
    return Part(
        kind,
        tuple(one for one in pieces if isinstance(one, str)),
        tuple(one for one in pieces if isinstance(one, Frame)),
    )


def _pieces(lines: Iterable[str]) -> Iterator[Frame | str]:
    """Yield frames, each with the lines that are indented below it, and the other lines."""
    frame: Frame | None = None
    for line in lines:
        begins = _FRAME.match(line)
        if frame is not None and (begins or not line.startswith("    ")):
            yield frame
            frame = None
        if begins:
            file = begins["file"]
            frame = Frame(
                file,
                int(begins["line"][:9]),
                begins["function"] or "",
                is_library=bool(_LIBRARY.search(file)),
            )
        elif frame is not None:
            frame = msgspec.structs.replace(frame, code=(*frame.code, line))
        else:
            yield line
    if frame is not None:
        yield frame


# What a page does as a command line, as a call of the API, and as Python, to be copied.


class Recipe(msgspec.Struct, frozen=True):
    """One action on a job: its name, and how to do it elsewhere."""

    label: str
    cli: str
    curl: str
    python: str


_PYTHON: Final = (
    "from holdfast import Client\n"
    "from holdfast.console.handles import Console\n\n"
    "console = Console(Client({where}))\n"
    "console.act({action!r}, {jid!r}{value})"
)


def recipe(ctx: "Context", action: str, jid: str, value: str = "") -> Recipe:
    """Return how to do an action on one job; `value` is that of the action."""
    words = [value, jid] if action == "move" else [jid]
    body: dict[str, Any] = {"jid": [jid], **({"value": value} if value else {})}
    return Recipe(
        action,
        f"holdfast jobs {action}{ctx.console.flags} {argument(*words)}",
        curl(ctx, f"/jobs/{action}", body),
        _PYTHON.format(
            where=f"namespace={ctx.namespace!r}" if ctx.namespace != "default" else "",
            action=action,
            jid=jid,
            value=f", value={value!r}" if value else "",
        ),
    )


def curl(ctx: "Context", path: str, body: Mapping[str, Any]) -> str:
    """Return the command line of a POST to the API of this application."""
    base = str(ctx.request.base_url).rstrip("/")
    return (
        f"curl -X POST {quote(f'{base}/api/v1{path}')} -H 'Content-Type: application/json' "
        f'-H "Authorization: Bearer $TOKEN" -d {quote(json.dumps(body))}'
    )


# What follows from the facts of a job: its arguments, what its state allows, what it was at each moment, what
# helps it.


class Fix(msgspec.Struct, frozen=True):
    """What helps where a check blocks: an action, or a page."""

    label: str
    noun: str = ""
    verb: str = ""
    fields: Mapping[str, Any] = {}
    path: str = ""


class Moment(msgspec.Struct, frozen=True):
    """A job as it was after a line of its history, the first line being 1; `data` are None where they are not known."""

    line: int
    when_ms: int
    state: str
    queue: str
    worker: str
    attempt: int
    data: Any = None


def arguments_of(value: Any, klass: str = "") -> tuple[tuple[str, Any], ...] | None:
    """Return the arguments of a function job by name; None for any other job.

    Those that were given by position have their names where this process knows the function, else the number of their place.
    """
    if not isinstance(value, dict) or not value.keys() <= {"args", "kwargs"} or not value:
        return None
    members = cast("dict[str, Any]", value)
    args, kwargs = members.get("args", []), members.get("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        return None
    values = cast("list[object]", args)
    names = _positional(klass)
    numbers = [str(at) for at in range(len(names) + 1, len(values) + 1)]
    return (*zip([*names, *numbers], values, strict=False), *cast("dict[str, Any]", kwargs).items())


def _positional(klass: str) -> list[str]:
    """Return the names of the arguments that a function takes by position, none if this process does not know it."""
    entry = find(klass)
    found = signature(entry.function).parameters.values() if entry else ()
    return [one.name for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def result_until_ms(facts: JobFacts) -> int:
    """Return until when the result of a job is kept, 0 where that is not known."""
    keep = facts.options.get("keep")
    return facts.ended_ms + int(keep) if keep and facts.ended_ms and facts.result is not None else 0


_ALWAYS: Final = ("move", "track", "tag")
_BY_STATE: Final = ("retry", "run", "expire", "delay", "priority", "retries", "data", "cancel", "delete")


def actions_of(facts: JobFacts, now_ms: int) -> tuple[str, ...]:
    """Return the actions that make sense for a job: a failed one is deleted, any other open one cancelled.

    A job whose lease has ended can be failed.
    """
    state = (
        "running" if facts.state == "stalled" else facts.state
    )  # its lease has ended, and no worker has it yet
    found = [action for action in _BY_STATE if state in APPLIES[action]]
    found.remove("cancel" if state == "failed" else "delete") if {"cancel", "delete"} <= set(found) else None
    is_lost = state == "running" and 0 < facts.expires_ms <= now_ms
    return (*found, *(["fail"] if is_lost else []), *_ALWAYS)


_STATE_AFTER: Final[Mapping[str, str]] = {
    "put": "waiting",
    "advanced": "waiting",
    "popped": "running",
    "throttled": "throttled",
    "done": "complete",
    "failed": "failed",
    "failed-retries": "failed",
    "retried": "waiting",
    "timed-out": "waiting",
    "preempted": "waiting",
    "crashed": "waiting",
    "lost": "waiting",
    "unknown": "waiting",
}
_OF_QUEUE: Final = ("put", "advanced", "popped")


def moments_of(facts: JobFacts) -> tuple[Moment, ...]:
    """Return the job as it was after each line of its history, the first line first."""
    found: list[Moment] = []
    state, queue, worker, attempt = "waiting", facts.queue, "", 0
    for at, line in enumerate(facts.history, 1):
        if line.what in _STATE_AFTER:
            state = _STATE_AFTER[line.what]
            queue = line.name if line.what in _OF_QUEUE and line.name else queue
            worker = line.worker if state == "running" else ""
            attempt = line.attempt or attempt
        found.append(Moment(at, line.when_ms, state, queue, worker, attempt, data_at(facts, state, attempt)))
    return tuple(found)


def data_at(facts: JobFacts, state: str, attempt: int) -> Any:
    """Return the data that a job had in an attempt: those kept with that attempt or the next one kept, else those of now."""
    begun = attempt if state == "running" else attempt + 1
    return stored(next((data for number, data in facts.earlier if number >= begun), facts.data))


def fixes_of(detail: JobDetail) -> dict[str, Fix]:
    """Return what helps against the checks that block, by check, where this application can do it."""
    found = {
        one.check: _fix(one, detail.facts) for one in detail.explanation.checks if one.verdict == "blocks"
    }
    return {check: fix for check, fix in found.items() if fix is not None}


def _fix(check: Check, facts: JobFacts) -> Fix | None:
    one = {"jid": [facts.jid]}
    if check.check == "dependencies":
        parents = [str(row["jid"]) for row in check.facts["parents"]]
        first = next(iter((*check.facts["failed"], *parents)), "")
        return Fix("Open the job it waits for", path=first) if first else None
    if check.check == "throttles":
        return _throttle_fix(check, facts)
    if check.check == "workers":
        quiet = [str(row["name"]) for row in check.facts["workers"] if row["quiet"]]
        return Fix("Resume its workers", "workers", "resume", {"name": quiet}) if quiet else None
    return {
        "failure": Fix("Retry", "jobs", "retry", one),
        "due": Fix("Run now", "jobs", "run", one),
        "lease": Fix("Time out", "jobs", "expire", one),
        "pause": Fix(f"Resume {facts.queue}", "queues", "resume", {"name": [facts.queue]}),
    }.get(check.check)


def _throttle_fix(check: Check, facts: JobFacts) -> Fix | None:
    rows = check.facts["throttles"]
    full = [str(row["id"]) for row in rows if row["used"] >= row["maximum"] > 0]
    is_released = facts.state == "throttled" and not any(row["place"] for row in rows)
    if full and not is_released:
        return Fix("Open the throttle", noun="throttle", path=full[0])
    return Fix("Put it again", "jobs", "move", {"jid": [facts.jid], "value": facts.queue})


def waited_ms(history: Sequence[HistoryEntry], attempt: Attempt) -> int:
    """Return how long a job had been ready before an attempt, as far as its history shows that."""
    before = [
        line.when_ms
        for line in history
        if line.when_ms <= attempt.start_ms and line.what not in ("popped", "refused")
    ]
    return attempt.start_ms - max(before, default=attempt.start_ms)


LARGE: Final = 65_536
"""Bytes of data above which the page shows the beginning."""
_PATIENCE: Final = 2.0
_MOST_QUEUES: Final = 200
_MOST_THROTTLES: Final = 8
_AUDITED: Final = 128


class JobQuery(msgspec.Struct, frozen=True):
    """What else the page shows: the stack of a running job, the job `at` a line of its history, two attempts compared.

    `raw` is the part that is sent as a file.
    """

    stack: bool = False
    at: int = 0
    first: int = 0
    second: int = 0
    raw: Literal["", "data", "result", "message"] = ""


class Comparison(msgspec.Struct, frozen=True):
    """Two attempts side by side: what of them differs, and the data that each began with, where they were kept."""

    first: Attempt
    second: Attempt
    rows: tuple[tuple[str, str, str], ...]
    data: tuple[Any, Any] | None = None


class Gone(msgspec.Struct, frozen=True):
    """A job that does not exist: what is known of its end, its result if that is kept, who did something to it, and its flow."""

    text: str
    result: bytes | None
    audit: tuple[AuditLine, ...]
    flow: FlowPlace | None = None


class JobPage(msgspec.Struct, frozen=True):
    """The page of a jid: of a job (`detail`), of a recurring job (`recurring`), or of one that does not exist (`gone`).

    `actions` are those that its state allows. `arguments` are those of a function job by name. `masked` are the parts of which something
    is hidden: data, result, message.
    """

    now_ms: int
    jid: str
    query: JobQuery
    detail: JobDetail | None = None
    recurring: RecurringFacts | None = None
    gone: Gone | None = None
    data: Any = None
    digest: str = ""
    size: int = 0
    masked: tuple[str, ...] = ()
    arguments: tuple[tuple[str, Any], ...] | None = None
    traceback: tuple[Part, ...] = ()
    error: str = ""
    log: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()
    actions: tuple[str, ...] = ()
    fixes: Mapping[str, Fix] = {}
    recipes: tuple[Recipe, ...] = ()
    similar: tuple[tuple[str, str], ...] = ()
    queues: tuple[str, ...] = ()
    throttles: tuple[Throttle, ...] = ()
    family: Family | None = None
    comparison: Comparison | None = None
    stack: LiveStack | None = None
    stack_problem: str = ""

    @property
    def http_status(self) -> int:
        """404 for a job that does not exist."""
        return 404 if self.gone else 200

    @property
    def result_until_ms(self) -> int:
        """Until when the result is kept, 0 where that is not known."""
        return result_until_ms(self.detail.facts) if self.detail else 0

    @property
    def is_masked(self) -> bool:
        """Whether something of the data is hidden."""
        return "data" in self.masked

    @property
    def is_without_worker(self) -> bool:
        """Whether it waits for a worker to come, or for a slot of one."""
        checks = self.detail.explanation.checks if self.detail else ()
        return any(one.check == "workers" and one.verdict == "blocks" for one in checks)

    @property
    def text(self) -> str:
        """The data as indented JSON, to be edited."""
        return _pretty(self.data).decode()

    @property
    def waited(self) -> dict[int, int]:
        """How many milliseconds the job had been ready before each attempt, by the token of the attempt."""
        detail = self.detail
        found = detail.attempts if detail else ()
        return {one.token: waited_ms(detail.facts.history, one) for one in found} if detail else {}

    @property
    def moment(self) -> Moment | None:
        """The moment of the history that is shown, if one is."""
        return next((one for one in self.moments if one.line == self.query.at), None)


async def job(ctx: Context, name: str, query: JobQuery) -> JobPage | Response:
    """Return the page of a jid. Raises JobNotFound for programs; pages show what is known of its end."""
    ctx.now_ms = await ctx.console.now_ms()
    try:
        found = await ctx.console.job(name)
    except JobNotFound as error:
        if wants_json(ctx.request.scope):
            raise
        return await _gone(ctx, name, query, error)
    if isinstance(found, RecurringFacts):
        return await _recurring(ctx, found, query)
    if query.raw:
        return _raw(ctx, found.facts, query.raw)
    return await _job(ctx, found, query)


async def _job(ctx: Context, found: JobDetail, query: JobQuery) -> JobPage:
    data = found.facts.data
    shown = ctx.site.mask.within(found)
    facts = shown.facts
    value = ctx.data(data)
    stack, problem = await _stack(ctx, facts) if query.stack else (None, "")
    return JobPage(
        ctx.now_ms,
        facts.jid,
        query,
        shown,
        data=value,
        digest=digest_of(data),
        size=len(data),
        masked=_masked_parts(ctx, found.facts),
        arguments=arguments_of(value, facts.klass),
        traceback=parts_of(facts.failure.message) if facts.failure else (),
        error=error_line(facts.failure.message) if facts.failure else "",
        log=tuple(logged(facts)[-200:]),
        moments=moments_of(facts),
        actions=actions_of(facts, ctx.now_ms),
        fixes=fixes_of(shown),
        recipes=_recipes(ctx, facts),
        similar=_similar(facts),
        queues=await _queues(ctx),
        throttles=await _throttles(ctx, facts.throttles),
        family=ctx.site.mask.within(await ctx.console.family(facts.jid))
        if facts.dependencies or facts.dependents
        else None,
        comparison=_comparison(shown, query) if query.first or query.second else None,
        stack=stack,
        stack_problem=problem,
    )


def _masked_parts(ctx: Context, facts: JobFacts) -> tuple[str, ...]:
    mask, message = ctx.site.mask, facts.failure.message if facts.failure else ""
    kept = {"data": facts.data, "result": facts.result or b""}
    hidden = [part for part, text in kept.items() if text and ctx.data(text) != stored(text)]
    return (*hidden, "message") if mask.text(message) != message else tuple(hidden)


async def _recurring(ctx: Context, found: RecurringFacts, query: JobQuery) -> JobPage:
    return JobPage(
        ctx.now_ms,
        found.jid,
        query,
        recurring=ctx.site.mask.within(found),
        data=ctx.data(found.data),
        masked=("data",) if ctx.data(found.data) != stored(found.data) else (),
        size=len(found.data),
        queues=await _queues(ctx),
    )


async def _gone(ctx: Context, jid: str, query: JobQuery, error: JobNotFound) -> JobPage:
    outcome: Outcome = await ctx.console.outcome(jid)
    page = await ctx.console.audit(limit=_AUDITED)
    lines = tuple(line for line in page.rows if line.target == jid or _names(line, jid))
    text = str(error).removeprefix(f"{jid}: ").removeprefix("HF_JOB_NOT_FOUND ")
    gone = Gone(text, outcome.result, lines, await ctx.console.flow_of(jid))
    return JobPage(ctx.now_ms, jid, query, gone=ctx.site.mask.within(gone))


def _names(line: AuditLine, jid: str) -> bool:
    """Return whether a line is about an operation on some jobs that it names, this one among them."""
    return line.what.startswith("bulk ") and jid in line.detail


async def _queues(ctx: Context) -> tuple[str, ...]:
    return tuple(one.name for one in (await ctx.console.queues(limit=_MOST_QUEUES)).rows)


async def _throttles(ctx: Context, names: Sequence[str]) -> tuple[Throttle, ...]:
    found: list[Throttle] = []
    for name in names[:_MOST_THROTTLES]:
        try:
            found.append(await ctx.console.throttle(name, limit=1))
        except HoldfastError:  # it has neither a limit nor jobs
            continue
    return tuple(found)


async def _stack(ctx: Context, facts: JobFacts) -> tuple[LiveStack | None, str]:
    """Return where a running job is in its code, or why that is not known."""
    if facts.state not in UNDER_WAY:
        return None, f"The job is {facts.state}, not running."
    try:
        return ctx.site.mask.within(await ctx.console.stack(facts.jid, _PATIENCE)), ""
    except (HoldfastError, TimeoutError) as error:
        return None, str(error)


def _raw(ctx: Context, facts: JobFacts, part: str) -> Response:
    """Return a part of a job as a file of plain text, which no browser runs."""
    if part == "message":
        content = ctx.site.mask.text(facts.failure.message if facts.failure else "").encode(errors="replace")
    else:
        kept = facts.data if part == "data" else facts.result or b"null"
        content = kept if ctx.data(kept) == stored(kept) else _pretty(ctx.data(kept))
    headers = {"Content-Disposition": f'attachment; filename="{part}.txt"'}
    return Response(content, media_type="text/plain; charset=utf-8", headers=headers)


def _pretty(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode(errors="replace")


# Ways elsewhere, and jobs like it.


def _recipes(ctx: Context, facts: JobFacts) -> tuple[Recipe, ...]:
    copied = [
        one
        for one in ("retry", "run", "expire", "cancel", "delete", "track")
        if one in actions_of(facts, ctx.now_ms)
    ]
    return (*(recipe(ctx, one, facts.jid) for one in copied), recipe(ctx, "move", facts.jid, facts.queue))


def _similar(facts: JobFacts) -> tuple[tuple[str, str], ...]:
    """Return searches for jobs like this one: what they have in common, and the filter."""
    found = [
        ("Same job type", term("klass", facts.klass)),
        ("Same job type, failed", f"state:failed {term('klass', facts.klass)}"),
    ]
    if facts.failure:
        found.append(("Same failure group", term("group", facts.failure.group)))
    if facts.spawned_from:
        found.append(("Put by the same recurring job", term("jid", facts.spawned_from)[:-1] + "*"))
    return tuple(found[:3])


# Two attempts.


def _comparison(detail: JobDetail, query: JobQuery) -> Comparison:
    """Return two attempts side by side. Raises UsageError if the job did not have them."""
    by_number = {one.number: one for one in detail.attempts}
    try:
        first, second = by_number[query.first], by_number[query.second]
    except KeyError as error:
        raise UsageError(f"this job has no attempt {error}") from None
    rows = [(label, read(first), read(second)) for label, read in _COMPARED]
    rows.append(("Message", _message(detail, first), _message(detail, second)))
    data = [data_at(detail.facts, "running", one.number) for one in (first, second)]
    kept = (data[0], data[1]) if detail.facts.earlier else None
    return Comparison(first, second, tuple(rows), kept)


_COMPARED: Final[Sequence[tuple[str, Callable[[Attempt], str]]]] = (
    ("Worker", lambda one: one.worker),
    ("Outcome", lambda one: one.outcome or "running"),
    ("Group", lambda one: one.name),
)


def _message(detail: JobDetail, attempt: Attempt) -> str:
    """Return why an attempt ended: the history has it of those before the last, the failure has it of that one."""
    failure = detail.facts.failure
    is_last = attempt is detail.attempts[-1]
    return attempt.reason or (error_line(failure.message) if failure and is_last else "")


VIEWS: Final = (
    View(
        path="/jobs/{name}",
        template="job.html",
        load=job,
        query=JobQuery,
        summary="One job or recurring job, with all of its details.",
    ),
)
ACTIONS: Final[tuple[ActionRoute, ...]] = ()
