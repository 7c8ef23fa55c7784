"""Workers killed, frozen and cut off: every job ends, once, and nobody works for nothing unseen."""

import os
import random
import signal
from collections import Counter

import pytest
from worker_kit import process_lives, until

from holdfast import JobFailed


def began(shop, name="", count=1):
    until(lambda: len(shop.notes(f"begin {name}".strip())) >= count, f"{name} began {count} times")
    return [int(line.split()[2]) for line in shop.notes(f"begin {name}".strip())]


def short_leases(shop, grace=0):
    shop.q.heartbeat = 1
    shop.client.config["grace-period"] = grace


def long_leases(shop):
    """For what is handed out from now on: a machine that is slow for a second loses no second lease."""
    shop.q.heartbeat = 60


@pytest.mark.full
def test_a_job_that_kills_its_process_again_and_again_takes_no_neighbour_along(shop):
    shop.open()
    bomb = shop.chores.bomb.put()
    handles = [shop.chores.block.put(str(n)) for n in range(30)]
    worker = shop.start("asyncio")
    assert [handle.result(30) for handle in handles] == [str(n) for n in range(30)]
    with pytest.raises(JobFailed) as caught:
        bomb.result(30)
    assert caught.value.group == "q-Crashed"
    assert "4 losses, max_losses 3" in caught.value.message
    assert len(began(shop, "bomb")) == 4
    assert all(shop.job(handle.jid).losses <= 2 for handle in handles)
    assert "runs in a separate process" in worker.said()


@pytest.mark.full
def test_what_a_killed_attempt_put_on_completion_is_never_seen(shop, pool):
    if pool == "serial":
        short_leases(shop)
        shop.start(pool)
    shop.start(pool)
    handle = shop.chores.announce.put("it")
    began(shop, "it")
    long_leases(shop)
    assert handle.result(30) == "it"
    until(lambda: len(shop.notes("count")) >= 3, "what the second attempt put is done")
    until(lambda: shop.q.length() == 0, "all jobs have ended")
    assert sorted(shop.notes("count")) == ["count 1", "count 2", "count 3"]


@pytest.mark.full
def test_a_serial_worker_survives_a_job_that_killed_it_twice(shop):
    short_leases(shop)
    shop.open()
    bomb = shop.chores.bomb.put()
    for _ in range(2):
        assert shop.start("serial").wait() == -signal.SIGKILL
    worker = shop.start("serial")
    with pytest.raises(JobFailed):
        bomb.result(30)
    assert shop.chores.add.put(1).result(30) == 2
    assert worker.process.poll() is None


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "fork", "asyncio", "thread", "gevent"])
def test_a_killed_child_is_replaced_and_its_jobs_go_back_at_once(shop, pool):
    worker = shop.start(pool)
    handles = [shop.chores.block.put(str(n)) for n in range(1 if pool in ("process", "fork") else 10)]
    pids = began(shop, count=len(handles))
    os.kill(pids[0], signal.SIGKILL)
    shop.open()
    # Far sooner than the lease of a minute.
    assert [handle.result(30) for handle in handles] == [str(n) for n in range(len(handles))]
    assert {(shop.job(h.jid).attempts, shop.job(h.jid).losses) for h in handles} == {(2, 1)}
    assert worker.process.poll() is None
    assert "SIGKILL" in worker.said()


def test_a_job_that_kills_its_process_is_done_by_the_next(shop):
    shop.start("process")
    assert shop.chores.once.put("bomb").result(30) == "bomb"
    assert len(set(began(shop, "bomb", 2))) == 2


@pytest.mark.full
def test_a_wholly_killed_worker_loses_its_leases_and_another_takes_them(shop, pool):
    short_leases(shop)
    worker = shop.start(pool)
    handle = shop.chores.block.put("a")
    began(shop)
    worker.kill_whole()
    long_leases(shop)
    shop.open()
    shop.start(pool)
    assert handle.result(30) == "a"
    job = shop.job(handle.jid)
    assert (job.losses, job.attempts) == (1, 2)


@pytest.mark.full
def test_a_child_that_hogs_the_interpreter_keeps_its_lease_by_its_parent(shop):
    short_leases(shop)
    shop.start("process")
    handle = shop.chores.hog.put("a")
    began(shop)
    end = shop.job(handle.jid).expires_at
    until(lambda: shop.job(handle.jid).expires_at > end + 1.2, "the lease was renewed")
    shop.open()
    assert handle.result(30) == "a"


@pytest.mark.full
def test_a_frozen_worker_is_refused_when_it_wakes(shop, pool):
    short_leases(shop)
    worker = shop.start(pool)
    handle = shop.chores.block.put("a")
    began(shop)
    frozen = [worker.pid, *worker.children()]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    long_leases(shop)
    other = shop.start(pool)
    began(shop, "a", 2)
    token = shop.job(handle.jid).token
    assert shop.job(handle.jid).attempts == 2
    # The frozen one wakes to an open gate: it ends its job, and nobody takes its word.
    shop.open()
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    assert handle.result(30) == "a"
    until(
        lambda: "is not recorded" in worker.said(), "the frozen worker says that its result is not recorded"
    )
    assert shop.job(handle.jid).attempts == 2
    assert shop.job(handle.jid).token in (0, token)
    assert "not recorded" not in other.said()


