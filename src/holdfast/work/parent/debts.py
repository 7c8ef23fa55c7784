"""Leases of processes that died, on their way back to the store.

What a dead child held stands on its slate. If it died in the middle of a call, nobody read what that call was
granted; the call is then asked again under its own number, which answers the same grants and takes none.
"""

import logging
from collections.abc import Mapping
from time import monotonic
from typing import Final, NamedTuple

from holdfast.client.sync import Client
from holdfast.commands.leases import Lease, Pop
from holdfast.commands.outcomes import MOST_TOLD, HowReleased, Release
from holdfast.errors import HoldfastError, Refused
from holdfast.wire.outage import Outage
from holdfast.wire.shards import Line
from holdfast.wire.waiting import hold
from holdfast.work.parent.slate import Slate
from holdfast.work.performing.outcome import log_release

log = logging.getLogger("holdfast")

LATE: Final = 0.1
"""Seconds after which a call is asked for again: its bytes may have reached the store after our first question."""


PARTING: Final = 2.0
"""Seconds for which a process that is about to end tries to release leases."""


class Verdict(NamedTuple):
    """Why we killed a child: how the jobs that it was killed for are released, by jid and token, and their causes.

    A child that was killed for a job that it no longer holds has none. Its other jobs are released at no cost.
    """

    jobs: Mapping[tuple[str, int], tuple[HowReleased, str]]

    def on(self, jid: str, token: int) -> tuple[HowReleased, str]:
        """Return how a job of that child is released, and the cause."""
        return self.jobs.get((jid, token), ("preempted", "stuck"))


class _Debt:
    """What one dead process owes: leases, and perhaps the answer of one call."""

    def __init__(
        self, worker: str, slate: Slate, how: HowReleased, cause: str, verdict: Verdict | None, now: float
    ) -> None:
        held = slate.read_all()
        self.worker = worker
        self.cause = cause
        self.leases: dict[tuple[HowReleased, str], list[Lease]] = {}
        for jid, token in ((holding.jid, holding.token) for holding in held):
            like = verdict.on(jid, token) if verdict is not None else (how, cause)
            self.leases.setdefault(like, []).append(Lease(jid, token, worker))
        self.asked = slate.asked()
        self.questions = 2 if self.asked else 0
        self.at = now
        # Later than this the leases have ended by themselves.
        self.until = now + max([holding.lease for holding in held], default=60.0)


class Debts:
    """Gives leases back, as soon as the store can be reached."""

    def __init__(self, client: Client, queues: tuple[str, ...]) -> None:
        self._client = client
        self._queues = queues
        self._debts: list[_Debt] = []
        self._outage = Outage(client.shard.away)

    def add(
        self, worker: str, slate: Slate, how: HowReleased, cause: str, verdict: Verdict | None = None
    ) -> None:
        """Read and clear the lease table of a process that died; its leases are released as `how`, or by the `verdict`."""
        debt = _Debt(worker, slate, how, cause, verdict, monotonic())
        slate.wipe()
        # A child that was killed because its job was lost has been logged already.
        if verdict is None or verdict.jobs:
            for like, leases in debt.leases.items():
                for lease in leases:
                    log_release(lease.jid, *like)
        if debt.leases or debt.asked:
            self._debts.append(debt)

    def due(self) -> float | None:
        """When to pay next, on the monotonic clock; None when nothing is owed."""
        return min((debt.at for debt in self._debts), default=None)

    def pay(self) -> None:
        """Give back what is due."""
        now = monotonic()
        for debt in [debt for debt in self._debts if debt.at <= now]:
            try:
                self._pay(debt)
            except HoldfastError as error:
                debt.at = now + self._outage.pause(error)
                if debt.at > debt.until:
                    self._debts.remove(debt)
                return
            self._outage.over()
            if debt.questions:
                debt.at = now + LATE
            else:
                self._debts.remove(debt)

    def finish(self) -> None:
        """Release what is left; if the store is unavailable, try for at most PARTING seconds."""
        end = monotonic() + PARTING
        while (due := self.due()) is not None and monotonic() < end:
            hold(max(0.0, due - monotonic()))
            self.pay()

    def _pay(self, debt: _Debt) -> None:
        if debt.leases:
            # First: whatever the question adds, these are known.
            for like in list(debt.leases):
                self._give_back(debt.leases[like], *like)
                del debt.leases[like]
        if debt.questions and debt.asked:
            granted = self._granted(debt.worker, *debt.asked)
            if granted:
                # They never started, so the process cannot have died of them.
                self._give_back(granted, "preempted", debt.cause)
            debt.questions = 0 if granted else debt.questions - 1

    def _give_back(self, leases: list[Lease], how: HowReleased, cause: str) -> None:
        for at in range(0, len(leases), MOST_TOLD):
            self._client.run(Release(leases[at : at + MOST_TOLD], how, cause))

    def _granted(self, worker: str, name: str, number: int) -> list[Lease]:
        line = Line()
        line.name, line.number = name, number - 1
        lines = self._client.shard.lines
        lines.give(line)
        try:
            jobs = self._client.run(Pop(worker, self._queues, 0))
        except Refused:
            return []  # a later call of the same line was answered
        finally:
            lines.take()
        for job in jobs:
            log.warning("job %s released: it was granted to a process that ended before it began", job.jid)
        return [Lease(job.jid, job.token, worker) for job in jobs]
