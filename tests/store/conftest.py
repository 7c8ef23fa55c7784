"""A directory for an embedded store, whose store is gone when the test is."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast import store as embedded
from holdfast.store import resp

Eventually = Callable[..., None]


@pytest.fixture
def home() -> Iterator[Path]:
    """Short, unlike tmp_path: some tests are about long ones."""
    base = Path(tempfile.mkdtemp(prefix="hfs-"))
    yield base / "store"
    if (base / "store").is_dir():
        embedded.stop(base / "store")
    shutil.rmtree(base)


@pytest.fixture
def eventually() -> Eventually:
    """Waits until something is true, and fails if it does not become so."""

    def wait(condition: Callable[[], object], what: str, within: float = 30.0) -> None:
        deadline, pause = time.monotonic() + within, threading.Event()
        while not condition():
            assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
            pause.wait(0.01)

    return wait


@pytest.fixture
def say() -> Callable[..., str]:
    """Speaks to a store by its address."""

    def ask(address: embedded.StoreAddress, *words: str) -> str:
        return resp.call(address.url.removeprefix("unix://"), *words, timeout=30.0)

    return ask
