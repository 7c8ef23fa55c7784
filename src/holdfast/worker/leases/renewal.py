"""The leases of the children, renewed by the parent: heartbeats, releases, and children that do not respond."""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Final, NamedTuple

from holdfast.commands.admin import Sweep
from holdfast.commands.outcomes import HowReleased
from holdfast.errors import HoldfastError
from holdfast.wire.outage import Outage
from holdfast.wire.waiting import sleep
from holdfast.worker.leases.keeper import OVER, Held, Keeper
from holdfast.worker.leases.losses import (
    PARTING,
    EarlyMessages,
    LostLeases,
    OverdueJobs,
    PendingReleases,
    Supervised,
    Verdict,
    holds,
)
from holdfast.worker.observe.board import Asking, Board, open_board
from holdfast.worker.observe.stacks import Dumped, slot_in
from holdfast.worker.settings import ONE_SLOT, WorkerSettings
from holdfast.worker.supervisor.calls import StoreCalls, log_failure, run
from holdfast.worker.supervisor.messages import StoreMessage
from holdfast.worker.supervisor.presence import Presence, Sign, log_quiet

log = logging.getLogger("holdfast")

PERIOD: Final = 1.0  # seconds between two pings of a child that performs jobs
DUMPING: Final = 0.3  # seconds that the fault handler may take to write
LEAST: Final = 1.0  # seconds without a response before a child counts as stuck, however short leases are


class Stuck(NamedTuple):
    """A child that must be killed: for how long it has not responded, and the slot of the job that blocks it, if known."""

    child: Supervised
    seconds: float
    slot: int | None


class _Pinged:
    """One child: when the ping was sent that it has not responded to, and whether that was logged."""

    def __init__(self, now: float) -> None:
        self.at = now
        self.is_logged = False


class StuckChildren:
    """Pings the children that perform many jobs at once, as long as they have some.

    A child that has not responded for its shortest lease is logged with its stack; after `stuck_timeout` seconds (0: never) it is
    to be killed.
    """

    def __init__(self, board: Board, asking: Asking, stuck_timeout: float) -> None:
        self._board = board
        self._asking = asking
        self._stuck_timeout = stuck_timeout or inf
        self._pinged: dict[int, _Pinged] = {}
        self._look_at = 0.0

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return self._look_at

    def seconds(self, child: Supervised) -> float:
        """For how long a child has been stuck, in seconds; 0 if it is not."""
        pinged = self._pinged.get(child.pid)
        return monotonic() - pinged.at if pinged is not None and pinged.is_logged else 0.0

    def attend(self, children: Iterable[Supervised]) -> list[Stuck]:
        """Ping the children that have responded, log those that are stuck. Returns those that must be killed."""
        now = monotonic()
        if now < self._look_at:
            return []
        before, self._pinged = self._pinged, {}
        stuck: list[Stuck] = []
        for child in children:
            asked = before.get(child.pid)
            if asked is not None and asked.is_logged and child.lease_table.is_answered:
                log.warning("worker %s (process %d) responds again", child.name, child.pid)
            lease = child.lease_table.shortest_lease()
            if lease:
                pinged = self._pinged[child.pid] = self._ping(child, asked, now)
                stuck += self._look(child, pinged, lease, now - pinged.at)
        self._look_at = now + PERIOD / 4 if self._pinged else now + PERIOD
        return stuck

    def _ping(self, child: Supervised, pinged: _Pinged | None, now: float) -> _Pinged:
        if pinged is not None and not child.lease_table.is_answered:
            return pinged
        if pinged is None or pinged.is_logged or now - pinged.at >= PERIOD:
            child.lease_table.ping()
            child.poke()
            return _Pinged(now)
        return pinged

    def _look(self, child: Supervised, pinged: _Pinged, lease: float, silence: float) -> list[Stuck]:
        if child.lease_table.is_answered:
            return []
        if silence >= self._stuck_timeout:
            return [Stuck(child, silence, self._slot(self._dump(child)))]
        if silence >= max(lease, LEAST) and not pinged.is_logged and self._asking.due() == inf:
            pinged.is_logged = True
            log.warning(
                "worker %s (process %d) is stuck: it has not responded for %.1f s; its leases are kept; its stack:\n%s",
                child.name,
                child.pid,
                silence,
                "\n\n".join(self._dump(child).of_all()) or "(no stack could be had)",
            )
        return []

    def _slot(self, dump: Dumped) -> int | None:
        """The slot whose job was running; None if that is unknown, or if there are several."""
        slots = {
            slot for stack in dump.threads for _, _, name in stack if (slot := slot_in(name)) is not None
        }
        return slots.pop() if len(slots) == 1 else None

    def _dump(self, child: Supervised) -> Dumped:
        self._board.ask("-", child.pid)
        self._board.ask_threads()
        end, text = monotonic() + DUMPING, ""
        while monotonic() < end:
            sleep(0.01)
            before, text = text, self._board.dump()
            if text and text == before:
                break
        return Dumped(text)


