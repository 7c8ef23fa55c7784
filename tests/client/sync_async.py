"""One test for both clients: `do(call)` returns the result of a call, sync or async."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast import AsyncClient, Client


class Sync:
    """Makes calls of a sync client."""

    def __init__(self, url: str, namespace: str, **options: Any) -> None:
        self.client: Any = Client(url, namespace=namespace, **options)

    def __call__(self, ask: Callable[[], Any]) -> Any:
        return ask()

    def close(self) -> None:
        self.client.close()


class Async:
    """Makes calls of an async client, on a loop of its own."""

    def __init__(self, url: str, namespace: str, **options: Any) -> None:
        self.client: Any = AsyncClient(url, namespace=namespace, **options)
        self.loop = asyncio.Runner()

    def __call__(self, ask: Callable[[], Any]) -> Any:
        async def wait() -> Any:
            return await ask()

        return self.loop.run(wait())

    def close(self) -> None:
        self.loop.run(self.client.close())
        self.loop.close()


@contextmanager
def made_of(kind: type, *given: Any, **options: Any) -> Iterator[Sync | Async]:
    """A client of any kind and arguments, wrapped: `made_of(Client, host="box")`."""
    do = object.__new__(Sync if issubclass(kind, Client) else Async)
    do.client = kind(*given, **options)
    if isinstance(do, Async):
        do.loop = asyncio.Runner()
    yield do
    do.close()
