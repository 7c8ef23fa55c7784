"""One way to run a command in both colours."""

import asyncio
from typing import Any

from holdfast import AsyncClient, Client
from holdfast.commands import Command


class Blocking:
    """Runs commands with a blocking client."""

    def __init__(self, url: str, namespace: str, **options: Any) -> None:
        self._client = Client(url, namespace=namespace, **options)
        self.root = self._client.root

    def run(self, command: Command[Any]) -> Any:
        return self._client.run(command)

    def close(self) -> None:
        self._client.close()


class Awaited:
    """Runs commands with an async client on a loop of its own."""

    def __init__(self, url: str, namespace: str, **options: Any) -> None:
        self._client = AsyncClient(url, namespace=namespace, **options)
        self._loop = asyncio.Runner()
        self.root = self._client.root

    def run(self, command: Command[Any]) -> Any:
        async def wait() -> Any:
            return await self._client.run(command)

        return self._loop.run(wait())

    def close(self) -> None:
        self._loop.run(self._client.close())
        self._loop.close()


Speaker = Blocking | Awaited
