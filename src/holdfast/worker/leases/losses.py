"""Leases that are lost while a child still works on them: the child is notified or killed."""

import logging
import os
import signal
from collections.abc import Iterable, Mapping
from math import inf
from time import monotonic
from typing import Final

from holdfast.wire.waiting import sleep
from holdfast.worker.leases.keeper import HeldLease
from holdfast.worker.leases.table import OVER, Supervised
from holdfast.worker.supervisor.messages import StoreMessage

log = logging.getLogger("holdfast")

HALT: Final = 0.05  # seconds that a signal may take to halt a child
GLANCE: Final = 0.02  # seconds between two looks at a child that may be about to end its job
SETTLING: Final = 0.1  # seconds in which a job that has settled itself is removed from the lease table
PATIENCE: Final = 2.0  # seconds that a child has to end a job whose time is over
MOST_EARLY: Final = 1000


class LostLeases:
    """Lost leases of children that perform one job at a time: a child is killed if it works on one, and only then.

    A child that has just ended its job is refused by the store itself: while it calls the store it runs no job.
    """

    def __init__(self) -> None:
        self._lost: dict[HeldLease, tuple[Supervised, float]] = {}
        self._glance_at = inf

    def add(self, lease: HeldLease, child: Supervised) -> None:
        """Note that the store reported this lease of a child as lost."""
        if lease not in self._lost:
            self._lost[lease] = child, monotonic()
            self._glance_at = 0.0

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return self._glance_at

    def attend(self) -> list[tuple[Supervised, HeldLease]]:
        """Look at the children again. Return those that were killed, each with the lease it was killed for."""
        now = monotonic()
        if now < self._glance_at:
            return []
        killed: list[tuple[Supervised, HeldLease]] = []
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

    A child that still holds a job PATIENCE seconds after the end of its `timeout` is to be killed.
    """

    def __init__(self) -> None:
        self._notified: dict[HeldLease, tuple[Supervised, float]] = {}

    def add(self, lease: HeldLease, child: Supervised) -> None:
        """Note that the lease of a child is lost."""
        if lease not in self._notified:
            self._notified[lease] = child, monotonic() + PATIENCE
            child.lease_table.mark_lost(lease.number, lease.token, lease.lost)
            child.poke()

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return min((at for _, at in self._notified.values()), default=inf)

    def attend(self) -> list[tuple[Supervised, HeldLease]]:
        """Look at the children again. Returns those to be killed, each for the lease of a job that it does not end."""
        now, late = monotonic(), list[tuple[Supervised, HeldLease]]()
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


def _stop_if_still(child: Supervised, lease: HeldLease) -> bool:
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


def holds(child: Supervised, lease: HeldLease) -> bool:
    """Return whether a child still holds this lease."""
    holding = child.lease_table.read(lease.number)
    return holding is not None and (holding.jid, holding.token) == (lease.jid, lease.token)
