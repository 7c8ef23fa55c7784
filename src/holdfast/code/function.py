"""Functions as jobs: `@app.job(…)` on a plain or async function.

The decorated function is called as before; `put` puts it as a job, typed by the function's own signature. The
client it belongs to decides the colour of `put` and of the handle it answers.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, overload

from msgspec import Raw

from holdfast.code.backoff import make_backoff
from holdfast.code.handle import AsyncApp, AsyncHandle, Handle, SyncApp
from holdfast.code.job_options import RESULT_KEEP, JobOptions, PutChanges, travelling
from holdfast.code.naming import klass_name
from holdfast.code.registry import Registered, register
from holdfast.errors import UsageError
from holdfast.settings import (
    MAX_DELAY,
    MAX_RETRIES,
    check_milliseconds,
    check_name,
    check_whole,
    unknown_option,
)

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")


class _FunctionJob(Generic[P, C, R]):
    """What both colours share: the function, its registration, and how one put differs from it."""

    __name__: str
    _app: Any

    def __init__(self, function: Callable[P, C], entry: Registered, changes: PutChanges) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.registered = entry
        self._changes = changes

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Call the function, here and now."""
        return self._function(*args, **kwargs)

    def _put_words(self, args: Any, kwargs: Any) -> tuple[str, str, Raw, dict[str, Any]]:
        """Queue, name, data and options of a put. Raises UsageError naming an argument that does not fit."""
        entry = self.registered
        data = entry.arguments.write(args, kwargs, self._app.settings.max_data)
        options: dict[str, Any] = dict(self._changes)
        queue = options.pop("queue", entry.queue)
        for name, value in entry.travelling.items():
            options.setdefault(name, value)
        return queue, _stored_name(entry), data, options

    def _changed(self, changes: PutChanges) -> PutChanges:
        for name in changes:
            if name not in PutChanges.__annotations__:
                raise unknown_option("options", name, tuple(PutChanges.__annotations__))
        return {**self._changes, **changes}

    def __repr__(self) -> str:
        return f"<job {self.registered.name}>"


class FunctionJob(_FunctionJob[P, C, R]):
    """A function job of a blocking client."""

    def __init__(
        self, app: SyncApp, function: Callable[P, C], entry: Registered, changes: PutChanges
    ) -> None:
        super().__init__(function, entry, changes)
        self._app = app

    def put(self, *args: P.args, **kwargs: P.kwargs) -> "Handle[R]":
        """Put the function as a job. Raises UsageError naming an argument that does not fit."""
        queue, name, data, options = self._put_words(args, kwargs)
        return Handle(self._app, self._app.queues[queue].put(name, data, **options), self.registered)

    def options(self, **changes: Unpack[PutChanges]) -> "FunctionJob[P, C, R]":
        """The same job with other options for its puts: `welcome.options(delay=60).put(7)`."""
        return FunctionJob(self._app, self._function, self.registered, self._changed(changes))


class AsyncFunctionJob(_FunctionJob[P, C, R]):
    """A function job of an async client."""

    def __init__(
        self, app: AsyncApp, function: Callable[P, C], entry: Registered, changes: PutChanges
    ) -> None:
        super().__init__(function, entry, changes)
        self._app = app

    async def put(self, *args: P.args, **kwargs: P.kwargs) -> "AsyncHandle[R]":
        """Put the function as a job. Raises UsageError naming an argument that does not fit."""
        queue, name, data, options = self._put_words(args, kwargs)
        return AsyncHandle(
            self._app, await self._app.queues[queue].put(name, data, **options), self.registered
        )

    def options(self, **changes: Unpack[PutChanges]) -> "AsyncFunctionJob[P, C, R]":
        """The same job with other options for its puts."""
        return AsyncFunctionJob(self._app, self._function, self.registered, self._changed(changes))


class JobDecorator:
    """`@client.job(…)` of a blocking client."""

    def __init__(self, app: SyncApp, options: JobOptions) -> None:
        self._app = app
        self._options = options

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> FunctionJob[P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> FunctionJob[P, R, R]: ...
    def __call__(self, function: Callable[P, Any]) -> FunctionJob[P, Any, Any]:
        return FunctionJob(self._app, function, make_entry(function, self._options), {})


class AsyncJobDecorator:
    """`@client.job(…)` of an async client."""

    def __init__(self, app: AsyncApp, options: JobOptions) -> None:
        self._app = app
        self._options = options

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> AsyncFunctionJob[P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> AsyncFunctionJob[P, R, R]: ...
    def __call__(self, function: Callable[P, Any]) -> AsyncFunctionJob[P, Any, Any]:
        return AsyncFunctionJob(self._app, function, make_entry(function, self._options), {})


def make_entry(function: Callable[..., Any], options: JobOptions) -> Registered:
    """Register `function` as a job. Raises UsageError for options that cannot be."""
    for option in options:
        if option not in JobOptions.__annotations__:
            raise unknown_option("job", option, tuple(JobOptions.__annotations__))
    if not callable(function):
        raise UsageError(f"a function job is a function, not {function!r}")
    retries = options.get("retries")
    backoff = options.get("backoff")
    entry = Registered(
        name=_checked_name(function, options.get("name")),
        function=function,
        queue=check_name("queue", options.get("queue", "default")),
        retries=None if retries is None else check_whole("retries", retries, 0, MAX_RETRIES),
        backoff=make_backoff(backoff),
        keep_ms=check_milliseconds("result_keep", options.get("result_keep", RESULT_KEEP), 0, MAX_DELAY),
        travelling=travelling(options),
    )
    register(entry)
    return entry


def _checked_name(function: Callable[..., Any], wish: str | None) -> str:
    if wish is not None:
        return check_name("name", wish)
    if function.__module__ == "__main__":
        try:
            return klass_name(function)
        except UsageError:
            # Defining a job at a prompt is harmless; putting it is what cannot work.
            return f"__main__.{function.__qualname__}"
    return check_name("name", f"{function.__module__}.{function.__qualname__}")


def _stored_name(entry: Registered) -> str:
    if entry.name.startswith("__main__."):
        klass_name(entry.function)  # raises, with advice
    return entry.name
