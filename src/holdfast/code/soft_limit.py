"""A soft limit on the duration of a run: an exception is raised in the code of the job, which may catch it.

In the main thread it is raised by a signal, in another thread between two instructions, in a greenlet and in a coroutine
where they wait. Code inside a C function gets it when that returns; the hard limit, `timeout`, ends the job anyway.
"""

import asyncio
import ctypes
import functools
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast

from holdfast.errors import JobTimedOutError, PerformTimeout
from holdfast.settings import SHORTEST, check_seconds

P = ParamSpec("P")
R = TypeVar("R")


def checked(soft: object, hard: object = None) -> float | None:
    """Return a soft limit in seconds, None for none. Raises UsageError for one that is longer than the hard limit."""
    if soft is None:
        return None
    longest = threading.TIMEOUT_MAX if hard is None else check_seconds("timeout", hard)
    return check_seconds("soft_timeout", soft, SHORTEST, longest)


class _Limit(NamedTuple):
    seconds: float
    kind: type[PerformTimeout]

    def error(self) -> PerformTimeout:
        return self.kind(f"the job ran longer than its soft limit of {self.seconds:g} seconds")


def limited(
    call: Callable[P, R], seconds: float | None, kind: type[PerformTimeout] = PerformTimeout
) -> Callable[P, R]:
    """Return `call` with an exception of `kind` raised in it after `seconds`, None: unchanged."""
    if seconds is None:
        return call
    limit = _Limit(seconds, kind)
    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def limited_coroutine(*args: P.args, **kwargs: P.kwargs) -> object:
            return await _Driven(call(*args, **kwargs), limit)

        return cast("Callable[P, R]", limited_coroutine)

    @functools.wraps(call)
    def limited_call(*args: P.args, **kwargs: P.kwargs) -> R:
        with _watch(limit):
            return call(*args, **kwargs)

    return limited_call


def _watch(limit: _Limit) -> AbstractContextManager[object]:
    gevent: Any = sys.modules.get("gevent")
    if gevent is not None and isinstance(gevent.getcurrent(), gevent.Greenlet):
        timeout: AbstractContextManager[object] = gevent.Timeout(limit.seconds, limit.error())
        return timeout
    return _Alarm(limit) if threading.current_thread() is threading.main_thread() else _Interrupter(limit)


class _Alarm:
    """The limit in the main thread, by ITIMER_REAL. A timer that was running before is continued afterwards."""

    def __init__(self, limit: _Limit) -> None:
        self._limit = limit
        self._is_open = False

    def __enter__(self) -> None:
        self._began = monotonic()
        self._handler = signal.signal(signal.SIGALRM, self._expire)
        self._is_open = True
        self._before = signal.setitimer(signal.ITIMER_REAL, self._limit.seconds)

    def __exit__(self, *_: object) -> None:
        self._is_open = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._handler or signal.SIG_DFL)
        left, interval = self._before
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(SHORTEST, left - (monotonic() - self._began)), interval)

    def _expire(self, number: int, frame: object) -> None:
        if self._is_open:
            self._is_open = False
            raise self._limit.error()


class _Interrupter:
    """The limit in any other thread, by a timer thread that raises the exception there."""

    def __init__(self, limit: _Limit) -> None:
        self._limit = limit
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._is_over = False
        self._timer = threading.Timer(limit.seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        while not self._is_over:
            try:
                self._timer.cancel()
                with self._lock:
                    self._is_over = True
                    _raise_in(self._thread, None)  # withdraw it if it was not delivered yet
            except PerformTimeout:
                pass  # it was delivered just after the job had ended

    def _expire(self) -> None:
        with self._lock:
            if not self._is_over:
                _raise_in(self._thread, _kind_of(self._limit))


def _kind_of(limit: _Limit) -> type[PerformTimeout]:
    """Return a subclass of the limit's kind with its message: the interpreter takes a class and calls it without arguments."""
    text = str(limit.error())

    class Worded(limit.kind):  # type: ignore[name-defined,misc]
        def __str__(self) -> str:
            return text

    Worded.__name__ = Worded.__qualname__ = limit.kind.__name__  # used in the failure group
    Worded.__module__ = limit.kind.__module__
    return Worded


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Make a thread raise an exception of class `error`; None withdraws one that was not raised yet."""
    what = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)


class _Expired(PerformTimeout, asyncio.CancelledError):
    """Raised in a coroutine: its code may catch it as a PerformTimeout; libraries clean up as for a cancellation."""


class _JobExpired(_Expired, JobTimedOutError):
    """The exception for the coroutine of a class job."""


class _Driven(Generic[R]):
    """Await a coroutine, and raise the exception in it after the limit, where it waits."""

    def __init__(self, coroutine: Coroutine[object, object, R], limit: _Limit) -> None:
        self._coroutine = coroutine
        self._limit = limit
        self._is_due = False

    def __await__(self) -> Generator[object, object, R]:
        task = cast("asyncio.Task[object]", asyncio.current_task())
        timer = asyncio.get_running_loop().call_later(self._limit.seconds, self._expire, task)
        try:
            return (yield from self._drive(task))
        except _Expired as expired:
            raise self._limit.error().with_traceback(expired.__traceback__) from None
        finally:
            timer.cancel()

    def _expire(self, task: asyncio.Task[object]) -> None:
        self._is_due = True
        task.cancel()

    def _drive(self, task: asyncio.Task[object]) -> Generator[object, object, R]:
        step: Callable[[Any], object] = self._coroutine.send
        value: Any = None
        while True:
            try:
                awaited = step(value)
            except StopIteration as end:
                result: R = end.value
                return result
            try:
                step, value = self._coroutine.send, (yield awaited)
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:
                step, value = self._coroutine.throw, self._meant(error, task)

    def _meant(self, error: BaseException, task: asyncio.Task[object]) -> BaseException:
        """Return what to raise in the coroutine: the exception of the limit for our own cancellation."""
        if self._is_due and isinstance(error, asyncio.CancelledError):
            self._is_due = False
            if not task.uncancel():
                expired = _JobExpired if self._limit.kind is JobTimedOutError else _Expired
                return expired(str(self._limit.error()))
        return error
