"""Finding the code of a job and running it, for programs that are no workers."""

import inspect
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from holdfast.code.calling import CannotRun, find_code, find_method, read_arguments
from holdfast.code.current import Running, running
from holdfast.code.failure import cut, failure_of, group_of
from holdfast.code.middleware import Perform, surround
from holdfast.code.registry import Registered, find
from holdfast.code.steps import Steps
from holdfast.errors import UsageError

Code = Callable[[], Any]
"""The code of one job, ready to be run; async code answers what is awaited."""


def ready(job: Any, can_await: bool) -> Steps[Code | None]:
    """Find what performs the job, and note that it begins; fails the job and answers None if there is nothing."""
    queue = job.queue_name
    try:
        found = find_code(job.klass_name, lambda: _find(job))
        code, is_async = _code(found, job)
    except CannotRun as error:
        yield job.fail(group_of(queue, error.reason), cut(error.message))
        return None
    if is_async and not can_await:
        raise UsageError(
            f"{job.klass_name} is async def: pop the job with an AsyncClient, or let a worker perform it"
        )
    if job.token:  # a job that was built by hand has no history in any store
        yield job.log(f"started by pid:{os.getpid()}")
    return code


def _find(job: Any) -> Registered | Perform:
    entry = find(job.klass_name)
    thing = job.klass if entry is None else None
    entry = entry or getattr(thing, "registered", None)
    if isinstance(entry, Registered):
        return entry
    return surround(thing, find_method(thing, job.klass_name, job.queue_name, True)[1])


def _code(found: Registered | Perform, job: Any) -> tuple[Code, bool]:
    """The code of the job with its arguments, and whether it is `async def`. Raises CannotRun if they do not fit."""
    if not isinstance(found, Registered):
        return lambda: found(job), inspect.iscoroutinefunction(found)
    args, kwargs = read_arguments(found, job.raw_data)
    return lambda: found.function(*args, **kwargs), found.is_async


@contextmanager
def _current(job: Any) -> Generator[None]:
    before = running.set(Running(job.facts, lambda facts: job))
    try:
        yield
    finally:
        running.reset(before)


def run(job: Any, code: Code) -> Any:
    """Run the code of a job as that of the running job."""
    with _current(job):
        return code()


async def run_async(job: Any, code: Code) -> Any:
    """The same, awaiting what the code answers if it can be awaited."""
    with _current(job):
        value = code()
        return await value if inspect.isawaitable(value) else value


def failed(job: Any, error: Exception) -> Steps[None]:
    """Fail a job whose code raised `error`."""
    yield job.fail(*failure_of(error, job.queue_name, lambda: job))
