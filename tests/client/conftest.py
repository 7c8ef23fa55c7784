"""The fixture that runs a test with both clients."""

from collections.abc import Iterator

import pytest
from sync_async import Async, Sync
from works import Works

from holdfast import Client
from holdfast.testing.clock import START_MS, StoppedClock


@pytest.fixture(params=[Sync, Async], ids=["sync", "async"])
def do(request: pytest.FixtureRequest, url: str, namespace: str) -> Iterator[Sync | Async]:
    """`do(lambda: do.client.queues["q"].pop())` returns the same with both clients."""
    made = request.param(url, namespace)
    yield made
    made.close()


@pytest.fixture
def stopped(client: Client) -> StoppedClock:
    """The clock of this test's namespace, for both clients; request it before `do`."""
    clock = StoppedClock(client, START_MS)
    clock.advance(seconds=0)
    return clock


@pytest.fixture
def works(url: str, namespace: str) -> Iterator[Works]:
    """Performs jobs of this test's namespace, from queue `q`."""
    made = Works(url, namespace)
    yield made
    made.close()
