"""Filters of queues: by patterns, in the order of priorities."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.client.patterns import QueuePriorityPattern
from holdfast.client.queue_names import prioritize_queues, resolve_queue_names
from holdfast.settings import check_list
from holdfast.worker.queues.reserving import name_of


class _Matching:
    def __init__(
        self, queues: Iterable[Any], patterns: Sequence[str], identifiers: Any, priorities: Any
    ) -> None:
        self._queues = queues
        self._patterns = patterns
        self._identifiers = identifiers
        self._priorities = priorities

    def __iter__(self) -> Iterator[Any]:
        by_name = {name_of(queue): queue for queue in self._queues}
        names = resolve_queue_names(_now(self._identifiers) or {}, by_name, self._patterns)
        for name in prioritize_queues(names, _now(self._priorities) or ()):
            if name in by_name:
                yield by_name[name]


def default(
    queues: Iterable[Any],
    patterns: Iterable[str],
    identifier_patterns: Mapping[str, Sequence[str]] | Any = None,
    priority_patterns: Iterable[QueuePriorityPattern] | Any = None,
) -> Iterable[Any]:
    """Return the queues that `patterns` match, in the order of the priorities; they are looked up at each iteration.

    The last two are what `client.queue_patterns` keeps, or callables that return it, such as
    `client.queue_patterns.get_queue_priority_patterns`. Names that are not in `queues` are left out. Raises UsageError.
    """
    wanted = [str(pattern) for pattern in check_list("patterns", patterns)]
    return _Matching(check_list("queues", queues), wanted, identifier_patterns, priority_patterns)


def _now(given: Any) -> Any:
    return given() if callable(given) else given
