"""Leases of running jobs, however a job came to its worker: renewed, given back, and known when they are lost."""

import os
import re
import signal
import socket
from collections import Counter
from math import inf
from time import monotonic

import pytest
from worker_kit import process_lives, until

from holdfast.commands.leases import Pop
from holdfast.wire.waiting import sleep
from holdfast.worker.in_process import InProcess
from holdfast.worker.leases.keeper import HeldLease
from holdfast.worker.leases.losses import EarlyMessages, LostLeases
from holdfast.worker.leases.table import LOST, LeaseTable
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.children import ChildProcess
from holdfast.worker.supervisor.messages import StoreMessage


def short_leases(shop, seconds=1):
    shop.q.heartbeat = seconds
    shop.client.config["grace-period"] = 0


def long_leases(shop):
    """Leases that nothing in a test outlasts: what happens, happens because somebody told the store or the worker."""
    shop.client.config["heartbeat"] = 600


def given_back(shop, jid):
    """Whether anybody may have the job now: its lease has ended before its time."""
    return shop.state(jid) == "waiting" or shop.job(jid).ttl <= 0


@pytest.mark.full
def test_a_running_job_keeps_its_lease_for_as_long_as_it_needs(shop, pool, arrival):
    short_leases(shop)
    worker = shop.start(pool)
    jid = shop.bring(arrival, worker)
    first = shop.job(jid)
    # More than two leases later the end has moved on by as much, under the same token.
    until(lambda: shop.job(jid).expires_at > first.expires_at + 2.2, "its lease was renewed", 30)
    shop.open()
    until(lambda: shop.state(jid) == "complete", "it ends", 30)
    job = shop.job(jid)
    assert (job.attempts, job.losses) == (first.attempts, first.losses)
    assert len(shop.notes("begin a")) == 1
    assert "not recorded" not in worker.said()


@pytest.mark.full
def test_a_running_job_goes_back_when_its_worker_is_stopped(shop, pool, arrival):
    long_leases(shop)
    worker = shop.start(pool)
    jid = shop.bring(arrival, worker)
    worker.signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert given_back(shop, jid)


@pytest.mark.full
def test_a_running_job_goes_back_when_its_child_is_killed(shop, forking_pool, arrival):
    long_leases(shop)
    worker = shop.start(forking_pool)
    jid = shop.bring(arrival, worker)
    attempts = shop.job(jid).attempts
    os.kill(worker.children()[0], signal.SIGKILL)
    until(lambda: len(shop.notes("begin a")) == 2, "it began again", 30)
    assert shop.job(jid).attempts == attempts + 1


@pytest.mark.full
def test_a_running_job_that_is_cancelled_is_stopped(shop, pool, arrival):
    long_leases(shop)
    worker = shop.start(pool)
    jid = shop.bring(arrival, worker)
    shop.client.jobs.cancel(jid)
    until(lambda: f"job {jid}: it was cancelled" in worker.said(), "the worker has heard", 30)
    assert shop.chores.add.put(1).result(30) == 2
    assert shop.notes("end") == []


@pytest.mark.full
def test_a_serial_worker_is_told_of_a_lost_lease_until_it_lets_go(client):
    """Its main thread may not have begun the job when it is told first, and then has nothing to interrupt."""
    client.config["heartbeat"] = 600
    jids = [client.queues["q"].put("a.B") for _ in range(2)]
    facts = {job.jid: job for job in client.run(Pop("w", ("q",), 2))}
    reports = []

    def lose(place, jid):
        job = facts[jid]
        place.lease_table.hold(0, jid, job.token, job.lease_ms, monotonic())
        place.poke()
        client.jobs.cancel(jid)
        # By heartbeats alone, the second call would come after 200 seconds.
        until(lambda: [one for one, _ in reports].count(jid) >= 3, "it was told again and again")
        assert [is_new for one, is_new in reports if one == jid][:3] == [True, False, False]
        place.lease_table.clear(0)

    def body(place, around):
        lose(place, jids[0])
        count = len(reports) + 1
        lose(place, jids[1])
        assert [jid for jid, _ in reports].count(jids[0]) <= count
        return False

    settings = WorkerSettings(("q",), pool="serial", name="w").checked()
    InProcess(settings, StoreChoice.of(client), lambda *report: reports.append(report)).run(body, {})


