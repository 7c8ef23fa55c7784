"""Perform one job: find its code, call it, and turn its result or exception into an outcome."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final, Protocol

from holdfast.code.calling import CannotRun, read_arguments
from holdfast.code.current import RunningJob, not_lost, put_collector, running
from holdfast.code.failure import describe, failure_of, name_of
from holdfast.code.middleware import Perform
from holdfast.code.outcomes import Terminated
from holdfast.code.resolver import CodeTarget, Resolver
from holdfast.commands.leases import Done
from holdfast.models import JobFacts
from holdfast.worker.middleware.builtin import BuiltIns
from holdfast.worker.performing.chain import Chain, Lift, beside_the_loop
from holdfast.worker.performing.outcome import (
    Outcome,
    after_error,
    after_return,
    failed,
    given_back_unknown,
    is_unknown,
    log_attempt,
    note_unknown,
    raised,
    with_lines,
)

log = logging.getLogger("holdfast")

JobMaker = Callable[[JobFacts], Any]
RunCoroutine = Callable[[Coroutine[Any, Any, Any]], Any]

_NOTHING: Final[dict[str, Any]] = {}


class _Forks:
    """How many forks lie between this process and the first one; cheaper to read than the process id."""

    count = 0


def _count_fork() -> None:
    _Forks.count += 1


os.register_at_fork(after_in_child=_count_fork)

_Prepared = tuple[CodeTarget, list[Any], dict[str, Any]]
"""A job whose code was found and whose arguments fit."""


class RunSlot(Protocol):
    """One slot of many: it notes its run, and why its lease is lost."""

    current: RunningJob | None
    lost: str


class Performer:
    """Performs the jobs of one worker.

    `make_job` and `make_async_job` make the job objects for plain code and for `async def`, whatever the pool. `lost` returns
    why the lease of the one running job is known to be lost; a slot has that itself. `chain` surrounds the code of each job,
    `built_in` all that is done for it.
    """

    def __init__(
        self,
        resolver: Resolver,
        make_job: JobMaker,
        make_async_job: JobMaker,
        lost: Callable[[], str] = not_lost,
        built_in: BuiltIns = (),
        chain: Chain | None = None,
        waits_for_code: bool = False,
    ) -> None:
        self.resolver = resolver
        self._make_job = make_job
        self._make_async_job = make_async_job
        self._lost = lost
        self._built_in = built_in
        self._chain = chain or Chain()
        self._has_chain = not self._chain.is_empty
        self._waits_for_code = waits_for_code
        self._forks = _Forks.count
        self.after_call: Callable[[RunningJob | None, Any, BaseException | None], None] | None = None
        """Called in a thread of `perform_async` with what the code of a job returned or raised."""

    def perform(
        self, facts: JobFacts, run: RunCoroutine, slot: RunSlot | None = None, lift: Lift = beside_the_loop
    ) -> Outcome:
        """Perform a job in this thread or greenlet; `run` runs a coroutine to its end. `slot`: one of many. `lift` makes
        plain code a coroutine.

        Whatever the job raises becomes its outcome. Raises Terminated when this process must end.
        """
        current = RunningJob(facts, self._make_job, self._lost if slot is None else lambda: slot.lost)
        if slot is not None:
            slot.current, current.slot = current, slot
        running.set(current)
        # A job that runs this one inside itself does not get its puts.
        put_collector.set(None)
        outcome: Outcome = None
        begun = self._begin(current)
        try:
            outcome = self._perform(current, run, lift)
            if current.lines:
                outcome = with_lines(current, outcome)
        except Terminated:
            raise
        except BaseException as error:
            outcome = _unreadable(current, error)
        finally:
            if type(outcome) is not Done:
                _log_attempt(current, outcome)
            self._end(begun, current, outcome)
            running.set(None)
        return outcome

    async def perform_async(self, facts: JobFacts, threads: ThreadPoolExecutor, slot: RunSlot) -> Outcome:
        """Perform a job in a task of its own; plain functions run in one of `threads`.

        Raises CancelledError when the task, or the job by itself, was cancelled.
        """
        current = RunningJob(facts, self._make_job, lambda: slot.lost)
        running.set(current)
        put_collector.set(None)
        outcome: Outcome = None
        begun = self._begin(current)
        try:
            outcome = await self._perform_async(current, threads, slot)
            if current.lines:
                outcome = with_lines(current, outcome)
        except (Terminated, asyncio.CancelledError):
            raise
        except BaseException as error:
            outcome = _unreadable(current, error)
        finally:
            if type(outcome) is not Done:
                _log_attempt(current, outcome)
            self._end(begun, current, outcome)
        return outcome

    def _begin(self, current: RunningJob) -> BuiltIns:
        begun = self._built_in
        for middleware in begun:
            try:
                middleware.begin(current)
            except Exception:
                log.exception(
                    "middleware %s failed before job %s, which runs without it",
                    type(middleware).__name__,
                    current.facts.jid,
                )
                begun = tuple(each for each in begun if each is not middleware)
        return begun

    def _end(self, begun: BuiltIns, current: RunningJob, outcome: Outcome) -> None:
        for middleware in begun[::-1]:
            try:
                middleware.end(current, outcome)
            except Exception:
                log.exception(
                    "middleware %s failed after job %s", type(middleware).__name__, current.facts.jid
                )

    def _perform(self, current: RunningJob, run: RunCoroutine, lift: Lift) -> Outcome:
        prepared = self._prepare(current)
        if not isinstance(prepared, tuple):
            return prepared
        target, args, kwargs = prepared
        call = target.call
        if self._has_chain or target.function is None:
            target, call = self._chain.call_of(target, current, lift)
        try:
            value = call(*args, **kwargs)
            if target.is_async:
                value = run(value)
        except Terminated:
            raise
        except BaseException as error:
            if _Forks.count != self._forks:
                self._leave(error)
            return after_error(current, target, error)
        if _Forks.count != self._forks:
            self._leave(None)
        return after_return(current, target, value)

    async def _perform_async(
        self, current: RunningJob, threads: ThreadPoolExecutor, slot: RunSlot
    ) -> Outcome:
        prepared = self._prepare(current)
        if not isinstance(prepared, tuple):
            return prepared
        target, args, kwargs = prepared
        slot.current, current.slot = current, slot
        call = target.call
        if self._has_chain or target.function is None:
            target, call = self._chain.call_of(target, current, partial(self._lifted, threads))
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
            if _Forks.count != self._forks:
                self._leave(error)
            return after_error(current, target, error)
        if _Forks.count != self._forks:
            self._leave(None)
        return after_return(current, target, value)

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
        """Call in a thread. Return its value, and what it raised: a coroutine could not pass on a StopIteration."""
        loop, call, current = asyncio.get_running_loop(), copy_context().run, running.get()
        return await loop.run_in_executor(threads, lambda: call(self._call, current, function, args, kwargs))

    def _call(
        self,
        current: RunningJob | None,
        function: Callable[..., Any],
        args: list[Any],
        kwargs: dict[str, Any],
    ) -> tuple[Any, BaseException | None]:
        """Call in this thread, where a forked process must leave before anything else happens.

        `stacks` finds the job by `current`. What was raised is returned: an event loop's future never ends by a StopIteration.
        """
        value: Any = None
        raised_here: BaseException | None = None
        if current is not None:
            current.thread = threading.get_native_id()
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            raised_here = error
        if current is not None:
            current.thread = 0
        if _Forks.count != self._forks:
            self._leave(raised_here)
        if self.after_call is not None:
            self.after_call(current, value, raised_here)
        return value, raised_here

    def outcome_of(self, current: RunningJob, value: object, error: BaseException | None) -> Outcome:
        """Return the outcome of a job whose code has returned this value, or raised this."""
        target = self.resolver.resolve(current.facts.klass, current.facts.queue)
        return after_return(current, target, value) if error is None else after_error(current, target, error)

    def _leave(self, error: BaseException | None) -> None:
        """End a process that the job forked and that came back here: there must not be two workers now."""
        code = error.code if isinstance(error, SystemExit) else int(error is not None)
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code if isinstance(code, int) else int(code is not None))

    def cancelled(self, facts: JobFacts, error: BaseException) -> Outcome:
        """Return the outcome of a job that cancelled itself: an exception like any other."""
        try:
            function = self.resolver.resolve(facts.klass, facts.queue).function
        except BaseException:
            function = None
        formatted = failure_of(error, facts.queue, lambda: self._make_job(facts))
        outcome = raised(facts, function, error, formatted=formatted)
        log_attempt(facts, outcome, error)
        return outcome

    def _prepare(self, current: RunningJob) -> _Prepared | Outcome:
        facts = current.facts
        try:
            target = self.resolver.resolve(facts.klass, facts.queue)
        except CannotRun as error:
            if is_unknown(facts, error):
                if self._waits_for_code:
                    return given_back_unknown(facts, error)
                note_unknown(facts, error)
            return failed(facts, error.reason, error.message)
        except Terminated:
            raise
        except BaseException as error:
            current.error = error
            return failed(facts, name_of(error), describe(error))
        finally:
            if _Forks.count != self._forks:
                self._leave(None)
        if target.is_async:
            current.make = self._make_async_job
        if target.function is None:
            if current.enter_sandbox is not None:
                current.enter_sandbox()
            return target, [current.job()], _NOTHING
        try:
            args, kwargs = read_arguments(target.function, facts.data)
        except CannotRun as error:
            return failed(facts, error.reason, error.message)
        finally:
            if _Forks.count != self._forks:
                self._leave(None)
        return target, args, kwargs


def _log_attempt(current: RunningJob, outcome: Outcome) -> None:
    # Of a job that lost its lease, which its worker logs, no outcome counts.
    if not current.lost():
        log_attempt(current.facts, outcome, current.error)
    current.error = None  # its frames refer to the run


def _unreadable(current: RunningJob, error: BaseException) -> Outcome:
    """Return the outcome of a job that was performed, but whose result or exception raised when it was read."""
    current.error = error
    return failed(current.facts, name_of(error), describe(error))
