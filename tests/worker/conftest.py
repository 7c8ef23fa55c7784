"""A directory with chores, a client on them, and workers that end with the test."""

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from worker_kit import CHORES, Worker

import holdfast
from holdfast.work.settings import POOLS

HERE = Path(__file__).parent
BY_TURNS = ("asyncio", "fork", "serial", "thread", "gevent")
OF_THEIR_OWN = ("test_many_seats", "test_greenlets")
"""Files whose stories are about these two."""

LOGS = """
import logging
from holdfast.logs import FORMAT
logging.basicConfig(level=logging.INFO, format=FORMAT)
"""


SUPERVISOR = """
import os, signal
from holdfast.work.pools import process
from holdfast.work.settings import WorkerSettings
from holdfast.work.store_choice import StoreChoice
from holdfast.work.parent.supervisor import Supervisor
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
    ) -> Worker:
        if pool == "fork":
            flags = ("--import", "chores", *flags)  # else each job would import it anew
        usual = ("-q", "q", "--pool", pool, "-w", str(workers), "--url", url or self.url)
        named = ("--namespace", self.namespace)
        worker = Worker(self.here, len(self.workers), *usual, *named, *flags, stdin=stdin)
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The fast suite tells each story in the pool that is used most, and in one of the others, by turns."""
    told: dict[tuple[Path, str], dict[str, list[pytest.Function]]] = {}
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and item.path.parent == HERE
            and item.path.stem not in OF_THEIR_OWN
        ):
            params = item.callspec.params if hasattr(item, "callspec") else {}
            pool = params.get("pool") or params.get("forking_pool")
            if pool in BY_TURNS:
                told.setdefault((item.path, item.originalname), {}).setdefault(pool, []).append(item)
    for (_, name), pools in told.items():
        chosen = sorted(pools)[crc32(name.encode()) % len(pools)]
        for pool, stories in pools.items():
            for story in stories if pool != chosen else ():
                story.add_marker(pytest.mark.slow)


@pytest.fixture(params=POOLS)
def pool(request: pytest.FixtureRequest) -> str:
    """Each pool in turn."""
    return str(request.param)


@pytest.fixture(params=[pool for pool in POOLS if pool != "serial"])
def forking_pool(request: pytest.FixtureRequest) -> str:
    """Each pool that has children, in turn."""
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
