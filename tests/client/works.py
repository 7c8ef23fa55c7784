"""Performing jobs inside a test, by the worker's own parts: one by one, or by a whole worker in a thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.commands.leases import Pop
from holdfast.work.making import make_performer
from holdfast.work.run import run_serial
from holdfast.work.seat import Turns
from holdfast.work.signals import Stop
from holdfast.work.worker import StoreChoice, WorkerSettings


class Works:
    """Performs jobs of one namespace in this process."""

    def __init__(self, url: str, namespace: str, *queues: str) -> None:
        self.queues = queues or ("q",)
        self.store = StoreChoice(url, {"namespace": namespace})
        self.settings = WorkerSettings(self.queues, pool="serial", interval=0.2).checked()
        self.client = self.store.client("works")
        self.performer = make_performer(self.store, self.settings, "works", self.client)

    def one(self) -> str | None:
        """Perform the next job and settle it; answers its jid, None if nothing was ready."""
        jobs = self.client.run(Pop("works", self.queues, 1))
        for facts in jobs:
            turns = Turns(self.client.shard, "works", self.queues)
            turns.end(self.performer.perform(facts, _run))
            while turns.has_news:
                self.client.runner.run(turns.turn(0))
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
            thread.join(20)
            assert not thread.is_alive()

    def close(self) -> None:
        self.client.close()


def _run(coroutine):
    """Drive a coroutine in a thread of its own: the test may be on a loop itself."""
    import asyncio
    from contextvars import copy_context

    context, answers = copy_context(), []
    thread = threading.Thread(target=lambda: answers.append(context.run(asyncio.run, coroutine)))
    thread.start()
    thread.join()
    return answers[0]
