"""The leases of dead children, which are released as soon as the store can be reached.

What a dead child held is in its lease table. If it died in the middle of a call, the reply with its grants was lost; the call is
then sent again under its own number, which returns the same grants and takes none; if it comes first, the call itself takes none.
"""

import logging
from collections.abc import Mapping
from functools import partial
from itertools import chain
from math import inf
from time import monotonic
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.client.sync import Client
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import MAX_OUTCOMES, HowReleased, Release
from holdfast.errors import HoldfastError, Refused
from holdfast.models import JobFacts
from holdfast.wire.outage import Outage
from holdfast.wire.waiting import sleep
from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.performing.outcome import log_release
from holdfast.worker.session import granted
from holdfast.worker.supervisor.calls import StoreCalls

log = logging.getLogger("holdfast")

LAST_CALLS_TIMEOUT_S: Final = 1.5
"""Seconds that a process which is about to end has for its last calls to the store."""


class Verdict(NamedTuple):
    """Why a child was killed: how the jobs that it was killed for are released, by jid and token, and their causes.

    A child that was killed for a job that it no longer holds has none. Its other jobs are released at no cost.
    """

    jobs: Mapping[tuple[str, int], tuple[HowReleased, str]]

    def on(self, jid: str, token: int) -> tuple[HowReleased, str]:
        """Return how a job of that child is released, and the cause."""
        return self.jobs.get((jid, token), ("preempted", "stuck"))


class _PendingRelease:
    """The leases of one dead process, and perhaps one call whose reply it did not read."""

    def __init__(
        self,
        worker: str,
        lease_table: LeaseTable,
        how: HowReleased,
        cause: str,
        verdict: Verdict | None,
        now: float,
    ) -> None:
        held = lease_table.read_all()
        self.worker = worker
        self.cause = cause
        # A child that was killed because its job was lost has been logged already.
        self.is_logged = verdict is not None and not verdict.jobs
        self.leases: dict[tuple[HowReleased, str], list[Lease]] = {}
        for jid, token in ((holding.jid, holding.token) for holding in held):
            like = verdict.on(jid, token) if verdict is not None else (how, cause)
            self.leases.setdefault(like, []).append(Lease(jid, token, worker))
        self.asked = lease_table.asked()
        self.at = now
        # Later than this the leases have ended by themselves.
        self.until = now + max([holding.lease for holding in held], default=60.0)


class PendingReleases:
    """Releases leases, as soon as the store can be reached."""

    def __init__(self, calls: StoreCalls, queues: tuple[str, ...]) -> None:
        self._calls = calls
        self._queues = queues
        self._pending: list[_PendingRelease] = []
        self._outage = Outage(calls.shard.gate)

    def add(
        self,
        worker: str,
        lease_table: LeaseTable,
        how: HowReleased,
        cause: str,
        verdict: Verdict | None = None,
    ) -> None:
        """Read and clear the lease table of a process that died; its leases are released as `how`, or by the `verdict`."""
        pending = _PendingRelease(worker, lease_table, how, cause, verdict, monotonic())
        lease_table.wipe()
        if pending.leases or pending.asked:
            self._pending.append(pending)

    @property
    def is_empty(self) -> bool:
        """Whether all leases are released."""
        return not self._pending

    def due(self) -> float:
        """Return when to call `send` next, on the monotonic clock."""
        return min((pending.at for pending in self._pending), default=inf)

    def send(self) -> None:
        """Release what is due."""
        now = monotonic()
        for pending in self._pending[:]:
            if pending.at <= now:
                self._send(pending)

    def finish(self, end: float) -> None:
        """Release what is left, until `end` at most."""
        while self._pending and monotonic() < end:
            self.send()
            self._calls.wait(end)
            sleep(min(self.due(), end) - monotonic())
        for pending in self._pending:
            for lease in chain.from_iterable(pending.leases.values()):
                log.warning("job %s could not be released; it is requeued when its lease ends", lease.jid)

    def _send(self, pending: _PendingRelease) -> None:
        if pending.leases:
            # First: these are known, whatever the repeated call adds.
            like = next(iter(pending.leases))
            some = pending.leases[like][:MAX_OUTCOMES]
            released = partial(self._released, pending, like, some)
            self._calls.call(partial(_release, Release(some, *like)), released)
        elif pending.asked:
            work = partial(_granted_to, pending.worker, self._queues, pending.asked)
            self._calls.call(work, partial(self._found, pending))
        else:
            self._pending.remove(pending)
            return
        pending.at = inf

    def _released(
        self, pending: _PendingRelease, like: tuple[HowReleased, str], some: list[Lease], result: Any
    ) -> None:
        if self._has_failed(pending, result):
            return
        found: dict[str, JobFacts] | None = result
        # None: they had ended, and the process died before it could note it.
        if found is not None and not pending.is_logged:
            for lease in some:
                facts = found.get(lease.jid)
                log_release(lease.jid, *like, facts, facts is not None and facts.state == "failed")
        del pending.leases[like][: len(some)]
        if not pending.leases[like]:
            del pending.leases[like]
        self._send(pending)

    def _found(self, pending: _PendingRelease, result: Any) -> None:
        if self._has_failed(pending, result):
            return
        leases: list[Lease] = result
        for lease in leases:
            log.warning("job %s released: its process ended before the job started", lease.jid)
        pending.asked = None
        if leases:
            # They never started, so the process cannot have died of them.
            pending.leases["preempted", pending.cause] = leases
            pending.is_logged = True
        self._send(pending)

    def _has_failed(self, pending: _PendingRelease, result: object) -> bool:
        if not isinstance(result, HoldfastError):
            self._outage.over()
            return False
        pending.at = monotonic() + self._outage.pause(result)
        if pending.at > pending.until:
            self._pending.remove(pending)
        return True


def _release(release: Release, client: Client) -> dict[str, JobFacts] | None:
    """Release leases. Return what these jobs are now, without their data; None if no lease was held."""
    if not client.run(release):
        return None
    try:
        found = client.run(JobGet([lease.jid for lease in release.leases]))
    except HoldfastError as error:
        log.debug("it is not known whether jobs were released: %s", error)
        return {}
    pairs = [(lease, facts) for lease, facts in zip(release.leases, found, strict=True) if facts is not None]
    return {lease.jid: _without_data(facts, lease.worker) for lease, facts in pairs}


def _without_data(facts: JobFacts, worker: str) -> JobFacts:
    return msgspec.structs.replace(facts, worker=worker, data=b"", history=(), failure=None, log=())


def _granted_to(worker: str, queues: tuple[str, ...], asked: tuple[str, int], client: Client) -> list[Lease]:
    try:
        jobs = client.runner.run(granted(client.shard, worker, queues, asked))
    except Refused:
        return []  # a later call of the same sequence had a reply
    return [Lease(job.jid, job.token, worker) for job in jobs]
