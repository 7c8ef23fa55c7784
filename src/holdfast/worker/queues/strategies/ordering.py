"""Orders: the same items in another order at each iteration."""

from collections.abc import Iterable, Iterator
from random import SystemRandom
from typing import Final, Generic, TypeVar

from holdfast.settings import MAX_WHOLE, check_list, check_whole

T = TypeVar("T")
_random: Final = SystemRandom()


class _Sampled(Generic[T]):
    def __init__(self, things: Iterable[T], most: int | None) -> None:
        self._things = things
        self._most = most

    def __iter__(self) -> Iterator[T]:
        things = list(self._things)
        most = len(things) if self._most is None else min(self._most, len(things))
        return iter(_random.sample(things, most))


def shuffled(iterable: Iterable[T]) -> Iterable[T]:
    """All of `iterable` in a fresh random order each time it is gone through. Raises UsageError."""
    return _Sampled(check_list("iterable", iterable), None)


def sampled(iterable: Iterable[T], n: int = 5) -> Iterable[T]:
    """Up to `n` of `iterable` in a random order, others each time it is gone through. Raises UsageError."""
    return _Sampled(check_list("iterable", iterable), check_whole("n", n, 1, MAX_WHOLE))
