"""Jobs as lines of text: export them with everything that is needed to put them again, and import such lines."""

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

import msgspec

from holdfast.client.descriptors import AnyClient, PlanMethod, StepMethod, put_together, run_plan
from holdfast.client.put_options import make_put
from holdfast.code.backoff import backoff_data
from holdfast.code.put_options import OPTIONS, kept_options
from holdfast.code.steps import Steps
from holdfast.commands.admin import Info
from holdfast.commands.flows import LARGE_GROUP
from holdfast.commands.jobs import JobGet, Put
from holdfast.commands.options import PutWithOptions
from holdfast.console.filters import Filter, parse
from holdfast.console.search.search import search
from holdfast.errors import HoldfastError, UsageError
from holdfast.ids import mint_jid
from holdfast.models import JobFacts
from holdfast.settings import MAX_BATCH, OWN_THROTTLE, Settings, check_whole
from holdfast.wire.plans import Plan, Planner

_AT_ONCE: Final = 50
"""How many jobs are read in one call: each may have a megabyte of data."""


class JobLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A job as a line of JSON. Only `queue` and `klass` are needed; times are seconds, moments since the epoch.

    Those of INFORMATION are not used by an import: it puts a job that waits, until `due` if that is in the future.
    """

    jid: str = ""
    queue: str
    klass: str
    data: msgspec.Raw = msgspec.Raw(b"{}")
    priority: int = 0
    retries: int = 5
    max_losses: int | None = None
    tags: tuple[str, ...] = ()
    throttles: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    due: float | None = None
    expires: float | None = None
    timeout: float | None = None
    result_keep: float | None = None
    backoff: Mapping[str, Any] | None = None
    state: str = ""
    created: float | None = None
    attempts: int = 0
    failure: Mapping[str, Any] | None = None

    def encode(self) -> bytes:
        """Return the line, without its end."""
        return msgspec.json.encode(self)


INFORMATION: Final = ("state", "created", "attempts", "failure")
"""The fields of a JobLine that an import does not use."""
_decode: Final = msgspec.json.Decoder(JobLine).decode


def job_line(text: bytes) -> JobLine:
    """Read a line of an export. Raises UsageError."""
    try:
        return _decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UsageError(f"not a job: {error}") from None


def line_of(facts: JobFacts) -> JobLine | None:
    """Return a job as a line; None if its data are not JSON; another program may have put them."""
    try:
        data = msgspec.json.format(facts.data, indent=-1)
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    options = kept_options(facts.options)
    options["backoff"] = backoff_data(options["backoff"] or "")
    return JobLine(
        jid=facts.jid,
        queue=facts.queue,
        klass=facts.klass,
        data=msgspec.Raw(data),
        priority=facts.priority,
        retries=facts.retries,
        max_losses=facts.max_losses,
        tags=facts.tags,
        throttles=tuple(name for name in facts.throttles if not name.startswith(OWN_THROTTLE)),
        depends=facts.dependencies,
        due=_seconds(facts.due_ms),
        **options,
        state=facts.state,
        created=_seconds(facts.created_ms),
        attempts=facts.attempts,
        failure=facts.failure.as_dict() if facts.failure else None,
    )


def _seconds(ms: str | int | None) -> float | None:
    return int(ms) / 1000 if ms else None


class ExportPage(msgspec.Struct, frozen=True):
    """Some jobs as lines, the jids of those that have none, and how far the search got ("": the end).

    `unreadable`: their data are not JSON. `in_flow`: they wait for other jobs of their flow, whose results an import could not pass.
    """

    lines: tuple[JobLine, ...]
    unreadable: tuple[str, ...]
    in_flow: tuple[str, ...]
    looked: int
    candidates: int
    cursor: str


def export(ask: Planner, query: Filter, now_ms: int, limit: int, after: str) -> Plan[ExportPage]:
    """Return up to `limit` of the jobs that a filter matches; jobs that went away meanwhile are left out."""
    page = yield from search(ask, query, now_ms, limit, after)
    lines: list[JobLine] = []
    unreadable: list[str] = []
    in_flow: list[str] = []
    for at in range(0, len(page.jobs), _AT_ONCE):
        found = yield from ask(JobGet([row.jid for row in page.jobs[at : at + _AT_ONCE]]))
        for facts in found:
            if facts is None:
                continue
            if facts.policies or facts.klass == LARGE_GROUP:
                in_flow.append(facts.jid)
                continue
            line = line_of(facts)
            if line is None:
                unreadable.append(facts.jid)
            else:
                lines.append(line)
    return ExportPage(
        tuple(lines), tuple(unreadable), tuple(in_flow), page.looked, page.candidates, page.cursor
    )


class Import:
    """The lines of one import. Jobs that depend on others are kept until all of these were put."""

    def __init__(self, keep_jids: bool) -> None:
        self._keeps = keep_jids
        self._jids: dict[str, str] = {}
        self._later: dict[str, JobLine] = {}

    def take(self, line: JobLine) -> JobLine | None:
        """Return a line with the jid that its job gets; None if it is one for later."""
        jid = line.jid if line.jid and self._keeps else mint_jid()
        if line.jid and not self._keeps:
            self._jids[line.jid] = jid
        named = msgspec.structs.replace(line, jid=jid)
        if not line.depends:
            return named
        self._later[jid] = named
        return None

    def later(self) -> Iterator[list[JobLine]]:
        """Yield what was kept, each list after the ones that its jobs depend on. Raises UsageError for a circle."""
        lines = {
            jid: msgspec.structs.replace(
                line, depends=tuple(self._jids.get(name, name) for name in line.depends)
            )
            for jid, line in self._later.items()
        }
        order = TopologicalSorter(
            {jid: [name for name in line.depends if name in lines] for jid, line in lines.items()}
        )
        try:
            order.prepare()
        except CycleError as error:
            raise UsageError(f"jobs depend on each other in a cycle: {', '.join(error.args[1])}") from None
        while order.is_active():
            ready = order.get_ready()
            yield [lines[jid] for jid in ready]
            order.done(*ready)


def puts_of(
    settings: Settings, lines: Sequence[JobLine], now_ms: int
) -> Iterator[Put | PutWithOptions | UsageError]:
    """Return the command that puts each job, or what is wrong with it."""
    for line in lines:
        try:
            yield _put_of(settings, line, now_ms)
        except UsageError as error:
            yield error


def _put_of(settings: Settings, line: JobLine, now_ms: int) -> Put | PutWithOptions:
    now = now_ms / 1000
    delay = max((line.due or 0.0) - now, 0.0)
    left = None if line.expires is None else line.expires - now
    if left is not None and left <= 0:
        raise UsageError("it has expired: its time `expires` has passed")
    own = {name: getattr(line, name) for name in OPTIONS if name in line.__struct_fields__}
    lists = {name: own[name] or None for name in ("tags", "throttles", "depends")}
    options = {**own, **lists, "only_new": True, "delay": delay or None, "expires": left}
    given = {name: value for name, value in options.items() if value is not None}
    return make_put(settings, line.queue, line.klass, bytes(line.data), given)


def _now(ask: Planner) -> Plan[int]:
    info = yield from ask(Info())
    return info.now_ms


class TransferVerbs:
    """The methods of a console that export and import jobs."""

    _client: AnyClient

    @PlanMethod
    def export(
        self, ask: Planner, filter: str = "", *, after: str = "", limit: int = 256
    ) -> Plan[ExportPage]:
        """A page of the jobs that a filter matches, with everything that is needed to put them again."""
        query, size = parse(filter), check_whole("limit", limit, 1, MAX_BATCH)
        return (yield from export(ask, query, (yield from _now(ask)), size, after))

    @StepMethod
    def put_lines(self, lines: Sequence[JobLine]) -> Steps[list[str | HoldfastError]]:
        """Put jobs of an import; one that exists is left alone. Returns for each its jid, or why it was refused."""
        now: int = yield run_plan(self._client, _now)
        made = list(puts_of(self._client.settings, lines, now))
        puts = [one for one in made if not isinstance(one, HoldfastError)]
        results = iter((yield put_together(self._client, puts)) if puts else ())
        return [one if isinstance(one, HoldfastError) else next(results) for one in made]
