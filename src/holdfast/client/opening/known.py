"""The clients of this process, for those who must reach all of them.

Tests do: whatever the program under test talks to, it must be the test's own store (`holdfast.testing`). Nobody
else asks. A client is forgotten when nothing else holds it.
"""

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary

# By identity: clients of one place are equal.
_clients: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()
newcomers: Final[list[Callable[[Any], None]]] = []
"""Whoever wants to hear of each client that is made from now on."""


def note(client: Any) -> None:
    """Remember a client that was just made."""
    _clients[id(client)] = client
    for hear in newcomers:
        hear(client)


def clients() -> list[Any]:
    """Every client that somebody holds."""
    return list(_clients.values())