def sentences(stuck: Mapping[str, float]) -> list[str]:
    """Return which workers are stuck, and for how long, in words."""
    return [f"{name} has not responded for {seconds:.0f} s" for name, seconds in stuck.items()]


SWEEP: Final = 60.0
_Key = tuple[int, int, str, int]


class LeaseRenewal:
    """Renews the leases in the lease tables of the children, and releases those of dead children.

    `can_kill`: whether they are processes of their own, which are killed for jobs that they must not work on.
    """

    def __init__(self, calls: StoreCalls, settings: WorkerSettings, can_kill: bool = True) -> None:
        self._calls = calls
        self._pending = PendingReleases(calls, settings.queues)
        self._presence = Presence(calls, settings)
        self._asking = Asking(calls, open_board())
        self._keeper = Keeper()
        self._can_kill = can_kill
        self._lost = LostLeases()
        self._overdue = OverdueJobs()
        self._has_one_slot = settings.pool in ONE_SLOT
        self._stuck = StuckChildren(
            open_board(), self._asking, 0 if settings.debugger else settings.stuck_timeout
        )
        self._early = EarlyMessages()
        self._known: dict[_Key, Held] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._outage = Outage(calls.shard.gate)
        self._under_way = 0
        self._is_late = False
        now = monotonic()
        self._keeper.begin(now)
        self._sweep_at = now + SWEEP

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return min(
            self._calls.due(),
            self._pending.due(),
            self._keeper.due(),
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
        self._promise(child)
        self._presence.hurry()

    def notify(self, messages: Iterable[StoreMessage]) -> None:
        """Note messages to children, or that the subscription was lost: renew all leases now."""
        found = list(messages)
        self._keeper.hurry()
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
            self._keeper.hurry()
        if now >= self._keeper.due():
            self._look(children, now)
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
            self._calls.call(partial(run, Sweep()), partial(log_failure, "sweeping"))

    def finish(self) -> None:
        """Release the last leases, and report that all children have ended. Makes no more calls."""
        end = monotonic() + PARTING
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
                    "job %s: %s, and it was not ended; its process %d is killed",
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

    def _look(self, children: list[Supervised], now: float) -> None:
        held = self._held(children)
        batches = self._keeper.look(held, now)
        self._is_late = self._is_late or self._under_way > 0
        for command, batch in batches if not self._under_way else ():
            self._calls.call(partial(run, command), partial(self._renewed, batch, held))
            self._under_way += 1
        self._note_lost(held)
        for child in children:
            self._promise(child)

    def _renewed(self, batch: list[Held], held: Mapping[Held, Supervised], result: Any) -> None:
        self._under_way -= 1
        if isinstance(result, HoldfastError):
            self._keeper.again(monotonic(), self._outage.pause(result))
        else:
            self._keeper.answer(batch, result)
            self._outage.over()
            self._note_lost({lease: held[lease] for lease in batch})
            if self._is_late and not self._under_way:
                self._keeper.hurry()
        if not self._under_way:
            self._is_late = False

    def _note_lost(self, held: Mapping[Held, Supervised]) -> None:
        for lease, child in held.items():
            # A reply may be late: the child may hold another lease by now.
            if not lease.lost or not holds(child, lease):
                continue
            if self._has_one_slot and self._can_kill:
                self._lost.add(lease, child)
            else:
                self._overdue.add(lease, child)

    def _promise(self, child: Supervised) -> None:
        """Note in the lease table which leases are renewed in time, so that the child need not report each such job.

        A job may have been noted just before, under a stricter promise: the table is read after each promise.
        """
        child.lease_table.set_pace(self._keeper.period * 3)
        if self._keeper.learn(child.lease_table.shortest_lease()):
            child.lease_table.set_pace(self._keeper.period * 3)

    def _held(self, children: list[Supervised]) -> dict[Held, Supervised]:
        """Return all leases in the tables; those that were there before keep their state."""
        held: dict[Held, Supervised] = {}
        known, self._known = self._known, {}
        for child in children:
            for holding in child.lease_table.read_all():
                key = (child.pid, holding.number, holding.jid, holding.token)
                lease = known.get(key) or Held(
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


def _verdict_on(child: Supervised, lease: Held) -> Verdict:
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
