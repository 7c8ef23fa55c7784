"""The middleware of job classes.

A job class has no instances, so its middleware are mixins whose `around_perform(cls, job)` is a class method. Each calls
the next by `super()`; the base `SupportsMiddleware`, the last of them, calls the method of the job.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from inspect import isawaitable
from types import FunctionType, MethodType
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, cast

from holdfast.code.calling import find_method
from holdfast.code.steps import Steps, await_steps, begin_steps
from holdfast.errors import LeaseLost, MiddlewareMisconfigured

P = ParamSpec("P")
R = TypeVar("R")

AROUND: Final = "around_perform"

Perform = Callable[[Any], Any]
"""A function that performs a job. It returns the result of its method, or an awaitable of it."""


class SupportsMiddleware:
    """The base of a job class with middleware, named last among its bases.

        class Fetch(RetryExceptions, SupportsMiddleware): ...

    The first of the bases is outermost. Without this base, or with another middleware behind it, the jobs of the class
    fail in group `<queue>-MiddlewareMisconfigured`.
    """

    @classmethod
    def around_perform(cls, job: Any) -> Any:
        """Call the method of the job. Returns its result, an awaitable if the method is `async def`."""
        perform = innermost_of(cls, job)
        if perform is None:
            # Called by the user, or from another thread: the method is looked up as for any other job.
            perform = find_method(cls, cls.__qualname__, job.queue_name, True)[1]
        return perform(job)


class InstanceOrClassMethod(Generic[P, R]):
    """A method that is bound to the instance or to the class: workers get middleware as instances, job classes as mixins."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, thing: object | None, owner: type) -> Callable[P, R]:
        bound: Any = MethodType(self._method, owner if thing is None else thing)
        return bound  # type: ignore[no-any-return]


def behind(kind: type, owner: object, given: Perform | None) -> Perform:
    """Return what a middleware of `kind` calls to perform a job: what it was given, or the next one of its class.

    Raises MiddlewareMisconfigured if there is no next one.
    """
    rest = cast("Any", super(kind, owner))
    try:
        return given or rest.around_perform
    except AttributeError:
        raise _without_base(owner) from None


class MixinMiddleware:
    """A middleware that workers get as an instance, and job classes as a mixin or as such an instance.

    class Slow(Timeout(60), SupportsMiddleware): ...
    """

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (type(type(self).__name__, (type(self),), dict(vars(self))),)


class _Call:
    """One call of the method of a job inside its middleware."""

    def __init__(self, owner: object, method: Perform, job: object) -> None:
        self.owner = owner
        self.job = job
        self.value: object = None
        self._method = method
        self._waiting: Coroutine[object, Any, object] | None = None

    def perform(self, job: object = None) -> object:
        """Call the method with the job, whatever the argument is."""
        if inspect.iscoroutinefunction(self._method):
            self._waiting = self._awaited()
            return self._waiting
        self.value = self._method(self.job)
        return self.value

    async def _awaited(self) -> object:
        self.value = await self._method(self.job)
        return self.value

    def unawaited(self) -> bool:
        """Return whether the method was called but its coroutine not awaited; the coroutine is closed then."""
        waiting = self._waiting
        if waiting is None or inspect.getcoroutinestate(waiting) != inspect.CORO_CREATED:
            return False
        waiting.close()
        return True


_innermost: Final[ContextVar[_Call | None]] = ContextVar("holdfast_innermost", default=None)


def surround(thing: object, method: Perform) -> Perform:
    """Return `method` with the middleware of `thing`, a class or module, around it. Raises MiddlewareMisconfigured."""
    if not inspect.isclass(thing) or not _has_middleware(thing):
        return method
    owner: Any = thing
    return surround_by(thing, lambda job, _: owner.around_perform(job), method)


Surroundings = Callable[[Any, Perform], object]
"""A function that performs a job by calling its second argument."""


