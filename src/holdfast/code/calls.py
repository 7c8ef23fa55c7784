"""One call of a function job as it is put, now or again and again: `report.every(3600).put("sales")`.

The recurrence has a name made of the function and its arguments, so a program that says it each time it starts says
the same one. What it says replaces what was said before, and when the next job is due stays as it was.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

import msgspec
from msgspec import Raw

from holdfast.code.registry import Registered
from holdfast.codecs import to_plain
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
            raise UsageError(f"{what} has no time zone: use datetime(…, tzinfo=…), or datetime.now(UTC) + …")
        moment = moment.timestamp()
    if isinstance(moment, bool) or not isinstance(moment, (int, float)):
        raise UsageError(f"{what} must be a datetime or epoch seconds, not {moment!r:.80}")
    return check_seconds(what, moment)


P = ParamSpec("P")

SHORTEST: Final = 0.001
_LONGEST_NAME: Final = 140
# Sets have another order in each process; the name of a recurrence must not.
_same_everywhere: Final = msgspec.json.Encoder(enc_hook=to_plain, order="deterministic").encode
_NOT_RECURRING: Final = {
    "jid": "name it by every(jid=…)",
    "only_new": "it is one recurrence however often it is said",
    "depends": "it waits for nobody",
}


class Timing(msgspec.Struct, frozen=True):
    """When a function recurs: the arguments of `every`."""

    interval: float | timedelta
    starting: datetime | float | None
    backlog: int
    jid: str | None

    def __post_init__(self) -> None:
        seconds_of("interval", self.interval, SHORTEST)

    def options(self) -> dict[str, Any]:
        """The options of the template, all but when it begins."""
        interval = seconds_of("interval", self.interval, SHORTEST)
        return {"interval": interval, "backlog": self.backlog, "keeps_time": True}


class Recurrence:
    """A function that recurs; its jobs are `<jid>-1`, `<jid>-2`, …"""

    __slots__ = ("_app", "jid")

    def __init__(self, app: Any, jid: str) -> None:
        self._app = app
        self.jid = jid

    def cancel(self) -> bool:
        """Put no more jobs; those that were put stay. Answers whether it recurred. Core: verbs/recur.lua."""
        return bool(self._app.recurring.cancel(self.jid)[0])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.jid}>"


class AsyncRecurrence(Recurrence):
    """The same of an async client."""

    __slots__ = ()

    async def cancel(self) -> bool:  # type: ignore[override]
        """Put no more jobs; those that were put stay. Answers whether it recurred. Core: verbs/recur.lua."""
        return bool((await self._app.recurring.cancel(self.jid))[0])


class _Every(Generic[P]):
    def __init__(self, job: Any, timing: Timing) -> None:
        self._job = job
        self._timing = timing

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._timing.interval} of {self._job!r}>"

    def _checked(self, args: Any, kwargs: Any) -> tuple[Any, Raw, dict[str, Any], float | None]:
        """The queue, the data, the options, and when it is to begin. Raises UsageError."""
        job, data = self._job, self._job.write(args, kwargs)
        queue, options = job.put_options()
        for name in options:
            if name in _NOT_RECURRING:
                raise UsageError(f"a recurring job takes no {name}: {_NOT_RECURRING[name]}")
        options["offset"] = options.pop("delay", 0.0)
        options |= self._timing.options()
        jid, starting = self._timing.jid, self._timing.starting
        if jid is None:
            jid = _name_of(job.stored_name, *job.registered.arguments.by_name(args, kwargs))
        options["jid"] = jid
        moment = None if starting is None else moment_of("starting", starting)
        return job.app.queues[queue], data, options, moment


class Every(_Every[P]):
    """A function job of a blocking client, and when it recurs."""

    def put(self, *args: P.args, **kwargs: P.kwargs) -> Recurrence:
        """Let it recur with these arguments. Raises UsageError naming an argument that does not fit. Core: verbs/recur.lua."""
        job = self._job
        queue, data, options, starting = self._checked(args, kwargs)
        if starting is not None:
            options["offset"] = _offset(starting - job.app.store_time(), options["interval"])
        return Recurrence(job.app, queue.recur(job.stored_name, data, **options))


class AsyncEvery(_Every[P]):
    """A function job of an async client, and when it recurs."""

    async def put(self, *args: P.args, **kwargs: P.kwargs) -> AsyncRecurrence:
        """Let it recur with these arguments. Raises UsageError naming an argument that does not fit. Core: verbs/recur.lua."""
        job = self._job
        queue, data, options, starting = self._checked(args, kwargs)
        if starting is not None:
            options["offset"] = _offset(starting - await job.app.store_time(), options["interval"])
        return AsyncRecurrence(job.app, await queue.recur(job.stored_name, data, **options))


def _offset(seconds: float, interval: float) -> float:
    """How far away the first job is: of a moment in the past, the next one that is whole intervals later."""
    return seconds if seconds >= 0 else seconds % interval


def _name_of(name: str, args: Any, kwargs: Any) -> str:
    short = name.encode()[:_LONGEST_NAME].decode("utf-8", "ignore")
    return f"{short}:{sha256(_same_everywhere([args, kwargs])).hexdigest()[:12]}"
