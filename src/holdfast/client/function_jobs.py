"""Functions as jobs: `@client.job(…)` on a plain or async function.

The decorated function can be called as before; `put` puts it as a job, typed by the function's own signature. `put` and
its handle are blocking or async as the client is. `report.every(3600).put("sales")` puts it again and again: the jid of a
recurrence is made of the function and its arguments, so a program that creates it at each start updates the same one: its
options are replaced, and the time of its next job stays.
"""

import asyncio
import functools
import inspect
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Self, TypeVar, Unpack, cast

import msgspec
from msgspec import Raw

from holdfast.client.calls import Accepts, AcceptsMore, Call, CalledJob, Group, Partial
from holdfast.client.descriptors import AnyClient
from holdfast.client.put_handles import AsyncHandle, Handle
from holdfast.client.recur_options import CalendarOptions
from holdfast.code.calendar import check_cron, cron_at, moment_of
from holdfast.code.job_options import JobOptions, PutChanges, option_hint, unknown
from holdfast.code.registry import Declaration, Registered, recurring_jid, stored_name
from holdfast.code.unawaited import named
from holdfast.commands.base import NotedJid
from holdfast.commands.recurring import DeclaredFacts
from holdfast.errors import UsageError
from holdfast.settings import DEFAULT_BACKLOG, SHORTEST, Duration, check_list, check_name, check_seconds

P = ParamSpec("P")
P2 = ParamSpec("P2")
A = TypeVar("A")
C = TypeVar("C")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


Bound = Call
"""The name of release 0.2."""


def data_of_all(entry: Registered, calls: Iterable[object], limit: int) -> Iterator[Raw]:
    """Return the data of each call given to `put_many`. Raises UsageError with the number of one that does not fit."""
    for number, call in enumerate(check_list("put_many", calls)):
        try:
            yield _data_of(entry, call, limit)
        except UsageError as error:
            raise UsageError(f"{error} (in item {number} of put_many)") from error


def _data_of(entry: Registered, call: object, limit: int) -> Raw:
    if isinstance(call, Call):
        bound = cast("Call[object]", call)
        if bound.entry is not entry:
            raise UsageError(f"{bound!r} is not a call of {entry.name}")
        check_alone(bound)
        return bound.data
    # A plain tuple has the arguments of a call; a named tuple is one argument.
    if type(call) is tuple:
        return entry.arguments.write(cast("tuple[object, ...]", call), {}, limit)
    if isinstance(call, Mapping):
        named = cast("Mapping[str, object]", call)
        for name in named:
            check_name("the name of an argument", name)
        return entry.arguments.write((), named, limit)
    return entry.arguments.write((call,), {}, limit)


_NOT_RECURRING: Final = {
    "jid": "name it by every(jid=…)",
    "only_new": "every(…) with the same jid is one recurrence",
    "depends": "its jobs cannot wait for others",
}


class Timing(msgspec.Struct, frozen=True):
    """The arguments of `every`; `calendar` has those of a cron expression."""

    interval: Duration | str
    starting: datetime | float | None
    backlog: int | None
    jid: str | None
    calendar: Mapping[str, object]

    def __post_init__(self) -> None:
        given = [name for name, value in self.calendar.items() if value is not None and name != "overlap"]
        if self.cron is not None:
            if self.starting is not None or self.backlog is not None:
                raise UsageError("a cron expression takes start= and missed=, no starting= and backlog=")
            check_cron(self.cron)
            return
        if given:
            raise UsageError(f"{given[0]} needs a cron expression: every('0 3 * * *', {given[0]}=…)")
        check_seconds("interval", self.interval, SHORTEST)

    @property
    def cron(self) -> str | None:
        """The cron expression, also of an interval with `at`; None for an interval. Raises UsageError."""
        at = self.calendar.get("at")
        if at is not None:
            return cron_at(self.interval, at)
        return self.interval if isinstance(self.interval, str) else None

    def given(self) -> dict[str, object]:
        """Return the arguments of `every` that were given, with the interval by its name."""
        own = {"interval": self.interval, "starting": self.starting, "backlog": self.backlog, "jid": self.jid}
        return {name: value for name, value in (own | dict(self.calendar)).items() if value is not None}

    def options(self) -> dict[str, object]:
        """Return the options of the template, without its first time."""
        cron = self.cron
        if cron is not None:
            return {"cron": cron, "keeps_time": True, **self.calendar, "at": None}
        interval = check_seconds("interval", self.interval, SHORTEST)
        return {
            "interval": interval,
            "backlog": DEFAULT_BACKLOG if self.backlog is None else self.backlog,
            "keeps_time": True,
            "overlap": self.calendar.get("overlap"),
        }