@pytest.mark.full
def test_a_cancelled_job_is_stopped(shop, pool):
    short_leases(shop)
    worker = shop.start(pool)
    handle = shop.chores.block.put("a")
    [pid] = began(shop)
    shop.client.jobs.cancel(handle.jid)
    until(lambda: "is not recorded" in worker.said(), "the worker says so")
    if pool in ("process", "fork"):
        until(lambda: not process_lives(pid), "its process was killed")
    assert shop.notes("end") == []
    assert shop.chores.add.put(1).result(30) == 2


@pytest.mark.full
def test_children_stopped_for_cancelled_jobs_are_replaced_at_once_and_nothing_untrue_is_said(shop):
    worker = shop.start("process", "--workers", "1")
    for name in "abc":
        handle = shop.chores.block.put(name)
        began(shop, name)
        shop.client.jobs.cancel(handle.jid)
        until(lambda jid=handle.jid: f"job {jid}: it was cancelled" in worker.said(), "its child was stopped")
    assert shop.chores.add.put(1).result(30) == 2
    assert worker.said().count("it is replaced in 0.0 s") == 3
    assert "released:" not in worker.said()


@pytest.mark.full
def test_a_job_that_settled_itself_may_go_on_longer_than_its_lease(shop, pool):
    short_leases(shop)
    worker = shop.start(pool)
    jid = shop.q.put("chores.Lingering", {})
    began(shop, "lingering")
    assert shop.state(jid) == "complete"
    # Meanwhile another lease is renewed more than once: the keeper looked, and let the first one be.
    other = shop.start("process")
    handle = shop.chores.hog.put("b", "other-gate")
    began(shop, "b")
    end = shop.job(handle.jid).expires_at
    until(lambda: shop.job(handle.jid).expires_at > end + 0.9, "the keepers looked")
    shop.open()
    until(lambda: shop.notes("end lingering"), "it was not killed")
    assert "SIGKILL" not in worker.said()
    shop.open("other-gate")
    assert handle.result(30) == "b"
    assert other.process.poll() is None


@pytest.mark.full
def test_workers_live_through_a_store_that_goes_away(shop, pool, tmp_path, namespace):
    from holdfast import Client
    from holdfast.testing.store import ScratchStore

    with ScratchStore("valkey", "process") as store:
        client = Client(store.url, namespace=namespace)
        put = client.queues["q"].put
        worker = shop.start(pool, "--interval", "0.3", url=store.url)
        first = put("chores.add", {"args": [1]})
        assert client.result_of(first, 30) == b"2"
        store.kill()
        until(
            lambda: "trying again" in worker.said() or "the store is unavailable" in worker.said(),
            "it was noticed",
            30,
        )
        store.restart()
        second = put("chores.add", {"args": [2]})
        assert client.result_of(second, 30) == b"3"
        assert worker.process.poll() is None
        client.close()


def load(shop, count, flavour="count"):
    chore = getattr(shop.chores, flavour)
    return [chore.put(number).jid for number in range(count)]


def all_ended(shop, jids, within=120.0):
    def ended():
        counts = shop.q.counts
        return not (counts["waiting"] or counts["running"] or counts["scheduled"] or counts["stalled"])

    until(ended, "the queue is empty", within)
    states = Counter(job.state for job in shop.client.jobs.get(*jids))
    assert states == {"complete": len(jids)}


@pytest.mark.full
def test_a_polite_stop_under_load_leaves_every_job_done_once_or_waiting(shop, pool):
    number = 300 if pool == "fork" else 2000
    jids = load(shop, number, "acount" if pool == "asyncio" else "count")
    worker = shop.start(pool, workers=2)
    until(lambda: len(shop.notes("count")) > number // 10, "it is in the middle of it")
    worker.signal(signal.SIGQUIT)
    assert worker.wait() == 0
    done = Counter(job.state for job in shop.client.jobs.get(*jids))
    assert set(done) <= {"complete", "waiting"}
    assert done["complete"] == len(shop.notes("count"))
    shop.start(pool, workers=2)
    all_ended(shop, jids)
    assert Counter(shop.notes("count")) == {f"count {n}": 1 for n in range(number)}


def kill_children_under_load(shop, pool, count, kills):
    jids = load(shop, count, "acount" if pool == "asyncio" else "count")
    worker = shop.start(pool, workers=2)
    for round_number in range(1, kills + 1):
        until(lambda at=round_number: len(shop.notes("count")) > at * count // (kills + 2), "it goes on", 30)
        children = worker.children()
        if children:
            os.kill(random.choice(children), signal.SIGKILL)
    all_ended(shop, jids)
    assert set(shop.notes("count")) == {f"count {number}" for number in range(count)}
    lost = [job for job in shop.client.jobs.get(*jids) if job.losses]
    again = sum(number - 1 for number in Counter(shop.notes("count")).values())
    # A job runs twice only if its lease was lost once.
    assert again <= sum(job.losses for job in lost)


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio", "thread", "gevent"])
def test_children_killed_under_load_lose_no_job(shop, pool):
    kill_children_under_load(shop, pool, 2000, 3)


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio", "thread", "gevent"])
def test_many_children_killed_under_load_lose_no_job(shop, pool):
    kill_children_under_load(shop, pool, 20_000, 25)
