"""The client of holdfast for a client of the driver."""

from typing import Any, Final
from weakref import WeakKeyDictionary

from holdfast.client.sync import Client

owners: Final[WeakKeyDictionary[Any, Client]] = WeakKeyDictionary()
"""The client of each `client.database`, so that `Events(client.database)` finds its namespace."""


def client_of(database: Any) -> Client:
    """Return the client whose `database` this is, or a new one over it. Raises UsageError for other objects."""
    if isinstance(database, Client):
        return database
    return owners.get(database) or Client(database)
