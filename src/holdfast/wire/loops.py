"""What belongs to one event loop: a client may be used on one after another, and in threads on several at once."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def _nothing(_: object) -> None:
    pass


class PerLoop(Generic[T]):
    """One thing of its kind for each loop: `make` makes it when the loop first asks, `end` gets it when its loop is over."""

    def __init__(self, make: Callable[[], T], end: Callable[[T], None] = _nothing) -> None:
        self._make = make
        self._end = end
        self._things: dict[asyncio.AbstractEventLoop, T] = {}

    def here(self) -> T:
        """The thing of the running loop."""
        loop = asyncio.get_running_loop()
        thing = self._things.get(loop)
        if thing is None:
            self._drop([other for other in list(self._things) if other.is_closed()])
            thing = self._things[loop] = self._make()
        return thing

    def drop(self) -> None:
        """End what belongs to loops that do not run."""
        self._drop([loop for loop in list(self._things) if not loop.is_running()])

    def _drop(self, loops: list[asyncio.AbstractEventLoop]) -> None:
        for loop in loops:
            thing = self._things.pop(loop, None)
            if thing is not None:
                self._end(thing)
