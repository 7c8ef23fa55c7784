"""A worker for tests in both colours, on a stopped clock."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import AsyncClient, Client
from holdfast.testing import AsyncLocalWorker, LocalWorker, StoppedClock
from holdfast.testing.clock import START_MS


class SyncCrew:
    """A blocking client and its worker: `crew(lambda: crew.worker.drain())`."""

    def __init__(self, url: str, namespace: str, clock: StoppedClock | None, **options: Any) -> None:
        self.client: Any = Client(url, namespace=namespace)
        self.worker: Any = LocalWorker(self.client, clock, **options)

    def __call__(self, ask: Callable[[], Any]) -> Any:
        return ask()

    def inline(self, ask: Callable[[], Any], **options: Any) -> Any:
        """Do something in inline mode."""
        with self.worker.inline(**options):
            return ask()

    def close(self) -> None:
        self.worker.close()
        self.client.close()


class AsyncCrew:
    """The same on a loop of its own."""

    def __init__(self, url: str, namespace: str, clock: StoppedClock | None, **options: Any) -> None:
        self.loop = asyncio.Runner()
        self.client: Any = AsyncClient(url, namespace=namespace)
        self.worker: Any = AsyncLocalWorker(self.client, clock, **options)

    def __call__(self, ask: Callable[[], Any]) -> Any:
        async def wait() -> Any:
            return await ask()

        return self.loop.run(wait())

    def inline(self, ask: Callable[[], Any], **options: Any) -> Any:
        async def wait() -> Any:
            async with self.worker.inline(**options):
                return await ask()

        return self.loop.run(wait())

    def close(self) -> None:
        self.loop.run(self.worker.close())
        self.loop.run(self.client.close())
        self.loop.close()


@pytest.fixture
def still(url: str, namespace: str) -> Iterator[StoppedClock]:
    """The stopped clock of this test's namespace."""
    with Client(url, namespace=namespace) as own:
        clock = StoppedClock(own, START_MS)
        clock.start()
        yield clock


@pytest.fixture(params=[SyncCrew, AsyncCrew], ids=["sync", "async"])
def hire(request: pytest.FixtureRequest, url: str, namespace: str, still: StoppedClock) -> Iterator[Any]:
    """Makes a crew that is told something."""
    made: list[Any] = []

    def make(**options: Any) -> Any:
        made.append(request.param(url, namespace, still, **options))
        return made[-1]

    yield make
    for crew in made:
        crew.close()


@pytest.fixture
def crew(hire: Any) -> Any:
    """A crew as it comes."""
    return hire()
