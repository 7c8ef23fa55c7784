"""`@client.job(…)`: make a function a job of a client.

The code for function jobs is imported at the first use, because many programs only put jobs by name.
"""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, cast, overload

if TYPE_CHECKING:
    from holdfast.code.function import AsyncFunctionJob, FunctionJob
    from holdfast.code.handle import AsyncApp, SyncApp
    from holdfast.code.job_options import JobOptions

P = ParamSpec("P")
R = TypeVar("R")


class JobDecorator:
    """`@client.job(…)` of a Client."""

    def __init__(self, app: "SyncApp", options: "JobOptions") -> None:
        _check(options)
        self._app = app
        self._options = options

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> "FunctionJob[P, Coroutine[Any, Any, R], R]": ...
    @overload
    def __call__(self, function: Callable[P, R]) -> "FunctionJob[P, R, R]": ...
    def __call__(self, function: Callable[P, Any]) -> "FunctionJob[P, Any, Any]":
        from holdfast.code.function import FunctionJob
        from holdfast.code.registry import make_entry

        entry = make_entry(function, self._options)
        return FunctionJob(self._app, entry.function, entry, {})


class AsyncJobDecorator:
    """`@client.job(…)` of an AsyncClient."""

    def __init__(self, app: "AsyncApp", options: "JobOptions") -> None:
        _check(options)
        self._app = app
        self._options = options

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> "AsyncFunctionJob[P, Coroutine[Any, Any, R], R]": ...
    @overload
    def __call__(self, function: Callable[P, R]) -> "AsyncFunctionJob[P, R, R]": ...
    def __call__(self, function: Callable[P, Any]) -> "AsyncFunctionJob[P, Any, Any]":
        from holdfast.code.function import AsyncFunctionJob
        from holdfast.code.registry import make_entry

        entry = make_entry(function, self._options)
        return AsyncFunctionJob(self._app, entry.function, entry, {})


class Decorating:
    """The methods of a Client for function jobs."""

    @overload
    def job(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> "FunctionJob[P, Coroutine[Any, Any, R], R]": ...
    @overload
    def job(self, function: Callable[P, R], /) -> "FunctionJob[P, R, R]": ...
    @overload
    def job(self, /, **options: "Unpack[JobOptions]") -> JobDecorator: ...
    def job(self, function: Any = None, /, **options: "Unpack[JobOptions]") -> Any:
        """Make a function a job: `@client.job(queue="mail", retries=5)`, or just `@client.job`; then `function.put(…)` puts it.

        The function may be plain or `async def`, and can still be called as before. Options are those of `JobOptions`.
        Raises UsageError for an unknown or invalid option, and for anything but a function that returns a value.
        """
        decorate = JobDecorator(cast("SyncApp", self), options)
        return decorate if function is None else decorate(function)


class AsyncDecorating:
    """The methods of an AsyncClient for function jobs."""

    @overload
    def job(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> "AsyncFunctionJob[P, Coroutine[Any, Any, R], R]": ...
    @overload
    def job(self, function: Callable[P, R], /) -> "AsyncFunctionJob[P, R, R]": ...
    @overload
    def job(self, /, **options: "Unpack[JobOptions]") -> AsyncJobDecorator: ...
    def job(self, function: Any = None, /, **options: "Unpack[JobOptions]") -> Any:
        """Make a function a job, as `Client.job`; then `await function.put(…)` puts it."""
        decorate = AsyncJobDecorator(cast("AsyncApp", self), options)
        return decorate if function is None else decorate(function)


def _check(options: "JobOptions") -> None:
    from holdfast.code.job_options import check_known

    check_known(options)
