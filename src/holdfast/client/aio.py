"""The async client and its handles: open, close, name things, and what cannot be said in one table."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, TypeVar, Unpack, overload

from holdfast.client.batch import OnePut
from holdfast.client.bulk import first_of, note_answers, steps_of
from holdfast.client.calling import Calling
from holdfast.client.colours import AsyncHandle
from holdfast.client.config import AsyncConfig
from holdfast.client.job import JobVerbs
from holdfast.client.opening import ClientOptions, settle
from holdfast.client.options import PutOptions
from holdfast.client.recurring import AsyncRecurring
from holdfast.client.results import AsyncResults, result_in
from holdfast.client.tables import JobsVerbs, QueuesVerbs, QueueVerbs
from holdfast.client.throttles import AsyncThrottle, AsyncThrottles
from holdfast.client.upkeep import AsyncAuditLog, AsyncQueuePatterns, AsyncUpkeep
from holdfast.client.workers import AsyncWorkersOf
from holdfast.code.function import AsyncJobDecorator
from holdfast.code.job_options import JobOptions
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.jobs import JobGet, Outcome, PutMany
from holdfast.commands.leases import Pop
from holdfast.errors import HoldfastError
from holdfast.models import JobFacts
from holdfast.settings import check_name, check_page, check_timeout
from holdfast.wire.aio import AsyncLink
from holdfast.wire.exchange import exchange, exchange_all
from holdfast.wire.gather import Gatherer, together
from holdfast.wire.plans import failed_counts, failed_jobs, found_jobs, peeked_jobs, tracked_jobs
from holdfast.wire.runners import AsyncRunner

R = TypeVar("R")


class AsyncJob(JobVerbs, AsyncHandle):
    """A job of an async client."""

    @property
    def queue(self) -> "AsyncQueue":
        """The queue the job is in."""
        return AsyncQueue(self.queue_name, self._client)


class AsyncQueue(QueueVerbs, AsyncHandle):
    """A queue of an async client; naming it asks nobody."""

    @property
    def throttle(self) -> "AsyncThrottle":
        """The limit on how many jobs of this queue run at once."""
        return AsyncThrottle(f"ql:q:{self.name}", self._client)

    async def put_many(self, jobs: Iterable[object], **options: Unpack[PutOptions]) -> list[str]:
        """Put many jobs, 512 a call; answers their jids in order.

        Each is a (klass, data) pair, or a mapping with `klass`, `data` and options of its own; `options` hold for all
        others. The first refusal is raised when all were sent. Core: verbs/put.lua.
        """
        jids: list[str] = []
        refused: list[HoldfastError] = []
        for step in steps_of(self._client.settings, self.name, jobs, options):
            note_answers(step, await self._client.put_together(step), jids, refused)
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
            found = await self.run(Pop(self.worker_name, (self.name,), limit))
        return _one_or_all(self._client, found, count)

    @overload
    async def peek(self, offset: int | None = None, count: None = None) -> AsyncJob | None: ...
    @overload
    async def peek(self, offset: int | None, count: int) -> list[AsyncJob]: ...
    @overload
    async def peek(self, *, count: int) -> list[AsyncJob]: ...
    async def peek(self, offset: int | None = None, count: int | None = None) -> Any:
        """Look at the next job without taking it; with `count`, a list. Core: verbs/inspect.lua."""
        first, limit = check_page(offset or 0, 1 if count is None else count)
        client: AsyncClient = self._client
        found = await client.runner.run(peeked_jobs(client.plan_of, self.name, first, limit))
        return _one_or_all(self._client, found, count)


class AsyncQueues(QueuesVerbs, AsyncHandle):
    """The queues of an async client: `queues["mail"]`."""

    def __getitem__(self, name: str) -> AsyncQueue:
        return AsyncQueue(name, self._client)


class AsyncJobs(JobsVerbs, AsyncHandle):
    """The jobs of an async client: `await jobs[jid]`."""

    def __getitem__(self, jid: str) -> Awaitable[AsyncJob | None]:
        client = self._client
        return self.run(then(JobGet((check_name("jid", jid),)), lambda found: _job_or_none(client, found[0])))

    async def get(self, *jids: str) -> list[AsyncJob]:
        """The jobs that exist, in the order asked. Core: verbs/inspect.lua."""
        names = [check_name("jid", jid) for jid in jids]
        client: AsyncClient = self._client
        found = await client.runner.run(found_jobs(client.plan_of, names))
        return [AsyncJob(facts, client) for facts in found if facts is not None]

    @overload
    async def failed(self, group: None = None) -> dict[str, int]: ...
    @overload
    async def failed(self, group: str, start: int = 0, limit: int = 25) -> dict[str, Any]: ...
    async def failed(self, group: str | None = None, start: int = 0, limit: int = 25) -> dict[str, Any]:
        """Failure groups with their sizes; with `group`, its `total` and a page of `jobs`, newest failure first.

        Core: verbs/inspect.lua.
        """
        client: AsyncClient = self._client
        if group is None:
            return dict(await client.runner.run(failed_counts(client.plan_of)))
        page = failed_jobs(client.plan_of, check_name("group", group), *check_page(start, limit))
        total, jobs = await client.runner.run(page)
        return {"total": total, "jobs": [AsyncJob(facts, client) for facts in jobs]}

    async def tracked(self) -> dict[str, Any]:
        """The watched `jobs`, longest watched first, and the `expired` jids of which none is left. Core: verbs/track.lua."""
        client: AsyncClient = self._client
        jobs, expired = await client.runner.run(tracked_jobs(client.plan_of))
        return {"jobs": [AsyncJob(facts, client) for facts in jobs], "expired": expired}


class AsyncClient(Calling):
    """Talks to one namespace of one store, awaited; calls of one loop turn leave together.

    `url` and options are those of `Client`. Making a client sends nothing. Raises UsageError.
    """

    def __init__(self, url: str | None = None, **options: Unpack[ClientOptions]) -> None:
        opening = settle(url, options)
        self.settings = opening.settings
        self.shard = opening.shard()
        self.link = AsyncLink(self.settings, opening.where)
        self.runner = AsyncRunner(self.link)
        self.queues = AsyncQueues(self)
        self.jobs = AsyncJobs(self)
        self.track, self.untrack, self.tags = self.jobs.track, self.jobs.untrack, self.jobs.tags
        self.recurring = AsyncRecurring(self)
        self.throttles = AsyncThrottles(self)
        self.config = AsyncConfig(self)
        self.workers = AsyncWorkersOf(self)
        self.queue_patterns = AsyncQueuePatterns(self)
        self.audit = AsyncAuditLog(self)
        self.upkeep = AsyncUpkeep(self)
        self.run = Gatherer(self.shard, self.runner).submit
        """Run one command; answers a future. Its call leaves with what else is asked for in this loop turn."""
        self._worker_name = self.settings.worker_name
        self._results = AsyncResults(self)
        self._embedded = opening.where is not None

    @property
    def root(self) -> str:
        """The namespace's root: what all its keys begin with."""
        return self.shard.root

    @property
    def worker_name(self) -> str:
        """The name under which this client pops."""
        return self._worker_name

    @worker_name.setter
    def worker_name(self, name: str) -> None:
        self._worker_name = check_name("worker_name", name)

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Run commands in one pipeline; answers what each reads, or the HoldfastError it would have raised."""
        return await self.runner.run(exchange_all(self.shard, commands))

    def plan_of(self, command: Command[R]) -> Any:
        """The plan of one command, for plans of several."""
        return exchange(self.shard, command)

    async def put_together(self, puts: Sequence[OnePut | PutMany]) -> list[Any]:
        """Send puts merged into as few calls as they allow; each gets its own jid or HoldfastError."""
        return await self.runner.run(together(self.shard, puts))

    async def unfail(self, group: str, queue: str, count: int = 500) -> int:
        """`jobs.unfail`: put up to `count` failed jobs of `group` to work in `queue`. Core: verbs/unfail.lua."""
        return await self.jobs.unfail(group, queue, count)

    async def wait_for(self, jid: str, timeout: float | None = None) -> Outcome:
        """Wait until a job has ended; its Outcome, which is still `open` when `timeout` seconds were too short."""
        return await self._results.wait_for(check_name("jid", jid), check_timeout(timeout))

    async def result_of(self, jid: str, timeout: float | None = None) -> bytes | None:
        """Wait for the result of a job: JSON bytes, None if it left none.

        Raises JobFailed, JobNotFound when neither job nor result is kept, TimeoutError.
        """
        return result_in(jid, await self.wait_for(jid, timeout))

    def job(self, **options: Unpack[JobOptions]) -> AsyncJobDecorator:
        """Make a function a job: `@client.job(queue="mail", retries=5)`; then `await function.put(…)` puts it."""
        return AsyncJobDecorator(self, options)

    async def close(self) -> None:
        """Close idle connections; the client may be used again."""
        await self._results.close()
        await self.link.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _place(self) == _place(other)

    def __hash__(self) -> int:
        return hash(_place(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} namespace={self.settings.namespace!r}>"


def _place(client: Any) -> tuple[str, str, bool]:
    return client.settings.url, client.settings.namespace, client._embedded


def _job_or_none(client: Any, facts: JobFacts | None) -> AsyncJob | None:
    return None if facts is None else AsyncJob(facts, client)


def _one_or_all(
    client: Any, found: Sequence[JobFacts], count: int | None
) -> AsyncJob | list[AsyncJob] | None:
    jobs = [AsyncJob(facts, client) for facts in found]
    if count is None:
        return jobs[0] if jobs else None
    return jobs
