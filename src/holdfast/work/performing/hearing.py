"""Jobs whose end somebody wants to be told of: they are settled through their own object, while they run."""

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.client.colours import AsyncHandle
from holdfast.code.current import Running
from holdfast.code.endings import WISHES
from holdfast.code.failure import failure_of
from holdfast.code.resolver import Target
from holdfast.commands.base import Command
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.leases import Done
from holdfast.errors import LeaseLost
from holdfast.work.performing.chain import Lift
from holdfast.work.performing.conclusion import after_return


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
    if current.made is None or not _waits(current.made) or type(value) in WISHES:
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
    return target.completes and _waits(job) and type(value) not in WISHES
