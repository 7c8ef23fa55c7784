"""The jobs of both clients by jid, and handles of jobs that were put elsewhere."""

from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.client.descriptors import AsyncMethods, SyncMethods
from holdfast.client.handles import AsyncJob, Job
from holdfast.client.recurring import AsyncRecurringJob, RecurringJob
from holdfast.client.tables import JobsVerbs
from holdfast.code.steps import Coro, await_steps, run_steps
from holdfast.code.unawaited import named
from holdfast.settings import check_name

if TYPE_CHECKING:
    from holdfast.client.put_handles import AsyncHandle as AsyncJobHandle
    from holdfast.client.put_handles import Handle

R = TypeVar("R")


class Jobs(JobsVerbs[Job], SyncMethods):
    """The jobs of a sync client: `jobs[jid]` is a job, else a recurring job of that jid, else None."""

    _job_class = Job

    def __getitem__(self, jid: str) -> Job | RecurringJob | None:
        found: Job | RecurringJob | None = run_steps(self._find(check_name("jid", jid)))
        return found

    @overload
    def handle(self, jid: str) -> "Handle[Any]": ...
    @overload
    def handle(self, jid: str, result_type: type[R]) -> "Handle[R]": ...
    def handle(self, jid: str, result_type: object = Any) -> "Handle[Any]":
        """Return a handle of a job that was put elsewhere, to wait for its result, a JSON value or a `result_type`.

        Nothing is sent: its methods find out whether the job exists.
        """
        from holdfast.client.put_handles import Handle

        return Handle(self._client, check_name("jid", jid), result_type)

    @overload
    def failed(self, group: None = None) -> dict[str, int]: ...
    @overload
    def failed(self, group: str, start: int = 0, limit: int = 25) -> dict[str, Any]: ...
    def failed(self, group: str | None = None, start: int = 0, limit: int = 25) -> dict[str, Any]:
        """Failure groups with their sizes; with `group`, its `total` and a page of `jobs`, newest failure first.

        Core: verbs/inspect.lua.
        """
        return run_steps(self._failed(group, start, limit))


class AsyncJobs(JobsVerbs[AsyncJob], AsyncMethods):
    """The jobs of an async client: `await jobs[jid]` is a job, else a recurring job of that jid, else None."""

    _job_class = AsyncJob

    def __getitem__(self, jid: str) -> Coro[AsyncJob | AsyncRecurringJob | None]:
        found: Coro[AsyncJob | AsyncRecurringJob | None] = await_steps(self._find(check_name("jid", jid)))
        return named(found, "AsyncJobs.__getitem__")

    @overload
    def handle(self, jid: str) -> "AsyncJobHandle[Any]": ...
    @overload
    def handle(self, jid: str, result_type: type[R]) -> "AsyncJobHandle[R]": ...
    def handle(self, jid: str, result_type: object = Any) -> "AsyncJobHandle[Any]":
        """Return a handle of a job that was put elsewhere, as `Jobs.handle`; its methods are awaited."""
        from holdfast.client.put_handles import AsyncHandle

        return AsyncHandle(self._client, check_name("jid", jid), result_type)

    @overload
    async def failed(self, group: None = None) -> dict[str, int]: ...
    @overload
    async def failed(self, group: str, start: int = 0, limit: int = 25) -> dict[str, Any]: ...
    async def failed(self, group: str | None = None, start: int = 0, limit: int = 25) -> dict[str, Any]:
        """Failure groups with their sizes; with `group`, its `total` and a page of `jobs`, newest failure first.

        Core: verbs/inspect.lua.
        """
        return await await_steps(self._failed(group, start, limit))
