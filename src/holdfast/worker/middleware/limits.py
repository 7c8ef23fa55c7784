"""Middleware that limits the time of a job and the memory of a process."""

import asyncio
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from inspect import currentframe, isawaitable
from math import isfinite
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final

from holdfast.client.descriptors import AsyncMethods
from holdfast.code.current import running
from holdfast.code.failure import failure_of
from holdfast.code.middleware import InstanceOrClassMethod, MixinMiddleware, Perform, behind, is_open, within
from holdfast.code.steps import Steps, await_steps, run_steps
from holdfast.errors import InvalidTimeout, JobTimedOutError, MiddlewareMisconfigured, PerformTimeout
from holdfast.settings import MAX_WHOLE, check_whole
from holdfast.worker.greenlets import place_of_this

log = logging.getLogger("holdfast")

_STATM: Final = Path("/proc/self/statm")


class MemoryUsageMonitor(MixinMiddleware):
    """Has the worker end gracefully when its process uses more than `max_memory` KB after a job, also after a failed one.

    The running jobs are finished; under a parent the process is replaced at once, with the pool `serial` something else
    must start it again. In a program that is not a worker it only logs. Raises UsageError.
    """

    max_memory: int = MAX_WHOLE

    def __init__(self, max_memory: int) -> None:
        self.max_memory = check_whole("max_memory", max_memory, 1, MAX_WHOLE)

    @InstanceOrClassMethod
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next, and look then."""
        return within(_watched(self.max_memory, job), behind(MemoryUsageMonitor, self, call_next), job)


def memory_used() -> int:
    """The resident memory of this process in KB; where the system does not report it, the most it ever was."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize() // 1024
    except (OSError, IndexError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most // 1024 if sys.platform == "darwin" else most


@contextmanager
def _watched(max_memory: int, job: Any) -> Generator[None]:
    try:
        yield
    finally:
        used = memory_used()
        if used > max_memory:
            log.warning(
                "process %d uses %d KB after job %s, more than %d KB: it ends after its jobs",
                os.getpid(),
                used,
                job.jid,
                max_memory,
            )
            end_gracefully()


def end_gracefully() -> None:
    """Have the worker of this process end after its jobs; in a program that is not a worker, do nothing."""
    # A worker handles QUIT. A program without a handler would be killed by it.
    if signal.getsignal(signal.SIGQUIT) not in (signal.SIG_DFL, signal.SIG_IGN, None):
        os.kill(os.getpid(), signal.SIGQUIT)


OUT_OF_TIME: Final = 73
"""The exit status of a process whose job took too long."""

LAST_CALL: Final = 10.0  # seconds in which the job is failed, before the process ends in any case

Limit = Callable[[Any], float | None] | float | None
"""Seconds, or a function from a job to seconds; None for no limit."""


class Timeout(MixinMiddleware):
    """Fails a job that runs longer than it may, with `JobTimedOutError`, unless RequeueExceptions puts that back.

    `Timeout(limit)` takes seconds, or a function from the job to seconds or None (no limit), such as `lambda job: job.ttl`.
    A class that is a mixin of a job overrides `time_limit`. An `async def` is cancelled at its end. Other code cannot be
    stopped, so its process ends with status 73, to be replaced by its parent; where other jobs are performed beside it,
    it ends when they have. Only plain code that blocks an event loop takes them along: they go back. In a program of your
    own (`job.process()`), that process is your program.
    """

    _limit: tuple[Limit] | None = None

    def __init__(self, limit: Limit) -> None:
        if not callable(limit):
            _checked(limit)
        # In a tuple: a function that a class holds would be taken for its method.
        self._limit = (limit,)

    @classmethod
    def time_limit(cls, job: Any) -> float | None:
        """Seconds that this run of `job` may take, None for no limit: for classes that are mixins, which override it."""
        raise MiddlewareMisconfigured(
            "Timeout has no limit: name Timeout(60) among the bases, or override time_limit"
        )

    @InstanceOrClassMethod
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next. Raises InvalidTimeout for an invalid limit."""
        perform = behind(Timeout, self, call_next)
        limit = _checked(self.time_limit(job) if self._limit is None else _value_of(self._limit[0], job))
        if limit is None:
            return perform(job)
        watch = _Watch(self, job, limit, currentframe())
        try:
            value = perform(job)
        finally:
            watch.end()
        return _limited(self, job, limit, value) if isawaitable(value) else value


def _value_of(limit: Limit, job: Any) -> object:
    return limit(job) if callable(limit) else limit


def _checked(limit: object) -> float | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not isfinite(limit) or limit <= 0:
        raise InvalidTimeout(
            f"the timeout of a job must be a positive number of seconds or None, not {limit!r}"
        )
    return min(float(limit), threading.TIMEOUT_MAX)


async def _limited(middleware: Any, job: Any, limit: float, value: Awaitable[Any]) -> Any:
    """Await a job for as long as it may run; its own code unwinds before anything else happens."""
    deadline = asyncio.timeout(limit)
    try:
        async with deadline:
            return await value
    except TimeoutError as ended:
        if not deadline.expired():
            raise
        error = _too_long(limit).with_traceback(ended.__traceback__)
    if await await_steps(_requeued(middleware, job, error)):
        return None
    raise error


def _too_long(limit: float) -> PerformTimeout:
    return JobTimedOutError(f"the job ran longer than {limit:g} seconds")


def _requeued(middleware: Any, job: Any, error: PerformTimeout) -> Steps[bool]:
    """Requeue a job that took too long, if RequeueExceptions of the worker or of its class requeues that."""
    things: tuple[Any, ...] = (middleware, getattr(job, "klass", None))
    for thing in things:
        if hasattr(thing, "is_requeueable") and thing.is_requeueable(error):
            steps: Steps[bool] = thing.requeue(job, error)
            return (yield from steps)
    return False


class _Watch:
    """Ends the process when a job has not ended in time, from a thread of its own: the job's may be stuck anywhere."""

    def __init__(self, middleware: Any, job: Any, limit: float, caller: FrameType | None) -> None:
        self._middleware = middleware
        self._job = job
        self._is_awaited = isinstance(job, AsyncMethods)
        current = running.get()
        self._slot: Any = None if current is None or self._is_awaited else current.slot
        self._limit = limit
        self._caller = caller
        self._here = place_of_this()
        self._outcome = threading.Lock()
        self._is_over = False
        self._timer = threading.Timer(limit, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """The job has ended. Does not return if it was too late."""
        self._timer.cancel()
        with self._outcome:
            self._is_over = True

    def _expire(self) -> None:
        with self._outcome:
            if self._is_over:
                return
            # The lock stays taken: the job's own thread must not continue. What it was in may hold any other lock.
            last = threading.Timer(LAST_CALL, os._exit, (OUT_OF_TIME,))
            last.daemon = True
            last.start()
            try:
                self._fail()
            finally:
                if self._slot is None:
                    os._exit(OUT_OF_TIME)
                last.cancel()
                self._leave_astray()

    def _leave_astray(self) -> None:
        """Keep the job where it is until its process has ended, which waits for its neighbours alone."""
        self._slot.is_stray = True
        end_gracefully()
        threading.Event().wait()

    def _fail(self) -> None:
        job: Any = self._job
        error = _too_long(self._limit)
        error.__traceback__ = self._where()
        try:
            if self._is_awaited:
                # Plain code blocks the loop on which it would have to be failed; the lease ends by itself.
                log.error("job %s (%s): %s, and blocks its event loop", job.jid, job.klass_name, error)
            elif is_open(job, error) and not run_steps(_requeued(self._middleware, job, error)):
                job.fail(*failure_of(error, job.queue_name, lambda: job))
        except Exception:
            log.exception("job %s exceeded its time limit, but could not be failed", job.jid)
        after = "" if self._slot is None else " after its other jobs"
        log.error("job %s: %s; its process ends%s", job.jid, error, after)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # the job closed it
                stream.flush()

    def _where(self) -> TracebackType | None:
        """Where the job is, as a traceback from the first frame behind the caller's."""
        trace = None
        frame = self._here()
        while frame is not None and frame is not self._caller:
            trace = TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
            frame = frame.f_back
        return trace
