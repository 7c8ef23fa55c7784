"""What a parent does for its children: renews and releases their leases, reports them, ends those that must not continue."""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from math import inf
from time import monotonic
from typing import Final, cast

from holdfast.client.recurring import extend_plans, log_unplanned, replan
from holdfast.client.sync import Client
from holdfast.commands.admin import Sweep
from holdfast.commands.outcomes import HowReleased
from holdfast.wire.exchange import exchange
from holdfast.worker.leases.keeper import HeldLease
from holdfast.worker.leases.losses import EarlyMessages, LostLeases, OverdueJobs
from holdfast.worker.leases.releases import LAST_CALLS_TIMEOUT_S, PendingReleases, Verdict
from holdfast.worker.leases.renewal import LeaseRenewal
from holdfast.worker.leases.table import OVER, Supervised
from holdfast.worker.observe.board import Asking, open_board
from holdfast.worker.settings import ONE_SLOT, WorkerSettings
from holdfast.worker.supervisor.calls import StoreCalls, log_failure
from holdfast.worker.supervisor.messages import StoreMessage
from holdfast.worker.supervisor.presence import Presence, Sign, log_quiet
from holdfast.worker.supervisor.stuck import Stuck, StuckChildren

log = logging.getLogger("holdfast")

SWEEP: Final = 60.0
_MOST_NOTED: Final = 1000
_REPLAN_EACH: Final = 60
"""Of so many sweeps one looks for plans that were made with older data about time zones; the first one does."""
MOST_SWEEPS: Final = 100
ENOUGH_SWEPT: Final = 500
"""A sweep that drops fewer was the last for a minute."""


class ChildUpkeep:
    """Has the leases of the children renewed, those of dead children released, and children ended that are stuck or too late.

    `can_kill`: whether they are processes of their own, which are killed for jobs that they must not work on.
    """

    def __init__(self, calls: StoreCalls, settings: WorkerSettings, can_kill: bool = True) -> None:
        self._calls = calls
        self._pending = PendingReleases(calls, settings.queues)
        self._presence = Presence(calls, settings)
        self._asking = Asking(calls, open_board())
        self._renewal = LeaseRenewal(calls, self._note_lost)
        self._can_kill = can_kill
        self._lost = LostLeases()
        self._overdue = OverdueJobs()
        self._has_one_slot = settings.pool in ONE_SLOT
        self._stuck = StuckChildren(
            open_board(), self._asking, 0 if settings.debugger else settings.stuck_timeout
        )
        self._early = EarlyMessages()
        self._verdicts: dict[int, Verdict] = {}
        self._sweep_at = monotonic() + SWEEP
        self._sweeps = 0
        self._unplanned: dict[str, str] = {}

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return min(
            self._calls.due(),
            self._pending.due(),
            self._renewal.due(),
            self._presence.due(),
            self._asking.due(),
            self._lost.due(),
            self._overdue.due(),
            self._stuck.due() if self._watches else inf,
            self._early.due(),
            self._sweep_at,
        )

    def learn(self, child: Supervised) -> None:
        """Note that a child has written to its pipe: it holds a shorter lease than is renewed in time, or it received a message."""
        self._renewal.promise(child)
        self._presence.hurry()

    def notify(self, messages: Iterable[StoreMessage]) -> None:
        """Note messages to children, or that the subscription was lost: renew all leases now."""
        found = list(messages)
        self._renewal.renew_now()
        self._presence.hurry()
        self._early.notify(found)
        self._asking.notify(found)

    @property
    def is_store_available(self) -> bool:
        """Whether the store has answered the last report."""
        return self._presence.is_store_available

    @property
    def is_releasing(self) -> bool:
        """Whether leases of dead children are still to be released."""
        return not self._pending.is_empty

    def release(self, child: Supervised, how: HowReleased, cause: str) -> bool:
        """Have the leases of a dead child released as `how`. Return whether it had been killed because of its job."""
        verdict = self._verdicts.pop(child.pid, None)
        self._pending.add(child.name, child.lease_table, how, cause, verdict)
        return verdict is not None

    def attend(self, children: Iterable[Supervised]) -> None:
        """Do what is due: releases, heartbeats, reports, sweeps."""
        children, now = list(children), monotonic()
        self._calls.attend()
        self._pending.send()
        self._asking.attend({child.name: child.pid for child in children})
        if self._early.has_come({child.name: child for child in children}):
            self._renewal.renew_now()
        if now >= self._renewal.due():
            self._renewal.renew(children)
        for child, lease in self._lost.attend():
            self._verdicts[child.pid] = _verdict_on(child, lease)
        stuck = set(self.stuck(children))
        self._end_the_blocked(children)
        if set(self.stuck(children)) != stuck:
            self._presence.hurry()
        if now >= self._presence.due():
            self._report(children)
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP
            self._calls.call(_sweep, partial(log_failure, "sweeping"))
            is_first, self._sweeps = self._sweeps % _REPLAN_EACH == 0, self._sweeps + 1
            self._calls.call(partial(_extend_plans, is_first), self._note_unplanned)

    def finish(self) -> None:
        """Release the last leases, and report that all children have ended. Makes no more calls."""
        end = monotonic() + LAST_CALLS_TIMEOUT_S
        self._pending.finish(end)
        self._presence.end()
        self._calls.wait(end)
        self._calls.close()

    def _report(self, children: list[Supervised]) -> None:
        stuck = self.stuck(children)
        signs = [
            Sign(child.name, child.pid, len(child.lease_table.read_all()), stuck.get(child.name, 0.0))
            for child in children
        ]
        self._presence.report(signs, partial(self._note_quiet, children))

    def _note_unplanned(self, result: object) -> None:
        """Log why recurring jobs cannot be planned: of each once, until it changes."""
        if not isinstance(result, dict):
            log_failure("planning recurring jobs", result)
            return
        found = cast("dict[str, str]", result)
        log_unplanned({jid: why for jid, why in found.items() if self._unplanned.get(jid) != why})
        self._unplanned = {**self._unplanned, **found} if len(self._unplanned) < _MOST_NOTED else found

    def _note_quiet(self, children: list[Supervised], quiet: Mapping[str, bool]) -> None:
        for child in children:
            is_quiet = quiet.get(child.name, child.lease_table.quiet)
            if is_quiet != child.lease_table.quiet:
                child.lease_table.quiet = is_quiet
                child.poke()
                log_quiet(child.name, is_quiet)

    @property
    def _watches(self) -> bool:
        """Whether children must respond to pings while they run jobs."""
        return self._can_kill and not self._has_one_slot

    def stuck(self, children: Iterable[Supervised]) -> dict[str, float]:
        """Return for how many seconds children have not responded, by name; without those that respond."""
        found = {child.name: self._stuck.seconds(child) for child in children}
        return {name: seconds for name, seconds in found.items() if seconds}

    def _end_the_blocked(self, children: list[Supervised]) -> None:
        """Kill children that do not end a job whose time is over, or that have been stuck for too long."""
        overdue = self._overdue.attend()
        for child, lease in overdue if self._can_kill else ():
            if child.pid not in self._verdicts:
                log.warning(
                    "job %s: %s, but it did not stop; its process %d is killed",
                    lease.jid,
                    lease.lost,
                    child.pid,
                )
                self._verdicts[child.pid] = _verdict_on(child, lease)
                child.kill()
        for stuck in self._stuck.attend(children) if self._watches else ():
            if stuck.child.pid not in self._verdicts:
                log.error(
                    "worker %s (process %d) has been stuck for %.0f s and is killed",
                    stuck.child.name,
                    stuck.child.pid,
                    stuck.seconds,
                )
                self._verdicts[stuck.child.pid] = _verdict_on_stuck(stuck)
                stuck.child.kill()

    def _note_lost(self, lease: HeldLease, child: Supervised) -> None:
        if self._has_one_slot and self._can_kill:
            self._lost.add(lease, child)
        else:
            self._overdue.add(lease, child)


