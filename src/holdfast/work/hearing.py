"""Class jobs whose code wants to be told of their end: they are settled through their own object, while they run."""

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.code.endings import WISHES
from holdfast.code.failure import failure_of
from holdfast.code.resolver import Target
from holdfast.errors import LeaseLost


def heard(target: Target) -> Callable[..., Any]:
    """The code of a target, to be called in its place.

    A class job that has callbacks (`job.after_complete(…)`) is completed or failed by this where the worker would do so
    afterwards, because only a call through the job itself runs them.
    """
    if target.function is not None:
        return target.call
    return partial(_awaited if target.is_async else _called, target)


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
    return target.completes and _waits(job) and type(value) not in WISHES
