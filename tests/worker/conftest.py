"""A directory with chores, a client on them, and workers that end with the test."""

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from worker_kit import CHORES, Worker, until

import holdfast
import programs
from holdfast.commands.leases import Pop
from holdfast.commands.outcomes import Retry
from holdfast.worker.settings import POOLS

ARRIVALS = ("at once", "delayed", "retried", "recurring", "lost")
"""How a job comes to an idle worker: all but the first are taken by its timer, not by a wake-up."""

LOGS = """
import logging
from holdfast.logs import FORMAT
logging.basicConfig(level=logging.INFO, format=FORMAT)
"""


SUPERVISOR = """
import os, signal
from holdfast.worker.pools import serial
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.supervisor import Supervisor
import chores
settings = WorkerSettings(("q",), workers=2, imports=("chores",)).checked()
store = StoreChoice.of(chores.app)
"""


class Shop:
    """Everything a worker test needs: `chores` (the module of jobs), `client`, and `start` for workers."""

    def __init__(self, here: Path, url: str, namespace: str, chores: Any) -> None:
        self.here = here
        self.url = url
        self.namespace = namespace
        self.chores = chores
        self.client: holdfast.Client = chores.app
        self.q = self.client.queues["q"]
        self.workers: list[Worker] = []

    def start(
        self,
        pool: str = "process",
        *flags: str,
        workers: int = 1,
        url: str = "",
        stdin: int = subprocess.DEVNULL,
        leads: bool = False,
    ) -> Worker:
        if pool == "fork":
            flags = ("--import", "chores", *flags)  # else each job would import it anew
        usual = ("-q", "q", "--pool", pool, "-w", str(workers), "--url", url or self.url)
        named = ("--namespace", self.namespace)
        worker = Worker(self.here, len(self.workers), *usual, *named, *flags, stdin=stdin, leads=leads)
        self.workers.append(worker)
        return worker

    def run_code(self, code: str) -> Worker:
        """A worker that is made by a program of its own."""
        program = self.here / f"program{len(self.workers)}.py"
        program.write_text(LOGS + textwrap.dedent(code))
        worker = Worker(self.here, len(self.workers), words=[sys.executable, str(program)])
        self.workers.append(worker)
        return worker

    def start_supervisor(self, code: str) -> Worker:
        """A worker of two children, where `code` makes the supervisor and runs it."""
        return self.run_code(SUPERVISOR + textwrap.dedent(code))

    def bring(self, arrival: str, worker: Worker, klass: str = "chores.block") -> str:
        """Have an idle worker take a job that comes in this way. Returns its jid once the job runs, as `begin a`."""
        assert self.chores.add.put(1).result(30) == 2
        with worker.halted():
            jid = self.put_to_come(arrival, klass, {"args": ["a"]})
        until(lambda: self.notes("begin a"), f"the job that comes {arrival} runs", 30)
        return jid

    def put_to_come(self, arrival: str, klass: str, data: dict[str, Any]) -> str:
        """Put a job that is due at once or in a second, while no worker takes it."""
        if arrival == "recurring":
            return self.q.recur(klass, data, interval=1000, offset=1) + "-1"
        jid = self.q.put(klass, data, retries=2, delay=1 if arrival == "delayed" else 0)
        if arrival == "lost":
            self.client.config["grace-period"] = 0
            self.client.run(Pop("somebody", ["q"], 1, 1))
        elif arrival == "retried":
            [lease] = self.client.run(Pop("somebody", ["q"]))
            self.client.run(Retry("somebody", lease, 1000, "again", "on purpose"))
        return jid

    def notes(self, word: str = "") -> list[str]:
        """The lines that jobs wrote, those that begin with `word`."""
        file = self.here / "notes"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.startswith(word)]

    def open(self, gate: str = "gate") -> None:
        (self.here / gate).touch()

    def job(self, jid: str) -> holdfast.Job:
        job = self.client.jobs[jid]
        assert job is not None
        return job

    def state(self, jid: str) -> str:
        return self.job(jid).state


@pytest.fixture(scope="session", autouse=True)
def program_server() -> None:
    """It runs before tests count what is open."""
    programs.server()


@pytest.fixture(params=POOLS)
def pool(request: pytest.FixtureRequest) -> str:
    """Each pool in turn."""
    return str(request.param)


@pytest.fixture(params=[pool for pool in POOLS if pool != "serial"])
def forking_pool(request: pytest.FixtureRequest) -> str:
    """Each pool that has children, in turn."""
    return str(request.param)


@pytest.fixture(params=ARRIVALS)
def arrival(request: pytest.FixtureRequest) -> str:
    """Each way in which a job comes to a worker, in turn."""
    return str(request.param)


@pytest.fixture
def shop(tmp_path: Path, url: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    (tmp_path / "chores.py").write_text(CHORES)
    monkeypatch.setenv("CHORES_HERE", str(tmp_path))
    monkeypatch.setenv("CHORES_URL", url)
    monkeypatch.setenv("CHORES_NAMESPACE", namespace)
    monkeypatch.syspath_prepend(str(tmp_path))
    chores = importlib.import_module("chores")
    shop = Shop(tmp_path, url, namespace, chores)
    yield shop
    for worker in shop.workers:
        worker.end()
    shop.client.close()
    del sys.modules["chores"]
