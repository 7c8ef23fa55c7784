"""Children that do not respond: they are logged with their stack, and killed after a time."""

import logging
from collections.abc import Iterable, Mapping
from math import inf
from time import monotonic
from typing import Final, NamedTuple

from holdfast.wire.waiting import sleep
from holdfast.worker.leases.table import Supervised
from holdfast.worker.observe.board import Asking, Board
from holdfast.worker.observe.stacks import Dumped, slot_in

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
                "\n\n".join(self._dump(child).of_all()) or "(no stack available)",
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
