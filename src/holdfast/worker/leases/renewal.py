"""The leases in the lease tables of the children, renewed by heartbeats."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.wire.outage import Outage
from holdfast.worker.leases.keeper import HeldLease, Keeper
from holdfast.worker.leases.losses import holds
from holdfast.worker.leases.table import Supervised
from holdfast.worker.supervisor.calls import StoreCalls, run

_Key = tuple[int, int, str, int]
OnLost = Callable[[HeldLease, Supervised], None]


class LeaseRenewal:
    """Reads the lease tables of the children, and sends heartbeats for the leases in them when the keeper decides so.

    `on_lost` is called with each lease that is lost, or whose run has exceeded its timeout, as long as its child holds it.
    """

    def __init__(self, calls: StoreCalls, on_lost: OnLost) -> None:
        self._calls = calls
        self._on_lost = on_lost
        self._keeper = Keeper()
        self._keeper.begin(monotonic())
        self._known: dict[_Key, HeldLease] = {}
        self._outage = Outage(calls.shard.gate)
        self._under_way = 0
        self._is_late = False

    def due(self) -> float:
        """When to call `renew` next, on the monotonic clock."""
        return self._keeper.due()

    def renew_now(self) -> None:
        """Make the next `renew` due at once, because something happened to a lease."""
        self._keeper.renew_now()

    def renew(self, children: Iterable[Supervised]) -> None:
        """Send the heartbeats of all leases that the children hold; at most one round is under way."""
        children = list(children)
        held = self._held(children)
        batches = self._keeper.renew(held, monotonic())
        self._is_late = self._is_late or self._under_way > 0
        for command, batch in batches if not self._under_way else ():
            self._calls.call(partial(run, command), partial(self._renewed, batch, held))
            self._under_way += 1
        self._report_lost(held)
        for child in children:
            self.promise(child)

    def _renewed(self, batch: list[HeldLease], held: Mapping[HeldLease, Supervised], result: Any) -> None:
        self._under_way -= 1
        if isinstance(result, HoldfastError):
            self._keeper.retry(monotonic(), self._outage.pause(result))
        else:
            self._keeper.renewed(batch, result)
            self._outage.over()
            self._report_lost({lease: held[lease] for lease in batch})
            if self._is_late and not self._under_way:
                self._keeper.renew_now()
        if not self._under_way:
            self._is_late = False

    def _report_lost(self, held: Mapping[HeldLease, Supervised]) -> None:
        for lease, child in held.items():
            # A reply may be late: the child may hold another lease by now.
            if lease.lost and holds(child, lease):
                self._on_lost(lease, child)

    def promise(self, child: Supervised) -> None:
        """Note in the lease table which leases are renewed in time, so that the child need not report each such job.

        A job may have been noted just before, under a stricter promise: the table is read after each promise.
        """
        child.lease_table.set_pace(self._keeper.period * 3)
        if self._keeper.include(child.lease_table.shortest_lease()):
            child.lease_table.set_pace(self._keeper.period * 3)

    def _held(self, children: Iterable[Supervised]) -> dict[HeldLease, Supervised]:
        """Return all leases in the tables; those that were there before keep their state."""
        held: dict[HeldLease, Supervised] = {}
        known, self._known = self._known, {}
        for child in children:
            for holding in child.lease_table.read_all():
                key = (child.pid, holding.number, holding.jid, holding.token)
                lease = known.get(key) or HeldLease(
                    holding.jid,
                    holding.token,
                    child.name,
                    holding.lease,
                    holding.number,
                    holding.ends,
                )
                self._known[key] = lease
                held[lease] = child
        return held
