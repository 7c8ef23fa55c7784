"""How long to wait before a function job that raised is tried again."""

from collections.abc import Callable
from random import uniform
from typing import Final

from holdfast.settings import check_seconds

Backoff = Callable[[int, BaseException], float]

LONGEST: Final = 600.0


def exponential(
    first: float = 1.0, factor: float = 2.0, longest: float = LONGEST, jitter: float = 0.25
) -> Backoff:
    """Make a backoff of `first`, `first * factor`, … seconds, at most `longest`, each spread by ± `jitter`."""

    def delay(attempt: int, error: BaseException) -> float:
        # 64 doublings are beyond any cap, and keep the power from overflowing.
        wait = first * factor ** min(attempt - 1, 64)
        return min(longest, wait * uniform(1 - jitter, 1 + jitter))

    return delay


def make_backoff(wish: Backoff | float | None) -> Backoff:
    """Turn what `backoff=` was given into a backoff: a function, a fixed number of seconds, or the default."""
    if wish is None:
        return exponential()
    if callable(wish):
        return wish
    seconds = check_seconds("backoff", wish)
    return lambda attempt, error: seconds
