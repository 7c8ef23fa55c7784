"""Places of which there is a fixed number, such as those of requests that wait, and who may take how many of them."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_SHARE: Final = 3


class AllTaken(Exception):
    """No place is free for this user. `mine`: the places that the user has."""

    def __init__(self, mine: int) -> None:
        super().__init__(f"no place is free: {mine} are taken by this user")
        self.mine = mine


class Places:
    """Places that users share. One who has three times as many as are free gets no more, so some are always left for others.

    Alone a user gets three quarters of `most`; of several that take all they get, each gets the same number.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: Counter[str] = Counter()
        self._total = 0

    @contextmanager
    def taken(self, who: str) -> Generator[None]:
        """Hold a place for a user while the block runs. Raises AllTaken."""
        mine = self._taken[who]
        if mine >= _SHARE * (self.most - self._total):
            raise AllTaken(mine)
        self._taken[who] += 1
        self._total += 1
        try:
            yield
        finally:
            self._total -= 1
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]
