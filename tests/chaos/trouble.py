"""Trouble that tests make for a store while they go on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.testing.store import ScratchStore


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Do something in another thread, and end when it has ended."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert failed == []


def spin(store: ScratchStore, seconds: float) -> None:
    """Keep the store busy with somebody else's script, which only reads."""
    # It counts, because the clock stands still inside a script.
    script = "local n = 0 for i = 1, ARGV[1] * 1e8 do n = n + i % 7 end"
    store.ask("EVAL", script, "0", str(seconds), timeout=60)


def is_busy(store: ScratchStore) -> bool:
    try:
        store.ask("GET", "x")
    except Exception as error:
        return "BUSY" in str(error)
    return False
