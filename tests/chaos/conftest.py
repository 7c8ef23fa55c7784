"""Speakers of both colours, and relays in front of stores, that end with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crew import Crew
from proxy import Proxy
from speakers import Awaited, Blocking, Speaker
from trouble import WRITTEN_AT_ONCE
from ward import EACH_POOL, Ward

from holdfast.testing.store import Engine, ScratchStore

MakeSpeaker = Callable[..., Speaker]


@pytest.fixture(params=[Blocking, Awaited], ids=["sync", "async"])
def speaker(request: pytest.FixtureRequest, namespace: str) -> Iterator[MakeSpeaker]:
    """`speaker(url, **options)` makes a client of this test's namespace, in each colour in turn."""
    made: list[Speaker] = []

    def make(url: str, **options: Any) -> Speaker:
        made.append(request.param(url, namespace, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(params=EACH_POOL)
def ward(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ward]:
    """A ward of each pool in turn."""
    with (
        ScratchStore("valkey", "process", settings=WRITTEN_AT_ONCE) as store,
        Proxy(store.url) as relay,
        Crew(tmp_path, relay.url, "ward", {"ERRANDS_HERE": str(tmp_path)}) as crew,
    ):
        ward = Ward(store, relay, crew, tmp_path, request.param)
        yield ward
        ward.client.close()


@pytest.fixture
def proxy(store: ScratchStore) -> Iterator[Proxy]:
    """A relay in front of the shared Valkey."""
    with Proxy(store.url) as relay:
        yield relay


@pytest.fixture
def own_store(engine: Engine) -> Iterator[ScratchStore]:
    """A store that the test may do anything to."""
    with ScratchStore(engine) as running:
        yield running
