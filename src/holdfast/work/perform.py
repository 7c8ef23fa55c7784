"""Performing one job: find its code, call it, and turn whatever comes of it into an ending."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final, Protocol

from holdfast.code.calling import CannotRun
from holdfast.code.current import Running, collecting, not_lost, running
from holdfast.code.endings import WISHES
from holdfast.code.failure import brief, describe, failure_of
from holdfast.code.registry import Registered
from holdfast.code.resolver import Resolver, Target
from holdfast.codecs import encode_value
from holdfast.commands.dependencies import FollowUp
from holdfast.errors import HoldfastError, LeaseLost, UsageError
from holdfast.models import JobFacts
from holdfast.work.companions import Companion, Companions
from holdfast.work.hearing import heard
from holdfast.work.outcome import Ending, done, failed, granted, raised
from holdfast.work.signals import Terminated

log = logging.getLogger("holdfast")

JobMaker = Callable[[JobFacts], Any]
Drives = Callable[[Coroutine[Any, Any, Any]], Any]

_NOTHING: Final[dict[str, Any]] = {}
UNSERIALIZABLE: Final = "UnserializableResult"


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
    the pool. `lost` says why the lease of the one job under way is known to be lost; a seat says so itself.
    """

    def __init__(
        self,
        resolver: Resolver,
        make_job: JobMaker,
        make_async_job: JobMaker,
        lost: Callable[[], str] = not_lost,
        companions: Companions = (),
    ) -> None:
        self.resolver = resolver
        self._make_job = make_job
        self._make_async_job = make_async_job
        self._lost = lost
        self._companions = companions
        self._forks = _Forks.count

    def perform(self, facts: JobFacts, run: Drives, seat: Watching | None = None) -> Ending:
        """Perform a job in this thread or greenlet; `run` drives a coroutine to its end. `seat`: one of many.

        Whatever the job raises is an ending of the job. Raises Terminated when this process must end.
        """
        current = Running(facts, self._make_job, self._lost if seat is None else lambda: seat.lost)
        if seat is not None:
            seat.current = current
        if not self._companions:
            return self._perform(current, run)
        ending: Ending = None
        begun = self._begin(current)
        try:
            ending = self._perform(current, run)
        finally:
            self._end(begun, current, ending)
        return ending

    async def perform_async(self, facts: JobFacts, threads: ThreadPoolExecutor, seat: Watching) -> Ending:
        """Perform a job in a task of its own; plain functions run in one of `threads`.

        Raises CancelledError when the task, or the job by itself, was cancelled.
        """
        current = Running(facts, self._make_job, lambda: seat.lost)
        if not self._companions:
            return await self._perform_async(current, threads, seat)
        ending: Ending = None
        begun = self._begin(current)
        try:
            ending = await self._perform_async(current, threads, seat)
        finally:
            self._end(begun, current, ending)
        return ending

    def _begin(self, current: Running) -> list[Companion]:
        begun: list[Companion] = []
        for companion in self._companions:
            try:
                companion.begin(current)
                begun.append(companion)
            except Exception:
                log.exception("job %s goes on without %s", current.facts.jid, type(companion).__name__)
        return begun

    def _end(self, begun: list[Companion], current: Running, ending: Ending) -> None:
        for companion in reversed(begun):
            try:
                companion.end(current, ending)
            except Exception:
                log.exception("%s could not end job %s", type(companion).__name__, current.facts.jid)

    def _perform(self, current: Running, run: Drives) -> Ending:
        prepared = self._prepare(current)
        if not isinstance(prepared, tuple):
            return prepared
        target, args, kwargs = prepared
        running.set(current)
        # Whoever performs this inside a job of its own does not get its puts.
        collecting.set(None)
        try:
            value = heard(target)(*args, **kwargs)
            if target.is_async:
                value = run(value)
        except Terminated:
            raise
        except BaseException as error:
            self._leave_if_forked(error)
            return _after_error(current, target, error)
        finally:
            running.set(None)
        self._leave_if_forked(None)
        return _after_return(current, target, value)

    async def _perform_async(self, current: Running, threads: ThreadPoolExecutor, seat: Watching) -> Ending:
        prepared = self._prepare(current)
        if not isinstance(prepared, tuple):
            return prepared
        target, args, kwargs = prepared
        running.set(current)
        collecting.set(None)
        seat.current = current
        try:
            if target.is_async:
                value = await heard(target)(*args, **kwargs)
            else:
                loop = asyncio.get_running_loop()
                call = copy_context().run
                value, error = await loop.run_in_executor(
                    threads, lambda: call(self._call, heard(target), args, kwargs)
                )
                if error is not None:
                    raise error
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._leave_if_forked(error)
            return _after_error(current, target, error)
        self._leave_if_forked(None)
        return _after_return(current, target, value)

    def _call(
        self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, BaseException | None]:
        """Call in a thread, where a forked process must leave before anybody hears of it.

        Answers what was raised: an event loop's future never ends by a StopIteration.
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
        except CannotRun:
            function = None
        told = failure_of(error, facts.queue, lambda: self._make_job(facts))
        return raised(facts, function, error, told=told)

    def _prepare(self, current: Running) -> _Prepared | Ending:
        facts = current.facts
        try:
            target = self.resolver.resolve(facts.klass, facts.queue)
        except CannotRun as error:
            log.warning("job %s failed: %s", facts.jid, error)
            return failed(facts, error.reason, error.message)
        except Terminated:
            raise
        except BaseException as error:
            log.warning("job %s failed: its module raised %s", facts.jid, brief(error))
            return failed(facts, type(error).__name__, describe(error))
        finally:
            self._leave_if_forked(None)
        if target.is_async:
            current.make_by(self._make_async_job)
        if target.function is None:
            return target, [current.job()], _NOTHING
        try:
            args, kwargs = target.function.arguments.read(facts.data)
        except UsageError as error:
            log.warning("job %s failed: its arguments do not fit: %s", facts.jid, error)
            return failed(facts, "ArgumentError", str(error))
        return target, args, kwargs


def _after_return(current: Running, target: Target, value: Any) -> Ending:
    facts, made = current.facts, current.made
    if made is not None and made.state_changed:
        return None
    data, follow = _left_behind(current)
    if type(value) in WISHES:
        try:
            return granted(value, facts, data, follow)
        except UsageError as error:
            return raised(facts, None, error, data)
    if target.function is not None:
        return _completed(facts, target.function, value, data, follow)
    if target.completes:
        return done(facts, data, follow=follow)
    log.warning(
        "job %s (%s) returned without settling: its lease is no longer renewed, and it will be tried again; "
        "call job.complete(), or run the worker with --auto-complete",
        facts.jid,
        facts.klass,
    )
    return None


def _left_behind(current: Running) -> tuple[bytes, Sequence[FollowUp]]:
    """The data the job's code left, b"" if it changed nothing, and what it put on completion; from now on it puts no more."""
    if current.made is None:
        return b"", ()
    data: bytes = current.made.data.encode()
    return b"" if data == current.facts.data else data, current.made.end_collecting()


