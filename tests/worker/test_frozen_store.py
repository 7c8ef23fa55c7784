"""A store that does not respond: the supervisor handles limits, deaths, signals and probes, and afterwards nothing is lost."""

import os
import signal
import socket
import urllib.request

import pytest
from worker_kit import process_lives, until

from holdfast.testing.store import ScratchStore
from programs import calls_store

BLOCKED = """
import threading
import redis.connection
import chores

connect = redis.connection.AbstractConnection.connect


def connect_when_possible(connection):
    while (chores.HERE / "blocked").exists():
        threading.Event().wait(0.02)
    connect(connection)


redis.connection.AbstractConnection.connect = connect_when_possible


@chores.app.job(queue="q")
def limited():
    try:
        chores.note(f"begin a {chores.os.getpid()}")
        chores.wait_for("gate")
    finally:
        chores.note("unwound a")


@chores.app.job(queue="q")
async def alimited():
    try:
        chores.note(f"begin a {chores.os.getpid()}")
        await chores.await_for("gate")
    finally:
        chores.note("unwound a")
"""


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def callers(worker):
    return [pid for pid in worker.processes() if calls_store(pid)]


def test_a_supervisor_does_its_work_while_no_call_to_the_store_returns(shop, forking_pool):
    (shop.here / "blocking.py").write_text(BLOCKED)
    port = free_port()
    worker = shop.start(forking_pool, "--import", "blocking", "--health-port", str(port), workers=2)
    shop.q.put(f"blocking.{'alimited' if forking_pool == 'asyncio' else 'limited'}", {}, timeout=1)
    until(lambda: shop.notes("begin"), "it runs")
    pid = int(shop.notes("begin")[0].split()[2])
    # For as long as the test takes: a name server, a handshake or a provider of credentials that does not respond.
    (shop.here / "blocked").touch()
    for kind in ("normal", "pubsub"):
        shop.client.database.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
    until(lambda: shop.notes("unwound") or not process_lives(pid), "the timeout is enforced")

    started = worker.said().count("started as process")
    os.kill(worker.children()[0], signal.SIGKILL)
    until(lambda: worker.said().count("started as process") > started, "a dead child is replaced")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/live", timeout=30) as response:
        assert response.status == 200
    worker.signal(signal.SIGUSR2)
    until(lambda: "pausing until CONT" in worker.said(), "USR2 is handled")
    worker.signal(signal.SIGUSR1)
    until(lambda: "killing all workers" in worker.said(), "USR1 is handled")
    worker.signal(signal.SIGHUP)
    until(lambda: "HUP: the children are replaced" in worker.said(), "HUP is handled")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio", "thread", "serial"])
def test_a_store_that_was_frozen_for_longer_than_a_lease_has_lost_nothing(shop, pool, namespace):
    with (
        ScratchStore("redis") as store,
        shop.chores.holdfast.Client(store.url, namespace=namespace) as client,
    ):
        queue = client.queues["q"]
        queue.heartbeat = 1
        worker = shop.start(pool, url=store.url)
        jid = queue.put("chores.block", {"args": ["a"]})
        until(lambda: shop.notes("begin a"), "it runs")
        ends = client.jobs[jid].expires_at
        os.kill(store.pid, signal.SIGSTOP)
        until(lambda: "the store" in worker.said(), "the worker has noticed")
        os.kill(store.pid, signal.SIGCONT)
        until(lambda: client.jobs[jid].expires_at > ends + 1, "the lease is renewed")
        shop.open()
        until(lambda: client.jobs[jid].state == "complete", "it ends")
        found = client.jobs[jid]
        assert (found.attempts, found.losses, "not recorded" in worker.said()) == (1, 0, False)


@pytest.mark.full
def test_the_process_that_calls_the_store_is_replaced_when_it_dies(shop):
    shop.q.heartbeat = 1
    worker = shop.start("process", "--name", "bee")
    handle = shop.chores.block.put("a")
    until(lambda: shop.notes("begin a") and callers(worker), "it runs")
    [before] = callers(worker)
    os.kill(before, signal.SIGKILL)
    until(lambda: callers(worker) and callers(worker) != [before], "another one has begun")
    line = f"process {before}, which calls the store, has ended; it is replaced"
    assert worker.said().count(line) == 1
    ends = shop.job(handle.jid).expires_at
    until(lambda: shop.job(handle.jid).expires_at > ends + 1.5, "it renews the lease")
    shop.open()
    assert handle.result(30) == "a"
    assert shop.job(handle.jid).losses == 0
    # A signal to the whole group does not end it before the supervisor: it still removes the worker from the list.
    for pid in worker.processes():
        os.kill(pid, signal.SIGTERM)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert list(shop.client.workers) == []
    assert worker.said().count("which calls the store") == 1


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_process_that_calls_the_store_ends_with_its_supervisor(shop, number):
    worker = shop.start("process")
    until(lambda: callers(worker), "it has begun")
    [caller] = callers(worker)
    worker.signal(number)
    worker.wait()
    until(lambda: not process_lives(caller), "it has ended")
