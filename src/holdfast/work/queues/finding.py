"""Which of many queues have work: asked of the index that the store keeps, instead of looking into each of them."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Final

from holdfast.commands.leases import WILL_NOT_WAIT, WILL_WAIT, WOKEN, FindWork, Popped
from holdfast.settings import MAX_BATCH
from holdfast.wire.exchange import exchange
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard

FEW: Final = 32
"""So many named queues are looked into one by one, as the older systems do."""

PAGE: Final = 1000
PAGES: Final = 8
"""Names in one answer, and answers that one turn asks for; the next turn goes on."""

KEPT: Final = 0.25
"""Seconds for which an answer is worked off: what is put meanwhile into a queue that goes first waits so long."""

SPARE: Final = 3
"""Queues that a pop may try beyond the number of jobs it wants: others may have emptied some."""

Meant = Callable[[Sequence[str]], Iterable[str]]
"""Which of these queues are meant, first to last."""


class Finding:
    """The queues of a worker that may have something to hand out.

    `fleet` names the workers of the same queues: they share a bell, on which one of them is told that a queue has work.
    """

    def __init__(self, fleet: str) -> None:
        self.fleet = fleet
        self._names: tuple[str, ...] = ()
        self._known_until = 0.0
        self._first = 0
        self._is_told = False
        self.has_nothing = False
        """Whether the last answer named no queue of this worker, so that it may wait."""
        self.due: float | None = None
        """Seconds until a queue has something due that had nothing before, None if nothing is."""

    @property
    def names(self) -> tuple[str, ...]:
        """The queues that may have work, first to last."""
        return self._names

    def find(self, shard: Shard, meant: Meant, will_wait: bool) -> Plan[None]:
        """Ask for queues with work, unless some are known. Raises TransportError."""
        if self._names and monotonic() < self._known_until:
            return
        mode = WILL_WAIT if will_wait else WILL_NOT_WAIT
        for _ in range(PAGES):
            answer = yield from exchange(shard, FindWork(self.fleet, mode, self._first, PAGE))
            self._names, self.due = tuple(meant(answer.queues)), answer.due
            self._first = self._first + PAGE if answer.has_more and not self._names else 0
            if not self._first:
                break
        self.has_nothing = not self._names and not self._first
        self._is_told = self._is_told and not self.has_nothing
        self._known_until = monotonic() + KEPT

    def for_pop(self, limit: int) -> tuple[str, ...]:
        """The queues that a pop of so many jobs tries."""
        return self._names[: min(limit + SPARE, MAX_BATCH)] if limit else ()

    def after(self, jobs: Popped, asked: int, takes_turns: bool) -> None:
        """Note what a pop found that wanted so many jobs. With `takes_turns` a queue that had some goes last."""
        tried = self.for_pop(asked)
        if len(jobs) < asked:
            self._names = self._names[len(tried) :]
        elif jobs:
            at = tried.index(jobs[-1].queue) + takes_turns
            self._names = self._names[at:] + (self._names[:at] if takes_turns else ())

    def told(self) -> None:
        """The bell of the fleet rang, or the wait ended by itself."""
        self._is_told = True

    def hand_on(self, shard: Shard) -> Plan[None]:
        """Have another worker of the fleet told, if this one was and can take no more."""
        if self._is_told:
            yield from exchange(shard, FindWork(self.fleet, WOKEN, 0, 1))
            self._is_told = False


def fleet_of(queues: Sequence[str], more: str = "") -> str:
    """The name that workers of the same queues share. `more`: what else their queues depend on."""
    return hashlib.sha256("\n".join([more, *queues]).encode()).hexdigest()[:16]
