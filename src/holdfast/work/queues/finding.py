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
PAGES: Final = 16
"""Names in one answer, and answers that one turn asks for; the next turn goes on."""

KEPT: Final = 0.25
"""Seconds for which an answer is worked off: what is put meanwhile into a queue that goes first waits so long."""

SPARE: Final = 3
"""Queues that a pop may try beyond the number of jobs it wants: others may have emptied some."""

Meant = Callable[[Sequence[str]], Iterable[str]]
"""Which of these queues are meant, first to last."""


class Finding:
    """The queues of a worker that may have something to hand out.

    `fleet` names the workers of the same queues: they share a wake key, on which one of them learns that a queue has work.
    """

    def __init__(self, fleet: str) -> None:
        self.fleet = fleet
        self._names: tuple[str, ...] = ()
        self._known_until = 0.0
        self._first = 0
        self._is_woken = False
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
        found: list[str] = []
        dues: list[float] = []
        for _ in range(PAGES):
            answer = yield from exchange(shard, FindWork(self.fleet, mode, self._first, PAGE))
            found += answer.queues
            dues += [] if answer.due is None else [answer.due]
            self._first = self._first + PAGE if answer.has_more else 0
            if not self._first:
                break
        self._names, self.due = tuple(meant(found)), min(dues, default=None)
        self.has_nothing = not self._names and not self._first
        self._is_woken = self._is_woken and not self.has_nothing
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

    def woken(self) -> None:
        """The worker was woken, or its wait ended by itself."""
        self._is_woken = True

    def hand_on(self, shard: Shard) -> Plan[None]:
        """Wake another worker of the fleet, if this one was woken and can take no more."""
        if self._is_woken:
            yield from exchange(shard, FindWork(self.fleet, WOKEN, 0, 1))
            self._is_woken = False


def fleet_of(queues: Sequence[str], more: str = "") -> str:
    """The name that workers of the same queues share. `more`: what else their queues depend on."""
    return hashlib.sha256("\n".join([more, *queues]).encode()).hexdigest()[:16]
