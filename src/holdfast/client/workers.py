"""`client.workers`: the workers, their leases, and making one quiet, for both clients."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from holdfast.client.descriptors import (
    AsyncMethods,
    ClientPart,
    CommandMethod,
    PlanMethod,
    PlanProperty,
    SyncMethods,
)
from holdfast.commands import Command
from holdfast.commands.workers import (
    MAX_ROWS,
    HeldJob,
    WorkerFacts,
    WorkerForget,
    WorkerJobs,
    WorkerQuiet,
    Workers,
)
from holdfast.errors import UsageError
from holdfast.settings import MAX_BATCH, check_name
from holdfast.wire.plans import Plan, Planner


class WorkersVerbs(ClientPart):
    """The methods of workers by name: `workers["box-7"]` has the jids of its jobs."""

    @PlanProperty
    def counts(self, ask: Planner) -> Plan[list[dict[str, Any]]]:
        """How many running and stalled jobs each worker has: `name`, `jobs`, `stalled`, those with the latest pop or heartbeat
        first. A worker without heartbeats for `max-worker-age` is left out.

        This reads pages, so jobs that move meanwhile may be missed. Core: verbs/worker_jobs.lua.
        """
        active = {worker.name: worker.seen_ms for worker in (yield from _all(ask))}
        jobs, stalled = Counter[str](), Counter[str]()
        for job in (yield from _held(ask, "")):
            active[job.worker] = max(active.get(job.worker, 0), job.since_ms)
            (stalled if job.stalled else jobs)[job.worker] += 1
        names = sorted(active, key=lambda name: active[name], reverse=True)
        return [{"name": name, "jobs": jobs[name], "stalled": stalled[name]} for name in names]

    @PlanMethod
    def all(self, ask: Planner) -> Plan[list[WorkerFacts]]:
        """Every worker with the facts that it reports, most recently seen first. Core: nouns/lease/worker.lua."""
        return _all(ask)

    @PlanMethod
    def jobs(self, ask: Planner, name: str | None = None) -> Plan[list[HeldJob]]:
        """The leases of a worker, of all workers without a name; the one that lasts longest first.

        Core: verbs/worker_jobs.lua.
        """
        return _held(ask, "" if name is None else check_name("worker", name))

    @PlanMethod
    def __getitem__(self, ask: Planner, name: str) -> Plan[dict[str, list[str]]]:
        """The jids of a worker, `jobs` and `stalled`, those whose leases last longest first.

        Core: verbs/worker_jobs.lua.
        """
        return _jids(ask, check_name("worker", name))

    @PlanMethod
    def quiet(self, ask: Planner, name: str) -> Plan[bool]:
        """Let a worker finish its jobs and take no more; return whether the worker is known.

        This takes effect at once or within ten seconds. The name given to `holdfast worker --name` means all its
        processes. Core: nouns/lease/worker.lua.
        """
        return _set_quiet(ask, check_name("worker", name), True)

    @PlanMethod
    def resume(self, ask: Planner, name: str) -> Plan[bool]:
        """Let a quiet worker, or all processes of that name, take jobs again; return whether it is known.

        Core: nouns/lease/worker.lua.
        """
        return _set_quiet(ask, check_name("worker", name), False)

    @CommandMethod
    def forget(self, *names: str) -> Command[int]:
        """Remove up to 512 workers from the list; return how many were listed.

        They keep their leases, and one that is alive is listed again with its next heartbeat.
        Core: nouns/lease/worker.lua.
        """
        if not 1 <= len(names) <= MAX_BATCH:
            raise UsageError(f"forget takes 1 to {MAX_BATCH} names in one call, not {len(names)}")
        return WorkerForget([check_name("worker", name) for name in names])


class WorkersOf(WorkersVerbs, SyncMethods):
    """The workers of a sync client, by name; iterating yields the names."""

    def __iter__(self) -> Iterator[str]:
        return iter([worker.name for worker in self.all()])

    def __len__(self) -> int:
        return len(self.all())

    def __contains__(self, name: object) -> bool:
        return any(worker.name == name for worker in self.all())


class AsyncWorkersOf(WorkersVerbs, AsyncMethods):
    """The workers of an async client: `await workers["box-7"]` has the jids of its jobs."""


def is_meant(given: str, name: str) -> bool:
    """Return whether `name` is the worker `given`, or one of the processes of a worker of that name."""
    return name == given or (name.startswith(given + "-") and name[len(given) + 1 :].isdecimal())


def _all(ask: Planner) -> Plan[list[WorkerFacts]]:
    """Return every worker that is not too old, once, most recently seen first."""
    found: dict[str, WorkerFacts] = {}
    after = ("", "")
    while True:
        page = yield from ask(Workers(after))
        found.update({worker.name: worker for worker in page})
        if len(page) < MAX_ROWS:
            return sorted(found.values(), key=lambda worker: worker.seen_ms, reverse=True)
        after = (str(page[-1].seen_ms), page[-1].name)


def _set_quiet(ask: Planner, name: str, quiet: bool) -> Plan[bool]:
    """Make a worker quiet or not; if there is none of that name, the processes named `<name>-<number>`."""
    if (yield from ask(WorkerQuiet(name, quiet))):
        return True
    known = False
    for worker in (yield from _all(ask)):
        # A program that pops by itself may have such a name too, but reports no pool.
        if is_meant(name, worker.name) and "pool" in worker.facts:
            known = (yield from ask(WorkerQuiet(worker.name, quiet))) or known
    return known


def _held(ask: Planner, worker: str) -> Plan[list[HeldJob]]:
    """Return the leases of a worker ('' for all), each once, the one that lasts longest first."""
    found: dict[str, HeldJob] = {}
    cursor = ""
    while True:
        page = yield from ask(WorkerJobs(worker, cursor))
        found.update({held.jid: held for held in page.jobs})
        cursor = page.cursor
        if not cursor:
            return sorted(found.values(), key=lambda held: held.expires_ms, reverse=True)


def _jids(ask: Planner, worker: str) -> Plan[dict[str, list[str]]]:
    held = yield from _held(ask, worker)
    return {
        "jobs": [job.jid for job in held if not job.stalled],
        "stalled": [job.jid for job in held if job.stalled],
    }
