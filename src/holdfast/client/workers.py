"""`client.workers`: who works here, what each holds, and telling one to be quiet; in both colours."""

from collections import Counter
from collections.abc import Awaitable, Iterator
from typing import Any

from holdfast.client.colours import AsyncHandle, SyncHandle, Verb
from holdfast.commands import Command
from holdfast.commands.workers import (
    MOST_ROWS,
    HeldJob,
    WorkerFacts,
    WorkerForget,
    WorkerJobs,
    WorkerQuiet,
    Workers,
)
from holdfast.errors import UsageError
from holdfast.settings import MAX_BATCH, check_name
from holdfast.wire.plans import Ask, Plan


def _all(ask: Ask) -> Plan[list[WorkerFacts]]:
    """Every worker that is not too old, once, most recently seen first."""
    found: dict[str, WorkerFacts] = {}
    after = ("", "")
    while True:
        page = yield from ask(Workers(after))
        found.update({worker.name: worker for worker in page})
        if len(page) < MOST_ROWS:
            return sorted(found.values(), key=lambda worker: worker.seen_ms, reverse=True)
        after = (str(page[-1].seen_ms), page[-1].name)


def _held(ask: Ask, worker: str) -> Plan[list[HeldJob]]:
    """The leases of a worker ('' for all), each once, the one that lasts longest first."""
    found: dict[str, HeldJob] = {}
    cursor = ""
    while True:
        page = yield from ask(WorkerJobs(worker, cursor))
        found.update({held.jid: held for held in page.jobs})
        cursor = page.cursor
        if not cursor:
            return sorted(found.values(), key=lambda held: held.expires_ms, reverse=True)


def _jobs(ask: Ask, worker: str) -> Plan[dict[str, list[str]]]:
    held = yield from _held(ask, check_name("worker", worker))
    return {
        "jobs": [job.jid for job in held if not job.stalled],
        "stalled": [job.jid for job in held if job.stalled],
    }


def _counts(ask: Ask) -> Plan[list[dict[str, Any]]]:
    """How many jobs each worker holds; the one that last took a job or gave a sign of life comes first."""
    active = {worker.name: worker.seen_ms for worker in (yield from _all(ask))}
    jobs, stalled = Counter[str](), Counter[str]()
    for job in (yield from _held(ask, "")):
        active[job.worker] = max(active.get(job.worker, 0), job.since_ms)
        (stalled if job.stalled else jobs)[job.worker] += 1
    names = sorted(active, key=lambda name: active[name], reverse=True)
    return [{"name": name, "jobs": jobs[name], "stalled": stalled[name]} for name in names]


class WorkersVerbs:
    """What can be told to workers by name."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Verb
    def quiet(self, name: str) -> Command[bool]:
        """Tell a worker to finish what it does and take no more jobs; answers whether it is known.

        It hears of it at once or within ten seconds. Core: nouns/worker.lua.
        """
        return WorkerQuiet(check_name("worker", name))

    @Verb
    def resume(self, name: str) -> Command[bool]:
        """Tell a quiet worker to take jobs again; answers whether it is known. Core: nouns/worker.lua."""
        return WorkerQuiet(check_name("worker", name), False)

    @Verb
    def forget(self, *names: str) -> Command[int]:
        """Take up to 512 workers off the list; answers how many were there.

        What they hold stays theirs, and one that is alive comes back with its next sign of life.
        Core: nouns/worker.lua.
        """
        if not 1 <= len(names) <= MAX_BATCH:
            raise UsageError(f"forget takes 1 to {MAX_BATCH} names in one call, not {len(names)}")
        return WorkerForget([check_name("worker", name) for name in names])

    def _walk(self, plan: Plan[Any]) -> Any:
        return self._client.runner.run(plan)


class WorkersOf(WorkersVerbs, SyncHandle):
    """The workers of a blocking client: `workers["box-7"]` is what it holds."""

    @property
    def counts(self) -> list[dict[str, Any]]:
        """How many running and stalled jobs each worker holds: `name`, `jobs`, `stalled`, most recently seen first.

        Read in pages, so jobs that move meanwhile may be missed. Core: verbs/holding.lua.
        """
        found: list[dict[str, Any]] = self._walk(_counts(self._client.plan_of))
        return found

    def all(self) -> list[WorkerFacts]:
        """Every worker with what it says of itself, most recently seen first. Core: nouns/worker.lua."""
        found: list[WorkerFacts] = self._walk(_all(self._client.plan_of))
        return found

    def jobs(self, name: str) -> list[HeldJob]:
        """The leases a worker holds, the one that lasts longest first. Core: verbs/holding.lua."""
        found: list[HeldJob] = self._walk(_held(self._client.plan_of, check_name("worker", name)))
        return found

    def __getitem__(self, name: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self._walk(_jobs(self._client.plan_of, name))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter([worker.name for worker in self.all()])

    def __len__(self) -> int:
        return len(self.all())

    def __contains__(self, name: object) -> bool:
        return any(worker.name == name for worker in self.all())


class AsyncWorkersOf(WorkersVerbs, AsyncHandle):
    """The workers of an async client: `await workers["box-7"]` is what it holds."""

    @property
    def counts(self) -> Awaitable[list[dict[str, Any]]]:
        """How many running and stalled jobs each worker holds: `name`, `jobs`, `stalled`, most recently seen first.

        Read in pages, so jobs that move meanwhile may be missed. Core: verbs/holding.lua.
        """
        found: Awaitable[list[dict[str, Any]]] = self._walk(_counts(self._client.plan_of))
        return found

    def all(self) -> Awaitable[list[WorkerFacts]]:
        """Every worker with what it says of itself, most recently seen first. Core: nouns/worker.lua."""
        found: Awaitable[list[WorkerFacts]] = self._walk(_all(self._client.plan_of))
        return found

    def jobs(self, name: str) -> Awaitable[list[HeldJob]]:
        """The leases a worker holds, the one that lasts longest first. Core: verbs/holding.lua."""
        found: Awaitable[list[HeldJob]] = self._walk(_held(self._client.plan_of, check_name("worker", name)))
        return found

    def __getitem__(self, name: str) -> Awaitable[dict[str, list[str]]]:
        found: Awaitable[dict[str, list[str]]] = self._walk(_jobs(self._client.plan_of, name))
        return found
