"""Perform one job: find its code, call it, and turn whatever comes of it into an outcome."""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final, Protocol

from holdfast.client.descriptors import AsyncHandle
from holdfast.code.calling import CannotRun, read_arguments
from holdfast.code.current import Running, not_lost, put_collector, running
from holdfast.code.failure import brief, describe, failure_of, name_of
from holdfast.code.middleware import Perform
from holdfast.code.outcomes import OUTCOMES, Terminated
from holdfast.code.resolver import Resolver, Target
from holdfast.commands.base import Command
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.leases import Done
from holdfast.errors import LeaseLost
from holdfast.models import JobFacts
from holdfast.work.performing.around import Companions
from holdfast.work.performing.chain import Chain, Lift, beside_the_loop
from holdfast.work.performing.outcome import (
    Ending,
    after_error,
    after_return,
    failed,
    given_back_unknown,
    is_unknown,
    note_unknown,
    raised,
    told,
)


def heard(target: Target) -> Callable[..., Any]:
    """The code of a target, to be called in its place.

    A class job that has callbacks (`job.after_complete(…)`) is completed or failed by this where the worker would do so
    afterwards, because only a call through the job itself runs them.
    """
    if target.function is not None:
        return target.call
    return partial(_awaited if target.is_async else _called, target)


def heard_function(target: Target, current: Running, lift: Lift) -> Callable[..., Any]:
    """The code of a function job with middleware around it, to be called in its place.

    A middleware may have added callbacks to the job; then it is completed here, with what it answered as its result.
    `lift` makes plain code something to be awaited.
    """
    return partial(_awaited_function, target, current, lift) if target.is_async else partial(
        _called_function, target, current
    )  # fmt: skip


def _called_function(target: Target, current: Running, *args: Any, **kwargs: Any) -> Any:
    value = target.call(*args, **kwargs)
    command = _completion(target, current, value)
    if command is not None:
        current.made.complete_by(command)
    return value


async def _awaited_function(target: Target, current: Running, lift: Lift, *args: Any, **kwargs: Any) -> Any:
    value = await target.call(*args, **kwargs)
    command = _completion(target, current, value)
    if command is not None:
        complete = current.made.complete_by
        is_awaited = isinstance(current.made, AsyncHandle)
        await (complete(command) if is_awaited else lift(complete)(command))
    return value


def _completion(target: Target, current: Running, value: object) -> Command[Any] | None:
    """The one command that completes a function job whose callbacks wait for that."""
    if current.made is None or not _waits(current.made) or type(value) in OUTCOMES:
        return None
    ending, facts = after_return(current, target, value), current.facts
    if isinstance(ending, Done):
        return CompleteX(facts.worker, facts, ending.data, ending.keep_ms, ending.result)
    return ending if isinstance(ending, CompleteX) else None


def _called(target: Target, job: Any) -> Any:
    try:
        value = target.call(job)
    except LeaseLost:
        raise
    except Exception as error:
        if not _waits(job):
            raise
        return job.fail(*failure_of(error, job.queue_name, lambda: job))
    if _is_done(target, job, value):
        job.complete()
    return value


async def _awaited(target: Target, job: Any) -> Any:
    try:
        value = await target.call(job)
    except LeaseLost:
        raise
    except Exception as error:
        if not _waits(job):
            raise
        return await job.fail(*failure_of(error, job.queue_name, lambda: job))
    if _is_done(target, job, value):
        await job.complete()
    return value


def _waits(job: Any) -> bool:
    return bool(job._callbacks) and not job.state_changed


def _is_done(target: Target, job: Any, value: object) -> bool:
    return target.completes and _waits(job) and type(value) not in OUTCOMES


log = logging.getLogger("holdfast")

JobMaker = Callable[[JobFacts], Any]
Drives = Callable[[Coroutine[Any, Any, Any]], Any]

_NOTHING: Final[dict[str, Any]] = {}


class _Forks:
    """How many forks lie between this process and the first one; cheaper to ask than the process id."""

    count = 0


def _count_fork() -> None:
    _Forks.count += 1


os.register_at_fork(after_in_child=_count_fork)

