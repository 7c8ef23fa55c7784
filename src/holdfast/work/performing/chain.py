"""The middleware of a worker: objects around every job it performs, the first of them outermost.

They stand around the middleware that the job's class wears, which stands around the job's own method. Each may be plain
or `async def`, whatever the job and the pool are:

* plain middleware around an `async def` job gets from `call_next(job)` what must be awaited, and returns that, or an
  `async def` call around it;
* `async def` middleware awaits `call_next(job)` also where the job is plain code, which runs outside of the event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final, Protocol, cast

from holdfast.code.current import Running
from holdfast.code.middleware import AROUND, Perform, innermost_of, surround_by
from holdfast.code.resolver import Target
from holdfast.errors import MiddlewareMisconfigured, UsageError

Lift = Callable[[Perform], Callable[[Any], Awaitable[Any]]]
"""Makes plain code something to be awaited."""

IN_PARENT: Final = "around_perform_in_parent"


class Middleware(Protocol):
    """What a worker is given as middleware. Two more methods are called where they exist.

    `after_fork()` is called in each process that performs jobs before its first; `around_perform_in_parent(job,
    call_next)` in the pool `fork`, in the process that forks for a job: there `call_next(job)` answers how it ended,
    `"complete"`, `"failed"`, `"retried"`, or `""` if the job settled itself or its process was lost.
    """

    def around_perform(self, job: Any, call_next: Perform, /) -> Any:
        """Perform `job` by `call_next(job)`, and answer what that answers. What it raises fails the job."""
        ...


def checked_middleware(given: object) -> tuple[Any, ...]:
    """The middleware of a worker; of a class an object is made. Raises UsageError for what is none."""
    if not isinstance(given, (tuple, list)):
        raise UsageError(f"middleware is a list of objects, not {given!r:.80}")
    return tuple(_checked(thing) for thing in cast("Sequence[Any]", given))


def _checked(thing: Any) -> Any:
    made = thing
    if isinstance(thing, type):
        try:
            made = thing()
        except TypeError as error:
            raise UsageError(
                f"middleware: {thing.__qualname__} cannot be made without words: {error}"
            ) from error
    if not callable(getattr(made, AROUND, None)):
        raise UsageError(f"middleware: {made!r:.80} has no method {AROUND}(job, call_next)")
    return made


class Mixable:
    """The base of worker classes: a mixin before it overrides `around_perform(self, job)` and calls `super()`."""

    def around_perform(self, job: Any) -> Any:
        """Perform the job; answers what its code answers, or what is awaited for that."""
        perform = innermost_of(self, job)
        if perform is None:
            raise MiddlewareMisconfigured(
                f"{AROUND} of a worker is called by the worker that performs the job"
            )
        return perform(job)


class _Own:
    """A worker that has middleware as mixins, as middleware of its own."""

    def __init__(self, worker: Mixable) -> None:
        self.worker = worker

    def around_perform(self, job: Any, call_next: Perform) -> Any:
        return self.worker.around_perform(job)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.worker, name)


def own_middleware(worker: Mixable) -> tuple[Any, ...]:
    """What the mixins of a worker do, as its outermost middleware; nothing if there are none."""
    mixed = any(AROUND in vars(base) and base is not Mixable for base in type(worker).__mro__)
    return (_Own(worker),) if mixed or hasattr(worker, "after_fork") else ()


class Chain:
    """The middleware of one worker; false where there is none."""

    def __init__(self, middleware: Sequence[Any] = ()) -> None:
        self._middleware = tuple(middleware)
        self._is_async = any(_is_async(each) for each in self._middleware)

    def __bool__(self) -> bool:
        return bool(self._middleware)

    def around(self, target: Target, current: Running, lift: Lift) -> Target:
        """The target with the middleware around it, for this run; `lift` makes its plain code something to be awaited."""
        if target.is_async:

            async def perform_async(*args: Any, **kwargs: Any) -> Any:
                async def method(job: Any) -> Any:
                    return await target.call(*args, **kwargs)

                return await self._layered(method, lift)(current.job())

            call: Callable[..., Any] = perform_async
        elif self._is_async:

            async def perform_lifted(*args: Any, **kwargs: Any) -> Any:
                return await self._layered(lambda job: target.call(*args, **kwargs), lift)(current.job())

            call = perform_lifted
        else:

            def perform(*args: Any, **kwargs: Any) -> Any:
                return self._layered(lambda job: target.call(*args, **kwargs), lift)(current.job())

            call = perform
        return Target(call, target.function, target.completes, None)

    def _layered(self, method: Perform, lift: Lift) -> Perform:
        for each in reversed(self._middleware):
            if _is_async(each) and not iscoroutinefunction(method):
                method = lift(method)
            owner = each.worker if isinstance(each, _Own) else each
            method = surround_by(owner, each.around_perform, method)
        return method


def _is_async(each: Any) -> bool:
    return iscoroutinefunction((each.worker if isinstance(each, _Own) else each).around_perform)


def beside_the_loop(method: Perform) -> Callable[[Any], Awaitable[Any]]:
    """Plain code that can be awaited, and runs in this thread, where it may begin an event loop of its own.

    The loop that awaits it stands still meanwhile, as it does for any plain code.
    """

    async def perform(job: Any) -> Any:
        loop = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
        asyncio._set_running_loop(None)  # pyright: ignore[reportPrivateUsage]
        try:
            return method(job)
        finally:
            asyncio._set_running_loop(loop)  # pyright: ignore[reportPrivateUsage]

    return perform


def around_fork(middleware: Sequence[Any], job: Callable[[], Any], fork: Callable[[], str]) -> None:
    """Call `fork`, which answers how the job ended, with what `middleware` do in the parent around it.

    `job` makes what they are shown. Raises what they raise, also before there was a fork.
    """
    around = [each for each in middleware if hasattr(each, IN_PARENT)]
    if not around:
        fork()
        return
    method: Perform = lambda _: fork()  # noqa: E731
    for each in reversed(around):
        method = surround_by(each, getattr(each, IN_PARENT), method)
    value = method(job())
    if isawaitable(value):
        getattr(value, "close", lambda: None)()
        raise MiddlewareMisconfigured(f"{IN_PARENT} must be plain code")
