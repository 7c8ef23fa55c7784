"""What one process of a worker performs with: the jobs its code sees, and the resolver."""

from collections.abc import Callable
from typing import Any

from holdfast.client.aio import AsyncClient, AsyncJob
from holdfast.client.job import JobVerbs
from holdfast.client.sync import Client, Job
from holdfast.models import JobFacts
from holdfast.work.perform import Performer
from holdfast.work.worker import StoreChoice, WorkerSettings, make_resolver


class Held(JobVerbs):
    """A job that says when it settled itself, so that nobody keeps its lease after that."""

    def __init__(self, facts: JobFacts, client: Any, on_settled: Callable[[], None]) -> None:
        super().__init__(facts, client)
        self._on_settled = on_settled

    def _mark(self, answer: Any) -> Any:
        answer = super()._mark(answer)
        self._on_settled()
        return answer


class HeldJob(Held, Job):
    """What plain code sees as its job."""


class HeldAsyncJob(Held, AsyncJob):
    """The same for `async def`."""


def nothing() -> None:
    """What happens when a job settled itself and nobody needs to know."""


def make_performer(
    store: StoreChoice,
    settings: WorkerSettings,
    name: str,
    client: Client | None = None,
    on_settled: Callable[[], None] = nothing,
) -> Performer:
    """The performer of one process; a client that was not given is made when the first job needs it."""

    async_client: AsyncClient | None = None

    def make(facts: JobFacts) -> Job:
        nonlocal client
        client = client or store.client(name)
        return HeldJob(facts, client, on_settled)

    def make_async(facts: JobFacts) -> AsyncJob:
        nonlocal async_client
        async_client = async_client or store.async_client(name)
        return HeldAsyncJob(facts, async_client, on_settled)

    return Performer(make_resolver(settings), make, make_async)
