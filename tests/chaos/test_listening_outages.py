"""Whoever listens to events is told of them again when the store is back, whatever became of the connection."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from proxy import Proxy

from holdfast import AsyncClient, Client
from waiting import until


@contextmanager
def heard_in_a_thread(url: str, namespace: str) -> Iterator[list[str]]:
    seen: list[str] = []
    with Client(url, namespace=namespace) as client:
        client.events.track(seen.append)
        with client.events.thread():
            yield seen


@contextmanager
def heard_in_a_task(url: str, namespace: str) -> Iterator[list[str]]:
    seen: list[str] = []
    ready, done = threading.Event(), threading.Event()

    async def follow() -> None:
        async with AsyncClient(url, namespace=namespace) as client:
            client.events.track(seen.append)
            async with client.events:
                ready.set()
                await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(follow()))
    thread.start()
    assert ready.wait(30)
    yield seen
    done.set()
    thread.join(40)
    assert not thread.is_alive()


@pytest.fixture(params=[heard_in_a_thread, heard_in_a_task], ids=["sync", "async"])
def heard(request: pytest.FixtureRequest) -> Any:
    return request.param


def told_again(client: Client, seen: list[str], within: float = 30.0) -> None:
    """Something is told: track a job again and again, for what happens before the listener is back is not told."""

    def tracked() -> bool:
        client.untrack("j")
        client.track("j")
        return bool(seen)

    seen.clear()
    until(tracked, "an event is told", within)


@pytest.mark.parametrize("how", ["cut", "reject", "refuse"])
def test_events_are_told_after_the_connection_was_lost(client, proxy: Proxy, heard, how):
    client.queues["q"].put("K", jid="j")
    with heard(proxy.url, client.settings.namespace) as seen:
        told_again(client, seen)
        for _ in range(3):
            getattr(proxy, how)()
            proxy.heal()
            told_again(client, seen)


@pytest.mark.full  # a store that is just silent is given five seconds
def test_a_connection_that_nothing_comes_through_any_more_is_noticed(
    client, proxy: Proxy, heard, monkeypatch
):
    monkeypatch.setattr("holdfast.client.listener.QUIET", 0.05)
    client.queues["q"].put("K", jid="j")
    with heard(proxy.url, client.settings.namespace) as seen:
        told_again(client, seen)
        before = len(proxy.accepted)
        proxy.black_hole()
        until(lambda: len(proxy.accepted) > before, "it tries another connection", 30)
        proxy.heal()
        told_again(client, seen, 30.0)
