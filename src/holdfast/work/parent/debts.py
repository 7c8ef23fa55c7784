"""Leases of processes that died, on their way back to the store.

What a dead child held stands on its slate. If it died in the middle of a call, nobody read what that call was
granted; the call is then asked again under its own number, which answers the same grants and takes none.
"""

import logging
from time import monotonic
from typing import Final

from holdfast.client.sync import Client
from holdfast.commands.leases import Lease, Pop
from holdfast.commands.outcomes import MOST_TOLD, Expire
from holdfast.errors import HoldfastError, Refused
from holdfast.wire.outage import Outage
from holdfast.wire.shards import Line
from holdfast.work.parent.slate import Slate

log = logging.getLogger("holdfast")

LATE: Final = 0.1
"""Seconds after which a call is asked for again: its bytes may have reached the store after our first question."""


class _Debt:
    """What one dead process owes: leases, and perhaps the answer of one call."""

    def __init__(self, worker: str, slate: Slate, now: float) -> None:
        held = slate.read_all()
        self.worker = worker
        self.leases = [Lease(holding.jid, holding.token, worker) for holding in held]
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

    def add(self, worker: str, slate: Slate, pid: int, *, quiet: bool = False) -> None:
        """Take over the slate of a process that died, and wipe it.

        `quiet`: it was stopped because it had lost its job, which has been said, and nothing may come of this.
        """
        debt = _Debt(worker, slate, monotonic())
        slate.wipe()
        if not quiet:
            for lease in debt.leases:
                log.warning("job %s goes back: its process %d ended", lease.jid, pid)
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

    def _pay(self, debt: _Debt) -> None:
        if debt.leases:
            # First: whatever the question adds, these are known.
            self._give_back(debt.leases)
            debt.leases = []
        if debt.questions and debt.asked:
            granted = self._granted(debt.worker, *debt.asked)
            if granted:
                self._give_back(granted)
            debt.questions = 0 if granted else debt.questions - 1

    def _give_back(self, leases: list[Lease]) -> None:
        for at in range(0, len(leases), MOST_TOLD):
            self._client.run(Expire(leases[at : at + MOST_TOLD]))

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
            log.warning("job %s goes back: it was granted to a process that ended before it knew", job.jid)
        return [Lease(job.jid, job.token, worker) for job in jobs]
