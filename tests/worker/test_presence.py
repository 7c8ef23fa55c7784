"""Workers are listed while they live, and take no jobs while somebody wants them quiet."""

import json
import signal
import socket
from time import monotonic

import pytest
from worker_kit import until

from holdfast import Client, __version__
from holdfast.commands.workers import WorkerQuiet
from holdfast.worker.in_process import RenewalThread
from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.supervisor import presence
from holdfast.worker.supervisor.calls import StoreCalls
from holdfast.worker.supervisor.child import ChildPlace
from holdfast.worker.supervisor.presence import Presence, Sign


def listed(shop):
    return {worker.name: worker for worker in shop.client.workers.all()}


@pytest.mark.full
def test_a_worker_is_listed_while_it_lives_and_says_what_it_is(shop, pool):
    worker = shop.start(pool, "--name", "bee")
    until(lambda: listed(shop), "it is listed")
    [facts] = listed(shop).values()
    assert facts.name == "bee-0"
    assert facts.facts["pool"] == pool
    assert json.loads(facts.facts["queues"]) == ["q"]
    assert int(facts.facts["pid"]) in [worker.pid, *worker.children()]
    assert {"host", "version", "slots", "busy", "started"} <= set(facts.facts)
    assert facts.facts["version"] == __version__
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert listed(shop) == {}


@pytest.mark.full
def test_each_child_is_a_worker_of_its_own(shop):
    worker = shop.start("process", "--name", "bee", workers=3)
    until(lambda: len(listed(shop)) == 3, "all are listed")
    assert {int(found.facts["pid"]) for found in listed(shop).values()} == set(worker.children())


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "thread", "serial"])
def test_a_quiet_worker_takes_no_jobs_until_it_is_told_to_go_on(shop, pool):
    worker = shop.start(pool, "--name", "bee")
    until(lambda: listed(shop), "it is listed")
    first = shop.chores.block.put("a")
    until(lambda: shop.notes("begin a"), "it works")
    # The name that a user gave; its processes are bee-0 and so on.
    assert shop.client.workers.quiet("bee") is True
    until(lambda: "is quiet" in worker.said(), "it has heard")
    shop.open()
    assert first.result(30) == "a"
    second = shop.chores.add.put(1)
    other = shop.start("serial", "--name", "fly", "--max-jobs", "1")
    # Somebody else takes it, although the quiet one was there first.
    assert second.result(30) == 2
    assert shop.job(second.jid).history[1]["worker"] == "fly-0"
    other.end()
    third = shop.chores.add.put(2)
    assert shop.client.workers.resume("bee") is True
    assert third.result(30) == 3


@pytest.mark.full
def test_a_worker_without_a_parent_is_quiet_after_its_next_report(client: Client, monkeypatch):
    monkeypatch.setattr(presence, "PERIOD", 0.02)
    settings, table = WorkerSettings(("q",), pool="serial").checked(), LeaseTable()
    ours, theirs = socket.socketpair()
    with ours, theirs, RenewalThread(client, ChildPlace("w", 0, table, theirs, 0, settings, None), ours):
        until(lambda: client.run(WorkerQuiet("w")), "it is known")
        until(lambda: table.paused, "it is quiet")
        client.run(WorkerQuiet("w", False))
        until(lambda: not table.paused, "it takes jobs again")
    assert list(client.workers) == []


def reported(client, settings):
    """Report one worker. Return what was to be quiet by the store's answer, and whether the store is available."""
    calls, quiet = StoreCalls(client), []
    calls.start_thread()
    presence = Presence(calls, settings.checked())
    presence.report([Sign("w", 1, 0)], quiet.append)
    calls.wait(monotonic() + 30)
    calls.close()
    return quiet, presence.is_store_available


def test_a_store_that_is_away_makes_nobody_quiet(url: str, namespace: str):
    gate = Client(f"{url}-nobody", namespace=namespace, deadline=0.05)
    assert reported(gate, WorkerSettings(("q",))) == ([{}], False)


@pytest.mark.full
def test_more_queues_than_a_fact_has_room_for_are_cut(client: Client):
    queues = tuple(f"queue-{n:04}-{'é' * 20}" for n in range(500))
    assert reported(client, WorkerSettings(queues)) == ([{"w": False}], True)
    [worker] = client.workers.all()
    named = json.loads(worker.facts["queues"])
    assert tuple(named) == queues[: len(named)]
    assert 50 < len(named) < 100
