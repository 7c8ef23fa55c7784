"""Leases that are lost while a child still works on them, and leases of dead children that are to be released.

What a dead child held is in its lease table. If it died in the middle of a call, the reply with its grants was lost; the call is
then sent again under its own number, which returns the same grants and takes none; if it comes first, the call itself takes none.
"""

import logging
import os
import signal
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from math import inf
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from holdfast.client.sync import Client
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import MAX_OUTCOMES, HowReleased, Release
from holdfast.errors import HoldfastError, Refused
from holdfast.models import JobFacts
from holdfast.wire.outage import Outage
from holdfast.wire.waiting import sleep
from holdfast.worker.leases.keeper import OVER, Held
from holdfast.worker.performing.outcome import log_release
from holdfast.worker.session import granted
from holdfast.worker.supervisor.calls import StoreCalls
from holdfast.worker.supervisor.child import LeaseTable
from holdfast.worker.supervisor.messages import StoreMessage

log = logging.getLogger("holdfast")

HALT: Final = 0.05  # seconds that a signal may take to halt a child
GLANCE: Final = 0.02  # seconds between two looks at a child that may be about to end its job
SETTLING: Final = 0.1  # seconds in which a job that has settled itself is removed from the lease table
PATIENCE: Final = 2.0  # seconds that a child has to end a job whose time is over
MOST_EARLY: Final = 1000


class Supervised(Protocol):
    """A child process, as those see it that renew its leases."""

    @property
    def pid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def lease_table(self) -> LeaseTable: ...
    def poke(self) -> None:
        """Make it read its lease table."""

    def kill(self) -> None:
        """Kill it, and what performs its jobs beside it."""


class LostLeases:
    """Lost leases of children that perform one job at a time: a child is killed if it works on one, and only then.

    A child that has just ended its job is refused by the store itself: while it calls the store it runs no job.
    """

    def __init__(self) -> None:
        self._lost: dict[Held, tuple[Supervised, float]] = {}
        self._glance_at = inf

    def add(self, lease: Held, child: Supervised) -> None:
        """The store has reported that this lease of a child is lost."""
        if lease not in self._lost:
            self._lost[lease] = child, monotonic()
            self._glance_at = 0.0

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return self._glance_at

    def attend(self) -> list[tuple[Supervised, Held]]:
        """Look at the children again. Return those that were killed, each with the lease it was killed for."""
        now = monotonic()
        if now < self._glance_at:
            return []
        killed: list[tuple[Supervised, Held]] = []
        for lease, (child, since) in list(self._lost.items()):
            if not holds(child, lease):
                del self._lost[lease]
            elif child.lease_table.asked() is not None:
                self._lost[lease] = child, now
            elif now - since >= SETTLING and _stop_if_still(child, lease):
                del self._lost[lease]
                killed.append((child, lease))
        self._glance_at = now + GLANCE if self._lost else inf
        return killed


class OverdueJobs:
    """Lost leases of children that run many jobs at once: each child is notified, and stops those jobs itself.

    A child that has not let go of a job PATIENCE seconds after the end of its `timeout` is to be killed.
    """

    def __init__(self) -> None:
        self._notified: dict[Held, tuple[Supervised, float]] = {}

    def add(self, lease: Held, child: Supervised) -> None:
        """The lease of a child is lost."""
        if lease not in self._notified:
            self._notified[lease] = child, monotonic() + PATIENCE
            child.lease_table.mark_lost(lease.number, lease.token, lease.lost)
            child.poke()

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return min((at for _, at in self._notified.values()), default=inf)

    def attend(self) -> list[tuple[Supervised, Held]]:
        """Look at the children again. Returns those to be killed, each for the lease of a job that it does not end."""
        now, late = monotonic(), list[tuple[Supervised, Held]]()
        for lease, (child, at) in list(self._notified.items()):
            if now < at:
                continue
            is_settling = child.lease_table.is_answered and child.lease_table.asked() is not None
            if is_settling and holds(child, lease):
                self._notified[lease] = child, now + PATIENCE / 4
                continue
            del self._notified[lease]
            if lease.lost == OVER and holds(child, lease):
                late.append((child, lease))
        return late


class EarlyMessages:
    """Messages about jobs that are in no lease table yet: a cancel may arrive before the reply that grants the job."""

    def __init__(self) -> None:
        self._early: dict[tuple[str, str], tuple[str, int] | None] = {}
        self._glance_at = inf

    def notify(self, messages: Iterable[StoreMessage]) -> None:
        """Note the jobs of these messages."""
        for one in messages:
            if one.jid and one.event != "stack" and len(self._early) < MOST_EARLY:
                self._early[one.worker, one.jid] = None
                self._glance_at = 0.0

    def due(self) -> float:
        """When to call `has_come` next, on the monotonic clock."""
        return self._glance_at

    def has_come(self, children: Mapping[str, Supervised]) -> bool:
        """Whether one of these jobs is in a lease table by now. Forgets those that cannot come any more."""
        now, came = monotonic(), False
        if now < self._glance_at:
            return False
        for (worker, jid), call in list(self._early.items()):
            child = children.get(worker)
            # In this order: a child notes its grants before it notes that the call has returned.
            asked = child.lease_table.asked() if child is not None else None
            is_here = child is not None and any(
                holding.jid == jid for holding in child.lease_table.read_all()
            )
            came = came or is_here
            if is_here or asked is None or call not in (None, asked):
                del self._early[worker, jid]
            else:
                self._early[worker, jid] = asked
        self._glance_at = now + GLANCE if self._early else inf
        return came


def _stop_if_still(child: Supervised, lease: Held) -> bool:
    """Kill a child for a job it must not work on any more, and for no other job. Returns whether it did."""
    # It is halted first, so that it cannot begin its next job between this check and the kill.
    _halt(child.pid)
    if holds(child, lease) and child.lease_table.asked() is None:
        log.warning(
            "job %s: %s; its process %d is stopped, and its result is not recorded",
            lease.jid,
            lease.lost,
            child.pid,
        )
        child.kill()
        return True
    os.kill(child.pid, signal.SIGCONT)
    return False


def _halt(pid: int) -> None:
    """Halt a child. When this returns it is stopped, or stays in a system call for so long that it changes nothing."""
    os.kill(pid, signal.SIGSTOP)
    end = monotonic() + HALT
    what = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG
    while os.waitid(os.P_PID, pid, what) is None and monotonic() < end:
        sleep(HALT / 100)


def holds(child: Supervised, lease: Held) -> bool:
    """Return whether a child still holds this lease."""
    holding = child.lease_table.read(lease.number)
    return holding is not None and (holding.jid, holding.token) == (lease.jid, lease.token)


PARTING: Final = 1.5
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
                log.warning("job %s is requeued when its lease ends: it could not be released", lease.jid)

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
            log.warning("job %s released: it was granted to a process that ended before it began", lease.jid)
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
        log.debug("what became of released jobs is unknown: %s", error)
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
