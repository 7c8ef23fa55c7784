"""Flows while workers, producers and the store are killed: each ends, with the right result, and no job of it ends twice.

`HOLDFAST_FLOW_ROUNDS=500` makes it 500 rounds of kills.
"""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crew import KIT, Crew, send

import programs
from holdfast import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.flows import FlowGet, FlowStates
from holdfast.commands.jobs import JobGet
from holdfast.errors import HoldfastError, JobNotFound
from holdfast.testing.store import ScratchStore
from waiting import pause, until

ROUNDS = int(os.environ.get("HOLDFAST_FLOW_ROUNDS", "20"))
MEMBERS, LENGTH = 12, 4

PRODUCER = f"""
import sys
from errands import app, count_on, sum_up
from holdfast import chain, group
from holdfast.errors import HoldfastError
for number in range(int(sys.argv[1]), int(sys.argv[2])):
    def one(start):
        call = count_on.call(start)
        for _ in range({LENGTH} - 1):
            call = call.then(count_on)
        return call
    flow = group(one(number + member) for member in range({MEMBERS})).then(sum_up)
    while True:
        try:
            app.put(flow, jid=f"flow-{{number}}")
        except HoldfastError:
            continue
        break
"""
"""Puts flows under their numbers; one that is started again puts the same ones."""


def wanted(number: int) -> int:
    return sum(number + member + LENGTH for member in range(MEMBERS))


@pytest.fixture
def kept_store() -> Iterator[ScratchStore]:
    """A store of this test's own, whose log is flushed before it answers."""
    with ScratchStore("valkey", "fsync") as running:
        yield running


class Fire:
    """Kills one thing a round, and starts it again."""

    def __init__(self, store: ScratchStore, crew: Crew, namespace: str, here: Path) -> None:
        self._store, self._crew, self._here = store, crew, here
        self._env = {
            **os.environ, "PYTHONPATH": f"{KIT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", "ERRANDS_HERE": str(here),
            "HOLDFAST_URL": store.url, "HOLDFAST_NAMESPACE": namespace,
        }  # fmt: skip
        self.harm = Counter[str]()
        self.dice = random.Random()

    def start(self) -> None:
        self._crew.start(
            "-q",
            "q",
            "-w",
            "2",
            "--interval",
            "0.2",
            "-m",
            "errands",
            "--pool",
            self.dice.choice(("process", "thread", "asyncio")),
        )

    def produce(self, first: int, last: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", PRODUCER, str(first), str(last)]
        return programs.popen(words, env=self._env, cwd=self._here)

    def round(self, number: int) -> None:
        """Put a flow, perhaps by a producer that is killed and started again, and hurt somebody meanwhile."""
        producer = self.produce(number, number + 1)
        pause(self.dice.uniform(0.0, 0.6))
        what = self.dice.choice(("producers", "workers", "workers", "stores"))
        self.harm[what] += 1
        if what == "producers":
            producer.kill()
            producer.wait(30)
            producer = self.produce(number, number + 1)
        elif what == "workers":
            worker = self.dice.choice([one for one in self._crew.workers if one.lives])
            for pid in worker.processes():
                send(pid, signal.SIGKILL)
            worker.wait()
            self.start()
        else:
            self._store.kill()
            pause(self.dice.uniform(0.0, 0.3))
            self._store.restart()
        assert producer.wait(120) == 0


def has_ended(client: Client, number: int) -> bool:
    try:
        return set(client.run(FlowStates(f"flow-{number}"))) == {"complete"}
    except JobNotFound:
        raise
    except HoldfastError:
        return False


def check(client: Client, here: Path) -> None:
    """Every flow is there once and whole, each job has completed once, and each sum is right."""
    found = client.run(FlowGet([f"flow-{number}" for number in range(ROUNDS)]))
    assert [facts.total for facts in found if facts is not None] == [MEMBERS * LENGTH + 1] * ROUNDS
    for number in range(ROUNDS):
        assert client.flow(f"flow-{number}").result(30) == wanted(number)
        last = f"flow-{number}-{MEMBERS * LENGTH}"
        [job] = client.run(JobGet([last]))
        assert job is not None
        assert Counter(line.what for line in job.history)["done"] == 1
    ran = Counter((here / "sums").read_text().split())
    # It runs again only if its end was not recorded.
    assert set(ran) == {f"flow-{number}-{MEMBERS * LENGTH}" for number in range(ROUNDS)}


@pytest.mark.full
def test_each_flow_ends_with_the_right_result_whatever_is_killed(
    kept_store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    with (
        Client(kept_store.url, namespace=namespace) as client,
        Crew(tmp_path, kept_store.url, namespace, {"ERRANDS_HERE": str(tmp_path)}) as crew,
    ):
        for name, value in (("heartbeat", "1"), ("grace-period", "0.5"), ("jobs-history-count", "100000")):
            client.run(ConfigSet(name, value))
        fire = Fire(kept_store, crew, namespace, tmp_path)
        for _ in range(2):
            fire.start()
        until(lambda: all("started as process" in one.said() for one in crew.workers), "the workers live", 60)
        for number in range(ROUNDS):
            fire.round(number)
        print(dict(fire.harm))
        until(lambda: all(has_ended(client, number) for number in range(ROUNDS)), "all flows have ended", 180)
        check(client, tmp_path)
