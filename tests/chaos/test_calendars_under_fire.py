"""The moments of a calendar while workers and the store are killed, or the clock of the machine is set: each gets one job.

`HOLDFAST_OCCURRENCES=1000` makes it a thousand moments.
"""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import time

import pytest
from crew import Crew, send

from holdfast import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.jobs import JobGet
from holdfast.commands.recurring import CalendarFacts, Recur, RecurExtend, RecurGet, RecurUnplanned
from holdfast.errors import HoldfastError
from holdfast.testing.store import ScratchStore
from waiting import pause, until

OCCURRENCES = int(os.environ.get("HOLDFAST_OCCURRENCES", "200"))
GAP_MS = 100
PIECE = 40
"""Moments that are planned at once: the plan runs out now and then."""


class Planner(threading.Thread):
    """Plans the template on, as each worker does once a minute; two of them do it at the same time."""

    def __init__(self, url: str, namespace: str, moments: list[int]) -> None:
        super().__init__()
        self._client = Client(url, namespace=namespace, deadline=0.2)
        self._moments = moments
        self.pieces = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(0.05):
            try:
                self._plan()
            except HoldfastError:
                continue
        self._client.close()

    def _plan(self) -> None:
        for short in self._client.run(RecurUnplanned(round(time() * 1000) + 10 * GAP_MS)):
            more = [(one, one) for one in self._moments if one > short.last_ms][:PIECE]
            self.pieces += self._client.run(RecurExtend(short.jid, short.last_ms, "", more))


@pytest.fixture
def kept_store() -> Iterator[ScratchStore]:
    """A store of this test's own, whose log is flushed before it answers."""
    with ScratchStore("valkey", "fsync") as running:
        yield running


def put_so_far(client: Client) -> int:
    try:
        [facts] = client.run(RecurGet(["r"]))
    except HoldfastError:
        return 0
    assert facts is not None
    return facts.count


def is_quiet(client: Client) -> bool:
    counts = client.queues["q"].counts
    return not any(counts[name] for name in ("waiting", "running", "stalled", "scheduled"))


def start(crew: Crew) -> None:
    crew.start("-q", "q", "-w", "1", "--interval", "0.2", "-m", "errands")


def put_template(client: Client) -> list[int]:
    """Put a template with its first moments; return all moments that it will have."""
    begin = round(time() * 1000) + 500
    moments = [begin + number * GAP_MS for number in range(OCCURRENCES)]
    # The workers do not plan it on: they know no such zone.
    facts = CalendarFacts("* * * * *", "Test/Close_moments", missed="all")
    plan = [(one, one) for one in moments[:PIECE]]
    client.run(Recur("q", "errands.nothing", GAP_MS, jid="r", calendar=facts, plan=plan, retries=1000))
    return moments


def kill_until_all_are_put(client: Client, store: ScratchStore, crew: Crew) -> Counter[str]:
    """Kill a worker or the store once a second, and start it again; return how many."""
    dice, harm = random.Random(), Counter[str]()
    while put_so_far(client) < OCCURRENCES:
        pause(dice.uniform(0.5, 1.5))
        if dice.random() < 0.3:
            store.kill()
            pause(dice.uniform(0.1, 0.8))
            store.restart()
            harm["stores"] += 1
        else:
            worker = dice.choice([one for one in crew.workers if one.lives])
            for pid in worker.processes():
                send(pid, signal.SIGKILL)
            worker.wait()
            start(crew)
            harm["workers"] += 1
    return harm


def check(client: Client, moments: list[int]) -> None:
    """Each moment has got one job, which has completed."""
    jids = [f"r-{number}" for number in range(1, put_so_far(client) + 1)]
    found = [job for at in range(0, len(jids), 64) for job in client.run(JobGet(jids[at : at + 64]))]
    assert [job.scheduled_for_ms for job in found if job is not None] == moments
    assert {job.state for job in found if job is not None} == {"complete"}
    [left] = client.run(RecurGet(["r"]))
    assert left is not None
    assert left.calendar is not None
    assert left.calendar.left_out == 0


@pytest.mark.full
def test_each_moment_gets_one_job_while_workers_and_the_store_are_killed(
    kept_store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    with (
        Client(kept_store.url, namespace=namespace) as client,
        Crew(tmp_path, kept_store.url, namespace, {"ERRANDS_HERE": str(tmp_path)}) as crew,
    ):
        for name, value in (("heartbeat", "1"), ("grace-period", "0.5"), ("jobs-history-count", "5000")):
            client.run(ConfigSet(name, value))
        for _ in range(3):
            start(crew)
        until(lambda: all("started as process" in one.said() for one in crew.workers), "the workers live", 60)
        moments = put_template(client)
        planners = [Planner(kept_store.url, namespace, moments) for _ in range(2)]
        for planner in planners:
            planner.start()
        harm = kill_until_all_are_put(client, kept_store, crew)
        for planner in planners:
            planner.stopping.set()
            planner.join()
        until(lambda: is_quiet(client), "all jobs have ended", 90)
        print(dict(harm), [planner.pieces for planner in planners])
        check(client, moments)
        assert harm["workers"] > 0
        assert sum(planner.pieces for planner in planners) >= OCCURRENCES // PIECE - 1


FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
HOUR_MS = 3_600_000


class Clock:
    """What the store and the workers take for the time, by libfaketime: the real time and an offset, which a file has."""

    def __init__(self, here: Path) -> None:
        self._file = here / "offset"
        self.set(0)
        self.env = {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, now_ms: int) -> None:
        """Set it to a time, 0: to the real one."""
        ahead = now_ms / 1000 - time() if now_ms else 0.0
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead:+.3f}")
        new.replace(self._file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    if FAKETIME is None:
        pytest.skip("faketime is not installed (apt-get install faketime)")
    return Clock(tmp_path)


@pytest.fixture
def clocked_store(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScratchStore]:
    """A store that takes this clock for the time."""
    store = ScratchStore("valkey")
    with monkeypatch.context() as patch:
        for name, value in clock.env.items():
            patch.setenv(name, value)
        store.start()
    yield store
    store.stop()


@pytest.mark.full
def test_each_moment_gets_one_job_when_the_clock_of_the_machine_is_set(
    clocked_store: ScratchStore, clock: Clock, namespace: str, tmp_path: Path
) -> None:
    env = {"ERRANDS_HERE": str(tmp_path), **clock.env}
    with (
        Client(clocked_store.url, namespace=namespace) as client,
        Crew(tmp_path, clocked_store.url, namespace, env) as crew,
    ):
        client.queues["q"].recur("errands.nothing", {}, cron="0 * * * *", jid="r", missed="all")
        [facts] = client.run(RecurGet(["r"]))
        assert facts is not None
        first = facts.next_ms
        start(crew)

        def runs(count: int) -> None:
            until(lambda: put_so_far(client) >= count and is_quiet(client), f"{count} jobs have run", 60)
            marker = client.queues["q"].put("errands.nothing")
            until(lambda: client.job(marker).state == "complete", "the worker takes jobs", 60)
            assert put_so_far(client) == count

        runs(0)
        clock.set(first - 500)
        runs(1)
        clock.set(first - HOUR_MS + 500)
        runs(1)
        clock.set(first + HOUR_MS - 500)
        runs(2)
        clock.set(first + 4 * HOUR_MS + 500)
        runs(5)
        found = client.run(JobGet([f"r-{number}" for number in range(1, 6)]))
        assert [job.scheduled_for_ms for job in found if job] == [first + n * HOUR_MS for n in range(5)]
