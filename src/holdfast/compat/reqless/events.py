"""Events of tracked jobs."""

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from holdfast.client.events import Events as ClientEvents
from holdfast.client.sync import Client

owners: Final[WeakKeyDictionary[Any, Client]] = WeakKeyDictionary()
"""The client of each `client.database`, so that `Events(client.database)` finds its namespace."""


def client_of(database: Any) -> Client:
    """Return the client whose `database` this is, or a new one over it. Raises UsageError for other objects."""
    if isinstance(database, Client):
        return database
    return owners.get(database) or Client(database)


class Events(ClientEvents):
    """The events of the client whose `database` is given."""

    def __init__(self, database: Any) -> None:
        super().__init__(client_of(database))

    def on(self, evt: str, func: Callable[[str], object]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Call `func` with the jid at each `evt`. Raises NotImplementedError for an unknown event."""
        super().on(evt, func)

    def off(self, evt: str) -> Callable[[str], object] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Remove the callback of `evt`. Returns it."""
        return super().off(evt)