_Prepared = tuple[Target, list[Any], dict[str, Any]]
"""A job whose code was found and whose arguments fit."""


class Watching(Protocol):
    """Whoever wants to know which run is under way."""

    current: Running | None
    lost: str


class Performer:
    """Performs jobs of one worker.

    `make_job` and `make_async_job` build what code sees as its job; `async def` gets the async one, whatever
    the pool. `lost` shows why the lease of the one job under way is known to be lost; a slot says so itself. `chain` goes
    around the code of each job, `companions` around all that is done for it.
    """

    def __init__(
        self,
        resolver: Resolver,
        make_job: JobMaker,
        make_async_job: JobMaker,
        lost: Callable[[], str] = not_lost,
        companions: Companions = (),
        chain: Chain | None = None,
        waits_for_code: bool = False,
    ) -> None:
        self.resolver = resolver
        self._make_job = make_job
        self._make_async_job = make_async_job
        self._lost = lost
        self._companions = companions
        self._chain = chain or Chain()
        self._waits_for_code = waits_for_code
        self._forks = _Forks.count

    def perform(
        self, facts: JobFacts, run: Drives, slot: Watching | None = None, lift: Lift = beside_the_loop
    ) -> Ending:
        """Perform a job in this thread or greenlet; `run` drives a coroutine to its end. `slot`: one of many. `lift` makes
        plain code a coroutine.

        Whatever the job raises is an ending of the job. Raises Terminated when this process must end.
        """
        current = Running(facts, self._make_job, self._lost if slot is None else lambda: slot.lost)
        if slot is not None:
            slot.current, current.slot = current, slot
        running.set(current)
        # Whoever performs this inside a job of its own does not get its puts.
        put_collector.set(None)
        ending: Ending = None
        begun = self._begin(current)
        try:
            ending = told(current, self._perform(current, run, lift))
        except Terminated:
            raise
        except BaseException as error:
            ending = _unreadable(current, error)
        finally:
            self._end(begun, current, ending)
            running.set(None)
        return ending

    async def perform_async(self, facts: JobFacts, threads: ThreadPoolExecutor, slot: Watching) -> Ending:
        """Perform a job in a task of its own; plain functions run in one of `threads`.

        Raises CancelledError when the task, or the job by itself, was cancelled.
        """
        current = Running(facts, self._make_job, lambda: slot.lost)
        running.set(current)
        put_collector.set(None)
        ending: Ending = None
        begun = self._begin(current)
        try:
            ending = told(current, await self._perform_async(current, threads, slot))
        except (Terminated, asyncio.CancelledError):
            raise
        except BaseException as error:
            ending = _unreadable(current, error)
        finally:
            self._end(begun, current, ending)
        return ending

    def _begin(self, current: Running) -> Companions:
        begun = self._companions
        for companion in self._companions:
            try:
                companion.begin(current)
            except Exception:
                log.exception("job %s runs without %s", current.facts.jid, type(companion).__name__)
                begun = tuple(each for each in begun if each is not companion)
        return begun

    def _end(self, begun: Companions, current: Running, ending: Ending) -> None:
        for companion in begun[::-1]:
            try:
                companion.end(current, ending)
            except Exception:
                log.exception("%s could not end job %s", type(companion).__name__, current.facts.jid)

    def _perform(self, current: Running, run: Drives, lift: Lift) -> Ending:
        prepared = self._prepare(current)
        if not isinstance(prepared, tuple):
            return prepared
        target, args, kwargs = prepared
        target, call = self._surrounded(target, current, lift)
        try:
            value = call(*args, **kwargs)
            if target.is_async:
                value = run(value)
        except Terminated:
            raise
        except BaseException as error:
            self._leave_if_forked(error)
            return after_error(current, target, error)
        self._leave_if_forked(None)
        return after_return(current, target, value)

    async def _perform_async(self, current: Running, threads: ThreadPoolExecutor, slot: Watching) -> Ending:
        prepared = self._prepare(current)
        if not isinstance(prepared, tuple):
            return prepared
        target, args, kwargs = prepared
        slot.current, current.slot = current, slot
        target, call = self._surrounded(target, current, partial(self._lifted, threads))
        try:
            if target.is_async:
                value = await call(*args, **kwargs)
            else:
                value, error = await self._in_thread(threads, call, args, kwargs)
                if error is not None:
                    raise error
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._leave_if_forked(error)
            return after_error(current, target, error)
        self._leave_if_forked(None)
        return after_return(current, target, value)

    def _surrounded(self, target: Target, current: Running, lift: Lift) -> tuple[Target, Callable[..., Any]]:
        """The target with the middleware around it, and what is called in its place."""
        if not self._chain:
            return target, heard(target)
        target = self._chain.around(target, current, lift)
        return target, heard(target) if target.function is None else heard_function(target, current, lift)

    def _lifted(self, threads: ThreadPoolExecutor, method: Perform) -> Callable[[Any], Awaitable[Any]]:
        async def perform(job: Any) -> Any:
            value, error = await self._in_thread(threads, method, [job], _NOTHING)
            if error is not None:
                raise error
            return value

        return perform

    async def _in_thread(
        self,
        threads: ThreadPoolExecutor,
        function: Callable[..., Any],
        args: list[Any],
        kwargs: dict[str, Any],
    ) -> tuple[Any, BaseException | None]:
        """What a call in a thread answered, and what it raised: a coroutine could not pass on a StopIteration."""
        loop, call, current = asyncio.get_running_loop(), copy_context().run, running.get()
        return await loop.run_in_executor(threads, lambda: call(self._call, current, function, args, kwargs))

    def _call(
        self, current: Running | None, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, BaseException | None]:
        """Call in a thread, where a forked process must leave before anybody hears of it.

        By `current` it is found where a job is. Answers what was raised: an event loop's future never ends by a StopIteration.
        """
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            self._leave_if_forked(error)
            return None, error
        self._leave_if_forked(None)
        return value, None

    def _leave_if_forked(self, error: BaseException | None) -> None:
        """End a process that the job forked and that came back to us: there must not be two workers now."""
        if _Forks.count == self._forks:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        code = error.code if isinstance(error, SystemExit) else int(error is not None)
        os._exit(code if isinstance(code, int) else int(code is not None))

    def cancelled(self, facts: JobFacts, error: BaseException) -> Ending:
        """The ending of a job that cancelled itself: an exception like any other."""
        log.warning("job %s (%s) was cancelled by its own code", facts.jid, facts.klass)
        try:
            function = self.resolver.resolve(facts.klass, facts.queue).function
        except BaseException:
            function = None
        told = failure_of(error, facts.queue, lambda: self._make_job(facts))
        return raised(facts, function, error, told=told)

    def _prepare(self, current: Running) -> _Prepared | Ending:
        facts = current.facts
        try:
            target = self.resolver.resolve(facts.klass, facts.queue)
        except CannotRun as error:
            if is_unknown(facts, error):
                if self._waits_for_code:
                    return given_back_unknown(facts, error)
                note_unknown(facts, error)
            log.warning("job %s failed: %s", facts.jid, error)
            return failed(facts, error.reason, error.message)
        except Terminated:
            raise
        except BaseException as error:
            log.warning("job %s failed: its module raised %s", facts.jid, brief(error))
            return failed(facts, name_of(error), describe(error))
        finally:
            self._leave_if_forked(None)
        if target.is_async:
            current.make_by(self._make_async_job)
        if target.function is None:
            if current.enter_sandbox is not None:
                current.enter_sandbox()
            return target, [current.job()], _NOTHING
        try:
            args, kwargs = read_arguments(target.function, facts.data)
        except CannotRun as error:
            log.warning("job %s (%s) failed: %s", facts.jid, facts.klass, brief(error))
            return failed(facts, error.reason, error.message)
        finally:
            self._leave_if_forked(None)
        return target, args, kwargs


def _unreadable(current: Running, error: BaseException) -> Ending:
    """Return the ending of a job that was performed, but whose result or exception raised when it was read."""
    facts = current.facts
    log.error("job %s (%s) failed: its outcome cannot be read: %s", facts.jid, facts.klass, brief(error))
    return failed(facts, name_of(error), describe(error))
