"""Which queues a worker looks into, and in which order: asked on every pass.

A resolver says which queues there are (names stay as they are, patterns are looked up), a reserver which of them goes
first. A route of plain names in their own order costs nothing. What takes jobs in a way of its own is asked instead.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from holdfast.commands.leases import Popped
from holdfast.errors import TransportError
from holdfast.models import JobFacts
from holdfast.settings import MAX_BATCH
from holdfast.wire.shards import Shard
from holdfast.work.queues.reserving import name_of

log = logging.getLogger("holdfast")

AGAIN: Final = 1.0
"""Seconds until somebody is asked again who could not say which queues are meant."""

MOST_BELLS: Final = 4096
"""So many queues are waited for; a job in one that is further behind is found after the interval."""

NO_QUEUE: Final = ""
"""No queue has this name, so nobody rings its bell: what waits where no queue is meant just now."""


class Reserver(Protocol):
    """Whatever says which queue goes first.

    One that also has `took(queue)` is told whose job was taken last, and gives each queue its share of many seats.
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
    """Whatever says which queues are meant just now. It may ask the store."""

    def resolve(self) -> Sequence[str]: ...


class Source(Protocol):
    """Whatever takes jobs in a way of its own."""

    def take(self) -> JobFacts | None:
        """The next job, None if there is none just now. Raises StopIteration when none will ever come."""
        ...


class Route:
    """The queues of one process of a worker. `shard` is where they are.

    A `resolver` that is left out means the plain names of `queues`; a `reserver` that is left out, their own order.
    A `source` is asked for jobs instead of the store, `first` before anything else until it has no more. `seats` is how many jobs the process performs at once, `again` the
    seconds until it looks again after the resolver or the source could not answer.
    """

    def __init__(
        self,
        shard: Shard,
        queues: Sequence[str],
        resolver: Resolves | None = None,
        reserver: Reserver | None = None,
        source: Source | None = None,
        first: Source | None = None,
        seats: int = 1,
        again: float = AGAIN,
    ) -> None:
        self._shard = shard
        self._named = tuple(queues)
        self._resolver = resolver
        self._reserver = reserver
        self._source = source
        self._first = first
        self._seats = seats
        self._again = again
        self._known = () if resolver is not None or source is not None else tuple(queues)
        self._rest: tuple[str, ...] = ()
        self._taken: deque[JobFacts] = deque()
        self._blocked = False
        self._has_own_order = False
        self._keys: dict[str, str] = {}
        self._keys_of: tuple[str, ...] | None = None
        self._took: Callable[[str], None] | None = getattr(reserver, "took", None)
        self.is_over = False
        """Whether the source has no more jobs and never will."""

    @property
    def asks_store(self) -> bool:
        """Whether `refresh` is to be called before each pass."""
        return any((self._resolver, self._source, self._first))

    @property
    def description(self) -> str:
        """The queues and which goes first, for titles and logs."""
        if self._reserver is not None:
            return self._reserver.description
        return f"{', '.join(self._named)} (ordered)"

    def refresh(self) -> None:
        """Look up which queues are meant, or take a job from the source; before each pass, where `asks_store`.

        What goes wrong is logged: there is nothing to take just now, and what ended is settled all the same.
        """
        if self._rest or self._taken or self.is_over:
            return
        try:
            if self._first is not None and self._take(self._first):
                return
            self._first = None
            if self._source is not None:
                self.is_over = not self._take(self._source)
            elif self._resolver is not None:
                self._known = tuple(dict.fromkeys(map(name_of, self._resolver.resolve())))
        except TransportError as error:
            if not self._blocked:
                log.warning(
                    "the store cannot be asked for the queues of this worker (%s); trying again", error
                )
            self._blocked = True
        except Exception as error:
            if not self._blocked:
                log.exception("finding the queues of this worker failed (%s); trying again", error)
            self._blocked = True
        else:
            if self._blocked:
                log.warning("the queues of this worker are found again")
            self._blocked = False

    def _take(self, source: Source) -> bool:
        """Take what a source has. Answers whether it may have more."""
        try:
            facts = source.take()
        except StopIteration:
            return False
        if facts is not None:
            self._taken.append(facts)
        return True

    def order(self) -> tuple[str, ...]:
        """The queues to look into in one call, first to last; where there are more, the next call looks further."""
        if self._rest:
            return self._rest[:MAX_BATCH]
        known = self._known if self._reserver is None else self._ordered_by(self._reserver)
        if len(known) > MAX_BATCH:
            self._rest = known
            return known[:MAX_BATCH]
        return known

    def _ordered_by(self, reserver: Reserver) -> tuple[str, ...]:
        """The queues as a reserver orders them; one that cannot leaves them as they are."""
        try:
            known = tuple(reserver.order(self._known))
        except Exception as error:
            if not self._has_own_order:
                log.exception("the reserver cannot say which queue goes first, trying again: %s", error)
            self._has_own_order = True
            return self._known
        self._has_own_order = False
        return known

    def share(self, limit: int) -> int:
        """How many of `limit` jobs to ask the store for in one call."""
        if self._source is not None or self._taken:
            return 0
        if self._took is not None and limit > 1 and self._known:
            return min(limit, -(-self._seats // len(self._known)))
        return limit

    def after(self, jobs: Popped, asked: int, limit: int) -> Popped:
        """Note what a call answered that asked for some of `limit` jobs. Answers these, and what the source gave."""
        if jobs and self._took is not None:
            self._took(jobs[-1].queue)
        if self._rest and asked:
            self._rest = () if len(jobs) >= asked else self._rest[MAX_BATCH:]
        if limit and self._taken:
            jobs.append(self._taken.popleft())
            jobs.due = 0.0
        elif (jobs and asked < limit) or (self._rest and asked) or self.is_over:
            jobs.due = 0.0
        elif self._blocked and (jobs.due is None or jobs.due > self._again):
            jobs.due = self._again
        return jobs

    def keys(self) -> dict[str, str]:
        """The bells to listen to, each with its queue; never none."""
        if self._keys_of is not self._known:
            heard = self._known[:MOST_BELLS] or (NO_QUEUE,)
            self._keys = {self._shard.bell_key(queue): queue for queue in heard}
            self._keys_of = self._known
        return self._keys
