"""Move every client of the process to the namespace of a test, while that runs.

Many programs make their client when they are imported, with an address from their environment. A test must not use that
store, and the program need not be written for tests: existing and new clients are moved to another store and namespace.
Clients of namespaces that begin with `test` are not moved: they belong to tests.
"""

from typing import Any, Self

from holdfast.client import opening
from holdfast.client.aio import AsyncClient


class StandIn:
    """Move all clients to `namespace` of the store at `url`, from `begin` to `end`, or for a `with` block.

    `clients` are those that were moved.
    """

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._namespace = namespace
        self._before: list[tuple[Any, dict[str, object]]] = []

    @property
    def clients(self) -> list[Any]:
        """The clients that were moved, sync and async."""
        return [client for client, _ in self._before]

    def begin(self) -> Self:
        """Move the existing clients, and each new one from now on."""
        opening.on_new_client.append(self._move)
        for client in opening.clients():
            self._move(client)
        return self

    def end(self) -> None:
        """Restore every client."""
        opening.on_new_client.remove(self._move)
        while self._before:
            client, before = self._before.pop()
            if isinstance(client, AsyncClient):
                # The loop of the test has ended, or closes its connections itself.
                client.link.drop()
            else:
                client.close()
            now: dict[str, object] = client.__dict__
            now.update(before)
            for name in now.keys() - before.keys():
                del now[name]

    def _move(self, client: Any) -> None:
        if client.settings.namespace.startswith("test"):
            return
        held: dict[str, object] = client.__dict__
        before = dict(held)
        self._before.append((client, before))
        kind: type = client.__class__
        ours: Any = next(base for base in kind.__mro__ if base.__module__.startswith("holdfast."))
        # Initialise the same object again, so that objects that refer to the client, such as queues, are moved too.
        ours.__init__(client, self._url, namespace=self._namespace, hostname=client.worker_name)
        for name, value in before.items():
            # Cached parts belong to the store before; attributes set by the program stay, and so do its callbacks for
            # events, which look up the store of the client when they listen.
            if name != "events" and held.get(name) is value and hasattr(kind, name):
                del held[name]

    def __enter__(self) -> Self:
        return self.begin()

    def __exit__(self, *_: object) -> None:
        self.end()
