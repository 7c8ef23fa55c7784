"""The clients of an application: one for its own namespace, and one for each further one that requests may name."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.client.aio import AsyncClient
from holdfast.client.sync import Client
from holdfast.errors import UsageError
from holdfast.web.users import User

HEADER: Final = "Holdfast-Namespace"
"""The header by which a request chooses a namespace."""
_PATIENCE: Final[Mapping[str, float]] = {"timeout": 1.5, "deadline": 1.0}
"""Seconds of one try, and in which a call that failed is tried again: a request waits less than 4 s for a store that does not respond."""


class NamespaceNotAllowed(Exception):
    """A user may not use what a request names; the message is a sentence for the response, which is 403."""


class Namespaces:
    """The clients by namespace. `client` is a client, whose store and namespace are used, a URL, or None."""

    def __init__(self, client: object, others: Sequence[str] = ()) -> None:
        self._place, self._options = _place_of(client)
        self.own = AsyncClient(self._place, **self._options)
        """The client of the application's own namespace."""
        self._name: str = self.own.settings.namespace
        self._allowed = frozenset((self._name, *others))
        self._clients = {self._name: self.own}

    def chosen(self, user: User, named: str) -> AsyncClient:
        """Return the client for a request of a user that names a namespace in its header, or none ("").

        Without a name it is that of the application, or the first of those that the user is limited to. Raises NotAllowed.
        """
        name = named or (user.namespaces[0] if user.namespaces else self._name)
        if name not in (user.namespaces or self._allowed):
            raise NamespaceNotAllowed(f"The namespace {name!r:.100} is not open to {user.name!r:.100}.")
        found = self._clients.get(name)
        if found is None:  # there are as many as users and options name
            options: Any = {**self._options, "namespace": name}
            found = self._clients[name] = AsyncClient(self.own.store_url, **options)
        return found

    async def close(self) -> None:
        """Close the connections of all clients."""
        for client in self._clients.values():
            await client.close()
        await asyncio.sleep(0)  # connections that were hung up are closed in the next iteration of the loop


def _place_of(given: object) -> tuple[str | None, dict[str, Any]]:
    """Return URL and options of the clients. They have connections and a deadline of their own. Raises UsageError."""
    if given is None or isinstance(given, str):
        return given, dict(_PATIENCE)
    if not isinstance(given, (Client, AsyncClient)):
        raise UsageError(f"create_app: expected a client, a URL or nothing, got {type(given).__name__}")
    opening = given._opening  # pyright: ignore[reportPrivateUsage]
    options = {name: value for name, value in opening.options.items() if name != "redis"}
    return given.store_url, options | {"namespace": given.settings.namespace, **_PATIENCE}
