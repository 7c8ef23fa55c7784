"""Unique keys while producers, workers and the store are killed: no key is held by a job that has ended, and no key by two.

`HOLDFAST_KEY_ROUNDS=500` makes it 500 rounds. In each, one process is killed at some moment.
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
from keys_work import KEYS, REPLACED, job

import programs
from holdfast import Client
from holdfast.commands.admin import ConfigSet, Sweep
from holdfast.commands.jobs import JobGet
from holdfast.commands.options import PutWithOptions
from holdfast.commands.views import ListSet
from holdfast.ids import mint_jid
from holdfast.models import JobFacts
from holdfast.testing.store import ScratchStore
from waiting import pause, until

ROUNDS = int(os.environ.get("HOLDFAST_KEY_ROUNDS", "20"))
EACH = 15
"""Jobs that run in each round before a process is killed."""
ROLES = ("produce", "produce", "work", "work")
OPEN = ("waiting", "scheduled", "running", "stalled", "depends", "throttled")


@pytest.fixture
def kept_store() -> Iterator[ScratchStore]:
    """A store of this test's own, whose log is flushed before it answers."""
    with ScratchStore("valkey", "fsync") as running:
        yield running


class Rounds:
    """Producers and workers of one namespace, of which one is killed in each round."""

    def __init__(self, store: ScratchStore, namespace: str) -> None:
        self.store, self.namespace = store, namespace
        self.client = Client(store.url, namespace=namespace)
        self.client.run(ConfigSet("heartbeat", "1"))
        self.client.run(ConfigSet("grace-period", "0"))
        seed = random.randrange(1 << 32)
        print("seed", seed)
        self.dice = random.Random(seed)
        self.killed: Counter[str] = Counter()
        self.taken = 0
        self.running = [self.start(role) for role in ROLES]

    def start(self, role: str) -> subprocess.Popen[bytes]:
        path = str(Path(__file__).with_name("keys_work.py"))
        words = [sys.executable, path, role, self.store.url, self.namespace]
        return programs.popen(words, stdin=subprocess.DEVNULL, start_new_session=True)

    def hurt(self) -> None:
        before = self.states()["run"]
        until(lambda: self.states()["run"] >= before + EACH, f"{EACH} jobs run", 60)
        pause(self.dice.uniform(0, 0.3))
        victim = self.dice.randrange(len(ROLES) + 1)
        if victim == len(ROLES):
            self.killed["store"] += 1
            self.store.kill()
            self.store.restart()
            return
        self.killed[ROLES[victim]] += 1
        self.running[victim].kill()
        self.running[victim].wait(30)
        self.running[victim] = self.start(ROLES[victim])

    def open_jobs(self) -> list[JobFacts]:
        """All jobs that have not ended, while no process makes a call."""
        for one in self.running:
            one.send_signal(signal.SIGSTOP)
        pause(0.02)  # for the calls that are on their way
        try:
            names = {"waiting", "scheduled", "running", "stalled", "depends", "throttled"}
            jids = {
                e.member for name in names for e in self.client.run(ListSet(name, "q", count=512)).entries
            }
            found = self.client.run(JobGet(sorted(jids))) if jids else []
        finally:
            for one in self.running:
                one.send_signal(signal.SIGCONT)
        return [one for one in found if one is not None and one.state in OPEN]

    def check_that_no_two_have_a_key(self) -> None:
        jobs = self.open_jobs()
        doubled = {
            key: count
            for key, count in Counter(one.klass for one in jobs if one.klass in KEYS).items()
            if count > 1
        }
        assert doubled == {}, [(one.jid, one.klass, one.state) for one in jobs if one.klass in doubled]
        waiting = Counter(one.klass for one in jobs if one.klass in REPLACED and not one.attempts)
        assert all(count == 1 for count in waiting.values()), waiting

    def check_that_a_key_is_free_once_its_job_has_ended(self) -> None:
        key = self.dice.choice(KEYS)
        holder = self.client.run(PutWithOptions("q", job(key, "keep", mint_jid())))
        until(lambda: not self.is_open(holder), f"the end of {holder}, which holds {key}", 60)
        # One that was moved or put again meanwhile has to end once more.
        other = until(lambda: self.holder_but(key, holder), f"another holder of {key} than {holder}", 60)
        self.taken += other != holder

    def holder_but(self, key: str, holder: str) -> str:
        found = self.client.run(PutWithOptions("q", job(key, "keep", mint_jid())))
        return "" if found == holder else found

    def is_open(self, jid: str) -> bool:
        found = self.client.run(JobGet([jid]))[0]
        return found is not None and found.state in OPEN

    def states(self) -> dict[str, int]:
        stats = self.client.queues["q"].stats()
        return {"run": stats["run"]["count"], "failed": stats["failures"]}

    def end(self) -> None:
        for one in self.running:
            one.kill()
            one.wait(30)
        self.client.close()


def drained(rounds: Rounds) -> None:
    """End all jobs; each key is free then."""
    client = rounds.client
    for one in rounds.running:
        one.kill()
        one.wait(30)

    def over() -> bool:
        for one in client.queues["q"].pop(50):
            one.complete()
        return not any(client.run(ListSet(name, "q")).entries for name in OPEN)

    until(over, "all jobs end", 60)
    for key in (*KEYS, *REPLACED):
        jid = mint_jid()
        assert client.run(PutWithOptions("q", job(key, "keep", jid))) == jid, key
    for _ in range(300):
        client.run(Sweep())
    for key in (*KEYS, *REPLACED):
        assert client.run(PutWithOptions("q", job(key, "keep", mint_jid()))).is_new is False


def burn(store: ScratchStore, namespace: str, count: int) -> None:
    rounds = Rounds(store, namespace)
    try:
        for number in range(count):
            rounds.hurt()
            rounds.check_that_no_two_have_a_key()
            rounds.check_that_a_key_is_free_once_its_job_has_ended()
            if number % 25 == 24:
                print(number + 1, dict(rounds.killed), flush=True)
        drained(rounds)
        states = Counter(rounds.states())
        print(
            count, "rounds,", dict(rounds.killed), "killed;", rounds.taken, "keys taken over;", dict(states)
        )
        assert states["run"] >= EACH * count
        assert states["failed"] > 0
    finally:
        rounds.end()


def test_keys_outlive_no_job_and_are_held_by_one_over_three_kills(
    kept_store: ScratchStore, namespace: str
) -> None:
    burn(kept_store, namespace, 3)


@pytest.mark.full
def test_keys_outlive_no_job_and_are_held_by_one_over_many_kills(
    kept_store: ScratchStore, namespace: str
) -> None:
    burn(kept_store, namespace, ROUNDS)


@pytest.mark.full
def test_two_processes_that_put_one_key_ten_thousand_times_put_one_job(
    kept_store: ScratchStore, namespace: str
) -> None:
    words = f"""
from holdfast import Client
with Client({kept_store.url!r}, namespace={namespace!r}) as client:
    queue, jids = client.queues["q"], set()
    for _ in range(20):
        jids.update(queue.put_many([{{"klass": "k", "unique_key": "a"}}] * 245))
    for _ in range(100):
        jids.add(queue.put("k", unique_key="a"))
    print(*jids)
"""
    running = [
        programs.popen([sys.executable, "-c", words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    found = {one.communicate(timeout=120)[0].decode().strip() for one in running}
    assert len(found) == 1
    with Client(kept_store.url, namespace=namespace) as client:
        assert [len(client.queues["q"]), client.queues["q"].pop(2)[0].jid] == [1, found.pop()]
