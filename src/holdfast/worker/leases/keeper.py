"""Which leases need a heartbeat when, and which leases were lost.

The keeper has no socket and no clock; its owner sends the calls that it returns, and passes it the replies.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

from holdfast.commands.leases import HeartbeatMany, Lease
from holdfast.models import JobFacts
from holdfast.settings import DEFAULT_HEARTBEAT, MAX_BATCH
from holdfast.wire.outage import Hook
from holdfast.worker.leases.table import GONE, LOST, OVER

log = logging.getLogger("holdfast")

SHORT_LEASE: Final = 10.0
LONGEST_PERIOD: Final = DEFAULT_HEARTBEAT / 3  # seconds between two heartbeats, however long leases are


class HeldLease:
    """One lease under the keeper: `lease` in seconds; `lost` is the reason if it is known to be lost, else "".

    `ends` is the end of the run's timeout, on the monotonic clock.
    """

    __slots__ = ("ends", "jid", "lease", "lost", "number", "token", "worker")

    def __init__(
        self, jid: str, token: int, worker: str, lease: float, number: int = 0, ends: float = inf
    ) -> None:
        self.jid = jid
        self.token = token
        self.worker = worker
        self.lease = lease
        self.number = number
        self.ends = ends
        self.lost = ""


GAPS: Final = Hook()
"""Leases were not renewed for too long."""


class Keeper:
    """Decides when to heartbeat: every third of the shortest lease that is held, all leases in calls of 512."""

    def __init__(self) -> None:
        self.period = LONGEST_PERIOD
        self._renewed_at = self._last = 0.0
        self._is_new = True
        self._ends = inf

    def begin(self, now: float) -> None:
        """Start counting at `now`."""
        self._renewed_at = self._last = now

    def include(self, lease: float, ends: float = inf) -> bool:
        """Note a new lease of that many seconds, whose run ends then. Return whether heartbeats must be more frequent for it."""
        period = lease / 3
        self._ends = min(self._ends, ends)
        if 0 < period < self.period:
            self.period, self._is_new = period, True
            return True
        return False

    def due(self) -> float:
        """Return when to call `renew` next, on the monotonic clock."""
        return min(self._renewed_at + self.period, self._ends)

    def renew_now(self) -> None:
        """Make all leases due for renewal now, because something happened to one."""
        self._renewed_at = -self.period

    def retry(self, now: float, pause: float) -> None:
        """Note that a heartbeat failed: it is tried again `pause` seconds after `now` at the latest."""
        self._renewed_at = min(self._renewed_at, now + pause - self.period)

    def renew(self, held: Iterable[HeldLease], now: float) -> list[tuple[HeartbeatMany, list[HeldLease]]]:
        """Return the calls that renew `held`, each with its leases, in batches of at most 512.

        A lease whose run has exceeded its timeout is marked lost without a call. No other is: while the store cannot be
        reached, no other worker can take a job either.
        """
        gap = now - self._last
        self._renewed_at = self._last = now
        alive = _expire(held, now)
        # The keeper learns of each job with a shorter run when that is taken, so no end passes before it is known.
        self._ends = min((lease.ends for lease in alive), default=inf)
        # Even if nothing is held now: what was held meanwhile may be lost. A period that is new was not promised before.
        if gap > self.period * 1.5 and not self._is_new:
            GAPS.callback()
            log.warning("leases were not renewed for %.1f s: something blocks this process or machine", gap)
        before = self.period
        self.period = min([LONGEST_PERIOD, *(lease.lease / 3 for lease in alive if lease.lease > 0)])
        self._is_new = self.period < before
        batches = [alive[at : at + MAX_BATCH] for at in range(0, len(alive), MAX_BATCH)]
        return [(_command(batch), batch) for batch in batches]

    def renewed(self, batch: Sequence[HeldLease], ends: Sequence[int]) -> None:
        """Read the reply of a heartbeat: a lost lease is marked with the reason."""
        for lease, end in zip(batch, ends, strict=True):
            if end <= 0:
                lease.lost = LOST if end == 0 else GONE
        if log.isEnabledFor(logging.DEBUG):
            kept = Counter(lease.worker for lease in batch if not lease.lost)
            for worker, count in kept.items():
                log.debug("heartbeat: worker=%s renewed_leases=%d", worker, count)


def _expire(held: Iterable[HeldLease], now: float) -> list[HeldLease]:
    """Mark the leases whose run has exceeded its timeout. Return those that are not lost."""
    alive: list[HeldLease] = []
    for lease in held:
        if not lease.lost and now >= lease.ends:
            lease.lost = OVER
        if not lease.lost:
            alive.append(lease)
    return alive


def run_end(facts: JobFacts, since: float) -> float:
    """Return when a run that began at `since` exceeds its timeout."""
    limit = facts.options.get("limit")
    return since + int(limit) / 1000 if limit else inf


def _command(batch: Sequence[HeldLease]) -> HeartbeatMany:
    return HeartbeatMany([Lease(held.jid, held.token, held.worker) for held in batch])
