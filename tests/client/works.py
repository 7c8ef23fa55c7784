"""Performing jobs inside a test, by the worker's own parts: one by one, or by a whole worker in a thread."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from holdfast import AsyncClient
from holdfast.commands.leases import Pop
from holdfast.worker.performing.surroundings import make_performer
from holdfast.worker.queues.route import Route
from holdfast.worker.run import run_serial
from holdfast.worker.session import StoreSession
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import Stop
from holdfast.worker.store_choice import StoreChoice


class _Store(StoreChoice):
    """Remembers the async clients it made, because they are closed on their own loop."""

    made: list[Any]

    def async_client(self, name: str) -> AsyncClient:
        self.made.append(super().async_client(name))
        return self.made[-1]


class Works:
    """Performs jobs of one namespace in this process; coroutines on a loop in a thread of its own."""

    def __init__(self, url: str, namespace: str, *queues: str) -> None:
        self.queues = queues or ("q",)
        self.async_clients: list[Any] = []
        self.store = _Store(url, {"namespace": namespace}, self.async_clients)
        self.threads = ThreadPoolExecutor(1)
        self.loop = asyncio.Runner()
        self.settings = WorkerSettings(self.queues, pool="serial", interval=0.2, paths=("tests",)).checked()
        self.client = self.store.client("works")
        self.performer = make_performer(self.store, self.settings, "works", self.client)

    def one(self) -> str | None:
        """Perform the next job and settle it; answers its jid, None if nothing was ready."""
        jobs = self.client.run(Pop("works", self.queues, 1))
        for facts in jobs:
            turns = StoreSession(self.client.shard, "works", Route(self.client.shard, self.queues))
            turns.end(self.performer.perform(facts, self.run))
            while turns.has_outcomes:
                self.client.runner.run(turns.round_trip(0))
            return facts.jid
        return None

    def all(self) -> list[str]:
        """Perform whatever is ready; answers the jids in their order."""
        done: list[str] = []
        while (jid := self.one()) is not None:
            done.append(jid)
        return done

    @contextmanager
    def running(self) -> Iterator[None]:
        """A worker in a thread beside the test, which ends with the block."""
        stop = Stop()
        thread = threading.Thread(target=run_serial, args=(self.settings, self.store, stop))
        thread.start()
        try:
            yield
        finally:
            stop.request()
            thread.join(30)
            assert not thread.is_alive()

    def run(self, coroutine: Any) -> Any:
        """Drive a coroutine to its end, with what is current here."""
        return self.threads.submit(self.loop.run, coroutine, context=copy_context()).result()

    def close(self) -> None:
        for client in self.async_clients:
            self.run(client.close())
        self.threads.submit(self.loop.close).result()
        self.threads.shutdown()
        self.client.close()
