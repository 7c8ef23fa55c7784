"""The async client: open, close, run commands."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from holdfast.client.base import ClientBase
from holdfast.client.bulk import OnePut
from holdfast.client.decorating import AsyncDecorating
from holdfast.client.descriptors import AsyncMethods, Part
from holdfast.client.handles import AsyncQueues, AsyncStats
from holdfast.client.job_lookup import AsyncJobs
from holdfast.client.opening import Opening, note, settle
from holdfast.client.plans import time_of
from holdfast.client.store_options import StoreOptions
from holdfast.client.unserved import without_workers
from holdfast.code.current import put_collector
from holdfast.code.steps import await_steps
from holdfast.commands import Command
from holdfast.commands.base import check_command
from holdfast.commands.jobs import Outcome, PutMany
from holdfast.errors import HoldfastError
from holdfast.settings import check_name, check_timeout
from holdfast.wire.aio import DRIVER_CLASSES, AsyncLink, Redis
from holdfast.wire.exchange import exchange, exchange_all
from holdfast.wire.gather import Gatherer, together
from holdfast.wire.plans import AsyncRunner, Plan

if TYPE_CHECKING:
    from holdfast.client.calls import Call, Group
    from holdfast.client.config import AsyncConfig
    from holdfast.client.events import AsyncEvents
    from holdfast.client.flows import AsyncFlowHandle
    from holdfast.client.patterns import AsyncQueuePatterns
    from holdfast.client.recurring import AsyncRecurring
    from holdfast.client.results import AsyncResults
    from holdfast.client.throttles import AsyncThrottles
    from holdfast.client.topics.scheduler import AsyncScheduler
    from holdfast.client.upkeep import AsyncAuditLog, AsyncUpkeep
    from holdfast.client.workers import AsyncWorkersOf

R = TypeVar("R")
T = TypeVar("T")


class AsyncClient(AsyncDecorating, ClientBase[Redis], AsyncMethods):
    """The async client of one namespace of one store. Calls of one iteration of a loop are sent together; loops may share one.

    `url`, options and parts are those of `Client`; an existing connection is a `redis.asyncio.Redis`. Making a
    client sends nothing. Raises UsageError.
    """

    audit: "Part[AsyncAuditLog]" = Part("upkeep.AsyncAuditLog")
    config: "Part[AsyncConfig]" = Part("config.AsyncConfig")
    events: "Part[AsyncEvents]" = Part("events.AsyncEvents")
    queue_patterns: "Part[AsyncQueuePatterns]" = Part("patterns.AsyncQueuePatterns")
    recurring: "Part[AsyncRecurring]" = Part("recurring.AsyncRecurring")
    stats: "Part[AsyncStats]" = Part("handles.AsyncStats")
    throttles: "Part[AsyncThrottles]" = Part("throttles.AsyncThrottles")
    topics: "Part[AsyncScheduler]" = Part("topics.scheduler.AsyncScheduler")
    upkeep: "Part[AsyncUpkeep]" = Part("upkeep.AsyncUpkeep")
    workers: "Part[AsyncWorkersOf]" = Part("workers.AsyncWorkersOf")
    _results: "Part[AsyncResults]" = Part("results.AsyncResults")

    def __init__(
        self,
        url: str | Redis | None = None,
        hostname: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> None:
        opening = settle(url, {"hostname": hostname, **options}, DRIVER_CLASSES)
        super().__init__(opening)
        self.link: AsyncLink = _link(opening)
        self.runner = AsyncRunner(self.link)
        self.queues = AsyncQueues(self)
        self.jobs = AsyncJobs(self)
        # An attribute of each client, which costs less to call than a method would.
        self.run = Gatherer(self.shard, self.runner, self).submit  # type: ignore[method-assign]
        """Run one command; return a future. It is sent with the other calls of this iteration of the loop."""
        note(self)

    @property
    def schedules(self) -> "AsyncScheduler":
        """`topics`, under the name that older programs use."""
        return self.topics

    def acting_as(self, actor: str) -> "AsyncClient":
        """Return this client, with a line in the audit log for each change of a queue, throttle, setting, recurring job, worker or topic.

        It shares the connections of this client, which is the one to close. `actor` is who acts, such as `ada@laptop`. Raises UsageError.
        """
        return AsyncActingClient(self, actor)

    async def run_all(self, commands: Sequence[Command[R]]) -> list[R | HoldfastError]:
        """Run commands in one pipeline; return the result of each, or the HoldfastError it would have raised."""
        for command in commands:
            check_command(command)
        return await self.runner.run(exchange_all(self.shard, commands))

    def _plan_of(self, command: Command[R], /) -> Plan[R]:
        """Return the plan of one command, for plans of several."""
        return exchange(self.shard, command)

    def _before_call(self) -> None:
        """Do nothing: only a sync client has batches, which it sends before any call that is not a put."""

    async def _put_together(self, puts: Sequence[OnePut | PutMany]) -> list[object]:
        """Send puts merged into as few calls as they allow; each gets its own jid or HoldfastError."""
        collector = put_collector.get()
        if collector is not None:
            return collector.take_all(self, puts)
        return await self.runner.run(together(self.shard, puts))

    @overload
    async def put(
        self, flow: "Call[T]", /, *, jid: str | None = None, open: bool = False
    ) -> "AsyncFlowHandle[T]": ...
    @overload
    async def put(
        self, flow: "Group[T]", /, *, jid: str | None = None, open: bool = False
    ) -> "AsyncFlowHandle[list[T]]": ...
    async def put(
        self, flow: object, /, *, jid: str | None = None, open: bool = False
    ) -> "AsyncFlowHandle[object]":
        """Put the jobs of a flow, all of them or none, as `Client.put`. Raises UsageError, JobNotFound, JobExists, QueueFull."""
        from holdfast.client.flow_plans import plan
        from holdfast.client.flows import AsyncFlowHandle, outline_of

        made = plan(flow, jid, self.settings, open)
        answers = [await self.run(command) for command in made.commands()]
        return AsyncFlowHandle(self, made.id, outline_of(made), bool(answers[0]))

    async def flow(self, jid: str, /) -> "AsyncFlowHandle[Any]":
        """Return the handle of a flow that was put before. Its result is that of its last call, also of a group of up to 512 calls, whose
        list only the handle of the put has. Raises JobNotFound. Core: verbs/flow_reading.lua.
        """
        from holdfast.client.flows import AsyncFlowHandle, found, outline_found
        from holdfast.commands.flows import FlowGet

        [facts] = await self.run(FlowGet([jid]))
        return AsyncFlowHandle(self, jid, outline_found(found(jid, facts)), None)

    async def wait_for(self, jid: str, timeout: float | None = None) -> Outcome:
        """Wait until a job has ended, at most `timeout` seconds; return its Outcome, which may still be `open`."""
        return await self._results.wait_for(check_name("jid", jid), check_timeout(timeout))

    async def store_time(self) -> float:
        """Return epoch seconds by the clock that times refer to: this machine's; in a test root, the one that a test moves."""
        return await self.runner.run(time_of(self.shard))

    async def result_of(self, jid: str, timeout: float | None = None) -> bytes | None:
        """Wait for the result of a job: JSON bytes, None if it has none.

        Raises JobFailed, JobCancelled, JobNotFound when neither job nor result is kept, TimeoutError.
        """
        outcome = await self.wait_for(jid, timeout)
        hint = await await_steps(without_workers(self)) if outcome.status == "open" else ""
        return outcome.result_of(jid, self.settings.flags, hint)

    async def close(self) -> None:
        """Close idle connections, end listening and the subscriptions of `topics`; the client may be used again."""
        if "events" in self.__dict__:
            self.events.unlisten()
        if "topics" in self.__dict__:
            await self.topics.close()
        if "_results" in self.__dict__:
            await self._results.close()
        await self.link.close()
        if self._database is not None and self._opening.target.existing is None:
            await self._database.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncActingClient(AsyncClient):
    """A client that shares store and connections with another; what it changes is audited as done by `actor`."""

    def __init__(self, client: AsyncClient, actor: str) -> None:
        self._act_for(client, actor)
        self.queues, self.jobs = AsyncQueues(self), AsyncJobs(self)
        run: Any = client.run
        self.run = lambda command, *name: run(self._audited(command), *name)  # type: ignore[method-assign]

    async def run_all(self, commands: Sequence[Command[R]]) -> list[R | HoldfastError]:
        """Run commands in one pipeline, each with its line of the audit log."""
        return await super().run_all(list(map(self._audited, commands)))

    def _plan_of(self, command: Command[R], /) -> Plan[R]:
        return super()._plan_of(self._audited(command))


def _link(opening: Opening) -> AsyncLink:
    if opening.target.existing is None:
        return AsyncLink(opening.settings, opening.target)
    from holdfast.wire.shared import AsyncSharedLink  # it imports both kinds of driver

    return AsyncSharedLink(opening.settings, opening.target)
