"""Who drives the steps of a worker for tests, blocking or on a loop: the two differ only in who waits."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from holdfast.code.current import Running
from holdfast.models import JobFacts
from holdfast.testing.steps import Flow, T
from holdfast.work.outcome import Ending
from holdfast.work.perform import Performer


def drive(flow: Flow[T], perform: Callable[[JobFacts], Ending], ask: Callable[[Any], Any]) -> T:
    """Go through `flow`: jobs to `perform`, plans to `ask`."""
    try:
        step = next(flow)
        while True:
            try:
                answer = perform(step) if isinstance(step, JobFacts) else ask(step)
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as done:
        value: T = done.value
        return value


async def drive_async(
    flow: Flow[T], perform: Callable[[JobFacts], Awaitable[Ending]], ask: Callable[[Any], Awaitable[Any]]
) -> T:
    """The same on the running loop."""
    try:
        step = next(flow)
        while True:
            try:
                answer = await (perform(step) if isinstance(step, JobFacts) else ask(step))
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as done:
        value: T = done.value
        return value


async def perform_in_task(performer: Performer, facts: JobFacts, threads: ThreadPoolExecutor) -> Ending:
    """Perform a job in a task of its own, plain code in one of `threads`."""
    task = asyncio.create_task(performer.perform_async(facts, threads, _Seat()))
    try:
        return await task
    except asyncio.CancelledError as error:
        me = asyncio.current_task()
        if me is not None and me.cancelling():
            task.cancel()
            raise
        return performer.cancelled(facts, error)


class _Seat:
    """Where the performer says what is under way; nobody looks."""

    current: Running | None = None
    lost = ""
