"""Living through a store that is away: said once, asked again less and less often, resumed by itself."""

import logging
import random
from typing import Final

from holdfast.errors import HoldfastError

log = logging.getLogger("holdfast")

FIRST: Final = 0.1
LONGEST: Final = 5.0


class Outage:
    """Knows how long the store has been away, in tries."""

    def __init__(self) -> None:
        self._tries = 0

    def pause(self, error: HoldfastError) -> float:
        """Note a failed call. Answers how many seconds to wait before the next, with jitter."""
        if not self._tries:
            log.error("the store cannot be worked with, trying again: %s", error)
        wait = min(LONGEST, FIRST * float(1 << min(self._tries, 10)))
        self._tries += 1
        return wait * random.uniform(0.5, 1.0)

    def over(self) -> None:
        """Note a call that worked."""
        if self._tries:
            self._tries = 0
            log.warning("the store answers again")
