"""How a call is said to a door, and what its reply means: the words of the newer protocol, and a place for others.

The machine speaks the newer protocol. A door of an older one is given a speech that turns its calls into older words,
and older replies into what the newer command would have answered; a call for which it has no words is not made.
"""

import json
from collections.abc import Callable
from typing import Any

from reference import reference_text
from two_doors import RAW, Refused


class Speech:
    """The newer protocol itself."""

    door = "doors.reqless"
    unspoken: frozenset[str] = frozenset()
    """Commands that this protocol has no words for."""
    text: Callable[[], str | None] = staticmethod(reference_text)
    """Of the reference; None where it cannot be had."""

    def words(self, command: str, now: float, words: tuple[object, ...]) -> tuple[object, ...] | None:
        """What stands behind the number of keys; None for what cannot be said."""
        return (command, repr(now), *words)

    def meaning(self, command: str, reply: Any) -> Any:
        if isinstance(reply, str) and command not in RAW:
            return json.loads(reply)
        return reply

    def heard(self, command: str, messages: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The messages of a call that both doors publish."""
        return messages

    def unknown(self, reply: Any) -> bool:
        """Whether the door does not have the command at all."""
        return isinstance(reply, Refused) and reply.text.startswith("Unknown command")
