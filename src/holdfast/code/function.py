"""Functions as jobs: `@app.job(…)` on a plain or async function.

The decorated function is called as before; `put` puts it as a job, typed by the function's own signature. The
client it belongs to decides the colour of `put` and of the handle it answers.
"""

import functools
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Generic, ParamSpec, Self, TypeVar, Unpack

from msgspec import Raw

from holdfast.code.calls import AsyncEvery, Bound, Every, Timing, data_of_all, moment_of, seconds_of
from holdfast.code.handle import AsyncApp, AsyncHandle, Handle, SyncApp
from holdfast.code.job_options import JobOptions, PutChanges
from holdfast.code.registry import Registered, stored_name
from holdfast.errors import UsageError
from holdfast.settings import unknown_option

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")


class AnyFunctionJob(Generic[P, C, R]):
    """What both colours share: the function, its registration, and how one put differs from it."""

    __name__: str
    is_function_job = True
    """By which `klass_name`, which stands below, knows one."""

    def __init__(self, app: Any, function: Callable[P, C], entry: Registered, changes: PutChanges) -> None:
        functools.update_wrapper(self, function)
        self.app = app
        self._function = function
        self.registered = entry
        self._changes = changes

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Call the function, here and now."""
        return self._function(*args, **kwargs)

    def options(self, **changes: Unpack[PutChanges]) -> Self:
        """The same job with other options for its puts: `welcome.options(delay=60).put(7)`."""
        for name in changes:
            if name in JobOptions.__annotations__ and name not in PutChanges.__annotations__:
                raise UsageError(
                    f"{name} is the same for all puts of a function: give it to @app.job({name}=…)"
                )
            if name not in PutChanges.__annotations__:
                raise unknown_option("options", name, tuple(PutChanges.__annotations__))
        return type(self)(self.app, self._function, self.registered, {**self._changes, **changes})

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R]:
        """A call for `put_many`, its arguments checked now, by type checkers too. Raises UsageError."""
        return Bound(self.registered, self.write(args, kwargs))

    def write(self, args: Any, kwargs: Any) -> Raw:
        """The data of a put. Raises UsageError naming an argument that does not fit."""
        return self.registered.arguments.write(args, kwargs, self.app.settings.max_data)

    @property
    def stored_name(self) -> str:
        """The name under which a worker finds the function. Raises UsageError if there is none."""
        return stored_name(self.registered)

    def put_options(self) -> tuple[str, dict[str, Any]]:
        """The queue, and the options of one put."""
        options: dict[str, Any] = {**self.registered.travelling, **self._changes}
        return options.pop("queue", self.registered.queue), options

    @property
    def _keeps(self) -> bool:
        return bool(self._changes.get("result_keep", self.registered.keep_ms))

    def _put(self, data: Raw) -> Any:
        """Put what was written; the answer is the jid, or what is awaited for it."""
        queue, options = self.put_options()
        return self.app.queues[queue].put(self.stored_name, data, **options)

    def _put_many(self, calls: Iterable[object]) -> Any:
        queue, options = self.put_options()
        if "jid" in options:
            raise UsageError("put_many: one jid cannot name many jobs")
        name = self.stored_name
        # All are checked and written before the first leaves.
        pairs = [(name, data) for data in data_of_all(self.registered, calls, self.app.settings.max_data)]
        return self.app.queues[queue].put_many(pairs, **options)

    def _in(self, delay: object) -> Self:
        return self.options(delay=seconds_of("delay", delay))

    def _at(self, moment: float, now: float) -> Self:
        return self.options(delay=max(0.0, moment - now))

    def __repr__(self) -> str:
        return f"<job {self.registered.name}>"


class FunctionJob(AnyFunctionJob[P, C, R]):
    """A function job of a blocking client."""

    app: SyncApp

    def put(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job. Raises UsageError naming an argument that does not fit."""
        return Handle(self.app, self._put(self.write(args, kwargs)), self.registered, self._keeps)

    def put_many(self, calls: Iterable[object]) -> list[Handle[R]]:
        """Put one job for each call, 512 a step: `put_many([(7,), (8, "de")])`; answers their handles in order.

        A call is a tuple of arguments, a mapping of named ones, what `bind` answers (which type checkers see through), or
        else the one argument itself. All are checked before the first is put. Raises UsageError. Core: verbs/put.lua.
        """
        return [Handle(self.app, jid, self.registered, self._keeps) for jid in self._put_many(calls)]

    def put_in(self, delay: float | timedelta, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job that is due in `delay` seconds, or a timedelta. Raises UsageError."""
        return self._in(delay).put(*args, **kwargs)

    def put_at(self, moment: datetime | float, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put the function as a job that is due at `moment`, by `Client.store_time`; at once if that is over.

        It is a datetime with its time zone, or epoch seconds. Raises UsageError.
        """
        data, due = self.write(args, kwargs), moment_of("moment", moment)
        later = self._at(due, self.app.store_time())
        return Handle(self.app, later._put(data), self.registered, self._keeps)

    def every(
        self,
        interval: float | timedelta,
        /,
        *,
        starting: datetime | float | None = None,
        backlog: int = 1,
        jid: str | None = None,
    ) -> Every[P]:
        """Put it again and again, every `interval` seconds or timedelta: `report.every(3600).put("sales")`.

        The first job is put at once, or at `starting` (a datetime with its time zone, or epoch seconds; of one in the past,
        whole intervals later). Said again, with the same arguments or the same `jid`, it is the same recurrence: its next
        job comes when it would have come, with what was said last. Jobs missed while no worker looked are made up for,
        at most `backlog` of them, 0 for all. Core: verbs/recur.lua.
        """
        return Every(self, Timing(interval, starting, backlog, jid))


class AsyncFunctionJob(AnyFunctionJob[P, C, R]):
    """A function job of an async client: what `FunctionJob` has, awaited."""

    app: AsyncApp

    async def put(self, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job. Raises UsageError naming an argument that does not fit."""
        return AsyncHandle(self.app, await self._put(self.write(args, kwargs)), self.registered, self._keeps)

    async def put_many(self, calls: Iterable[object]) -> list[AsyncHandle[R]]:
        """Put one job for each call, as `FunctionJob.put_many`."""
        return [
            AsyncHandle(self.app, jid, self.registered, self._keeps) for jid in await self._put_many(calls)
        ]

    async def put_in(self, delay: float | timedelta, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job that is due in `delay` seconds, or a timedelta. Raises UsageError."""
        return await self._in(delay).put(*args, **kwargs)

    async def put_at(self, moment: datetime | float, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle[R]:
        """Put the function as a job that is due at `moment`, as `FunctionJob.put_at`."""
        data, due = self.write(args, kwargs), moment_of("moment", moment)
        later = self._at(due, await self.app.store_time())
        return AsyncHandle(self.app, await later._put(data), self.registered, self._keeps)

    def every(
        self,
        interval: float | timedelta,
        /,
        *,
        starting: datetime | float | None = None,
        backlog: int = 1,
        jid: str | None = None,
    ) -> AsyncEvery[P]:
        """Put it again and again, as `FunctionJob.every`: `await report.every(3600).put("sales")`."""
        return AsyncEvery(self, Timing(interval, starting, backlog, jid))