def _completed(
    facts: JobFacts, function: Registered, value: Any, data: bytes, follow: Sequence[FollowUp]
) -> Ending:
    keep = int(facts.options.get("keep", function.keep_ms))
    if not keep:
        return done(facts, data, follow=follow)
    if value is None:
        return done(facts, data, keep, b"null", follow)
    try:
        result = encode_value(value)
    except HoldfastError as error:
        # The work is done: trying again would do it twice, and end no better.
        log.warning("job %s failed: the result of %s cannot be kept: %s", facts.jid, function.name, error)
        return failed(facts, UNSERIALIZABLE, f"the result of {function.name} cannot be kept: {error}", data)
    return done(facts, data, keep, result, follow)


def _after_error(current: Running, target: Target, error: BaseException) -> Ending:
    facts, made = current.facts, current.made
    if isinstance(error, LeaseLost):
        log.warning("job %s lost its lease while it ran: %s", facts.jid, error)
        return None
    if made is not None and made.state_changed:
        log.warning("job %s raised after it had settled itself: %s", facts.jid, brief(error))
        return None
    log.warning("job %s (%s) raised %s", facts.jid, facts.klass, brief(error))
    data, _ = _left_behind(current)
    return raised(facts, target.function, error, data, failure_of(error, facts.queue, current.job))
