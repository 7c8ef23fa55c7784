"""The handles of both clients: their jobs and queues."""

from collections.abc import Awaitable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from holdfast.client.bulk import first_of, note_answers, steps_of
from holdfast.client.descriptors import AsyncHandle, SyncHandle
from holdfast.client.jobs.performing import AsyncPerforming, Performing
from holdfast.client.jobs.verbs import JobVerbs
from holdfast.client.lists import AsyncQueueJobs, QueueJobs
from holdfast.client.put_options import PutOptions
from holdfast.client.recurring import AsyncRecurringJob, RecurringJob
from holdfast.client.stacks import LiveStack, ask, ask_async
from holdfast.client.tables import JobsVerbs, QueuesVerbs, QueueVerbs
from holdfast.client.throttles import AsyncThrottle, Throttle
from holdfast.code.current import running_job
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Pop
from holdfast.commands.recurring import RecurGet
from holdfast.errors import HoldfastError
from holdfast.models import JobFacts
from holdfast.settings import check_each, check_name, check_page
from holdfast.wire.plans import failed_counts, failed_jobs, found_jobs, peeked_jobs, tracked_jobs

if TYPE_CHECKING:
    from holdfast.code.handle import AsyncHandle as AsyncJobHandle
    from holdfast.code.handle import Handle

J = TypeVar("J")
R = TypeVar("R")


