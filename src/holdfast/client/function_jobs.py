"""Functions as jobs: `@client.job(…)` on a plain or async function.

The decorated function can be called as before; `put` puts it as a job, typed by the function's own signature. `put` and
its handle are blocking or async as the client is.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Self, TypeVar, Unpack

from msgspec import Raw

from holdfast.client.descriptors import AnyClient
from holdfast.client.function_calls import AsyncEvery, Bound, Every, Timing, data_of_all, moment_of
from holdfast.client.put_handles import AsyncHandle, Handle
from holdfast.code.job_options import JobOptions, PutChanges
from holdfast.code.registry import Registered, stored_name
from holdfast.errors import UsageError
from holdfast.settings import Duration, check_seconds, unknown_option

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")

_OTHER_LIBRARIES: Final = {
    "apply": "put(…)",
    "apply_async": "options(delay=…).put(…)",
    "delay": "put(…)",
    "enqueue": "put(…)",
    "map": "put_many([…])",
    "perform_async": "put(…)",
    "perform_in": "put_in(seconds, …)",
    "queue": "put(…)",
    "s": "bind(…)",
    "schedule": "put_in(seconds, …), put_at(moment, …) or every(seconds).put(…)",
    "send": "put(…)",
    "send_with_options": "options(…).put(…)",
    "signature": "bind(…)",
    "submit": "put(…)",
}
"""What callers of other libraries look for, and its name here."""


class AnyFunctionJob(Generic[P, C, R]):
    """The base of sync and async function jobs: the function, its registration, and the options of one put."""

    __name__: str
    is_function_job = True
    """Lets `klass_name` recognise a function job without importing this module."""

    def __init__(
        self, app: AnyClient, function: Callable[P, C], entry: Registered, changes: PutChanges
    ) -> None:
        functools.update_wrapper(self, function)
        self.app = app
        self._function = function
        self.registered = entry
        self._changes = changes

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
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
                raise unknown_option("options", name, tuple(PutChanges.__annotations__))
        return type(self)(self.app, self._function, self.registered, {**self._changes, **changes})

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R]:
        """Return a call for `put_many`, with its arguments checked now, by type checkers too. Raises UsageError."""
        return Bound(self.registered, self.write(args, kwargs))

    def write(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Raw:
        """Return the data of a put. Raises UsageError naming an argument that does not fit."""
        return self.registered.arguments.write(args, kwargs, self.app.settings.max_data)

    @property
    def stored_name(self) -> str:
        """The name under which a worker finds the function. Raises UsageError if it has none."""
        return stored_name(self.registered)

    def put_options(self) -> tuple[str, dict[str, Any]]:
        """Return the queue and the options of one put."""
        options: dict[str, Any] = {**self.registered.travelling, **self._changes}
        return options.pop("queue", self.registered.queue), options

    @property
    def _keeps(self) -> bool:
        return bool(self._changes.get("result_keep", self.registered.keep_ms))

    def _put(self, data: Raw) -> Any:
        """Put a job with these data. Returns the jid, or an awaitable of it."""
        queue, options = self.put_options()
        return self.app.queues[queue].put(self.stored_name, data, **options)

    def _put_many(self, calls: Iterable[object]) -> Any:
        queue, options = self.put_options()
        if "jid" in options:
            raise UsageError("put_many: one jid cannot name many jobs")
        name = self.stored_name
        # All are checked and encoded before the first is sent.
        pairs = [(name, data) for data in data_of_all(self.registered, calls, self.app.settings.max_data)]
        return self.app.queues[queue].put_many(pairs, **options)

    def _in(self, delay: object) -> Self:
        return self.options(delay=check_seconds("delay", delay))

    def _at(self, moment: float, now: float) -> Self:
        return self.options(delay=max(0.0, moment - now))

    if not TYPE_CHECKING:  # type checkers know all attributes that there are

        def __getattr__(self, name: str) -> Any:
            advice = _OTHER_LIBRARIES.get(name)
            hint = f": write {self.__name__}.{advice}" if advice else ""
            raise AttributeError(f"a function job has no {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<job {self.registered.name}>"


class FunctionJob(AnyFunctionJob[P, C, R]):
    """A function job of a Client."""

    def put(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job. Raises UsageError naming an argument that does not fit."""
        return Handle(self.app, self._put(self.write(args, kwargs)), self.registered, self._keeps)

    def put_many(self, calls: Iterable[object]) -> list[Handle[R]]:
        """Put one job for each call, 512 at once: `put_many([(7,), (8, "de")])`. Returns their handles in order.

        A call is a tuple of arguments, a mapping of named arguments, the result of `bind` (which type checkers understand),
        or otherwise the only argument. All are checked before the first is put. Raises UsageError. Core: verbs/put.lua.
        """
        return [Handle(self.app, jid, self.registered, self._keeps) for jid in self._put_many(calls)]

    def put_in(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job that is due in `delay` seconds, or a timedelta. Raises UsageError."""
        return self._in(delay).put(*args, **kwargs)

    def put_at(self, moment: datetime | float, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job that is due at `moment` by `Client.store_time`, at once if that has passed.

        `moment` is a datetime with a time zone, or epoch seconds. Raises UsageError.
        """
        data, due = self.write(args, kwargs), moment_of("moment", moment)
        later = self._at(due, self.app.store_time())
        return Handle(self.app, later._put(data), self.registered, self._keeps)

    def every(
        self,
        interval: Duration,
        /,
        *,
        starting: datetime | float | None = None,
        backlog: int = 1,
        jid: str | None = None,
    ) -> Every[P]:
        """Put the job at a fixed `interval`, in seconds or a timedelta: `report.every(3600).put("sales")`.

        The first job is put at once, or at `starting` (a datetime with a time zone, or epoch seconds; if that has passed,
        whole intervals later). A second call with the same arguments or the same `jid` updates the same recurrence: its
        options are replaced, and the time of its next job stays. Of the jobs that were missed while no worker took jobs,
        at most `backlog` are put later, 0 for all. Core: verbs/recur.lua.
        """
        return Every(self, Timing(interval, starting, backlog, jid))


class AsyncFunctionJob(AnyFunctionJob[P, C, R]):
    """A function job of an AsyncClient: the methods of `FunctionJob`, awaited."""

    async def put(self, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job. Raises UsageError naming an argument that does not fit."""
        return AsyncHandle(self.app, await self._put(self.write(args, kwargs)), self.registered, self._keeps)

    async def put_many(self, calls: Iterable[object]) -> list[AsyncHandle[R]]:
        """Put one job for each call, as `FunctionJob.put_many`."""
        return [
            AsyncHandle(self.app, jid, self.registered, self._keeps) for jid in await self._put_many(calls)
        ]

    async def put_in(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job that is due in `delay` seconds, or a timedelta. Raises UsageError."""
        return await self._in(delay).put(*args, **kwargs)

    async def put_at(self, moment: datetime | float, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job that is due at `moment`, as `FunctionJob.put_at`."""
        data, due = self.write(args, kwargs), moment_of("moment", moment)
        later = self._at(due, await self.app.store_time())
        return AsyncHandle(self.app, await later._put(data), self.registered, self._keeps)

    def every(
        self,
        interval: Duration,
        /,
        *,
        starting: datetime | float | None = None,
        backlog: int = 1,
        jid: str | None = None,
    ) -> AsyncEvery[P]:
        """Put the job at a fixed interval, as `FunctionJob.every`: `await report.every(3600).put("sales")`."""
        return AsyncEvery(self, Timing(interval, starting, backlog, jid))
