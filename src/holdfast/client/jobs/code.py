"""Find the code of a job and run it, in programs that are not workers. Loaded only where a program does that."""

import inspect
import os
from collections.abc import Callable
from typing import Any

from holdfast.client.descriptors import AsyncMethods
from holdfast.code.calling import CannotRun, find_code, find_method, read_arguments
from holdfast.code.current import RunningJob, running
from holdfast.code.failure import cut, failure_of, group_of
from holdfast.code.middleware import Perform, surround
from holdfast.code.registry import Registered, find
from holdfast.code.steps import Steps
from holdfast.errors import UsageError

Code = Callable[[], Any]
"""The code of one job with its arguments; async code returns an awaitable."""


def run_job(job: object) -> Steps[Any]:
    """Run the code of a job and return what it returns."""
    code = yield from _ready(job)
    return None if code is None else (yield from _run(job, code))


def process_job(job: Any) -> Steps[None]:
    """Run the code of a job, and fail the job if the code raises."""
    code = yield from _ready(job)
    if code is not None:
        try:
            yield from _run(job, code)
        except Exception as error:
            yield job.fail(*failure_of(error, job.queue_name, lambda: job))


def _ready(job: Any) -> Steps[Code | None]:
    """Find the code of a job and log that it begins; fail the job and return None if there is none."""
    queue = job.queue_name
    try:
        found = find_code(job.klass_name, lambda: _find(job))
        code, is_async = _code(found, job)
    except CannotRun as error:
        yield job.fail(group_of(queue, error.reason), cut(error.message))
        return None
    awaits: object = job
    if is_async and not isinstance(awaits, AsyncMethods):
        raise UsageError(
            f"{job.klass_name} is async def: pop the job with an AsyncClient, or run it with a worker"
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
    """Return the code of the job with its arguments, and whether it is `async def`. Raises CannotRun if they do not fit."""
    if not isinstance(found, Registered):
        return lambda: found(job), inspect.iscoroutinefunction(found)
    args, kwargs = read_arguments(found, job.raw_data)
    return lambda: found.function(*args, **kwargs), found.is_async


def _run(job: Any, code: Code) -> Steps[object]:
    before = running.set(RunningJob(job.facts, lambda facts: job))
    try:
        return (yield code())
    finally:
        running.reset(before)
