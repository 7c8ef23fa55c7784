"""While a test runs, every client of the process works on the test's namespace.

A program makes its client when it is imported, from an address it has from its environment. A test must neither
meet that store nor ask the program to be written for tests; so the clients that exist are given another place, and
so is each that is made meanwhile. Left alone are those of namespaces that begin with `test`: they are tests' own.
"""

from typing import Any, Self

from holdfast.client import known
from holdfast.client.aio import AsyncClient
from holdfast.client.sync import Client


class StandIn:
    """Moves all clients to `namespace` of the store at `url`, from `begin` to `end`, or for a `with` block.

    `clients` are those that were moved.
    """

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._namespace = namespace
        self._before: list[tuple[Any, dict[str, Any]]] = []

    @property
    def clients(self) -> list[Any]:
        """The clients that were moved, of both colours."""
        return [client for client, _ in self._before]

    def begin(self) -> Self:
        """Move the clients there are, and from now on each that is made."""
        known.newcomers.append(self._move)
        for client in known.clients():
            self._move(client)
        return self

    def end(self) -> None:
        """Give every client back what it had."""
        known.newcomers.remove(self._move)
        while self._before:
            client, before = self._before.pop()
            if isinstance(client, AsyncClient):
                # The loop of the test is gone, or its own affair.
                client.link.drop()
            else:
                client.close()
            client.__dict__.clear()
            client.__dict__.update(before)

    def _move(self, client: Any) -> None:
        if client.settings.namespace.startswith("test"):
            return
        before = dict(client.__dict__)
        self._before.append((client, before))
        client.__dict__.clear()
        made: Any = Client if isinstance(client, Client) else AsyncClient
        # Anew and in place: what hangs on the client, such as a queue that somebody kept, goes with it.
        made.__init__(client, self._url, namespace=self._namespace, hostname=before["_worker_name"])
        if "events" in before:
            # With the callbacks that the program registered; they ask the client where it is when they listen.
            client.__dict__["events"] = before["events"]
        for name, value in before.items():
            if not name.startswith("_") and not hasattr(client, name):
                client.__dict__[name] = value

    def __enter__(self) -> Self:
        return self.begin()

    def __exit__(self, *_: object) -> None:
        self.end()
