"""The queues that a worker tries, in order; of many queues, those that the store's index names.

A resolver returns the queues (names stay as they are, patterns are looked up), a reserver orders them. A route of plain names in
their own order costs nothing. A source takes jobs in a way of its own.
"""

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from secrets import token_hex
from socket import gethostname
from time import monotonic
from typing import Final, Protocol

from holdfast.commands.leases import WILL_NOT_WAIT, WILL_WAIT, WOKEN, FindWork, Popped
from holdfast.errors import HoldfastError, TransportError
from holdfast.models import JobFacts
from holdfast.settings import MAX_BATCH
from holdfast.text import listed
from holdfast.wire.exchange import exchange
from holdfast.wire.outage import log_outage
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard
from holdfast.worker.queues.reserving import name_of

MOST_QUEUES_IN_A_POP: Final = 32
"""Up to this number, named queues are tried one by one, as the older systems do."""

PAGE: Final = 1000
PAGES: Final = 16
"""Names in one reply, and replies in one round trip; the next one continues."""

KEPT: Final = 0.25
"""Seconds for which a reply is used: a job that is put meanwhile into a queue that goes first waits that long."""

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
        """Whether the last reply named no queue of this worker, so that it may wait."""
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
            reply = yield from exchange(shard, FindWork(self.fleet, mode, self._first, PAGE))
            found += reply.queues
            dues += [] if reply.due is None else [reply.due]
            self._first = self._first + PAGE if reply.has_more else 0
            if not self._first:
                break
        self._names, self.due = tuple(meant(found)), min(dues, default=None)
        self.has_nothing = not self._names and not self._first
        self._is_woken = self._is_woken and not self.has_nothing
        self._known_until = monotonic() + KEPT

    def for_pop(self, limit: int) -> tuple[str, ...]:
        """Return the queues that a pop of up to `limit` jobs tries."""
        return self._names[: min(limit + SPARE, MAX_BATCH)] if limit else ()

    def after(self, jobs: Popped, asked: int, takes_turns: bool) -> None:
        """Note the jobs of a pop that wanted `asked` of them. With `takes_turns` a queue that had some goes last."""
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


log = logging.getLogger("holdfast")

AGAIN: Final = 1.0
"""Seconds until a resolver that failed is called again."""

NO_QUEUE: Final = ""
"""No queue has this name, so no wake-up comes from it: waited at while no queue is to be served."""


class Reserver(Protocol):
    """An object that orders queues.

    If it has `took(queue)`, that is called with the queue whose job was taken last, and each queue gets its share of the slots.
    """

    @property
    def description(self) -> str:
        """Its queues and its rule, for titles and logs."""
        ...

    def order(self, known: Sequence[str], /) -> Sequence[str]:
        """The queues to look into on this pass, first to last, of those that are known to be meant."""
        ...

    def prep_for_work(self) -> None:
        """Called in each process before it takes its first job."""
        ...


class Resolves(Protocol):
    """An object that resolves the queues. It may call the store."""

    def resolve(self) -> Sequence[str]: ...


class Chooses(Protocol):
    """An object that chooses among known queues. Only `renew` calls the store, when `is_old`."""

    @property
    def is_old(self) -> bool: ...
    def renew(self) -> None: ...
    def choose(self, known: Sequence[str], /) -> Sequence[str]: ...


class Source(Protocol):
    """An object that takes jobs in a way of its own."""

    def take(self) -> JobFacts | None:
        """The next job, None if there is none just now. Raises StopIteration when none will ever come."""
        ...