@pytest.fixture
def child():
    """A child that waits, in its slot; nobody looks after it."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    theirs.close()
    slot = ChildProcess("w", 0, LeaseTable())
    slot.lease_table.begin("line")
    slot.begin(pid, ours)
    yield slot
    slot.signal(signal.SIGKILL)
    os.waitpid(pid, 0)
    slot.close()
    slot.lease_table.close()


def lost_lease(child):
    child.lease_table.hold(0, "a", 7, 1_000, 0.0)
    lease = HeldLease("a", 7, "w", 1.0)
    lease.lost = LOST
    leases = LostLeases()
    leases.add(lease, child)
    return leases


@pytest.mark.full
def test_a_child_that_is_settling_the_job_whose_lease_is_gone_is_left_alone(child):
    leases = lost_lease(child)
    child.lease_table.ask(4)
    for _ in range(30):
        assert leases.attend() == []
        sleep(0.01)
    # The next job has come, under the same jid even.
    child.lease_table.hold(0, "a", 8, 1_000, 0.0)
    child.lease_table.ask(0)
    killed = []
    until(lambda: killed.extend(leases.attend()) or killed or leases.due() == inf, "it has let go of the job")
    assert killed == []
    assert process_lives(child.pid)


def test_a_child_that_works_on_a_job_whose_lease_is_gone_is_killed(child):
    leases = lost_lease(child)
    killed = []
    until(lambda: killed.extend(leases.attend()) or killed, "it is killed")
    assert [(one.pid, lease.jid) for one, lease in killed] == [(child.pid, "a")]
    until(lambda: not process_lives(child.pid), "it is dead")


@pytest.mark.full
def test_a_cancel_that_overtakes_the_grant_is_heard_when_the_job_has_come(child):
    early, children = EarlyMessages(), {"w": child}
    child.lease_table.ask(4)
    early.notify([StoreMessage("canceled", "w", "a")])
    assert not early.has_come(children)
    child.lease_table.hold(0, "a", 7, 1_000, 0.0)
    child.lease_table.ask(0)
    until(lambda: early.has_come(children), "it is in the lease table")
    # What was not granted by that call does not come any more.
    child.lease_table.ask(5)
    early.notify([StoreMessage("canceled", "w", "b")])
    assert not early.has_come(children)
    child.lease_table.ask(6)
    until(lambda: not early.has_come(children) and early.due() == inf, "it is forgotten")


def cancel_when_granted(shop, pool, rounds):
    long_leases(shop)
    worker = shop.start(pool)
    for number in range(rounds):
        assert shop.chores.add.put(1).result(30) == 2
        jid = shop.chores.block.put(str(number)).jid
        until(lambda jid=jid: shop.state(jid) == "running", "it is granted", 30)
        shop.client.jobs.cancel(jid)
        # Sooner than the next regular heartbeat, 200 seconds later, could find out.
        until(lambda jid=jid: f"job {jid}: it was cancelled" in worker.said(), f"round {number} is heard", 30)
    assert shop.notes("end") == []


@pytest.mark.full
def test_a_cancel_in_the_moment_of_the_grant_stops_the_job(shop, pool):
    cancel_when_granted(shop, pool, 12)


@pytest.mark.full
def test_a_hundred_cancels_in_the_moment_of_the_grant_stop_their_jobs(shop, pool):
    cancel_when_granted(shop, pool, 100)


@pytest.mark.full
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.full)])
def test_many_short_jobs_at_a_short_lease_cost_no_child_its_life(shop, pool, times):
    short_leases(shop)
    number, klass = times * (300 if pool == "fork" else 1_500), "acount" if pool == "asyncio" else "count"
    jids = shop.q.put_many([(f"chores.{klass}", {"args": [n]}) for n in range(number)])
    worker = shop.start(pool, workers=2)
    until(lambda: shop.q.length() == 0, "all are done", 300)
    runs = Counter(shop.notes("count"))
    assert set(runs) == {f"count {n}" for n in range(number)}
    assert shop.client.jobs.failed() == {}
    # A job runs again, and its child is stopped, only where the store says that its lease was lost.
    again = {jid for n, jid in enumerate(jids) if runs[f"count {n}"] > 1}
    stopped = set(re.findall(r"job (\w+)(?=: .* is stopped| released:)", worker.said()))
    assert [jid for jid in again | stopped if not shop.job(jid).losses] == []
