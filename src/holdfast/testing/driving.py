"""How a worker for tests performs on a loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from holdfast.code.current import Running
from holdfast.models import JobFacts
from holdfast.work.performing.outcome import Ending
from holdfast.work.performing.perform import Performer


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
