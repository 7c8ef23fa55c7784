"""Workers for tests: they perform jobs in this process, when they are told to, and come back.

They take, perform and settle jobs with the parts real workers are made of, on the real core; what a test sees is
what happens in production. With a stopped clock they let time pass from one due moment to the next.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from holdfast.client.aio import AsyncClient
from holdfast.client.async_handles import AsyncJob
from holdfast.client.handles import Job
from holdfast.client.sync import Client
from holdfast.code.current import Running
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.testing.clock import StoppedClock, span
from holdfast.testing.inline import Inline
from holdfast.testing.steps import DEEPEST, Flow, Performed, Steps, T
from holdfast.work.making import HeldAsyncJob, HeldJob, nothing
from holdfast.work.outcome import Ending
from holdfast.work.perform import Performer

WORKER: Final = "test-worker"


class WorkerOptions(TypedDict, total=False):
    """What a worker for tests can be told: `queues` in their order (all there are, unless named), and what code may
    run, as `holdfast worker` is told it: `root` and `paths` are directories, `imports` modules, `allow` prefixes;
    `auto_complete` completes class jobs that return. `most` jobs are performed by one call (10,000)."""

    queues: Iterable[str]
    root: str | Path
    paths: Iterable[str | Path]
    imports: Iterable[str]
    allow: Iterable[str]
    auto_complete: bool
    most: int


class LocalWorker:
    """Performs the jobs of `client`'s namespace in this thread.

    Plain code sees `client` through its job, `async def` an async client. A job that ends up failed is raised as
    JobFailed, from what its code raised, unless `raises=False`; one that will be tried again is not. With a `clock`,
    `run_for` and `run_until` let time pass. Raises UsageError for options that cannot be.
    """

    def __init__(
        self, client: Client, clock: StoppedClock | None = None, **options: Unpack[WorkerOptions]
    ) -> None:
        self.client = client
        self.inline_clients: Callable[[], list[Any]] = lambda: [client]
        settings = client.settings
        # Beside the test's own client, whose every call may perform jobs (`inline`).
        self._own = Client(settings.url, namespace=settings.namespace)
        self._steps = Steps(self._own.shard, WORKER, clock, options)
        self._async_client = AsyncClient(settings.url, namespace=settings.namespace)
        self._coroutines: asyncio.Runner | None = None
        self._performer = Performer(self._steps.resolver, self._job, self._async_job)

    def run_one(self, *, raises: bool = True) -> Performed | None:
        """Perform the next job that is ready; None if there is none."""
        return self._drive(self._steps.one(raises))

    def drain(self, *, raises: bool = True) -> list[Performed]:
        """Perform what is ready, and what becomes ready thereby, until nothing is; delayed jobs stay.

        Raises JobFailed, WorkError when there is no end of it.
        """
        return self._drive(self._steps.drain(raises))

    def run_for(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        raises: bool = True,
    ) -> list[Performed]:
        """Let so much time pass, and perform each job when it is due. Raises as `drain`, UsageError without a clock."""
        return self._drive(self._steps.run_for(span(days, hours, minutes, seconds), raises))

    def run_until(self, moment: datetime | float, *, raises: bool = True) -> list[Performed]:
        """Let time pass until `moment`, a datetime or epoch seconds, and perform each job when it is due."""
        return self._drive(self._steps.run_until(moment, raises))

    def inline(self, *, raises: bool = True) -> Inline:
        """A block in which a put performs its job at once, before it answers: `with worker.inline():`.

        So does every other call that makes a job ready. Jobs that jobs put are performed inside them.
        """

        def drain() -> None:
            self._drive(self._steps.nested(raises))

        async def async_drain() -> None:
            drain()

        return Inline([*self.inline_clients(), self._async_client], drain, async_drain)

    def close(self) -> None:
        """Close the connections of this worker; the client stays as it is."""
        if self._coroutines is not None:
            self._coroutines.close()
        self._async_client.link.drop()
        self._own.close()

    def _drive(self, flow: Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    answer = self._perform(step) if isinstance(step, JobFacts) else self._own.runner.run(step)
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            value: T = done.value
            return value

    def _perform(self, facts: JobFacts) -> Ending:
        # In a context of its own: a job that puts another inline is still the current one after that.
        return copy_context().run(self._performer.perform, facts, self._run_coroutine)

    def _run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        context = copy_context()
        if asyncio._get_running_loop() is not None:  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
            with ThreadPoolExecutor(1) as threads:
                return threads.submit(context.run, asyncio.run, coroutine).result()
        if self._coroutines is None:
            self._coroutines = asyncio.Runner()
        return self._coroutines.run(coroutine, context=context)

    def _job(self, facts: JobFacts) -> Job:
        return HeldJob.held(facts, self.client, nothing)

    def _async_job(self, facts: JobFacts) -> AsyncJob:
        return HeldAsyncJob.held(facts, self._async_client, nothing)


class AsyncLocalWorker:
    """The same on the running loop: `async def` is performed in a task of it, plain code in a thread.

    All is awaited but `inline`, which is `async with`.
    """

    def __init__(
        self, client: AsyncClient, clock: StoppedClock | None = None, **options: Unpack[WorkerOptions]
    ) -> None:
        self.client = client
        self.inline_clients: Callable[[], list[Any]] = lambda: [client]
        settings = client.settings
        self._own = AsyncClient(settings.url, namespace=settings.namespace)
        self._plain = Client(settings.url, namespace=settings.namespace)
        self._steps = Steps(self._own.shard, WORKER, clock, options)
        # More than one for jobs that plain jobs put inline.
        self._threads = ThreadPoolExecutor(DEEPEST + 1, thread_name_prefix="job")
        self._performer = Performer(self._steps.resolver, self._job, self._async_job)

    async def run_one(self, *, raises: bool = True) -> Performed | None:
        """Perform the next job that is ready; None if there is none."""
        return await self._drive(self._steps.one(raises))

    async def drain(self, *, raises: bool = True) -> list[Performed]:
        """Perform what is ready until nothing is. Raises as `LocalWorker.drain`."""
        return await self._drive(self._steps.drain(raises))

    async def run_for(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        raises: bool = True,
    ) -> list[Performed]:
        """Let so much time pass, and perform each job when it is due."""
        return await self._drive(self._steps.run_for(span(days, hours, minutes, seconds), raises))

    async def run_until(self, moment: datetime | float, *, raises: bool = True) -> list[Performed]:
        """Let time pass until `moment`, a datetime or epoch seconds, and perform each job when it is due."""
        return await self._drive(self._steps.run_until(moment, raises))

    def inline(self, *, raises: bool = True) -> Inline:
        """A block in which an awaited put performs its job at once: `async with worker.inline():`."""
        loop = asyncio.get_running_loop()

        async def async_drain() -> None:
            await self._drive(self._steps.nested(raises))

        def drain() -> None:
            if asyncio._get_running_loop() is loop:  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
                raise UsageError(
                    "a blocking client cannot perform jobs of an event loop inside it: use AsyncClient"
                )
            asyncio.run_coroutine_threadsafe(async_drain(), loop).result()

        return Inline([*self.inline_clients(), self._plain], drain, async_drain)

    async def close(self) -> None:
        """Close the connections of this worker; the client stays as it is."""
        await self._own.close()
        self.drop()

    def drop(self) -> None:
        """The same without a loop, after the one of the test has ended."""
        self._threads.shutdown()
        self._plain.close()
        self._own.link.drop()

    async def _drive(self, flow: Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    if isinstance(step, JobFacts):
                        answer: Any = await self._perform(step)
                    else:
                        answer = await self._own.runner.run(step)
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            value: T = done.value
            return value

    async def _perform(self, facts: JobFacts) -> Ending:
        task = asyncio.create_task(self._performer.perform_async(facts, self._threads, _Seat()))
        try:
            return await task
        except asyncio.CancelledError as error:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                task.cancel()
                raise
            return self._performer.cancelled(facts, error)

    def _job(self, facts: JobFacts) -> Job:
        return HeldJob.held(facts, self._plain, nothing)

    def _async_job(self, facts: JobFacts) -> AsyncJob:
        return HeldAsyncJob.held(facts, self.client, nothing)


class _Seat:
    """Where the performer says what is under way; nobody looks."""

    current: Running | None = None
