"""From a connection of the driver to the client it came from."""

from typing import Any, Final
from weakref import WeakKeyDictionary

from holdfast.client.sync import Client

owners: Final[WeakKeyDictionary[Any, Client]] = WeakKeyDictionary()
"""Which client a connection came from: `Events(client.database)` must find its namespace."""


def client_of(database: Any) -> Client:
    """The client a connection came from, or one over it. Raises UsageError for what is no connection."""
    if isinstance(database, Client):
        return database
    return owners.get(database) or Client(database)
