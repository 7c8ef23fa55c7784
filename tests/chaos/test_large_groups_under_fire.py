"""Large groups of which one job in twenty ends its process and one in twenty fails, while workers and the store are killed.

`HOLDFAST_GROUP_MEMBERS=10000` makes them groups of 10,000 jobs.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import errands
import pytest
from crew import Crew, send

from holdfast import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.flows import FlowFacts, FlowGet
from holdfast.commands.jobs import JobGet
from holdfast.errors import HoldfastError
from holdfast.testing.store import ScratchStore
from waiting import pause, until

MEMBERS = int(os.environ.get("HOLDFAST_GROUP_MEMBERS", "1000"))
FAILING = len(range(13, MEMBERS, 20))
FLOW = "group"


@pytest.fixture
def kept_store() -> Iterator[ScratchStore]:
    """A store of this test's own, whose log is flushed before it answers."""
    with ScratchStore("valkey", "fsync") as running:
        yield running


def start(crew: Crew) -> None:
    crew.start("-q", "q", "-w", "2", "--interval", "0.2", "-m", "errands", "--pool", "process")


def hurt(store: ScratchStore, crew: Crew, dice: random.Random) -> None:
    """Kill a worker with all its processes, or the store."""
    pause(dice.uniform(0.2, 1.0))
    if dice.random() < 0.3:
        store.kill()
        store.restart()
        return
    worker = dice.choice([one for one in crew.workers if one.lives])
    for pid in worker.processes():
        send(pid, signal.SIGKILL)
    worker.wait()
    start(crew)


def facts_of(client: Client) -> FlowFacts | None:
    try:
        [facts] = client.run(FlowGet([FLOW]))
    except HoldfastError:
        return None
    return facts


def are_over(client: Client, *, failing: int) -> bool:
    """Whether all members have ended, so many of them badly."""
    facts = facts_of(client)
    members = facts and facts.members
    return bool(members) and (members.complete, members.failed) == (MEMBERS - failing, failing)


def runs(here: Path) -> list[str]:
    noted = here / "gathered"
    return noted.read_text().split() if noted.exists() else []


@pytest.mark.full
@pytest.mark.parametrize("policy", ["fail", "run", "wait"])
def test_what_follows_a_large_group_runs_once_with_all_results_whatever_is_killed(
    kept_store: ScratchStore, namespace: str, tmp_path: Path, policy: Literal["fail", "run", "wait"]
) -> None:
    with (
        Client(kept_store.url, namespace=namespace) as client,
        Crew(tmp_path, kept_store.url, namespace, {"ERRANDS_HERE": str(tmp_path)}) as crew,
    ):
        for name, value in (("heartbeat", "1"), ("grace-period", "0.5"), ("jobs-history-count", "100000")):
            client.run(ConfigSet(name, value))
        members = errands.strain.map(range(MEMBERS))
        if policy == "run":
            handle = client.put(members.then(errands.reported, on_failure="run"), jid=FLOW)
        else:
            handle = client.put(members.then(errands.gathered, on_failure=policy), jid=FLOW)
        dice = random.Random()
        for _ in range(2):
            start(crew)
        until(lambda: all("started as process" in one.said() for one in crew.workers), "the workers live", 60)
        for _ in range(max(8, MEMBERS // 500)):
            hurt(kept_store, crew, dice)
        until(lambda: are_over(client, failing=FAILING), "all jobs of the group have ended", 600)
        if policy == "run":
            assert handle.result(120) == [MEMBERS - FAILING, FAILING]
        else:
            assert runs(tmp_path) == []
            assert handle.parts()[1].state == ("failed" if policy == "fail" else "depends")
            (tmp_path / "mended").touch()
            assert handle.retry() == FAILING + (2 if policy == "fail" else 0)
            hurt(kept_store, crew, dice)
            until(lambda: are_over(client, failing=0), "all jobs of the group are complete", 300)
            assert handle.result(120) == sum(range(MEMBERS))
        # It runs again only if its end was not recorded.
        assert set(runs(tmp_path)) == {f"{FLOW}-1"}
        [job] = client.run(JobGet([f"{FLOW}-1"]))
        assert job is not None
        assert Counter(line.what for line in job.history)["done"] == 1
