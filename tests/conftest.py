"""Fixtures every part shares: one scratch store per run and engine, one namespace per test; and what a run is."""

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import hypothesis.core
import pytest
from hypothesis.configuration import set_hypothesis_home_dir

import selection
from holdfast.client.aio import AsyncClient
from holdfast.client.sync import Client
from holdfast.logs import DescriptorHandler
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.testing.store import Engine, ScratchStore, find_engine

BEGUN = time.monotonic()


def pytest_configure(config: pytest.Config) -> None:
    """Let INT reach the programs that tests start: they would inherit its being ignored, as after `nohup … &`.

    Everything that is kept from run to run is in one directory.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    selection.in_shard()  # a shard that cannot be is an error before anything is collected
    cache = getattr(config, "cache", None)
    set_hypothesis_home_dir(cache.mkdir("hypothesis") if cache else None)
    if selection.EVERYDAY and hypothesis.core.global_force_seed is None:
        hypothesis.core.global_force_seed = 20251128


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, and keep what was collected out of its sight: there are thousands of items."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the test files of other shards."""
    is_test = collection_path.match("test_*.py")
    return True if selection.SHARD and is_test and collection_path not in selection.in_shard() else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Collector, name: str, obj: object
) -> list[pytest.Item] | None:
    """Make no items of tests that do not run every day."""
    is_test = selection.EVERYDAY and name.startswith("test") and callable(obj)
    return [] if is_test and selection.is_full(collector, obj) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the members of families that do not run every day."""
    if selection.EVERYDAY:
        kept, left_out = selection.divided(items)
        items[:] = kept
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def root_log() -> Iterator[None]:
    """Commands that run in this process log to standard error as it is during the test: their handlers go with it."""
    before = list(logging.root.handlers)
    yield
    for handler in [one for one in logging.root.handlers if one not in before]:
        if type(handler) in (logging.StreamHandler, DescriptorHandler):
            logging.root.removeHandler(handler)


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
        yield StoppedClock(made, START_MS)


@pytest.fixture
def core(clock: StoppedClock) -> Callable[[Any], Any]:
    """Runs a command under the stopped clock: `core(Put("mail", "Welcome"))`."""
    return clock.core


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    used = sum(os.times()[:4])
    terminalreporter.write_line(
        f"{time.monotonic() - BEGUN:.0f} s, {used:.0f} CPU seconds"
        + ("; the tests of every day, `make test-all` runs all" if selection.EVERYDAY else "")
    )
    if find_engine("redis") is None:
        terminalreporter.write_line(
            "LOUD SKIP: redis-server is not installed, so nothing was tested on Redis", red=True, bold=True
        )
