"""What one process of a worker runs jobs with: its title, its directories, its middleware, and a performer of jobs."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from holdfast.client.aio import AsyncClient
from holdfast.client.handles import AsyncJob, Job
from holdfast.client.jobs.attributes import settling
from holdfast.client.jobs.verbs import JobVerbs
from holdfast.client.queue_names import is_plain
from holdfast.client.sync import Client
from holdfast.code.allowed import AllowList
from holdfast.code.current import not_lost
from holdfast.code.resolver import Resolver
from holdfast.code.unawaited import log_unawaited
from holdfast.commands.base import Command
from holdfast.models import JobFacts
from holdfast.text import listed
from holdfast.worker.middleware.builtin import BuiltIns, for_forked_job, for_process, with_general
from holdfast.worker.performing.chain import Chain
from holdfast.worker.performing.perform import Performer
from holdfast.worker.performing.sandboxes import Home
from holdfast.worker.process_state import Title
from holdfast.worker.settings import ONE_SLOT, WorkerSettings, own_of
from holdfast.worker.startup import search_first
from holdfast.worker.store_choice import StoreChoice

log = logging.getLogger("holdfast")


class Surroundings:
    """What a process has around its jobs. It makes it after its fork, and calls `close` after its last job."""

    def __init__(self, settings: WorkerSettings, title: Title, home: Home, built_in: BuiltIns) -> None:
        self.title = title
        self.built_in = built_in
        self._settings = settings
        self._home = home

    @classmethod
    def of_child(cls, settings: WorkerSettings, slot: int) -> Self:
        """Make those of child number `slot` of a worker. Raises UsageError."""
        title = _begun(settings)
        home = Home(settings.sandbox_of(slot), settings.works_in_sandboxes)
        around = cls(settings, title, home, for_process(settings, title, home, "Processing"))
        around.forked()
        return around

    @classmethod
    def of_serial(cls, settings: WorkerSettings) -> Self:
        """Make those of a worker without children, which stays in its directory. Raises UsageError."""
        title = _begun(settings)
        path = own_of(settings).sandbox
        if path:
            Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
        home = Home(Path(path).absolute() if path else settings.sandbox_of(0), works_in_sandbox=False)
        return cls(settings, title, home, for_process(settings, title, home, "Single processing"))

    def alone(self) -> Self:
        """Return those of a process that was forked from this one for one job."""
        home, built_in = self._home, self.built_in
        if self._settings.pool not in ONE_SLOT:
            home = home.other()
            built_in = for_forked_job(self.title, home)
        around = type(self)(self._settings, self.title, home, built_in)
        around.forked()
        return around

    def forked(self) -> None:
        """Call `after_fork` of the middleware, in a process that was just forked. What that raises is logged."""
        self.title.renew()
        for middleware in self._settings.middleware:
            hook: Any = getattr(middleware, "after_fork", None)
            try:
                if hook is not None:
                    hook()
            except Exception:
                log.exception("after_fork of middleware %s failed", type(middleware).__name__)

    def close(self) -> None:
        """Leave nothing behind."""
        self._home.close()
        self.title.close()


def _begun(settings: WorkerSettings) -> Title:
    log_unawaited()
    title = Title()
    title.show("Starting %s", listed(settings.queues))
    return title


def make_importable(settings: WorkerSettings) -> None:
    """Put the given paths, then the working directory, in front of the module search path."""
    search_first((*settings.paths, settings.root))


def make_resolver(settings: WorkerSettings) -> Resolver:
    """Return the resolver of a worker, with its allow-list and its queues with plain names."""
    allow = AllowList(settings.imports, settings.allow, settings.paths, settings.root)
    named = own_of(settings).plain
    plain = filter(is_plain, settings.queues if named is None else named)
    return Resolver(allow, plain, settings.auto_complete)


class Held(JobVerbs):
    """A job that reports when it settled itself, so that its lease is no longer renewed."""

    _on_settled: Callable[[], None]

    @classmethod
    def held(cls, facts: JobFacts, client: Any, on_settled: Callable[[], None]) -> Self:
        """Return the job of these facts; `on_settled` is called when it settled itself."""
        job = cls.of(facts, client)
        job._on_settled = on_settled
        return job

    @settling("complete")
    def complete_by(self, command: Command[Any]) -> Command[Any]:
        """Complete it by a command of its worker, which has its result; its callbacks are called."""
        return self._ended(command)

    def _mark(self, result: Any) -> Any:
        result = super()._mark(result)
        self._on_settled()
        return result


class HeldJob(Held, Job):
    """The job object of plain code."""

    @property
    def _kind(self) -> type:
        return Job


class HeldAsyncJob(Held, AsyncJob):
    """The job object of `async def` code."""

    @property
    def _kind(self) -> type:
        return AsyncJob


def nothing() -> None:
    """Do nothing: the default callback."""


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
    """Return the performer of one process; a client that was not given is made when the first job needs it.

    `lost` returns why the lease of the running job is known to be lost, where one job runs at a time; `around` is what the
    process has around its jobs; `resolver` finds their code, one of its own unless given.
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

    built_in = with_general(settings, name, around.built_in if around else ())
    resolver = resolver or make_resolver(settings)
    waits = settings.waits_for_code and not settings.drain
    return Performer(resolver, make, make_async, lost, built_in, Chain(settings.middleware), waits)
