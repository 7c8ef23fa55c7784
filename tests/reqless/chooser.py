"""Choices of a random sequence; the first of a list, and the lowest number, are the simplest."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
JSON = ("{}", '{"a":1}', '{"text":"ab"}', "7", '"x"')
OTHER_JSON = ("[]", "[1]", '{"b":1,"a":{}}', "1.10", '{"n":12345678901234567}', "true")


class Chooser:
    """Asks the engine itself: a strategy for each choice would cost more than the call it is made for."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data.conjecture_data
        self._steps = 0

    def begin(self) -> None:
        """A step; each is of a kind of its own, or the engine would rather repeat some than make new ones."""
        self._steps += 1
        self._data.start_span(self._steps)

    def end(self) -> None:
        self._data.stop_span()

    def whole(self, low: int, high: int) -> int:
        return self._data.draw_integer(low, high) if high > low else low

    def chance(self, percent: float) -> bool:
        return self._data.draw_boolean(percent / 100)

    def pick(self, among: Sequence[T]) -> T:
        return among[self.whole(0, len(among) - 1)]

    def some(self, among: Sequence[T], most: int) -> list[T]:
        """Different ones, in any order, often none."""
        found: list[T] = []
        for _ in range(self.whole(0, most)):
            one = self.pick(among)
            if one not in found:
                found.append(one)
        return found

    def json(self) -> str:
        return self.pick(JSON) if not self.chance(1) else self.pick(OTHER_JSON)