def surround_by(owner: object, around: Surroundings, method: Perform) -> Perform:
    """Return `method` with `around` of `owner` around it.

    It returns the result of `around`, or if that is None, the result of the method: middleware that forgets to return the
    result does not lose it.
    """
    if inspect.iscoroutinefunction(method):
        return _surround_async(owner, around, method)

    def perform(job: object) -> object:
        call = _Call(owner, method, job)
        before = _innermost.set(call)
        try:
            value = around(job, call.perform)
        finally:
            _innermost.reset(before)
        return call.value if value is None else value

    return perform


def innermost_of(owner: object, job: object) -> Perform | None:
    """Return what the last `super().around_perform(job)` of `owner` calls; None outside of a call of this job."""
    call = _innermost.get()
    return None if call is None or call.owner is not owner or call.job is not job else call.perform


def _surround_async(owner: object, around: Surroundings, method: Perform) -> Perform:
    async def perform(job: object) -> object:
        call = _Call(owner, method, job)
        before = _innermost.set(call)
        unawaited = False
        try:
            value = around(job, call.perform)
            if isawaitable(value):
                value = await value
        finally:
            _innermost.reset(before)
            unawaited = call.unawaited()
        if unawaited:
            raise MiddlewareMisconfigured(
                f"a middleware of {_name_of(owner)} did not await its job: around an async def it is "
                "async def too, or returns the awaitable it was given"
            )
        return call.value if value is None else value

    return perform


def _name_of(owner: object) -> str:
    return (owner if isinstance(owner, type) else type(owner)).__qualname__


def _without_base(owner: object) -> MiddlewareMisconfigured:
    return MiddlewareMisconfigured(
        f"{_name_of(owner)} has middleware without its base: name SupportsMiddleware last among its bases"
    )


def _has_middleware(owner: type) -> bool:
    """Return whether a class has middleware in addition to the base. Raises MiddlewareMisconfigured."""
    layers = [base for base in owner.__mro__ if AROUND in vars(base)]
    if not layers or layers == [SupportsMiddleware]:
        return False
    if SupportsMiddleware not in layers:
        raise _without_base(owner)
    if layers[-1] is not SupportsMiddleware:
        raise MiddlewareMisconfigured(
            f"SupportsMiddleware must be the last base of {owner.__qualname__}, behind {layers[-1].__qualname__}"
        )
    for base in layers:
        if isinstance(vars(base)[AROUND], FunctionType):
            raise MiddlewareMisconfigured(
                f"{AROUND} of {base.__qualname__} must be a class method: a job class is never made an object"
            )
    return True


Handle = Callable[[Exception], Steps[bool]]
"""A function that handles an exception. It returns True if the exception is handled, False to raise it again."""


def handled(perform: Perform, job: object, handle: Handle) -> object:
    """Perform a job, and pass what it raises to `handle`. Returns the result, an awaitable for async code."""
    try:
        value = perform(job)
    except Exception as error:
        is_settled = begin_steps(handle(error))
        if isawaitable(is_settled):
            # A plain method of a job whose client is async.
            return _settled(is_settled, error)
        if not is_settled:
            raise
        return None
    return _handled(value, handle) if isawaitable(value) else value


async def _handled(value: Awaitable[object], handle: Handle) -> object:
    try:
        return await value
    except Exception as error:
        await _settled(await_steps(handle(error)), error)
        return None


async def _settled(is_settled: Awaitable[bool], error: Exception) -> None:
    if not await is_settled:
        raise error


def within(manager: AbstractContextManager[object], perform: Perform, job: object) -> object:
    """Perform a job inside `manager`, until its code has ended. Returns the result, an awaitable for async code."""
    with ExitStack() as stack:
        stack.enter_context(manager)
        value = perform(job)
        if not isawaitable(value):
            return value
        rest = stack.pop_all()
    return _within(rest, value)


async def _within(rest: ExitStack[bool | None], value: Awaitable[object]) -> object:
    with rest:
        return await value


def is_open(job: object, error: Exception) -> bool:
    """Return whether a job that raised `error` can still be settled: it was not settled, and its lease was not lost."""
    return not isinstance(error, LeaseLost) and not getattr(job, "state_changed", False)
