"""The pytest plugin: a store for the session, a namespace for each test, and workers that a test calls.

    def test_a_welcome_is_sent(holdfast_client, holdfast_worker):
        sign_up("ann@example.org")                      # the code under test puts a job
        assert_put(holdfast_client, welcome, "ann@example.org")
        holdfast_worker.drain()                         # and here it is performed

While a test uses one of these fixtures, all clients of the process, those of the program too, use its namespace; no
address is read from the environment. Without such a test, nothing of holdfast is imported.
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
    """A store for the tests of this session; it ends with the session."""
    from holdfast.testing.store import ScratchStore, find_engine

    with ScratchStore("valkey" if find_engine("valkey") else "redis") as running:
        yield running


class _Stage:
    """The objects that the fixtures of one test share."""

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
        """Restore the clients of the program."""
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
    """A Client of this test's namespace."""
    return _holdfast_stage.client


@pytest.fixture
def holdfast_async_client(_holdfast_stage: _Stage) -> "Iterator[AsyncClient]":
    """An AsyncClient of this test's namespace, for any event loop of the test."""
    from holdfast.client.aio import AsyncClient

    made = AsyncClient(_holdfast_stage.url, namespace=_holdfast_stage.namespace)
    yield made
    made.link.drop()


@pytest.fixture
def holdfast_clock(_holdfast_stage: _Stage) -> "StoppedClock":
    """The clock of this test's namespace: stopped until the test, or `run_for` of a worker, moves it."""
    if _holdfast_stage.clock is None:
        raise pytest.UsageError(
            "add holdfast_clock to the arguments of the test: its clock can no longer be stopped"
        )
    return _holdfast_stage.clock


@pytest.fixture
def holdfast_options() -> "WorkerOptions":
    """Options of the workers in tests. A project can override this fixture, for example by `{"imports": ["shop.jobs"]}`."""
    return {}


@pytest.fixture
def holdfast_worker(
    _holdfast_stage: _Stage,
    holdfast_client: "Client",
    holdfast_options: "WorkerOptions",
    pytestconfig: pytest.Config,
) -> "Iterator[LocalWorker]":
    """A worker that performs jobs in this process when the test calls it."""
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
    """A worker on the event loop of the test: `await holdfast_async_worker.drain()`."""
    from holdfast.testing.worker import AsyncLocalWorker

    options: WorkerOptions = {"root": pytestconfig.rootpath, **holdfast_options}
    worker = AsyncLocalWorker(holdfast_async_client, _holdfast_stage.clock, **options)
    worker.inline_clients = lambda: [holdfast_async_client, *_holdfast_stage.stand_in.clients]
    yield worker
    worker.drop()
