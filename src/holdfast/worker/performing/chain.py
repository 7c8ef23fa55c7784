"""The middleware of a worker: objects around every job it runs, the first of them outermost.

They surround the middleware of the job's class, which surrounds the job's own method. Each may be plain or `async def`,
whatever the job and the pool are:

* plain middleware around an `async def` job gets from `call_next(job)` what must be awaited, and returns that, or an
  `async def` call around it;
* `async def` middleware awaits `call_next(job)` also where the job is plain code, which runs outside of the event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final, Protocol, cast

from holdfast.client.descriptors import AsyncMethods
from holdfast.code.current import RunningJob
from holdfast.code.failure import failure_of
from holdfast.code.middleware import AROUND, Perform, innermost_of, surround_by
from holdfast.code.outcomes import OUTCOMES
from holdfast.code.resolver import CodeTarget
from holdfast.commands.base import Command
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.leases import Done
from holdfast.errors import LeaseLost, MiddlewareMisconfigured, UsageError
from holdfast.worker.performing.outcome import after_return

Lift = Callable[[Perform], Callable[[Any], Awaitable[Any]]]
"""Makes plain code awaitable."""

IN_PARENT: Final = "around_perform_in_parent"


class Middleware(Protocol):
    """An object that a worker is given as middleware. Two more methods are called where they exist.

    `after_fork()` is called in each process that runs jobs before its first; `around_perform_in_parent(job, call_next)` in the
    pool `fork`, in the process that forks for a job: there `call_next(job)` returns how it ended, `"complete"`, `"failed"`,
    `"retried"`, or `""` if the job settled itself or its process was lost.
    """

    def around_perform(self, job: Any, call_next: Perform, /) -> Any:
        """Perform `job` by `call_next(job)`, and return what that returns. What it raises fails the job."""
        ...


def checked_middleware(given: object) -> tuple[Any, ...]:
    """Return the middleware of a worker; of a class an object is made. Raises UsageError."""
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
                f"middleware: {thing.__qualname__} cannot be created without arguments: {error}"
            ) from error
    if not callable(getattr(made, AROUND, None)):
        raise UsageError(f"middleware: {made!r:.80} has no method {AROUND}(job, call_next)")
    return made


class Mixable:
    """The base of worker classes: a mixin before it overrides `around_perform(self, job)` and calls `super()`."""

    def around_perform(self, job: Any) -> Any:
        """Perform the job; return what its code returns, or what is awaited for that."""
        perform = innermost_of(self, job)
        if perform is None:
            raise MiddlewareMisconfigured(
                f"{AROUND} of a worker is called by the worker that performs the job"
            )
        return perform(job)


class _Own:
    """A worker whose mixins are its own middleware."""

    def __init__(self, worker: Mixable) -> None:
        self.worker = worker

    def around_perform(self, job: Any, call_next: Perform) -> Any:
        return self.worker.around_perform(job)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.worker, name)


def own_middleware(worker: Mixable) -> tuple[Any, ...]:
    """Return the mixins of a worker as its outermost middleware; () if there are none."""
    mixed = any(AROUND in vars(base) and base is not Mixable for base in type(worker).__mro__)
    return (_Own(worker),) if mixed or hasattr(worker, "after_fork") else ()


class Chain:
    """The middleware of one worker."""

    def __init__(self, middleware: Sequence[Any] = ()) -> None:
        self._middleware = tuple(middleware)
        self.is_empty = not self._middleware
        self._is_async = any(_is_async(each) for each in self._middleware)

    def call_of(
        self, target: CodeTarget, current: RunningJob, lift: Lift
    ) -> tuple[CodeTarget, Callable[..., Any]]:
        """Return the target of this run with the middleware around it, and what is called in its place.

        A job that has callbacks (`job.after_complete(…)`) is settled by that call where the worker would do so afterwards,
        because only a call through the job itself runs them. Middleware may have added callbacks to a function job.
        """
        if not self.is_empty:
            target = self.around(target, current, lift)
        if target.function is None:
            return target, partial(_awaited if target.is_async else _called, target)
        if target.is_async:
            return target, partial(_awaited_function, target, current, lift)
        return target, partial(_called_function, target, current)

    def around(self, target: CodeTarget, current: RunningJob, lift: Lift) -> CodeTarget:
        """Return the target of this run with the middleware around its code."""
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
        return CodeTarget(call, target.function, target.completes, None)

    def _layered(self, method: Perform, lift: Lift) -> Perform:
        for each in reversed(self._middleware):
            if _is_async(each) and not iscoroutinefunction(method):
                method = lift(method)
            owner = each.worker if isinstance(each, _Own) else each
            method = surround_by(owner, each.around_perform, method)
        return method


def _is_async(each: Any) -> bool:
    return iscoroutinefunction((each.worker if isinstance(each, _Own) else each).around_perform)


def _called_function(target: CodeTarget, current: RunningJob, *args: Any, **kwargs: Any) -> Any:
    value = target.call(*args, **kwargs)
    command = _completion(target, current, value)
    if command is not None:
        current.made.complete_by(command)
    return value


async def _awaited_function(
    target: CodeTarget, current: RunningJob, lift: Lift, *args: Any, **kwargs: Any
) -> Any:
    value = await target.call(*args, **kwargs)
    command = _completion(target, current, value)
    if command is not None:
        complete = current.made.complete_by
        is_awaited = isinstance(current.made, AsyncMethods)
        await (complete(command) if is_awaited else lift(complete)(command))
    return value


def _completion(target: CodeTarget, current: RunningJob, value: object) -> Command[Any] | None:
    """Return the one command that completes a function job with callbacks."""
    if current.made is None or not _has_callbacks(current.made) or type(value) in OUTCOMES:
        return None
    outcome, facts = after_return(current, target, value), current.facts
    if isinstance(outcome, Done):
        return CompleteX(facts.worker, facts, outcome.data, outcome.keep_ms, outcome.result)
    return outcome if isinstance(outcome, CompleteX) else None


def _called(target: CodeTarget, job: Any) -> Any:
    try:
        value = target.call(job)
    except LeaseLost:
        raise
    except Exception as error:
        if not _has_callbacks(job):
            raise
        return job.fail(*failure_of(error, job.queue_name, lambda: job))
    if _is_done(target, job, value):
        job.complete()
    return value


async def _awaited(target: CodeTarget, job: Any) -> Any:
    try:
        value = await target.call(job)
    except LeaseLost:
        raise
    except Exception as error:
        if not _has_callbacks(job):
            raise
        return await job.fail(*failure_of(error, job.queue_name, lambda: job))
    if _is_done(target, job, value):
        await job.complete()
    return value


def _has_callbacks(job: Any) -> bool:
    return bool(job._callbacks) and not job.state_changed


def _is_done(target: CodeTarget, job: Any, value: object) -> bool:
    return target.completes and _has_callbacks(job) and type(value) not in OUTCOMES


def beside_the_loop(method: Perform) -> Callable[[Any], Awaitable[Any]]:
    """Make plain code awaitable that runs in this thread, where it may begin an event loop of its own.

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
    """Call `fork`, which returns how the job ended, with the methods of `middleware` for the parent around it.

    `job` makes the job that they get. Raises what they raise, also before there was a fork.
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
        raise MiddlewareMisconfigured(f"{IN_PARENT} must be sync code, not async def")
