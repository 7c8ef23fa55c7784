"""What belongs to one event loop: a client may be used on one after another, and in threads on several at once."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from holdfast.errors import UsageError

T = TypeVar("T")


def running_loop() -> asyncio.AbstractEventLoop:
    """The event loop that runs here. Raises UsageError without one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "no event loop runs here: an AsyncClient is used inside of one, as in asyncio.run(main()); "
            "a Client needs none"
        ) from None


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
        loop = running_loop()
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
