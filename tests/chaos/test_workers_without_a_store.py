"""Workers of every pool over a store that goes away, hangs up, is busy or full: they say so once and go on by themselves."""

import random
import re
import signal
from collections import Counter
from typing import Final

import pytest
from crew import Worker
from trouble import busy
from ward import Ward

from holdfast.worker.settings import POOLS
from waiting import pause, until

SAID = re.compile(r"PID (\d+).*(trying again|again, after)")


SEATED: Final = ["thread", "gevent"]

two_pools = pytest.mark.parametrize("ward", ["process", "asyncio"], indirect=True)


def until_noticed(worker: Worker, times: int = 1) -> None:
    until(lambda: worker.said().count("trying again") >= times, "it says that the store is away")


def told(worker: Worker) -> Counter[tuple[str, str]]:
    """How often each process told of an outage, and of its end."""
    return Counter(SAID.findall(worker.said()))


@pytest.mark.parametrize(
    "ward",
    [pool if pool in ("process", "thread") else pytest.param(pool, marks=pytest.mark.full) for pool in POOLS],
    indirect=True,
)
def test_a_store_that_was_away_gets_what_was_done_meanwhile_and_is_worked_for_at_once(ward: Ward) -> None:
    worker = ward.start()
    held = ward.hold("gate")
    ward.store.kill()
    ward.open("gate")
    until_noticed(worker)
    ward.store.restart()
    ward.until_done(held, ward.put())
    assert ward.begun("gate") == 1
    assert set(told(worker).values()) == {1}, worker.said()
    # Idle, and gate for a moment: it does not sleep on.
    for _ in range(2):
        ward.store.kill()
        ward.store.restart()
        ward.until_done(ward.put())


@pytest.mark.full
def test_what_was_lost_while_the_store_was_away_is_dropped_with_a_warning(ward: Ward) -> None:
    ward.client.config["heartbeat"], ward.client.config["grace-period"] = 1, 0
    worker = ward.start()
    held = ward.hold("gate")
    ward.relay.refuse()
    # Somebody who can reach the store takes the job over, and holds it for as long as this test needs.
    ward.client.config["heartbeat"] = 60
    [other] = until(lambda: ward.client.queues["q"].pop(1), "the lease has ended")
    ward.open("gate")
    ward.relay.heal()
    ward.until_done(ward.put())
    until(lambda: "is not recorded" in worker.said(), "it says that its result is not recorded")
    assert (other.jid, ward.client.jobs[held].state) == (held, "running")
    other.complete()


@pytest.mark.full
@pytest.mark.parametrize(
    "ward", ["asyncio", *(pytest.param(pool, marks=pytest.mark.full) for pool in SEATED)], indirect=True
)
def test_a_worker_that_must_end_without_its_store_unwinds_its_jobs_all_the_same(ward: Ward) -> None:
    worker = ward.start()
    for gate in ("first", "second"):
        ward.hold(gate, "alinger")
    ward.store.kill()
    ward.open("first")  # what this one did cannot be said
    until_noticed(worker)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    # Its parent did not need to kill it.
    assert "SIGKILL" not in worker.said()


def knocks(ward: Ward, seconds: float) -> int:
    """How often a worker of two processes connects to a store that hangs up."""
    worker = ward.start()
    ward.hold("gate")
    before = len(ward.relay.accepted)
    ward.relay.reject()
    pause(seconds)
    count = len(ward.relay.accepted) - before
    ward.relay.heal()
    ward.open("gate")
    ward.until_done(ward.put())
    assert set(told(worker).values()) == {1}, worker.said()
    return count


@pytest.mark.full
@pytest.mark.parametrize("ward", ["asyncio"], indirect=True)
def test_a_worker_knocks_now_and_then(ward: Ward) -> None:
    assert knocks(ward, 2.0) <= 2 * 7


@pytest.mark.full
def test_a_worker_knocks_about_once_a_second_for_each_process_through_half_a_minute(ward: Ward) -> None:
    assert knocks(ward, 30.0) <= (1 if ward.pool == "serial" else 2) * 31


@pytest.mark.full
@two_pools
def test_a_busy_store_is_waited_for_and_a_full_one_is_drained(ward: Ward) -> None:
    worker = ward.start()
    with busy(ward.store):
        pause(0.8)
    ward.until_done(*[ward.put() for _ in range(3)])
    held = ward.hold("gate")
    jids = [ward.put() for _ in range(20)] if ward.pool == "process" else []
    ward.store.ask("CONFIG", "SET", "maxmemory", "1mb")
    ward.open("gate")
    ward.until_done(held, *jids)
    assert worker.lives
    assert max(told(worker).values(), default=1) == 1, worker.said()


@pytest.mark.full
@pytest.mark.parametrize("ward", ["process"], indirect=True)
def test_no_worker_sits_idle_while_jobs_wait_through_two_hundred_restarts_of_the_store(ward: Ward) -> None:
    workers = [ward.start(pool=pool, queue=pool) for pool in POOLS]
    for _ in range(200):
        pause(random.uniform(0, 0.03))
        ward.store.kill()
        pause(random.choice((0, 0, random.uniform(0, 0.4))))
        ward.store.restart()
        ward.until_done(*[ward.put(pool) for pool in POOLS])
    assert all(worker.lives for worker in workers)
