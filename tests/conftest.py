"""Fixtures every part shares: one scratch store per run and engine, one namespace per test."""

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from holdfast.client.aio import AsyncClient
from holdfast.client.sync import Client
from holdfast.testing.clock import StoppedClock
from holdfast.testing.store import Engine, ScratchStore, find_engine


def pytest_configure() -> None:
    """Let INT reach the programs that tests start: they would inherit its being ignored, as after `nohup … &`."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def skip_without(engine: Engine) -> None:
    """Skip a test of an engine that is not installed."""
    if find_engine(engine) is None:
        pytest.skip(f"{engine}-server is not installed")


@pytest.fixture(scope="session")
def store() -> Iterator[ScratchStore]:
    """The Valkey that this run's tests share."""
    with ScratchStore("valkey") as running:
        yield running


@pytest.fixture(scope="session")
def redis_store() -> Iterator[ScratchStore]:
    """The Redis that this run's tests share."""
    skip_without("redis")
    with ScratchStore("redis") as running:
        yield running


@pytest.fixture(params=["valkey", "redis"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn, for what must hold on both; one that is not installed is skipped."""
    skip_without(request.param)
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def engine_store(request: pytest.FixtureRequest, engine: Engine) -> ScratchStore:
    """The shared store of each engine in turn."""
    name = "store" if engine == "valkey" else "redis_store"
    running: ScratchStore = request.getfixturevalue(name)
    return running


@pytest.fixture
def namespace() -> str:
    """A namespace nobody else uses, of the kind that may be a test root."""
    return f"test-{uuid4().hex[:12]}"


@pytest.fixture
def url(store: ScratchStore) -> str:
    """Where the shared Valkey listens."""
    return store.url


@pytest.fixture
def client(url: str, namespace: str) -> Iterator[Client]:
    """A blocking client of this test's namespace."""
    with Client(url, namespace=namespace) as made:
        yield made


@pytest.fixture
def aclient(url: str, namespace: str) -> AsyncClient:
    """An async client of this test's namespace; the test closes it, on its own loop."""
    return AsyncClient(url, namespace=namespace)


@pytest.fixture
def clock(engine_store: ScratchStore, namespace: str) -> Iterator[StoppedClock]:
    """The stopped clock of a test root, on each engine in turn."""
    with Client(engine_store.url, namespace=namespace) as made:
        yield StoppedClock(made)


@pytest.fixture
def core(clock: StoppedClock) -> Callable[[Any], Any]:
    """Runs a command under the stopped clock: `core(Put("mail", "Welcome"))`."""
    return clock.core


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if find_engine("redis") is None:
        terminalreporter.write_line(
            "LOUD SKIP: redis-server is not installed, so nothing was tested on Redis", red=True, bold=True
        )
