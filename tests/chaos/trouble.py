"""Trouble that tests make for a store while they go on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from holdfast.testing.store import ScratchStore
from waiting import until

WRITTEN_AT_ONCE: Final = {"appendfsync": "no"}
"""Settings of a store that is killed: with `everysec` it holds writes back for seconds while its disk is slow."""


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


@contextmanager
def busy(store: ScratchStore) -> Iterator[Callable[[], object]]:
    """Keep the store busy with somebody else's script, which only reads, until what is yielded is called."""
    store.ask("CONFIG", "SET", "busy-reply-threshold", "5")

    def spin() -> None:
        with suppress(Exception):  # it is killed
            store.ask("EVAL", "while true do end", "0", timeout=120)

    with meanwhile(spin):
        until(lambda: is_busy(store), "the store is busy")
        ended: list[str] = []

        def end() -> None:
            if not ended:
                ended.append(str(store.ask("SCRIPT", "KILL")))

        try:
            yield end
        finally:
            end()


def is_busy(store: ScratchStore) -> bool:
    try:
        store.ask("GET", "x")
    except Exception as error:
        return "BUSY" in str(error)
    return False
