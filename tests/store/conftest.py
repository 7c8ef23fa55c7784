"""Fixtures for tests of the embedded store."""

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
    """A directory for a store, which is stopped and removed after the test. Its path is short, unlike tmp_path."""
    base = Path(tempfile.mkdtemp(prefix="hfs-"))
    yield base / "store"
    if (base / "store").is_dir():
        embedded.stop(base / "store")
    shutil.rmtree(base)


@pytest.fixture
def eventually() -> Eventually:
    """Wait until a condition is true; fail if it is not true within a time."""

    def wait(condition: Callable[[], object], what: str, within: float = 30.0) -> None:
        deadline, pause = time.monotonic() + within, threading.Event()
        while not condition():
            assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
            pause.wait(0.01)

    return wait


@pytest.fixture
def say() -> Callable[..., str]:
    """Send a command to the store at an address, and return the reply as text."""

    def ask(address: embedded.StoreAddress, *words: str) -> str:
        return resp.call(address.url.removeprefix("unix://"), *words, timeout=30.0)

    return ask
