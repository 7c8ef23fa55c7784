"""Workers for tests: they perform jobs in this process when the test calls them.

They take, perform and settle jobs with the code of real workers, on the real core, so a test sees what happens in
production. With a stopped clock they move the time from one due job to the next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypedDict, TypeVar, Unpack, overload

from holdfast.client.aio import AsyncClient
from holdfast.client.handles import AsyncJob, Job
from holdfast.client.sync import Client
from holdfast.code.current import RunningJob
from holdfast.code.steps import drive, drive_async
from holdfast.commands import Command
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.testing.clock import StoppedClock, check_client, span
from holdfast.testing.steps import MAX_NESTED, Performed, Performing, Steps, T
from holdfast.wire.plans import AsyncRunner, Plan, Runner
from holdfast.worker.performing.outcome import Outcome
from holdfast.worker.performing.perform import Performer
from holdfast.worker.performing.surroundings import HeldAsyncJob, HeldJob, nothing

P = ParamSpec("P")
R = TypeVar("R")
W = TypeVar("W")


async def perform_in_task(performer: Performer, facts: JobFacts, threads: ThreadPoolExecutor) -> Outcome:
    """Perform a job in a new task, plain functions in one of `threads`."""
    task = asyncio.create_task(performer.perform_async(facts, threads, _Slot()))
    try:
        return await task
    except asyncio.CancelledError as error:
        me = asyncio.current_task()
        if me is not None and me.cancelling():
            task.cancel()
            raise
        return performer.cancelled(facts, error)


class _Slot:
    """The slot that a performer needs. Nothing reads it."""

    current: RunningJob | None = None
    lost = ""


Drain = Callable[[], object]
AsyncDrain = Callable[[], Awaitable[object]]


class Inline:
    """Make clients perform jobs inside each call, for a block: Clients by `drain`, AsyncClients by `async_drain`."""

    def __init__(self, clients: Iterable[Any], drain: Drain, async_drain: AsyncDrain) -> None:
        self._clients = list(clients)
        self._drain = drain
        self._async_drain = async_drain

    def __enter__(self) -> Self:
        for client in self._clients:
            if isinstance(client, Client):
                blocking: Any = client
                blocking.runner = _Runner(blocking.runner, self._drain)
            else:
                client.runner = _AsyncRunner(client.runner, self._async_drain)
                client.run = _Submit(client.run, self._async_drain)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.runner = client.runner.inner
            if not isinstance(client, Client):
                client.run = client.run.inner

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


class _Runner:
    def __init__(self, inner: "Runner | _Runner", drain: Drain) -> None:
        self.inner = inner
        self._drain = drain

    def run(self, plan: Plan[R]) -> R:
        result = self.inner.run(plan)
        self._drain()
        return result


class _AsyncRunner:
    def __init__(self, inner: "AsyncRunner | _AsyncRunner", drain: AsyncDrain) -> None:
        self.inner = inner
        self._drain = drain

    async def run(self, plan: Plan[R]) -> R:
        result = await self.inner.run(plan)
        await self._drain()
        return result


class _Submit:
    """A replacement for `AsyncClient.run`, which performs jobs after each result."""

    def __init__(self, inner: "Callable[..., asyncio.Future[object]]", drain: AsyncDrain) -> None:
        self.inner = inner
        self._drain = drain

    def __call__(self, command: Command[object], *method: str) -> "asyncio.Future[object]":
        return asyncio.ensure_future(self._run(self.inner(command, *method)))

    async def _run(self, result: "asyncio.Future[object]") -> object:
        found = await result
        await self._drain()
        return found


class Blocking:
    """The base of workers whose methods block."""


class Awaiting:
    """The base of workers whose methods are awaited."""


class FlowMethod(Generic[P, R]):
    """Steps as a method: blocking on a `Blocking` worker, awaited on an `Awaiting` one."""

    def __init__(self, make: Callable[Concatenate[W, P], Performing[R]]) -> None:
        self._make: Callable[Concatenate[Any, P], Performing[R]] = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, worker: None, owner: object) -> "FlowMethod[P, R]": ...
    @overload
    def __get__(self, worker: "Blocking", owner: object = None) -> Callable[P, R]: ...
    @overload
    def __get__(self, worker: "Awaiting", owner: object = None) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, worker: Any, owner: object = None) -> object:
        if worker is None:
            return self
        make = self._make

        def call(*args: P.args, **kwargs: P.kwargs) -> object:
            return worker._drive(make(worker, *args, **kwargs))

        return call


class WorkerVerbs:
    """The methods of workers for tests."""

    _steps: Steps

    @FlowMethod
    def run_one(self, *, raises: bool = True) -> Performing[Performed | None]:
        """Perform the next job that is ready; None if there is none. Raises JobFailed."""
        return self._steps.one(raises)

    @FlowMethod
    def drain(self, *, raises: bool = True) -> Performing[list[Performed]]:
        """Perform jobs until none is ready; delayed jobs stay. Returns what was performed.

        Raises JobFailed, WorkError after too many jobs.
        """
        return self._steps.drain(raises)

    @FlowMethod
    def run_for(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        raises: bool = True,
    ) -> Performing[list[Performed]]:
        """Move the clock by this time, and perform each job when it is due. Raises as `drain`, UsageError without a clock."""
        return self._steps.run_for(span(days, hours, minutes, seconds), raises)

    @FlowMethod
    def run_until(self, moment: datetime | float, *, raises: bool = True) -> Performing[list[Performed]]:
        """Move the clock to `moment`, a datetime with a time zone or epoch seconds, and perform each job when it is due.

        Raises as `run_for`.
        """
        return self._steps.run_until(moment, raises)


WORKER: Final = "test-worker"


class WorkerOptions(TypedDict, total=False):
    """Options of workers for tests: `queues` in order (default: all), and which code may run, as the options of
    `holdfast worker`: `root` and `paths` are directories, `imports` modules, `allow` prefixes; `auto_complete`
    completes class jobs that return. `most`: the largest number of jobs in one call (10,000)."""

    queues: Iterable[str]
    root: str | Path
    paths: Iterable[str | Path]
    imports: Iterable[str]
    allow: Iterable[str]
    auto_complete: bool
    most: int


class LocalWorker(Blocking, WorkerVerbs):
    """Performs the jobs of `client`'s namespace in this thread.

    The job of a plain function uses `client`, that of an `async def` an AsyncClient. A job that has failed is raised as
    JobFailed, from what its code raised, unless `raises=False`; one that is going to be retried is not. With a `clock`,
    `run_for` and `run_until` move it. Raises UsageError for invalid options.
    """

    def __init__(
        self, client: Client, clock: StoppedClock | None = None, **options: Unpack[WorkerOptions]
    ) -> None:
        check_client(client, Client)
        self.client = client
        self.inline_clients: Callable[[], list[Any]] = lambda: [client]
        settings = client.settings
        # Not the client of the test, each call of which may perform jobs (`inline`).
        self._own = Client(client.store_url, namespace=settings.namespace)
        self._steps = Steps(self._own.shard, WORKER, clock, options)
        self._async_client = AsyncClient(client.store_url, namespace=settings.namespace)
        self._threads = _threads()
        self._coroutines: asyncio.Runner | None = None
        self._performer = Performer(self._steps.resolver, self._job, self._async_job)

    def inline(self, *, raises: bool = True) -> Inline:
        """Return a block in which a put performs its job before it returns: `with worker.inline():`.

        So does any other call that makes a job ready. Jobs that jobs put are performed inside them.
        """

        def drain() -> None:
            self._drive(self._steps.nested(raises))

        async def async_drain() -> None:
            await self._drive_in_loop(self._steps.nested(raises))

        return Inline([*self.inline_clients(), self._async_client], drain, async_drain)

    def close(self) -> None:
        """Close the connections of this worker, but not those of the client."""
        self._threads.shutdown()
        if self._coroutines is not None:
            self._coroutines.close()
        self._async_client.link.drop()
        self._own.close()

    def _drive(self, steps: Performing[T]) -> T:
        run = self._own.runner.run
        return drive(steps, lambda step: self._perform(step) if isinstance(step, JobFacts) else run(step))

    def _perform(self, facts: JobFacts) -> Outcome:
        # In its own context: a job that puts another one inline stays the current job afterwards.
        return copy_context().run(self._performer.perform, facts, self._run_coroutine)

    def _run_coroutine(self, coroutine: Coroutine[object, Any, R]) -> R:
        if asyncio._get_running_loop() is not None:  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
            coroutine.close()
            raise UsageError(
                "this worker cannot perform `async def` inside a running event loop: "
                "use AsyncLocalWorker there, the fixture holdfast_async_worker"
            )
        if self._coroutines is None:
            self._coroutines = asyncio.Runner()
        loop = self._coroutines.get_loop()
        if loop.is_running():
            # This is the thread of a plain job that a coroutine put inline.
            return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
        return self._coroutines.run(coroutine, context=copy_context())

    async def _drive_in_loop(self, steps: Performing[T]) -> T:
        async def result(step: JobFacts | Plan[object]) -> Any:
            if isinstance(step, JobFacts):
                return await perform_in_task(self._performer, step, self._threads)
            return self._own.runner.run(step)

        return await drive_async(steps, result)

    def _job(self, facts: JobFacts) -> Job:
        return HeldJob.held(facts, self.client, nothing)

    def _async_job(self, facts: JobFacts) -> AsyncJob:
        return HeldAsyncJob.held(facts, self._async_client, nothing)


class AsyncLocalWorker(Awaiting, WorkerVerbs):
    """A worker on the running event loop: an `async def` is performed in a task, a plain function in a thread.

    All methods are awaited but `inline`, which is used by `async with`.
    """

    def __init__(
        self, client: AsyncClient, clock: StoppedClock | None = None, **options: Unpack[WorkerOptions]
    ) -> None:
        check_client(client, AsyncClient)
        self.client = client
        self.inline_clients: Callable[[], list[Any]] = lambda: [client]
        settings = client.settings
        self._own = AsyncClient(client.store_url, namespace=settings.namespace)
        self._plain = Client(client.store_url, namespace=settings.namespace)
        self._steps = Steps(self._own.shard, WORKER, clock, options)
        self._threads = _threads()
        self._performer = Performer(self._steps.resolver, self._job, self._async_job)

    def inline(self, *, raises: bool = True) -> Inline:
        """Return a block in which an awaited put performs its job first: `async with worker.inline():`."""
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
        """Close the connections of this worker, but not those of the client."""
        await self._own.close()
        self.drop()

    def drop(self) -> None:
        """Close the connections without a loop, after the one of the test has ended."""
        self._threads.shutdown()
        self._plain.close()
        self._own.link.drop()

    async def _drive(self, steps: Performing[T]) -> T:
        async def result(step: JobFacts | Plan[object]) -> Any:
            if isinstance(step, JobFacts):
                return await perform_in_task(self._performer, step, self._threads)
            return await self._own.runner.run(step)

        return await drive_async(steps, result)

    def _job(self, facts: JobFacts) -> Job:
        return HeldJob.held(facts, self._plain, nothing)

    def _async_job(self, facts: JobFacts) -> AsyncJob:
        return HeldAsyncJob.held(facts, self.client, nothing)


def _threads() -> ThreadPoolExecutor:
    # One for each level of plain jobs that put plain jobs inline.
    return ThreadPoolExecutor(MAX_NESTED + 1, thread_name_prefix="job")
