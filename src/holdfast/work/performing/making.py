"""What one process of a worker performs with: the jobs that its code sees, the resolver, the code that it finds."""

from collections.abc import Callable
from typing import Any, Self

from holdfast.client.aio import AsyncClient
from holdfast.client.handles import AsyncJob, Job
from holdfast.client.jobs.callbacks import settling
from holdfast.client.jobs.verbs import JobVerbs
from holdfast.client.sync import Client
from holdfast.code.allowed import AllowList
from holdfast.code.current import not_lost
from holdfast.code.resolver import Resolver
from holdfast.commands.base import Command
from holdfast.models import JobFacts
from holdfast.work.performing.around import Surroundings, companions_of
from holdfast.work.performing.chain import Chain
from holdfast.work.performing.perform import Performer
from holdfast.work.queues.patterns import is_plain
from holdfast.work.settings import WorkerSettings, own_of
from holdfast.work.startup import search_first
from holdfast.work.store_choice import StoreChoice


def make_importable(settings: WorkerSettings) -> None:
    """Put the given paths, then the working directory, in front of the module search path."""
    search_first((*settings.paths, settings.root))


def make_resolver(settings: WorkerSettings) -> Resolver:
    """The resolver of a worker: what its allow-list says, queues by plain name."""
    allow = AllowList(settings.imports, settings.allow, settings.paths, settings.root)
    named = own_of(settings).plain
    plain = filter(is_plain, settings.queues if named is None else named)
    return Resolver(allow, plain, settings.auto_complete)


class Held(JobVerbs):
    """A job that says when it settled itself, so that nobody keeps its lease after that."""

    _on_settled: Callable[[], None]

    @classmethod
    def held(cls, facts: JobFacts, client: Any, on_settled: Callable[[], None]) -> Self:
        """The job of these facts; `on_settled` is called when it settled itself."""
        job = cls.of(facts, client)
        job._on_settled = on_settled
        return job

    @settling("complete")
    def complete_by(self, command: Command[Any]) -> Command[Any]:
        """Complete it by a command of its worker's, which has its result; its callbacks hear of that."""
        return self._ended(command)

    def _mark(self, result: Any) -> Any:
        result = super()._mark(result)
        self._on_settled()
        return result


class HeldJob(Held, Job):
    """What plain code sees as its job."""

    @property
    def _kind(self) -> type:
        return Job


class HeldAsyncJob(Held, AsyncJob):
    """The same for `async def`."""

    @property
    def _kind(self) -> type:
        return AsyncJob


def nothing() -> None:
    """What happens when a job settled itself and nobody needs to know."""


def make_performer(
    store: StoreChoice,
    settings: WorkerSettings,
    name: str,
    client: Client | None = None,
    on_settled: Callable[[], None] = nothing,
    lost: Callable[[], str] = not_lost,
    around: Surroundings | None = None,
    resolver: Resolver | None = None,
) -> Performer:
    """The performer of one process; a client that was not given is made when the first job needs it.

    `lost` shows why the lease of the job under way is known to be lost, where one job is performed at a time; `around`
    is what the process keeps around its jobs; `resolver` finds their code, one of its own unless given.
    """

    async_client: AsyncClient | None = None

    def make(facts: JobFacts) -> Job:
        nonlocal client
        client = client or store.client(name)
        return HeldJob.held(facts, client, on_settled)

    def make_async(facts: JobFacts) -> AsyncJob:
        nonlocal async_client
        async_client = async_client or store.async_client(name)
        return HeldAsyncJob.held(facts, async_client, on_settled)

    companions = companions_of(settings, name, around.companions if around else ())
    chain = Chain(settings.middleware)
    resolver = resolver or make_resolver(settings)
    waits = settings.waits_for_code and not settings.drain
    return Performer(resolver, make, make_async, lost, companions, chain, waits)