class Recurrence:
    """A recurring function job; its jobs have the jids `<jid>-1`, `<jid>-2`, …"""

    __slots__ = ("_app", "jid")

    def __init__(self, app: AnyClient, jid: str) -> None:
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
    def __init__(self, job: "AnyFunctionJob[P, Any, Any]", timing: Timing) -> None:
        self._job = job
        self._timing = timing
        self._is_put = False
        self.declared: DeclaredFacts | None = None
        """Where code declares it, if a worker puts it because of that."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._timing.interval} of {self._job!r}>"

    def __del__(self) -> None:
        # As of a coroutine that was never awaited; one whose arguments were refused has no attributes.
        if not getattr(self, "_is_put", True):
            call = f"{self._job.__name__}.every({self._timing.interval!r:.80})"
            warnings.warn(
                f"{call} was never put: write {call}.put(…), or app.schedule({self._job.__name__}.call(…), every=…)",
                RuntimeWarning,
                stacklevel=2,
                source=self,
            )

    def _checked(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Any, Raw, dict[str, Any], float | None]:
        """Return the queue, the data, the options, and the first time. Raises UsageError."""
        self._is_put = True
        job, data = self._job, self._job.write(args, kwargs)
        queue, options = job.put_options()
        check_recurring(options)
        for name in ("on_conflict", "debounce_max"):
            options.pop(name, None)  # an occurrence that meets its key is left out
        if job.registered.unique:
            options.setdefault("unique_key", job.registered.key_of(bytes(data)))
        delay = options.pop("delay", 0.0)
        if self._timing.cron is None:
            options["offset"] = delay
        options |= self._timing.options()
        jid, starting = self._timing.jid, self._timing.starting
        if jid is None:
            jid = recurring_jid(job.stored_name, *job.registered.arguments.by_name(args, kwargs))
        options["jid"] = jid
        if self.declared is not None:
            options["declared"] = self.declared
        moment = None if starting is None else moment_of("starting", starting)
        return job.app.queues[queue], data, options, moment


class Every(_Every[P]):
    """A function job of a Client with the arguments of `every`."""

    def put(self, /, *args: P.args, **kwargs: P.kwargs) -> Recurrence:
        """Put a recurring job with these arguments. Raises UsageError naming one that does not fit. Core: verbs/recur.lua."""
        job = self._job
        queue, data, options, starting = self._checked(args, kwargs)
        if starting is not None:
            options["offset"] = _offset(starting - job.app.store_time(), options["interval"])
        return Recurrence(job.app, queue.recur(job.stored_name, data, **options))


class AsyncEvery(_Every[P]):
    """A function job of an AsyncClient with the arguments of `every`."""

    def put(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[object, object, AsyncRecurrence]:
        """Put a recurring job with these arguments. Raises UsageError naming one that does not fit. Core: verbs/recur.lua."""
        self._is_put = True  # if it is not awaited, Python warns of that
        return named(self._put(args, kwargs), "AsyncEvery.put")

    async def _put(self, args: Sequence[object], kwargs: Mapping[str, object]) -> AsyncRecurrence:
        job = self._job
        queue, data, options, starting = self._checked(args, kwargs)
        if starting is not None:
            options["offset"] = _offset(starting - await job.app.store_time(), options["interval"])
        return AsyncRecurrence(job.app, await queue.recur(job.stored_name, data, **options))


def _offset(seconds: float, interval: float) -> float:
    """Return the seconds until the first job: of a time in the past, whole intervals later."""
    return seconds if seconds >= 0 else seconds % interval


def check_alone(call: Call[object]) -> None:
    """Raise UsageError for a call with others in front of it or behind: only a flow puts those."""
    if call.edges or call.before or call.rescues:
        raise UsageError(
            f"{call!r} is part of a flow: put it by app.put(…); a recurring job puts a flow by returning it"
        )


def declare(call: object, timing: Timing, module: str) -> None:
    """Have each worker that loads `module` put a recurring job of a call at its start. Raises UsageError."""
    if not isinstance(call, Call):
        raise UsageError(f"schedule: expected a call such as report.call(7), got {call!r:.80}")
    bound = cast("Call[object]", call)
    check_alone(bound)
    check_recurring(bound.changes)
    bound.entry.declare(Declaration(module, timing.given(), bound.args, bound.kwargs, bound.changes))


def check_recurring(options: Mapping[str, object]) -> None:
    """Raise UsageError for an option of one put that a recurring job does not have."""
    for name in options:
        if name in _NOT_RECURRING:
            raise UsageError(f"a recurring job has no {name}: {_NOT_RECURRING[name]}")


_OTHER_LIBRARIES: Final = {
    "apply": "put(…)",
    "apply_async": "options(delay=…).put(…)",
    "delay": "put(…)",
    "enqueue": "put(…)",
    "si": "call(…) and after(…)",
    "perform_async": "put(…)",
    "perform_in": "put_in(seconds, …)",
    "queue": "put(…)",
    "s": "call(…)",
    "schedule": "put_in(seconds, …), put_at(moment, …) or every(seconds).put(…)",
    "send": "put(…)",
    "send_with_options": "options(…).put(…)",
    "signature": "call(…)",
    "submit": "put(…)",
}
"""What callers of other libraries look for, and its name here."""


class AnyFunctionJob(Generic[P, C, R]):
    """The base of sync and async function jobs: the function, its registration, and the options of one put."""

    __name__: str
    __qualname__: str
    is_function_job = True
    """Lets `klass_name` recognise a function job without importing this module."""

    def __init__(
        self, app: AnyClient, function: Callable[P, C], entry: Registered, changes: PutChanges
    ) -> None:
        functools.update_wrapper(self, function)
        self.app = app
        self._function = function
        self.registered = entry
        self.changes = changes
        self._plain: Any = self
        if entry.is_async:
            self._mark_as_coroutine_function()

    def _mark_as_coroutine_function(self) -> None:
        """Let frameworks await what a call returns: they look at the function, or at its method `__call__`."""
        getattr(inspect, "markcoroutinefunction", bool)(self)  # from Python 3.12
        self._is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)
        self.__dict__["__call__"] = self._function

    def __reduce__(self) -> str | tuple[object, ...]:
        """Pickle by name, as plain functions are; with options for one put, by name and options. A copy is the same object."""
        job = functools.partial(type(self).options, self._plain, **self.changes)
        return (job, ()) if self.changes else self.__qualname__

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> C:
        """Call the function in this process."""
        return self._function(*args, **kwargs)

    def options(self, **changes: Unpack[PutChanges]) -> Self:
        """Return the same job with other options for its puts: `welcome.options(delay=60).put(7)`."""
        for name in changes:
            if name in JobOptions.__annotations__ and name not in PutChanges.__annotations__:
                raise UsageError(
                    f"{name} is the same for all puts of a function: give it to @app.job({name}=…)"
                )
            if name not in PutChanges.__annotations__:
                raise unknown("options", name, tuple(PutChanges.__annotations__))
        other = type(self)(self.app, self._function, self.registered, {**self.changes, **changes})
        other._plain = self._plain
        return other

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return a call for `put_many`, `schedule` and flows, with its arguments checked now, by type checkers too. Raises UsageError."""
        return Call(self, args, kwargs)

    bind = call
    """`call`, under the name that older programs use."""

    def partial(self: AcceptsMore[A, P2, R], /, *args: P2.args, **kwargs: P2.kwargs) -> Partial[A, R]:
        """Return a step of a flow with the arguments behind the first one, which is the result before it: `chain(load.call(7), store.partial(table="x"))`."""
        return Partial(cast("CalledJob", self), args, kwargs)

    def map(self: Accepts[A, R], items: Iterable[A], /) -> Group[R]:
        """Return a group of one call for each item, of which there may be any number: `resize.map(paths).then(album)`. Raises UsageError."""
        job = cast("CalledJob", self)
        return Group(Call(job, (item,), {}) for item in items)

    @property
    def flow_step(self) -> Callable[P, R]:
        """The function as a step of a flow, for type checkers."""
        return cast("Callable[P, R]", self._function)

    def write_behind(
        self, places: Sequence[bytes], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Raw, list[int]]:
        """Return the data of a call whose first arguments are not known yet, and where each begins. Raises UsageError."""
        return self.registered.arguments.write_behind(places, args, kwargs, self.app.settings.max_data)

    def write(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Raw:
        """Return the data of a put. Raises UsageError naming an argument that does not fit."""
        arguments = self.registered.arguments
        try:
            return arguments.write(args, kwargs, self.app.settings.max_data)
        except UsageError as error:
            for name in kwargs:
                hint = "" if arguments.takes(name) else option_hint(name, self.__name__)
                if hint:
                    raise UsageError(f"{self.__name__} has no argument {name!r}; {hint}") from error
            raise

    @property
    def stored_name(self) -> str:
        """The name under which a worker finds the function. Raises UsageError if it has none."""
        return stored_name(self.registered)

    def put_options(self) -> tuple[str, dict[str, Any]]:
        """Return the queue and the options of one put."""
        options: dict[str, Any] = {**self.registered.travelling, **self.changes}
        return options.pop("queue", self.registered.queue), options

    @property
    def _keeps(self) -> bool:
        return bool(self.changes.get("result_keep", self.registered.keep_ms))

    def _put(self, data: Raw) -> Any:
        """Put a job with these data. Returns the jid, or an awaitable of it."""
        queue, options = self.put_options()
        if isinstance(options.get("jid"), str):
            options["jid"] = NotedJid(options["jid"])
        if self.registered.unique:
            options.setdefault("unique_key", self.registered.key_of(bytes(data)))
        return self.app.queues[queue].put(self.stored_name, data, **options)

    def _put_many(self, calls: Iterable[object]) -> Any:
        queue, options = self.put_options()
        if "jid" in options:
            raise UsageError("put_many: one jid cannot name many jobs")
        name = self.stored_name
        # All are checked and encoded before the first is sent.
        data = data_of_all(self.registered, calls, self.app.settings.max_data)
        has_keys = self.registered.unique and "unique_key" not in options
        pairs = [self._unique_item(name, one) if has_keys else (name, one) for one in data]
        return self.app.queues[queue].put_many(pairs, **options)

    def _unique_item(self, name: str, data: Raw) -> dict[str, object]:
        return {"klass": name, "data": data, "unique_key": self.registered.key_of(bytes(data))}

    def _in(self, delay: object) -> Self:
        return self.options(delay=check_seconds("delay", delay))

    def _at(self, moment: float, now: float) -> Self:
        return self.options(delay=max(0.0, moment - now))

    if not TYPE_CHECKING:  # type checkers know all attributes that there are

        def __getattr__(self, name: str) -> object:
            advice = _OTHER_LIBRARIES.get(name)
            hint = f": write {self.__name__}.{advice}" if advice else ""
            raise AttributeError(f"a function job has no {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<job {self.registered.name}>"


class FunctionJob(AnyFunctionJob[P, C, R]):
    """A function job of a Client."""

    def put(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job. Raises UsageError naming an argument that does not fit."""
        return Handle(self.app, self._put(self.write(args, kwargs)), self.registered, self._keeps, True)

    def put_many(self, calls: Iterable[object]) -> list[Handle[R]]:
        """Put one job for each call, 512 at once: `put_many([(7,), (8, "de")])`. Returns their handles in order.

        A call is a tuple of arguments, a mapping of named arguments, the result of `call` (which type checkers understand),
        or otherwise the only argument. All are checked before the first is put. Raises UsageError. Core: verbs/put.lua.
        """
        return [Handle(self.app, jid, self.registered, self._keeps, True) for jid in self._put_many(calls)]

    def put_in(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job that is due in `delay` seconds, or a timedelta. Raises UsageError."""
        return self._in(delay).put(*args, **kwargs)

    def put_at(self, moment: datetime | float, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job that is due at `moment` by `Client.store_time`, at once if that has passed.

        `moment` is a datetime with a time zone, or epoch seconds. Raises UsageError.
        """
        data, due = self.write(args, kwargs), moment_of("moment", moment)
        later = self._at(due, self.app.store_time())
        return Handle(self.app, later._put(data), self.registered, self._keeps, True)

    def every(
        self,
        interval: Duration | str,
        /,
        *,
        starting: datetime | float | None = None,
        backlog: int | None = None,
        jid: str | None = None,
        **calendar: Unpack[CalendarOptions],
    ) -> Every[P]:
        """Put the job at a fixed `interval`, in seconds or a timedelta, or at the moments of a cron expression:
        `report.every(3600).put("sales")`, `report.every("0 3 * * *", zone="Europe/Berlin").put("sales")`.

        With an interval the first job is put at once, or at `starting` (a datetime with a time zone, or epoch seconds; if that has passed,
        whole intervals later); of the jobs that were missed while no worker took jobs, at most `backlog` (1) are put later, 0 for all.
        An expression has five fields, or is a name such as `@daily`; its options are those of `CalendarOptions`.

        A second call with the same arguments or the same `jid` updates the same recurrence: its options are replaced, and the time of its next
        job stays. Raises UsageError. Core: verbs/recur.lua.
        """
        return Every(self, Timing(interval, starting, backlog, jid, calendar))


class AsyncFunctionJob(AnyFunctionJob[P, C, R]):
    """A function job of an AsyncClient: the methods of `FunctionJob`, awaited."""

    async def put(self, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job. Raises UsageError naming an argument that does not fit."""
        return AsyncHandle(
            self.app, await self._put(self.write(args, kwargs)), self.registered, self._keeps, True
        )

    async def put_many(self, calls: Iterable[object]) -> list[AsyncHandle[R]]:
        """Put one job for each call, as `FunctionJob.put_many`."""
        return [
            AsyncHandle(self.app, jid, self.registered, self._keeps, True)
            for jid in await self._put_many(calls)
        ]

    async def put_in(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job that is due in `delay` seconds, or a timedelta. Raises UsageError."""
        return await self._in(delay).put(*args, **kwargs)

    async def put_at(self, moment: datetime | float, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job that is due at `moment`, as `FunctionJob.put_at`."""
        data, due = self.write(args, kwargs), moment_of("moment", moment)
        later = self._at(due, await self.app.store_time())
        return AsyncHandle(self.app, await later._put(data), self.registered, self._keeps, True)

    def every(
        self,
        interval: Duration | str,
        /,
        *,
        starting: datetime | float | None = None,
        backlog: int | None = None,
        jid: str | None = None,
        **calendar: Unpack[CalendarOptions],
    ) -> AsyncEvery[P]:
        """Put the job at a fixed interval or by a cron expression, as `FunctionJob.every`: `await report.every(3600).put("sales")`."""
        return AsyncEvery(self, Timing(interval, starting, backlog, jid, calendar))