class Job(JobVerbs, Performing, SyncHandle):
    """A job of a blocking client."""

    @property
    def queue(self) -> "Queue":
        """The queue the job is in; one named '' for a completed job."""
        return cast("Queue", self._queue_of(Queue))

    def load(self) -> "Job":
        """Ask for what a popped job came without, as its attributes do by themselves; answers the job itself.

        Those are history, dependents, progress and log. Core: verbs/inspect.lua.
        """
        self._fill(self.run(JobGet((self.jid,))))
        return self

    def stack(self, timeout: float = 5.0) -> LiveStack:
        """Ask its worker where a running job is just now; `str()` of the answer is the stack, innermost last.

        Also of code that hogs its process: then the stacks of all threads that perform jobs there. Raises JobNotFound,
        WrongState when nobody performs it, TimeoutError. Core: nouns/event.lua.
        """
        return ask(self._client, self.jid, timeout)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result of the job, for at most `timeout` seconds; None: for ever.

        If its function is known here, the result is of the type that the function declares, else a JSON value. Raises
        JobFailed, JobCancelled, JobNotFound when no result is kept, TimeoutError. Core: verbs/await.lua.
        """
        return self._client.jobs.handle(self.jid, _returns(self)).result(timeout)


class Queue(QueueVerbs, SyncHandle):
    """A queue of a blocking client; naming it asks nobody."""

    @property
    def throttle(self) -> "Throttle":
        """The limit on how many jobs of this queue run at once."""
        return Throttle(self._client, f"ql:q:{self.name}")

    @cached_property
    def jobs(self) -> QueueJobs:
        """The jids of its jobs by state: `queue.jobs.running()`."""
        return QueueJobs(self.name, self._client)

    def put_many(self, jobs: Iterable[object], **options: Unpack[PutOptions]) -> list[str]:
        """Put many jobs, 512 a call; answers their jids in order.

        Each is a (klass, data) pair, or a mapping with `klass`, `data` and options of its own; `options` hold for all
        others. The first refusal is raised when all were sent. Core: verbs/put.lua.
        """
        jids: list[str] = []
        refused: list[HoldfastError] = []
        for step in steps_of(self._client.settings, self.name, jobs, options):
            note_answers(step, self._client._put_together(step), jids, refused)
        if refused:
            raise first_of(refused, len(jids))
        return jids

    @overload
    def pop(self, count: None = None) -> Job | None: ...
    @overload
    def pop(self, count: int) -> list[Job]: ...
    def pop(self, count: int | None = None) -> Any:
        """Lease the next job, None if nothing is ready; with `count`, up to so many. Core: verbs/pop.lua."""
        limit = self._pop_count(count)
        found: Sequence[JobFacts] = []
        if limit:
            sign = self._client.sign_of_life(self.worker_name)
            if sign is not None:
                self.run(sign)
            found = self.run(Pop(self.worker_name, (self.name,), limit))
        return _one_or_all([Job.of(facts, self._client) for facts in found], count)

    @overload
    def peek(self, offset: int | None = None, count: None = None) -> Job | None: ...
    @overload
    def peek(self, offset: int | None, count: int) -> list[Job]: ...
    @overload
    def peek(self, *, count: int) -> list[Job]: ...
    def peek(self, offset: int | None = None, count: int | None = None) -> Any:
        """Look at the next job without taking it; with `count`, a list. Core: verbs/inspect.lua."""
        first, limit = check_page(offset or 0, 1 if count is None else count)
        client = self._client
        found = client.runner.run(peeked_jobs(client._plan_of, self.name, first, limit))
        return _one_or_all([Job.of(facts, self._client) for facts in found], count)

    def __len__(self) -> int:
        return self.length()

    def __bool__(self) -> bool:
        return True


class Queues(QueuesVerbs, SyncHandle):
    """The queues of a blocking client: `queues["mail"]`."""

    def __getitem__(self, name: str) -> Queue:
        return Queue(name, self._client)


class Jobs(JobsVerbs, SyncHandle):
    """The jobs of a blocking client: `jobs[jid]` is a job, else a recurring job of that jid, else None."""

    def __getitem__(self, jid: str) -> Job | RecurringJob | None:
        name = check_name("jid", jid)
        [facts] = self.run(JobGet((name,)))
        if facts is not None:
            return Job.of(facts, self._client)
        [template] = self.run(RecurGet((name,)))
        return None if template is None else RecurringJob(template, self._client)

    def get(self, *jids: str) -> list[Job]:
        """The jobs that exist, in the order asked. Core: verbs/inspect.lua."""
        names = check_each("jid", jids)
        client = self._client
        found = client.runner.run(found_jobs(client._plan_of, names))
        return [Job.of(facts, client) for facts in found if facts is not None]

    multiget = get

    def stack(self, jid: str, timeout: float = 5.0) -> LiveStack:
        """Ask its worker where a running job is just now; `str()` of the answer is the stack, innermost last.

        Also of code that hogs its process: then the stacks of all threads that perform jobs there. Raises JobNotFound,
        WrongState when nobody performs it, TimeoutError. Core: nouns/event.lua.
        """
        return ask(self._client, jid, timeout)

    @overload
    def handle(self, jid: str) -> "Handle[Any]": ...
    @overload
    def handle(self, jid: str, result_type: type[R]) -> "Handle[R]": ...
    def handle(self, jid: str, result_type: Any = Any) -> "Handle[Any]":
        """Return a handle of a job that was put elsewhere, to wait for its result, a JSON value or a `result_type`.

        Nothing is sent: whether there is such a job is found out by its methods.
        """
        from holdfast.code.handle import Handle

        return Handle(self._client, check_name("jid", jid), result_type)

    def _of(self, facts: JobFacts | None) -> Job | None:
        return None if facts is None else Job.of(facts, self._client)

    @overload
    def failed(self, group: None = None) -> dict[str, int]: ...
    @overload
    def failed(self, group: str, start: int = 0, limit: int = 25) -> dict[str, Any]: ...
    def failed(self, group: str | None = None, start: int = 0, limit: int = 25) -> dict[str, Any]:
        """Failure groups with their sizes; with `group`, its `total` and a page of `jobs`, newest failure first.

        Core: verbs/inspect.lua.
        """
        client = self._client
        if group is None:
            return dict(client.runner.run(failed_counts(client._plan_of)))
        page = failed_jobs(
            client._plan_of, check_name("group", group), *check_page(start, limit, ("start", "limit"))
        )
        total, jobs = client.runner.run(page)
        return {"total": total, "jobs": [Job.of(facts, client) for facts in jobs]}

    def tracked(self) -> dict[str, Any]:
        """The watched `jobs`, longest watched first, and the `expired` jids of which none is left.

        Without any, `expired` is {}, as older programs have it. Core: verbs/track.lua.
        """
        client = self._client
        jobs, expired = client.runner.run(tracked_jobs(client._plan_of))
        return {"jobs": [Job.of(facts, client) for facts in jobs], "expired": expired or {}}


def _returns(job: JobVerbs) -> Any:
    """The function of a job, if it is known here, else any type."""
    from holdfast.code.registry import find

    return find(job.klass_name) or Any


def current_job() -> Job | Any:
    """Return the job that this code is performing: a `Job`, inside `async def` an `AsyncJob` (`current_async_job`).

    Outside of a job None, which the annotation leaves out: the code of a job need not check for it.
    """
    return running_job()


def current_async_job() -> "AsyncJob | Any":
    """Return the job that this coroutine is performing, as `current_job` does, typed as `AsyncJob`."""
    return running_job()


def _one_or_all(jobs: list[J], count: int | None) -> J | list[J] | None:
    if count is None:
        return jobs[0] if jobs else None
    return jobs


class AsyncJob(JobVerbs, AsyncPerforming, AsyncHandle):
    """A job of an async client."""

    @property
    def queue(self) -> "AsyncQueue":
        """The queue the job is in; one named '' for a completed job."""
        return cast("AsyncQueue", self._queue_of(AsyncQueue))

    async def load(self) -> "AsyncJob":
        """Ask for what a popped job came without, before its attributes can tell it; answers the job itself.

        Those are history, dependents, progress and log. Core: verbs/inspect.lua.
        """
        self._fill(await self.run(JobGet((self.jid,))))
        return self

    async def stack(self, timeout: float = 5.0) -> LiveStack:
        """Ask its worker where a running job is just now; `str()` of the answer is the stack, innermost last.

        Also of code that hogs its process: then the stacks of all threads that perform jobs there. Raises JobNotFound,
        WrongState when nobody performs it, TimeoutError. Core: nouns/event.lua.
        """
        return await ask_async(self._client, self.jid, timeout)

    async def result(self, timeout: float | None = None) -> Any:
        """Wait for the result of the job, as `Job.result`."""
        return await self._client.jobs.handle(self.jid, _returns(self)).result(timeout)


class AsyncQueue(QueueVerbs, AsyncHandle):
    """A queue of an async client; naming it asks nobody."""

    @property
    def throttle(self) -> "AsyncThrottle":
        """The limit on how many jobs of this queue run at once."""
        return AsyncThrottle(self._client, f"ql:q:{self.name}")

    @cached_property
    def jobs(self) -> AsyncQueueJobs:
        """The jids of its jobs by state: `queue.jobs.running()`."""
        return AsyncQueueJobs(self.name, self._client)

    async def put_many(self, jobs: Iterable[object], **options: Unpack[PutOptions]) -> list[str]:
        """Put many jobs, 512 a call; answers their jids in order.

        Each is a (klass, data) pair, or a mapping with `klass`, `data` and options of its own; `options` hold for all
        others. The first refusal is raised when all were sent. Core: verbs/put.lua.
        """
        jids: list[str] = []
        refused: list[HoldfastError] = []
        for step in steps_of(self._client.settings, self.name, jobs, options):
            note_answers(step, await self._client._put_together(step), jids, refused)
        if refused:
            raise first_of(refused, len(jids))
        return jids

    @overload
    async def pop(self, count: None = None) -> AsyncJob | None: ...
    @overload
    async def pop(self, count: int) -> list[AsyncJob]: ...
    async def pop(self, count: int | None = None) -> Any:
        """Lease the next job, None when nothing is ready; with `count`, a list of up to that many.

        Core: verbs/pop.lua.
        """
        limit = self._pop_count(count)
        found: Sequence[JobFacts] = []
        if limit:
            sign = self._client.sign_of_life(self.worker_name)
            if sign is not None:
                await self.run(sign)
            found = await self.run(Pop(self.worker_name, (self.name,), limit))
        return _one_or_all([AsyncJob.of(facts, self._client) for facts in found], count)

    @overload
    async def peek(self, offset: int | None = None, count: None = None) -> AsyncJob | None: ...
    @overload
    async def peek(self, offset: int | None, count: int) -> list[AsyncJob]: ...
    @overload
    async def peek(self, *, count: int) -> list[AsyncJob]: ...
    async def peek(self, offset: int | None = None, count: int | None = None) -> Any:
        """Look at the next job without taking it; with `count`, a list. Core: verbs/inspect.lua."""
        first, limit = check_page(offset or 0, 1 if count is None else count)
        client = self._client
        found = await client.runner.run(peeked_jobs(client._plan_of, self.name, first, limit))
        return _one_or_all([AsyncJob.of(facts, self._client) for facts in found], count)


class AsyncQueues(QueuesVerbs, AsyncHandle):
    """The queues of an async client: `queues["mail"]`."""

    def __getitem__(self, name: str) -> AsyncQueue:
        return AsyncQueue(name, self._client)


class AsyncJobs(JobsVerbs, AsyncHandle):
    """The jobs of an async client: `await jobs[jid]` is a job, else a recurring job of that jid, else None."""

    def __getitem__(self, jid: str) -> Awaitable[AsyncJob | AsyncRecurringJob | None]:
        return self._one(check_name("jid", jid))

    async def _one(self, name: str) -> AsyncJob | AsyncRecurringJob | None:
        [facts] = await self.run(JobGet((name,)))
        if facts is not None:
            return AsyncJob.of(facts, self._client)
        [template] = await self.run(RecurGet((name,)))
        return None if template is None else AsyncRecurringJob(template, self._client)

    async def get(self, *jids: str) -> list[AsyncJob]:
        """The jobs that exist, in the order asked. Core: verbs/inspect.lua."""
        names = check_each("jid", jids)
        client = self._client
        found = await client.runner.run(found_jobs(client._plan_of, names))
        return [AsyncJob.of(facts, client) for facts in found if facts is not None]

    multiget = get

    async def stack(self, jid: str, timeout: float = 5.0) -> LiveStack:
        """Ask its worker where a running job is just now; `str()` of the answer is the stack, innermost last.

        Also of code that hogs its process: then the stacks of all threads that perform jobs there. Raises JobNotFound,
        WrongState when nobody performs it, TimeoutError. Core: nouns/event.lua.
        """
        return await ask_async(self._client, jid, timeout)

    @overload
    def handle(self, jid: str) -> "AsyncJobHandle[Any]": ...
    @overload
    def handle(self, jid: str, result_type: type[R]) -> "AsyncJobHandle[R]": ...
    def handle(self, jid: str, result_type: Any = Any) -> "AsyncJobHandle[Any]":
        """Return a handle of a job that was put elsewhere, as `Jobs.handle`; its methods are awaited."""
        from holdfast.code.handle import AsyncHandle

        return AsyncHandle(self._client, check_name("jid", jid), result_type)

    def _of(self, facts: JobFacts | None) -> AsyncJob | None:
        return None if facts is None else AsyncJob.of(facts, self._client)

    @overload
    async def failed(self, group: None = None) -> dict[str, int]: ...
    @overload
    async def failed(self, group: str, start: int = 0, limit: int = 25) -> dict[str, Any]: ...
    async def failed(self, group: str | None = None, start: int = 0, limit: int = 25) -> dict[str, Any]:
        """Failure groups with their sizes; with `group`, its `total` and a page of `jobs`, newest failure first.

        Core: verbs/inspect.lua.
        """
        client = self._client
        if group is None:
            return dict(await client.runner.run(failed_counts(client._plan_of)))
        page = failed_jobs(
            client._plan_of, check_name("group", group), *check_page(start, limit, ("start", "limit"))
        )
        total, jobs = await client.runner.run(page)
        return {"total": total, "jobs": [AsyncJob.of(facts, client) for facts in jobs]}

    async def tracked(self) -> dict[str, Any]:
        """The watched `jobs`, longest watched first, and the `expired` jids of which none is left.

        Without any, `expired` is {}, as older programs have it. Core: verbs/track.lua.
        """
        client = self._client
        jobs, expired = await client.runner.run(tracked_jobs(client._plan_of))
        return {"jobs": [AsyncJob.of(facts, client) for facts in jobs], "expired": expired or {}}