class Route:
    """The queues of one process of a worker. `shard` is where they are.

    A `chooser` stands for patterns; a `resolver` that is left out means the plain names of `queues`, and a `reserver` their
    own order. Where there is a chooser, or more than a few names, the store's index names those that have work.
    Jobs come from a `source` instead of the store, `first` before anything else until it has no more. `slots` is how many
    jobs the process performs at once, `again` the seconds until it looks again after the resolver or the source could not
    answer.
    """

    def __init__(
        self,
        shard: Shard,
        queues: Sequence[str],
        resolver: Resolves | None = None,
        reserver: Reserver | None = None,
        source: Source | None = None,
        first: Source | None = None,
        slots: int = 1,
        again: float = AGAIN,
        chooser: Chooses | None = None,
    ) -> None:
        self._shard = shard
        self._named = tuple(queues)
        others = (resolver, reserver, source, first, chooser)
        is_plain = all(part is None for part in others) and len(self._named) <= MOST_QUEUES_IN_A_POP
        self.plain = self._named if is_plain else None
        """The queues, where they are a few names in their own order: then nothing else here need be called for a round trip."""
        self._resolver = resolver
        self._chooser = chooser
        self._finding = Finding(_fleet_of(queues, resolver))
        self._reserver = reserver
        self._source = source
        self._first = first
        self._slots = slots
        self._again = again
        self._known = () if resolver or chooser or source else tuple(queues)
        self._rank: dict[str, int] = {}
        self._rank_of: tuple[str, ...] = ()
        self._taken: deque[JobFacts] = deque()
        self._blocked = ""
        self._has_own_order = False
        self._keys: dict[str, str] = {}
        self._keys_of: tuple[str, ...] | None = None
        self._took: Callable[[str], None] | None = getattr(reserver, "took", None)
        self.is_over = False
        """Whether the source has no more jobs and never will."""

    @property
    def asks_store(self) -> bool:
        """Whether `refresh` is to be called before each pass."""
        return any((self._resolver, self._source, self._first)) or (
            self._chooser is not None and self._chooser.is_old
        )

    @property
    def description(self) -> str:
        """The queues and which goes first, for titles and logs."""
        if self._reserver is not None:
            return self._reserver.description
        return f"{listed(self._named)} (ordered)"

    def refresh(self) -> None:
        """Look up which queues are meant, or take a job from the source; before each pass, where `asks_store`.

        What goes wrong is logged: there is nothing to take just now, and what ended is settled all the same.
        """
        if self._taken or self.is_over:
            return
        try:
            if self._first is not None and self._take(self._first):
                return
            self._first = None
            if self._source is not None:
                self.is_over = not self._take(self._source)
            elif self._chooser is not None:
                self._chooser.renew()
            elif self._resolver is not None:
                self._known = tuple(dict.fromkeys(map(name_of, self._resolver.resolve())))
        except TransportError as error:
            log_outage(self._shard.gate, error)
            self._blocked = "store"
        except Exception as error:
            if self._blocked != "code":
                log.exception("the queues of this worker cannot be looked up, trying again: %s", error)
            self._blocked = "code"
        else:
            if self._blocked == "code":
                log.warning("the queues of this worker can be looked up again")
            self._blocked = ""

    def _take(self, source: Source) -> bool:
        """Take a job from a source. Return whether it may have more."""
        try:
            facts = source.take()
        except StopIteration:
            return False
        if facts is not None:
            self._taken.append(facts)
        return True

    @property
    def finds(self) -> bool:
        """Whether the store's index is read first, because there are many queues."""
        return self._chooser is not None or len(self._known) > MOST_QUEUES_IN_A_POP

    def find(self, limit: int, woken: str | None, will_wait: bool) -> Plan[None]:
        """Read which queues have work, where there are many; before a round trip. Raises TransportError."""
        if not self.finds:
            return
        if woken is not None:
            self._finding.woken()
        if limit and not self._taken:
            yield from self._finding.find(self._shard, self._meant, will_wait)
        elif not limit:
            yield from self._finding.hand_on(self._shard)

    def hand_on(self, jobs: Popped, limit: int) -> Plan[None]:
        """Wake another worker after a round trip, if this one was woken and is busy now."""
        if limit and len(jobs) >= limit and self.finds:
            try:
                yield from self._finding.hand_on(self._shard)
            except HoldfastError as error:
                # The jobs are this worker's all the same; a waiting worker tries by itself after the interval.
                log.debug("a wake-up could not be passed on: %s", error)

    def _meant(self, names: Sequence[str]) -> Sequence[str]:
        """Which of these queues are meant, first to last."""
        if self._chooser is not None:
            found = dict.fromkeys(names)
            meant = tuple(name for name in self._chooser.choose(names) if name in found)
        else:
            if self._rank_of is not self._known:
                self._rank = {name: at for at, name in enumerate(self._known)}
                self._rank_of = self._known
            meant = tuple(sorted((name for name in names if name in self._rank), key=self._rank.__getitem__))
        return meant if self._reserver is None else self._ordered_by(self._reserver, meant)

    def order(self, asked: int = 1) -> tuple[str, ...]:
        """Return the queues that one call tries that wants `asked` jobs, first to last."""
        if self.finds:
            return self._finding.for_pop(asked)
        return self._known if self._reserver is None else self._ordered_by(self._reserver, self._known)

    def _ordered_by(self, reserver: Reserver, names: tuple[str, ...]) -> tuple[str, ...]:
        """The queues as a reserver orders them; one that cannot leaves them as they are."""
        try:
            known = tuple(reserver.order(names))
        except Exception as error:
            if not self._has_own_order:
                log.exception("the reserver failed to order the queues, trying again: %s", error)
            self._has_own_order = True
            return names
        self._has_own_order = False
        return known

    def share(self, limit: int) -> int:
        """How many of `limit` jobs to ask the store for in one call."""
        if self._source is not None or self._taken:
            return 0
        queues = self._finding.names if self.finds else self._known
        if self._took is not None and limit > 1 and queues:
            return min(limit, -(-self._slots // len(queues)))
        return limit

    def after(self, jobs: Popped, asked: int, limit: int) -> Popped:
        """Note the jobs of a call that wanted `asked` of `limit` jobs. Return them, and what the source gave."""
        if jobs and self._took is not None:
            self._took(jobs[-1].queue)
        if self.finds:
            self._finding.after(jobs, asked, self._took is not None)
            jobs.due = self._finding.due if self._finding.has_nothing else 0.0
        if limit and self._taken:
            jobs.append(self._taken.popleft())
            jobs.due = 0.0
        elif (jobs and asked < limit) or self.is_over:
            jobs.due = 0.0
        elif self._blocked and (jobs.due is None or jobs.due > self._again):
            jobs.due = self._again
        return jobs

    def keys(self) -> dict[str, str]:
        """The wake keys to wait at, each with its queue; at least one."""
        if self.finds:
            return {self._shard.fleet_wake_key(self._finding.fleet): NO_QUEUE}
        if self._keys_of is not self._known:
            self._keys = {self._shard.wake_key(queue): queue for queue in self._known or (NO_QUEUE,)}
            self._keys_of = self._known
        return self._keys


def _fleet_of(queues: Sequence[str], resolver: Resolves | None) -> str:
    """Return the name of the workers that are woken for each other. With a resolver it is one worker."""
    if resolver is not None:
        return fleet_of(queues, token_hex(8))
    return fleet_of(queues, gethostname() if "@" in "".join(queues) else "")
