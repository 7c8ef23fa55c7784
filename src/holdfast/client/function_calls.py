"""Calls of a function job for `put_many`, and recurring calls: `report.every(3600).put("sales")`.

The jid of a recurrence is made of the function and its arguments, so a program that creates it at each start updates the
same one: its options are replaced, and the time of its next job stays.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

import msgspec
from msgspec import Raw

from holdfast.code.registry import Registered
from holdfast.codecs import to_plain
from holdfast.errors import UsageError
from holdfast.settings import Duration, check_list, check_name, check_seconds

R_co = TypeVar("R_co", covariant=True)


class Bound(Generic[R_co]):
    """A call of a function job for `put_many`, with its arguments checked and encoded."""

    __slots__ = ("data", "entry")

    def __init__(self, entry: Registered, data: Raw) -> None:
        self.entry = entry
        self.data = data

    def __repr__(self) -> str:
        return f"<Bound {self.entry.name} {bytes(self.data).decode():.80}>"


def data_of_all(entry: Registered, calls: Iterable[object], limit: int) -> Iterator[Raw]:
    """Return the data of each call given to `put_many`. Raises UsageError with the number of one that does not fit."""
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
    # A plain tuple has the arguments of a call; a named tuple is one argument.
    if type(call) is tuple:
        return entry.arguments.write(cast("tuple[object, ...]", call), {}, limit)
    if isinstance(call, Mapping):
        named = cast("Mapping[str, Any]", call)
        for name in named:
            check_name("the name of an argument", name)
        return entry.arguments.write((), named, limit)
    return entry.arguments.write((call,), {}, limit)


def moment_of(what: str, moment: object) -> float:
    """Return a time in epoch seconds; it is given as a datetime with a time zone, or in epoch seconds. Raises UsageError."""
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
# The order of a set differs between processes; the jid of a recurrence must not.
_same_everywhere: Final = msgspec.json.Encoder(enc_hook=to_plain, order="deterministic").encode
_NOT_RECURRING: Final = {
    "jid": "name it by every(jid=…)",
    "only_new": "every(…) with the same jid is one recurrence",
    "depends": "its jobs cannot wait for others",
}


class Timing(msgspec.Struct, frozen=True):
    """The arguments of `every`."""

    interval: Duration
    starting: datetime | float | None
    backlog: int
    jid: str | None

    def __post_init__(self) -> None:
        check_seconds("interval", self.interval, SHORTEST)

    def options(self) -> dict[str, Any]:
        """Return the options of the template, without its first time."""
        interval = check_seconds("interval", self.interval, SHORTEST)
        return {"interval": interval, "backlog": self.backlog, "keeps_time": True}


class Recurrence:
    """A recurring function job; its jobs have the jids `<jid>-1`, `<jid>-2`, …"""

    __slots__ = ("_app", "jid")

    def __init__(self, app: Any, jid: str) -> None:
        self._app = app
        self.jid = jid

    def cancel(self) -> bool:
        """Stop putting jobs; those that were put stay. Returns whether the recurrence existed. Core: verbs/recur.lua."""
        return bool(self._app.recurring.cancel(self.jid)[0])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.jid}>"


class AsyncRecurrence(Recurrence):
    """A recurring function job of an AsyncClient."""

    __slots__ = ()

    async def cancel(self) -> bool:  # type: ignore[override]
        """Stop putting jobs; those that were put stay. Returns whether the recurrence existed. Core: verbs/recur.lua."""
        return bool((await self._app.recurring.cancel(self.jid))[0])


class _Every(Generic[P]):
    def __init__(self, job: Any, timing: Timing) -> None:
        self._job = job
        self._timing = timing

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._timing.interval} of {self._job!r}>"

    def _checked(self, args: object, kwargs: object) -> tuple[Any, Raw, dict[str, Any], float | None]:
        """Return the queue, the data, the options, and the first time. Raises UsageError."""
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
    """A function job of a Client with the arguments of `every`."""

    def put(self, *args: P.args, **kwargs: P.kwargs) -> Recurrence:
        """Put a recurring job with these arguments. Raises UsageError naming one that does not fit. Core: verbs/recur.lua."""
        job = self._job
        queue, data, options, starting = self._checked(args, kwargs)
        if starting is not None:
            options["offset"] = _offset(starting - job.app.store_time(), options["interval"])
        return Recurrence(job.app, queue.recur(job.stored_name, data, **options))


class AsyncEvery(_Every[P]):
    """A function job of an AsyncClient with the arguments of `every`."""

    async def put(self, *args: P.args, **kwargs: P.kwargs) -> AsyncRecurrence:
        """Put a recurring job with these arguments. Raises UsageError naming one that does not fit. Core: verbs/recur.lua."""
        job = self._job
        queue, data, options, starting = self._checked(args, kwargs)
        if starting is not None:
            options["offset"] = _offset(starting - await job.app.store_time(), options["interval"])
        return AsyncRecurrence(job.app, await queue.recur(job.stored_name, data, **options))


def _offset(seconds: float, interval: float) -> float:
    """Return the seconds until the first job: of a time in the past, whole intervals later."""
    return seconds if seconds >= 0 else seconds % interval


def _name_of(name: str, args: object, kwargs: object) -> str:
    short = name.encode()[:_LONGEST_NAME].decode("utf-8", "ignore")
    return f"{short}:{sha256(_same_everywhere([args, kwargs])).hexdigest()[:12]}"
