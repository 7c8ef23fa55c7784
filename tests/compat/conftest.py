"""The stories of the released client, told of the stand-in."""

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client
from holdfast.compat import reqless
from holdfast.testing import ScratchStore, StoppedClock
from holdfast.testing.clock import START_MS

REAL = Path(__file__).parents[1] / "reqless" / "real"
STORIES = REAL.parent.parent / "compat"
NAMES = [
    "abstract", "config", "events", "exceptions", "future", "importer", "job", "listener", "models", "proctitle",
    "profile", "queue", "queue_patterns", "queue_resolvers", "throttle", "util", "workers",
]  # fmt: skip


class World:
    """What a story gets: a stand-in's client on an empty namespace, and a clock to move."""

    own, is_older = False, False

    def __init__(self, url: str, namespace: str) -> None:
        self.package: Any = reqless
        self.url, self.namespace = url, namespace
        self.client: Any = self.other("box")
        self.clock = StoppedClock(Client(url, namespace=namespace), START_MS)
        self.clock.now_ms = round(time.time() * 1000)
        self.clock._client.shard.test_clock_ms = self.clock.now_ms
        self.clock.start()
        self.store: Any = self.client.database
        self.ahead = 0.0

    def other(self, name: str = "elsewhere") -> Any:
        return reqless.Client(self.url, hostname=name, namespace=self.namespace)

    def channel(self, what: str) -> str:
        """Where an event, or what a worker must know (`w:<name>`), is told."""
        kind, _, name = what.rpartition(":")
        shard = self.client.shard
        return str(shard.worker_channel(name) if kind else shard.event_channel(name))

    def pass_time(self, seconds: float) -> None:
        """The store has the time, and programs look at the same."""
        self.ahead += seconds
        self.clock.advance(seconds=seconds)

    def refused(self, call: Callable[[], object]) -> str:
        try:
            call()
        except reqless.ReqlessError as error:
            return str(error)
        raise AssertionError("this was to be refused")


@pytest.fixture
def as_reqless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `import reqless` find the stand-in, so that a story needs not even move by one import."""
    monkeypatch.setitem(sys.modules, "reqless", reqless)
    for name in NAMES:
        monkeypatch.setitem(
            sys.modules, f"reqless.{name}", importlib.import_module(f"holdfast.compat.reqless.{name}")
        )
    monkeypatch.syspath_prepend(REAL)


@pytest.fixture
def world(
    engine_store: ScratchStore, namespace: str, as_reqless: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A world whose time the story moves, for the program and for the store."""
    made = World(engine_store.url, namespace)
    usual = time.time
    monkeypatch.setattr(time, "time", lambda: usual() + made.ahead)
    yield made
    made.client.close()
    made.clock._client.close()
