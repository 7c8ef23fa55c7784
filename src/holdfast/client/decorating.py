"""`client.job`: the decorator that makes a function a job, and the lookup of one job by its jid.

The modules of function jobs are loaded at first use: many programs only put jobs by name.
"""

import re
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, Unpack, overload

from holdfast.client.opening import note_function
from holdfast.code.steps import Coro
from holdfast.errors import JobNotFound, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.client.calls import Call, Group
    from holdfast.client.descriptors import AnyClient
    from holdfast.client.function_jobs import AsyncFunctionJob, FunctionJob
    from holdfast.client.handles import AsyncJob, Job
    from holdfast.client.job_lookup import AsyncJobs, Jobs
    from holdfast.client.recur_options import CalendarOptions
    from holdfast.code.job_options import JobOptions
    from holdfast.code.registry import Registered
    from holdfast.settings import Duration

P = ParamSpec("P")
R = TypeVar("R")


class _Decorator:
    def __init__(self, app: "AnyClient", options: "JobOptions") -> None:
        from holdfast.code.job_options import check_known

        check_known(options)
        self._app = app
        self._options = options

    def _entry(self, function: Callable[..., object]) -> "Registered":
        from holdfast.code.registry import make_entry

        entry = make_entry(function, self._options)
        note_function(self._app)
        return entry


class JobDecorator(_Decorator):
    """`@client.job(…)` of a sync client."""

    @overload
    def __call__(self, function: "Callable[P, Coro[Call[R]]]") -> "FunctionJob[P, Coro[Call[R]], R]": ...
    @overload
    def __call__(
        self, function: "Callable[P, Coro[Group[R]]]"
    ) -> "FunctionJob[P, Coro[Group[R]], list[R]]": ...
    @overload
    def __call__(self, function: Callable[P, Coro[R]]) -> "FunctionJob[P, Coro[R], R]": ...
    @overload
    def __call__(self, function: "Callable[P, Call[R]]") -> "FunctionJob[P, Call[R], R]": ...
    @overload
    def __call__(self, function: "Callable[P, Group[R]]") -> "FunctionJob[P, Group[R], list[R]]": ...
    @overload
    def __call__(self, function: Callable[P, R]) -> "FunctionJob[P, R, R]": ...
    def __call__(self, function: Callable[P, object]) -> object:
        from holdfast.client.function_jobs import FunctionJob

        entry = self._entry(function)
        job: FunctionJob[..., object, object] = FunctionJob(self._app, entry.function, entry, {})
        return job


class AsyncJobDecorator(_Decorator):
    """`@client.job(…)` of an async client."""

    @overload
    def __call__(self, function: "Callable[P, Coro[Call[R]]]") -> "AsyncFunctionJob[P, Coro[Call[R]], R]": ...
    @overload
    def __call__(
        self, function: "Callable[P, Coro[Group[R]]]"
    ) -> "AsyncFunctionJob[P, Coro[Group[R]], list[R]]": ...
    @overload
    def __call__(self, function: Callable[P, Coro[R]]) -> "AsyncFunctionJob[P, Coro[R], R]": ...
    @overload
    def __call__(self, function: "Callable[P, Call[R]]") -> "AsyncFunctionJob[P, Call[R], R]": ...
    @overload
    def __call__(self, function: "Callable[P, Group[R]]") -> "AsyncFunctionJob[P, Group[R], list[R]]": ...
    @overload
    def __call__(self, function: Callable[P, R]) -> "AsyncFunctionJob[P, R, R]": ...
    def __call__(self, function: Callable[P, object]) -> object:
        from holdfast.client.function_jobs import AsyncFunctionJob

        entry = self._entry(function)
        job: AsyncFunctionJob[..., object, object] = AsyncFunctionJob(self._app, entry.function, entry, {})
        return job


class Declaring:
    """`Client.schedule`."""

    def schedule(
        self,
        call: "Call[object]",
        /,
        *,
        every: "Duration | str",
        starting: "datetime | float | None" = None,
        backlog: int | None = None,
        jid: str | None = None,
        **calendar: "Unpack[CalendarOptions]",
    ) -> None:
        """Declare a recurring job: `app.schedule(report.call("sales"), every="0 3 * * *", zone="Europe/Berlin")`.

        Nothing is sent: each worker that has loaded the module of this call puts it at its start, as it does for `@app.job(every=…)`. The other arguments
        are those of `every`. Two declarations of the same call need two names: `jid=`. Raises UsageError. Core: verbs/recur.lua.
        """
        from holdfast.client.function_jobs import Timing, declare

        module = sys._getframe(1).f_globals.get("__name__", "__main__")  # pyright: ignore[reportPrivateUsage]
        declare(call, Timing(every, starting, backlog, jid, calendar), module)


