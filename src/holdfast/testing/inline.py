"""Inline mode: for the length of a block, a client's calls perform what they made ready before they answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self

from holdfast.client.sync import Client
from holdfast.wire.plans import Plan

Drain = Callable[[], Any]
AsyncDrain = Callable[[], Awaitable[Any]]


class Inline:
    """Turns clients inline for a block: blocking ones by `drain`, async ones by `async_drain`."""

    def __init__(self, clients: Iterable[Any], drain: Drain, async_drain: AsyncDrain) -> None:
        self._clients = list(clients)
        self._drain = drain
        self._async_drain = async_drain

    def __enter__(self) -> Self:
        for client in self._clients:
            if isinstance(client, Client):
                blocking: Any = client
                blocking.runner = _Runner(blocking.runner, self._drain)
            else:
                client.runner = _AsyncRunner(client.runner, self._async_drain)
                client.run = _Submit(client.run, self._async_drain)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.runner = client.runner.inner
            if not isinstance(client, Client):
                client.run = client.run.inner

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


class _Runner:
    def __init__(self, inner: Any, drain: Drain) -> None:
        self.inner = inner
        self._drain = drain

    def run(self, plan: Plan[Any]) -> Any:
        answer = self.inner.run(plan)
        self._drain()
        return answer


class _AsyncRunner:
    def __init__(self, inner: Any, drain: AsyncDrain) -> None:
        self.inner = inner
        self._drain = drain

    async def run(self, plan: Plan[Any]) -> Any:
        answer = await self.inner.run(plan)
        await self._drain()
        return answer


class _Submit:
    """`AsyncClient.run`, whose commands leave together; each performs after its own answer."""

    def __init__(self, inner: Any, drain: AsyncDrain) -> None:
        self.inner = inner
        self._drain = drain

    def __call__(self, command: Any) -> "asyncio.Future[Any]":
        return asyncio.ensure_future(self._run(self.inner(command)))

    async def _run(self, answer: "asyncio.Future[Any]") -> Any:
        found = await answer
        await self._drain()
        return found
