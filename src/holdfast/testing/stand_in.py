"""While a test runs, every client of the process works on the test's namespace.

A program makes its client when it is imported, from an address it has from its environment. A test must neither
meet that store nor ask the program to be written for tests; so the clients that exist are given another place, and
so is each that is made meanwhile. Left alone are those of namespaces that begin with `test`: they are tests' own.
"""

from typing import Any, Self

from holdfast.client import opening
from holdfast.client.aio import AsyncClient


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
        opening.newcomers.append(self._move)
        for client in opening.clients():
            self._move(client)
        return self

    def end(self) -> None:
        """Give every client back what it had."""
        opening.newcomers.remove(self._move)
        while self._before:
            client, before = self._before.pop()
            if isinstance(client, AsyncClient):
                # The loop of the test is gone, or its own affair.
                client.link.drop()
            else:
                client.close()
            now: dict[str, Any] = client.__dict__
            now.update(before)
            for name in now.keys() - before.keys():
                del now[name]

    def _move(self, client: Any) -> None:
        if client.settings.namespace.startswith("test"):
            return
        held: dict[str, Any] = client.__dict__
        before = dict(held)
        self._before.append((client, before))
        kind: type = client.__class__
        ours: Any = next(base for base in kind.__mro__ if base.__module__.startswith("holdfast."))
        # Anew and in place: what hangs on the client, such as a queue that somebody kept, goes with it.
        ours.__init__(client, self._url, namespace=self._namespace, hostname=client.worker_name)
        for name, value in before.items():
            # Parts that are made when first asked for belong to the place before; what the program hung on stays, and so
            # do the callbacks that it registered for events, which ask the client where it is when they listen.
            if name != "events" and held.get(name) is value and hasattr(kind, name):
                del held[name]

    def __enter__(self) -> Self:
        return self.begin()

    def __exit__(self, *_: object) -> None:
        self.end()