class Decorating(Declaring):
    """`Client.job`."""

    jobs: "Jobs"
    _client: "AnyClient"

    @overload
    def job(self, jid: str, /) -> "Job": ...
    @overload
    def job(self, function: "Callable[P, Coro[Call[R]]]", /) -> "FunctionJob[P, Coro[Call[R]], R]": ...
    @overload
    def job(
        self, function: "Callable[P, Coro[Group[R]]]", /
    ) -> "FunctionJob[P, Coro[Group[R]], list[R]]": ...
    @overload
    def job(self, function: Callable[P, Coro[R]], /) -> "FunctionJob[P, Coro[R], R]": ...
    @overload
    def job(self, function: "Callable[P, Call[R]]", /) -> "FunctionJob[P, Call[R], R]": ...
    @overload
    def job(self, function: "Callable[P, Group[R]]", /) -> "FunctionJob[P, Group[R], list[R]]": ...
    @overload
    def job(self, function: Callable[P, R], /) -> "FunctionJob[P, R, R]": ...
    @overload
    def job(self, /, **options: "Unpack[JobOptions]") -> JobDecorator: ...
    def job(
        self, function: str | Callable[P, object] | None = None, /, **options: "Unpack[JobOptions]"
    ) -> object:
        """Make a function a job: `@client.job(queue="mail", retries=5)`, or just `@client.job`; then `function.put(…)` puts it.

        The function may be plain or `async def`; it is still called as before. Options are those of `JobOptions`. Raises
        UsageError for an option that does not exist or has a wrong value, for a function that yields, and for one that no
        worker could find.

        With a jid, `client.job(jid)` returns that job. Raises JobNotFound. Core: verbs/inspect.lua.
        """
        if isinstance(function, str):
            _check_lookup(function, options)
            found = self.jobs.get(function)
            if not found:
                raise _missing(function)
            return found[0]
        decorate = JobDecorator(self._client, options)
        return decorate if function is None else decorate(function)


class AsyncDecorating(Declaring):
    """`AsyncClient.job`."""

    jobs: "AsyncJobs"
    _client: "AnyClient"

    @overload
    def job(self, jid: str, /) -> "AsyncLookup": ...
    @overload
    def job(self, function: "Callable[P, Coro[Call[R]]]", /) -> "AsyncFunctionJob[P, Coro[Call[R]], R]": ...
    @overload
    def job(
        self, function: "Callable[P, Coro[Group[R]]]", /
    ) -> "AsyncFunctionJob[P, Coro[Group[R]], list[R]]": ...
    @overload
    def job(self, function: Callable[P, Coro[R]], /) -> "AsyncFunctionJob[P, Coro[R], R]": ...
    @overload
    def job(self, function: "Callable[P, Call[R]]", /) -> "AsyncFunctionJob[P, Call[R], R]": ...
    @overload
    def job(self, function: "Callable[P, Group[R]]", /) -> "AsyncFunctionJob[P, Group[R], list[R]]": ...
    @overload
    def job(self, function: Callable[P, R], /) -> "AsyncFunctionJob[P, R, R]": ...
    @overload
    def job(self, /, **options: "Unpack[JobOptions]") -> AsyncJobDecorator: ...
    def job(
        self, function: str | Callable[P, object] | None = None, /, **options: "Unpack[JobOptions]"
    ) -> object:
        """Make a function a job, as `Client.job`; then `await function.put(…)` puts it. `await client.job(jid)` returns a job."""
        if isinstance(function, str):
            _check_lookup(function, options)
            return AsyncLookup(self.jobs, function)
        decorate = AsyncJobDecorator(self._client, options)
        return decorate if function is None else decorate(function)


class AsyncLookup:
    """The job of a jid, to be awaited. Raises JobNotFound."""

    def __init__(self, jobs: "AsyncJobs", jid: str) -> None:
        self._jobs = jobs
        self._jid = jid

    def __await__(self) -> "Generator[object, object, AsyncJob]":
        found = yield from self._jobs.get(self._jid).__await__()
        if not found:
            raise _missing(self._jid)
        return found[0]

    def __call__(self, _: object) -> Any:
        """Refuse to decorate: `@client.job("mail")` names no option."""
        raise UsageError(_ADVICE.format(self._jid))


_GENERATED: Final = re.compile(r"[0-9a-f]{32}")
_ADVICE: Final = "options of a function job have names: @client.job(queue={0!r}), or @client.job(name={0!r})"


def _missing(jid: str) -> JobNotFound:
    advice = "" if _GENERATED.fullmatch(jid) else "; " + _ADVICE.format(jid)
    return JobNotFound(f"there is no job {jid!r}{advice}", "HF_JOB_NOT_FOUND")


def _check_lookup(jid: str, options: "JobOptions") -> None:
    if options:
        raise UsageError(_ADVICE.format(jid))
