"""The pytest plugin: a store for the session, a namespace of its own for each test, and workers that work on demand.

    def test_a_welcome_is_sent(holdfast_client, holdfast_worker):
        sign_up("ann@example.org")                      # the code under test puts a job
        assert_put(holdfast_client, welcome, "ann@example.org")
        holdfast_worker.drain()                         # and here it is performed

A test that names one of these fixtures has all of its clients moved to its namespace, those of the program too; no
address is read from the environment. Until a test does, nothing of holdfast is loaded.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.sync import Client
    from holdfast.testing.clock import StoppedClock
    from holdfast.testing.store import ScratchStore
    from holdfast.testing.worker import AsyncLocalWorker, LocalWorker, WorkerOptions


@pytest.fixture(scope="session")
def holdfast_store() -> "Iterator[ScratchStore]":
    """The store of this session's tests, started once; it ends with the session, however that ends."""
    from holdfast.testing.store import ScratchStore, find_engine

    with ScratchStore("valkey" if find_engine("valkey") else "redis") as running:
        yield running


class _Stage:
    """What the fixtures of one test share."""

    def __init__(self, store: "ScratchStore", stopped: bool) -> None:
        from holdfast.client.sync import Client
        from holdfast.testing.clock import StoppedClock
        from holdfast.testing.stand_in import StandIn

        self.url = store.url
        self.namespace = f"test-{uuid4().hex[:12]}"
        self.client = Client(self.url, namespace=self.namespace)
        self.clock: StoppedClock | None = None
        if stopped:
            self.clock = StoppedClock(self.client)
            self.clock.start()
        self.stand_in: StandIn = StandIn(self.url, self.namespace).begin()

    def end(self) -> None:
        """Give the program its clients back."""
        self.stand_in.end()
        self.client.close()


@pytest.fixture
def _holdfast_stage(request: pytest.FixtureRequest, holdfast_store: "ScratchStore") -> Iterator[_Stage]:
    stage = _Stage(holdfast_store, "holdfast_clock" in request.fixturenames)
    try:
        yield stage
    finally:
        stage.end()


@pytest.fixture
def holdfast_client(_holdfast_stage: _Stage) -> "Client":
    """A blocking client of this test's namespace."""
    return _holdfast_stage.client


@pytest.fixture
def holdfast_async_client(_holdfast_stage: _Stage) -> "Iterator[AsyncClient]":
    """An async client of this test's namespace, for whichever loop the test runs."""
    from holdfast.client.aio import AsyncClient

    made = AsyncClient(_holdfast_stage.url, namespace=_holdfast_stage.namespace)
    yield made
    made.link.drop()


@pytest.fixture
def holdfast_clock(_holdfast_stage: _Stage) -> "StoppedClock":
    """The clock of this test's namespace: it stands still until the test, or a worker's `run_for`, moves it."""
    if _holdfast_stage.clock is None:
        raise pytest.UsageError(
            "name holdfast_clock among the arguments of the test: its clock cannot stop any more"
        )
    return _holdfast_stage.clock


@pytest.fixture
def holdfast_options() -> "WorkerOptions":
    """What the workers of tests are told; a project gives this fixture its own, say `{"imports": ["shop.jobs"]}`."""
    return {}


@pytest.fixture
def holdfast_worker(
    _holdfast_stage: _Stage,
    holdfast_client: "Client",
    holdfast_options: "WorkerOptions",
    pytestconfig: pytest.Config,
) -> "Iterator[LocalWorker]":
    """A worker that performs jobs in this process when it is told to."""
    from holdfast.testing.worker import LocalWorker

    options: WorkerOptions = {"root": pytestconfig.rootpath, **holdfast_options}
    worker = LocalWorker(holdfast_client, _holdfast_stage.clock, **options)
    worker.inline_clients = lambda: [holdfast_client, *_holdfast_stage.stand_in.clients]
    yield worker
    worker.close()


@pytest.fixture
def holdfast_async_worker(
    _holdfast_stage: _Stage,
    holdfast_async_client: "AsyncClient",
    holdfast_options: "WorkerOptions",
    pytestconfig: pytest.Config,
) -> "Iterator[AsyncLocalWorker]":
    """The same on the loop of the test: `await holdfast_async_worker.drain()`."""
    from holdfast.testing.worker import AsyncLocalWorker

    options: WorkerOptions = {"root": pytestconfig.rootpath, **holdfast_options}
    worker = AsyncLocalWorker(holdfast_async_client, _holdfast_stage.clock, **options)
    worker.inline_clients = lambda: [holdfast_async_client, *_holdfast_stage.stand_in.clients]
    yield worker
    worker.drop()