def _sweep(client: Client) -> None:
    """Sweep for as long as a call finds much to drop, in at most MOST_SWEEPS calls."""
    for _ in range(MOST_SWEEPS):
        if client.run(Sweep()) < ENOUGH_SWEPT:
            return


def _extend_plans(newer_zones: bool, client: Client) -> dict[str, str]:
    """Plan recurring jobs on; return why some cannot be, by jid."""
    ask, now, failed = partial(exchange, client.shard), client.store_time(), dict[str, str]()
    if newer_zones:
        client.runner.run(replan(ask, now))
    client.runner.run(extend_plans(ask, now, failed))
    return failed


def _verdict_on(child: Supervised, lease: HeldLease) -> Verdict:
    """Return how the jobs of a child are released that was killed for one of them."""
    if lease.lost != OVER:
        return Verdict({})
    holding = child.lease_table.read(lease.number)
    limit = holding.ends - holding.since if holding is not None else 0.0
    return Verdict({(lease.jid, lease.token): ("timed-out", f"{limit:g} s")})


def _verdict_on_stuck(stuck: Stuck) -> Verdict:
    """Return how the jobs of a stuck child are released: if it is unknown which of them blocked it, all count as lost."""
    how: tuple[HowReleased, str] = ("crashed", f"stuck for {stuck.seconds:.0f} s")
    held = stuck.child.lease_table.read_all()
    suspects = [one for one in held if stuck.slot in (None, one.number)] or held
    now, found = monotonic(), dict[tuple[str, int], tuple[HowReleased, str]]()
    for one in suspects:
        is_over = now >= one.ends
        found[one.jid, one.token] = ("timed-out", f"{one.ends - one.since:g} s") if is_over else how
    return Verdict(found)
