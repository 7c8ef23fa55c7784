"""Living through a store that is away: said once, asked again less and less often, resumed by itself."""

import logging
import random
from typing import Final

from holdfast.errors import HoldfastError, TransportError
from holdfast.wire.away import Away

log = logging.getLogger("holdfast")

FIRST: Final = 0.1
LONGEST: Final = 1.0
"""Seconds between two tries: whoever waits longer resumes too late."""


class Outage:
    """Knows how long one kind of call has been failing, in tries.

    `away` is what the process knows of the store (`shard.away`): with it, a store that cannot be reached is said to be
    away once in the whole process.
    """

    def __init__(self, away: Away | None = None) -> None:
        self._away = away or Away()
        self._tries = 0
        self._is_refused = False

    def pause(self, error: HoldfastError) -> float:
        """Note a failed call. Answers how many seconds to wait before the next, with jitter."""
        if not isinstance(error, TransportError):
            # The store is there, and this call alone fails.
            news, self._is_refused = not self._is_refused, True
        else:
            news = self._away.begins()
        if news:
            log.error("the store cannot be worked with, trying again: %s", error)
        return self.cut_off()

    def cut_off(self) -> float:
        """Note a wait that was cut off: it may have ended with an outage that is over, so the next call tells. Answers as `pause`."""
        wait = min(LONGEST, FIRST * float(1 << min(self._tries, 10)))
        self._tries += 1
        return wait * random.uniform(0.5, 1.0)

    def over(self) -> None:
        """Note a call that worked."""
        if self._tries:
            self._tries = 0
            answers_again(self._away, self._is_refused)
            self._is_refused = False


def answers_again(away: Away, was_refused: bool = False) -> None:
    """Say that the store is back, if it was said that it is away and nobody said this yet."""
    seconds = away.ends()
    if seconds:
        log.warning("the store answers again, after %.1f s", seconds)
    elif was_refused:
        log.warning("the store answers again")
