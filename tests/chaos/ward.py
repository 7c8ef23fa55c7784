"""Workers under observation: of one pool, on a store of their own, reached through a relay that can be made to fail."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from crew import Crew, Worker, send
from diary import entries
from proxy import Proxy

from holdfast import Client, Job
from holdfast.testing.store import ScratchStore
from holdfast.worker.settings import POOLS
from waiting import until

QUICK: Final = ("process", "asyncio")
"""The pools that have their turn in every run; the others have it when there is time."""

EACH_POOL: Final = [pool if pool in QUICK else pytest.param(pool, marks=pytest.mark.full) for pool in POOLS]
WITH_CHILDREN: Final = [pool for pool in EACH_POOL if "serial" not in getattr(pool, "values", (pool,))]


class Ward:
    """`client` talks to the store directly, the workers through `relay`."""

    def __init__(self, store: ScratchStore, relay: Proxy, crew: Crew, here: Path, pool: str) -> None:
        self.store, self.relay, self._here, self.pool = store, relay, here, pool
        self.client = Client(store.url, namespace="ward")
        self._crew = crew

    def start(self, pool: str = "", queue: str = "q", more: Sequence[str] = ()) -> Worker:
        """A worker that has done its first job."""
        usual = ("-q", queue, "--pool", pool or self.pool, "-w", "1", "-m", "errands", "--interval", "1")
        worker, first = self._crew.start(*usual, *more), self.put(queue)
        until(lambda: self.is_done(first), "the first job is done", 30)
        return worker

    def put(self, queue: str = "q") -> str:
        return self.client.queues[queue].put("errands.nothing", {"args": []})

    def hold(self, gate: str, how: str = "linger") -> str:
        """A job that was begun and ends when the gate is opened."""
        jid = self.client.queues["q"].put(f"errands.{how}", {"args": [gate]})
        until(lambda: self.begun(gate), f"{gate} was begun")
        return jid

    def begun(self, gate: str) -> int:
        return sum(entry.get("gate") == gate for entry in entries(self._here))

    def noted(self, what: str) -> int:
        return sum(entry["what"] == what for entry in entries(self._here))

    def open(self, gate: str) -> None:
        (self._here / gate).touch()

    def is_done(self, jid: str) -> bool:
        job = self.client.jobs[jid]
        return job is not None and job.state == "complete"

    def until_done(self, *jids: str) -> None:
        until(lambda: all(self.is_done(jid) for jid in jids), "the jobs are done")

    def job(self, jid: str) -> Job:
        job = self.client.jobs[jid]
        assert isinstance(job, Job)
        return job

    def renewed(self, jid: str, seconds: float) -> None:
        """Return when the lease of a job has been renewed for so long."""
        before = self.job(jid).expires_at
        until(lambda: self.job(jid).expires_at > before + seconds, "its lease was renewed")

    def until_expired(self, jid: str, and_more: float = 0.1) -> None:
        """Return so many seconds after the lease of a job has ended."""
        end = self.job(jid).expires_at + and_more
        until(lambda: self.client.store_time() > end, "its lease has ended")


def freeze(worker: Worker) -> list[int]:
    """Stop all processes of a worker. Answers which."""
    family = worker.family()
    for pid in family:
        send(pid, signal.SIGSTOP)
    return family


def thaw(pids: list[int]) -> None:
    for pid in pids:
        send(pid, signal.SIGCONT)
