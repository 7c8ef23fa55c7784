"""Queues of a worker that nothing has used yet: one that resembles a known queue is perhaps a typo."""

import logging
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from holdfast.client.queue_names import is_plain, resolve_queue_names
from holdfast.client.sync import Client
from holdfast.commands.queues import QueueNames
from holdfast.errors import HoldfastError
from holdfast.printable import one_line
from holdfast.worker.queues.routing import MappingWithFallbacks
from holdfast.worker.settings import WorkerSettings, own_of

log = logging.getLogger("holdfast")

_COMPARED: Final = 10_000
"""Known names that are compared with a new one."""
_MOST: Final = 100
"""New names that are looked at."""
_SEPARATORS: Final = "-_.:/ "


def note_new_queues(client: Client, settings: WorkerSettings) -> None:
    """Log a WARNING for each queue that is new in this store and resembles a known one, and patterns that match none."""
    if own_of(settings).resolver is not None:
        return
    try:
        known = client.run(QueueNames())
        for name, near in _near_ones(known, filter(is_plain, settings.queues)):
            log.warning(
                'there is no queue "%s" in this store yet; there is "%s", perhaps a typo: the worker waits for jobs of "%s"',
                name,
                near,
                name,
            )
        patterns = [one for one in settings.queues if not is_plain(one) and one != "*"]
        if patterns and known:
            identifiers = MappingWithFallbacks(client).identifiers()
            for pattern in patterns[:_MOST]:
                if pattern[0] != "!" and not resolve_queue_names(identifiers, known, [pattern]):
                    log.info('no queue of this store matches "%s" yet', one_line(pattern))
    except HoldfastError as error:
        log.debug("it is not known which queues are new: %s", error)


def _near_ones(known: Sequence[str], names: Iterable[str]) -> Iterable[tuple[str, str]]:
    there = set(known)
    for name in islice((name for name in names if name not in there), _MOST):
        for other in islice(known, _COMPARED):
            if is_near(name, other):
                yield one_line(name), one_line(other)
                break


def is_near(one: str, other: str) -> bool:
    """Return whether two names differ as by a slip: one letter more, less, or wrong, two exchanged, or only in case.

    Numbers and whole parts between separators differ on purpose: `mail-1` and `mail-2`, `jobs-a` and `jobs-b`.
    """
    if abs(len(one) - len(other)) > 1:
        return False
    one, other = one.casefold(), other.casefold()
    if one == other:
        return True
    start = _shared(one, other)
    left, right = one[start:], other[start:]
    end = _shared(left[::-1], right[::-1])
    before, after = one[:start], left[len(left) - end :]
    left, right = left[: len(left) - end], right[: len(right) - end]
    is_slip = max(len(left), len(right)) <= 1 or (len(left) == 2 and left == right[::-1])
    is_part = before[-1:] in _SEPARATORS and after[:1] in _SEPARATORS
    return is_slip and not is_part and not re.fullmatch(r"\d*", left + right)


def _shared(one: str, other: str) -> int:
    """Return how many letters two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
