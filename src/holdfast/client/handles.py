"""The handles of both clients: their jobs and queues."""

from functools import cached_property
from typing import cast, overload

from holdfast.client.descriptors import AsyncMethods, CoroutineHandle, SyncMethods
from holdfast.client.jobs.verbs import JobVerbs
from holdfast.client.queue import QueuesVerbs, QueueVerbs, StatsVerbs
from holdfast.client.tables import AsyncQueueJobs, QueueJobs
from holdfast.client.throttles import AsyncThrottle, Throttle
from holdfast.code.current import running_job
from holdfast.code.steps import await_steps, run_steps
from holdfast.commands.jobs import JobGet
from holdfast.settings import OWN_THROTTLE


class Job(JobVerbs, SyncMethods):
    """A job of a sync client."""

    @property
    def queue(self) -> "Queue":
        """The queue the job is in; one named '' for a completed job."""
        return cast("Queue", self._queue_of(Queue))

    def load(self) -> "Job":
        """Read what a popped job came without, as its attributes do by themselves; return the job itself.

        That is history, dependents, progress and log. Core: verbs/inspect.lua.
        """
        self._fill(self.run(JobGet((self.jid,))))
        return self


class Queue(QueueVerbs[Job], SyncMethods):
    """A queue of a sync client. Making one sends nothing."""

    _job_class = Job

    @property
    def throttle(self) -> Throttle:
        """The limit on how many jobs of this queue run at once."""
        return Throttle(self._client, OWN_THROTTLE + self.name)

    @cached_property
    def jobs(self) -> QueueJobs:
        """The jids of its jobs by state: `queue.jobs.running()`."""
        return QueueJobs(self.name, self._client)

    @overload
    def pop(self, count: None = None) -> Job | None: ...
    @overload
    def pop(self, count: int) -> list[Job]: ...
    def pop(self, count: int | None = None) -> Job | list[Job] | None:
        """Lease the next job, None if nothing is ready; with `count`, a list of up to `count` jobs. Core: verbs/pop.lua."""
        return run_steps(self._pop(count))

    @overload
    def peek(self, offset: int | None = None, count: None = None) -> Job | None: ...
    @overload
    def peek(self, offset: int | None, count: int) -> list[Job]: ...
    @overload
    def peek(self, *, count: int) -> list[Job]: ...
    def peek(self, offset: int | None = None, count: int | None = None) -> Job | list[Job] | None:
        """Return the next job without taking it; with `count`, a list. Core: verbs/inspect.lua."""
        return run_steps(self._peek(offset, count))

    def __len__(self) -> int:
        return self.length()

    def __bool__(self) -> bool:
        return True


class Queues(QueuesVerbs, SyncMethods):
    """The queues of a sync client: `queues["mail"]`."""

    def __getitem__(self, name: str) -> Queue:
        return Queue(name, self._client)


class Stats(StatsVerbs, SyncMethods):
    """The statistics of a sync client."""


def current_job() -> Job:
    """Return the job that this code is performing.

    In `async def` that is an `AsyncJob`: write `current_async_job()` there, so that type checkers find a missing `await`.
    Outside of a job it is None, which the annotation leaves out: the code of a job need not check for it.
    """
    job: Job = running_job()
    return job


def current_async_job() -> "AsyncJob":
    """Return the job that this coroutine is performing, as `current_job` does, typed as `AsyncJob`."""
    job: AsyncJob = running_job()
    return job


class AsyncJob(JobVerbs, CoroutineHandle):
    """A job of an async client."""

    @property
    def queue(self) -> "AsyncQueue":
        """The queue the job is in; one named '' for a completed job."""
        return cast("AsyncQueue", self._queue_of(AsyncQueue))

    async def load(self) -> "AsyncJob":
        """Read what a popped job came without, before its attributes are read; return the job itself.

        That is history, dependents, progress and log. Core: verbs/inspect.lua.
        """
        self._fill(await self.run(JobGet((self.jid,))))
        return self


class AsyncQueue(QueueVerbs[AsyncJob], AsyncMethods):
    """A queue of an async client. Making one sends nothing."""

    _job_class = AsyncJob

    @property
    def throttle(self) -> AsyncThrottle:
        """The limit on how many jobs of this queue run at once."""
        return AsyncThrottle(self._client, OWN_THROTTLE + self.name)

    @cached_property
    def jobs(self) -> AsyncQueueJobs:
        """The jids of its jobs by state: `queue.jobs.running()`."""
        return AsyncQueueJobs(self.name, self._client)

    @overload
    async def pop(self, count: None = None) -> AsyncJob | None: ...
    @overload
    async def pop(self, count: int) -> list[AsyncJob]: ...
    async def pop(self, count: int | None = None) -> AsyncJob | list[AsyncJob] | None:
        """Lease the next job, None if nothing is ready; with `count`, a list of up to `count` jobs. Core: verbs/pop.lua."""
        return await await_steps(self._pop(count))

    @overload
    async def peek(self, offset: int | None = None, count: None = None) -> AsyncJob | None: ...
    @overload
    async def peek(self, offset: int | None, count: int) -> list[AsyncJob]: ...
    @overload
    async def peek(self, *, count: int) -> list[AsyncJob]: ...
    async def peek(
        self, offset: int | None = None, count: int | None = None
    ) -> AsyncJob | list[AsyncJob] | None:
        """Return the next job without taking it; with `count`, a list. Core: verbs/inspect.lua."""
        return await await_steps(self._peek(offset, count))


class AsyncQueues(QueuesVerbs, AsyncMethods):
    """The queues of an async client: `queues["mail"]`."""

    def __getitem__(self, name: str) -> AsyncQueue:
        return AsyncQueue(name, self._client)


class AsyncStats(StatsVerbs, AsyncMethods):
    """The statistics of an async client."""
