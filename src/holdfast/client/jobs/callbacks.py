"""Callbacks of a job handle: called before a call that settles the job, and after it succeeded."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from holdfast.client.descriptors import AsyncHandle, CommandMethod, Registrar, sent, with_name
from holdfast.client.jobs.facts import Callback
from holdfast.code.steps import Steps, await_steps, run_steps
from holdfast.commands import Command
from holdfast.settings import check_callable

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H")


class Callbacks:
    """Callbacks of one job handle; each gets the job.

    Those before a call run in the order in which they were added; if one raises, the call is not made. Those
    after it run in reverse order, if the call succeeded. On an async handle they may be `async def`. They run for
    calls on this object; a worker settles a class job through its object too, and completes a function job so if its
    middleware added callbacks.
    """

    _callbacks: dict[str, list[Callback]]

    before_complete = Registrar("Call this before the job is completed or moved to its next queue.")
    after_complete = Registrar("Call this after that.")
    before_fail = Registrar("Call this before the job is failed.")
    after_fail = Registrar("Call this after that.")
    before_retry = Registrar("Call this before the job is given back for another attempt.")
    after_retry = Registrar("Call this after that, also if the job failed because no retries were left.")
    before_cancel = Registrar("Call this before the job is cancelled.")
    after_cancel = Registrar("Call this after that.")
    before_requeue = Registrar("Call this before the job is moved or requeued.")
    after_requeue = Registrar("Call this after that.")

    def _add_callback(self, name: str, callback: Callback) -> None:
        self._callbacks.setdefault(name, []).append(check_callable(name, callback))


def settling(event: str) -> Callable[[Callable[Concatenate[Any, P], Command[R]]], CommandMethod[P, R]]:
    """Make a CommandMethod with callbacks: `@settling("complete")`."""
    return lambda make: _Settling(make, event)


class _Settling(CommandMethod[P, R]):
    def __init__(self, make: Callable[Concatenate[H, P], Command[R]], event: str) -> None:
        super().__init__(make)
        plain = self.method

        @functools.wraps(plain)
        def call(job: Any, /, *args: object, **kwargs: object) -> object:
            is_awaited = isinstance(job, AsyncHandle)
            if job._callbacks:
                steps = _with_callbacks(job, event, lambda: plain(job, *args, **kwargs))
                return await_steps(steps) if is_awaited else run_steps(steps)
            if is_awaited:
                command: Any = self.make(job, *args, **kwargs)
                return sent(job, command)
            return plain(job, *args, **kwargs)

        self.method = with_name(call)


def _with_callbacks(job: Any, event: str, call: Callable[[], object]) -> Steps[object]:
    for callback in list(job._callbacks.get("before_" + event, ())):
        yield callback(job)
    result = yield call()
    for callback in reversed(list(job._callbacks.get("after_" + event, ()))):
        yield callback(job)
    return result
