"""Reservers: which queue goes first. Each gives a worker its order, and can take a job by itself.

They take queues, names of queues, or any object that yields these each time it is iterated.
"""

from collections.abc import Callable, Iterable, Sequence
from random import SystemRandom
from typing import Any, ClassVar, Final, cast

from holdfast.errors import UsageError
from holdfast.settings import check_list, check_name

_random: Final = SystemRandom()
"""Names of queues in a title or a log line."""


class Ordered:
    """Always tries the first queue first; only when it has nothing, the second, and so on.

    `queues` are queues (`client.queues["mail"]`) or their names; an iterable that is not a list is iterated on each pass.
    Raises UsageError.
    """

    rule: ClassVar[str] = "ordered"

    def __init__(self, queues: Iterable[Any]) -> None:
        given = check_list("queues", queues)
        self._queues = given if is_dynamic_list(given) else tuple(given)
        if isinstance(self._queues, tuple):
            for queue in self._queues:
                name_of(queue)

    @property
    def queues(self) -> list[Any]:
        """The queues as they were given, as they are just now."""
        return list(self._queues)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queues, each once, as they are just now."""
        return tuple(dict.fromkeys(map(name_of, self._queues)))

    @property
    def is_dynamic(self) -> bool:
        """Whether the queues may be others each time."""
        return not isinstance(self._queues, tuple)

    @property
    def description(self) -> str:
        """The queues and the rule, such as `a, b (ordered)`."""
        return f"{', '.join(self._shown())} ({self.rule})"

    def order(self, known: Sequence[str]) -> Sequence[str]:
        """The queues to look into on this pass, first to last, of those that are known to be meant."""
        return known

    def took(self, queue: str) -> None:
        """This queue was tried last."""

    def prep_for_work(self) -> None:
        """Called in each process before it takes its first job."""

    def reserve(self) -> Any:
        """Pop one job; return None when no queue has any. Raises what the pop of a queue raises."""
        by_name = {name_of(queue): queue for queue in self._queues}
        for name in self.order(tuple(by_name)):
            self.took(name)
            job = _popping(by_name[name])()
            if job is not None:
                return job
        return None

    def _shown(self) -> Sequence[str]:
        return self.names

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.description}>"


class RoundRobin(Ordered):
    """Continues after the queue that was tried last, for at most one full circle."""

    rule = "round robin"

    def __init__(self, queues: Iterable[Any]) -> None:
        super().__init__(queues)
        self._last = ""
        self._at = 0

    def order(self, known: Sequence[str]) -> Sequence[str]:
        if not known:
            return known
        if self._last in known:
            self._at = known.index(self._last) + 1
        # Else it is gone, and what stood behind it stands in its place.
        at = self._at % len(known)
        return (*known[at:], *known[:at])

    def took(self, queue: str) -> None:
        self._last = queue


class ShuffledRoundRobin(RoundRobin):
    """Round robin over a shuffled copy; each process shuffles its own."""

    rule = "shuffled round robin"

    def __init__(self, queues: Iterable[Any]) -> None:
        super().__init__(queues)
        self._circle: list[str] = []

    def order(self, known: Sequence[str]) -> Sequence[str]:
        if len(known) != len(self._circle) or set(known) != set(self._circle):
            self._circle = _random.sample(known, len(known))
        return super().order(self._circle)

    def prep_for_work(self) -> None:
        self._circle, self._last, self._at = [], "", 0

    def _shown(self) -> Sequence[str]:
        names = self.names
        self.order(names)
        return self._circle


class Delegating:
    """Asks several reservers, one after the other; its queues are those of all of them. Raises UsageError."""

    description: Final = "Delegating Reserver"

    def __init__(self, reservers: Iterable[Any]) -> None:
        self.reservers: list[Any] = list(check_list("reservers", reservers))
        if not self.reservers:
            raise UsageError("Delegating needs at least one reserver")
        for reserver in self.reservers:
            check_reserver(reserver)

    @property
    def queues(self) -> list[Any]:
        """The queues of all reservers, each once."""
        found = {name_of(queue): queue for reserver in self.reservers for queue in reserver.queues}
        return list(found.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queues, each once, as they are just now."""
        return tuple(map(name_of, self.queues))

    @property
    def is_dynamic(self) -> bool:
        """Whether the queues may be others each time."""
        return any(getattr(reserver, "is_dynamic", True) for reserver in self.reservers)

    @property
    def reserves_itself(self) -> bool:
        """Whether one of them takes jobs in a way of its own."""
        return any(map(reserves_itself, self.reservers))

    def order(self, known: Sequence[str]) -> Sequence[str]:
        """The order of the first reserver in its queues, then that of the second, and so on."""
        found: dict[str, None] = {}
        for reserver in self.reservers:
            found.update(
                dict.fromkeys(reserver.order([name for name in known if name in names_of(reserver)]))
            )
        return tuple(found)

    def took(self, queue: str) -> None:
        """This queue was tried last."""
        for reserver in self.reservers:
            took: Callable[[str], None] | None = getattr(reserver, "took", None)
            if took is not None and queue in names_of(reserver):
                took(queue)
                return

    def prep_for_work(self) -> None:
        """Called in each process before it takes its first job."""
        for reserver in self.reservers:
            reserver.prep_for_work()

    def reserve(self) -> Any:
        """The job of the first reserver that has one, or None."""
        for reserver in self.reservers:
            job = reserver.reserve()
            if job is not None:
                return job
        return None


KINDS: Final = {"ordered": Ordered, "round-robin": RoundRobin, "shuffled-round-robin": ShuffledRoundRobin}


def reserves_itself(reserver: Any) -> bool:
    """Whether a reserver takes jobs by its own `reserve`: it has no `order`, or its class defines `reserve` later."""
    if hasattr(reserver, "reserves_itself"):
        return bool(reserver.reserves_itself)
    for part in type(reserver).__mro__:
        if "order" in vars(part):
            return False
        if "reserve" in vars(part):
            return True
    return not hasattr(reserver, "order")


def check_reserver(reserver: Any) -> Any:
    """Return `reserver` if it is one: it orders queues, or reserves by itself. Raises UsageError."""
    needed = ("queues", "description", "prep_for_work")
    missing = [part for part in needed if not hasattr(reserver, part)]
    if not (hasattr(reserver, "order") or hasattr(reserver, "reserve")):
        missing.insert(0, "order or reserve")
    if missing:
        raise UsageError(f"{reserver!r:.80} is no reserver: it has no {', no '.join(missing)}")
    return reserver


def names_of(reserver: Any) -> tuple[str, ...]:
    """The names of a reserver's queues, as they are just now."""
    return tuple(dict.fromkeys(map(name_of, reserver.queues)))


def name_of(queue: Any) -> str:
    """The name of a queue that is given itself or by its name. Raises UsageError."""
    return check_name("queue", getattr(queue, "name", queue))


def is_dynamic_list(given: object) -> bool:
    """Whether an iterable may yield something else each time: it is not a list, and can be iterated again."""
    return (
        not isinstance(given, (list, tuple, set, frozenset, dict)) and iter(cast("Any", given)) is not given
    )


def _popping(queue: Any) -> Callable[[], Any]:
    if isinstance(queue, str):
        raise UsageError(f"reserve needs queues, such as client.queues[{queue!r}], not their names")
    pop: Callable[[], Any] = queue.pop
    return pop
