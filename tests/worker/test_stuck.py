"""Processes that a job keeps from doing anything else, and stores that are away: nobody loses a lease by that."""

import json
import socket
import urllib.request
from pathlib import Path

import pytest
from worker_kit import until

from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.wire.waiting import sleep

STUCK = """
import ctypes, os
from chores import HERE, app, note

def block_all(gate):
    # It does not wait as Python code does, so nobody else in the process gets a turn.
    while not (HERE / gate).exists():
        ctypes.CDLL(None).usleep(10_000)

@app.job(queue="q")
def freeze(name: str, gate: str = "gate") -> str:
    note(f"begin {name} {os.getpid()}")
    block_all(gate)
    return name

@app.job(queue="q")
async def afreeze(name: str, gate: str = "gate") -> str:
    note(f"begin {name} {os.getpid()}")
    block_all(gate)
    return name

@app.job(queue="q")
def clutch(name: str) -> str:
    note(f"begin {name} {os.getpid()}")
    ctypes.PyDLL(None).usleep(6_000_000)
    return name

@app.job(queue="q")
async def aclutch(name: str) -> str:
    note(f"begin {name} {os.getpid()}")
    ctypes.PyDLL(None).usleep(6_000_000)
    return name

@app.job(queue="q")
def freeze_once(name: str) -> str:
    return _once(name)

@app.job(queue="q")
async def afreeze_once(name: str) -> str:
    return _once(name)

def _once(name):
    first = not (HERE / name).exists()
    note(f"begin {name} {os.getpid()}")
    if first:
        (HERE / name).touch()
        block_all("never")
    return name
"""

BLOCKED = [
    ("asyncio", "afreeze"),
    ("asyncio", "aclutch"),
    ("gevent", "freeze"),
    ("gevent", "clutch"),
    ("thread", "clutch"),
]


@pytest.fixture
def stuck(shop):
    Path(shop.here, "stuck.py").write_text(STUCK)
    shop.q.heartbeat = 1
    return shop


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def put(shop, klass, *args, **options):
    return shop.q.put(f"stuck.{klass}", {"args": list(args)}, **options)


def neighbour(shop):
    """A job beside the one that blocks, which has begun."""
    handle = shop.chores.block.put("beside")
    until(lambda: shop.notes("begin beside"), "the neighbour has begun", 30)
    return handle.jid


def body_of(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        assert answer.status == 200
        return json.load(answer)


def unhurt(shop, *jids):
    until(lambda: all(shop.state(jid) == "complete" for jid in jids), "they end", 60)
    assert {(shop.job(jid).attempts, shop.job(jid).losses) for jid in jids} == {(1, 0)}


@pytest.mark.full
@pytest.mark.parametrize(("pool", "klass"), BLOCKED)
def test_a_process_that_a_job_blocks_loses_no_lease_and_is_named(stuck, pool, klass):
    port = free_port()
    worker = stuck.start(pool, "--import", "stuck", "--health-port", str(port))
    beside = neighbour(stuck)
    jid = put(stuck, klass, "a")
    until(lambda: "is stuck" in worker.said(), "it is logged", 60)
    assert "stuck.py" in worker.said()
    if not klass.endswith("clutch"):
        assert "has not responded" in body_of(port, "/live")["stuck"][0]
        assert body_of(port, "/ready")["ready"] is True
        until(lambda: stuck.client.workers.all()[0].facts.get("stuck"), "the list of workers has it", 60)
        first = stuck.job(jid).expires_at
        until(lambda: stuck.job(jid).expires_at > first + 2, "its lease is renewed", 30)
    stuck.open()
    unhurt(stuck, jid, beside)
    until(lambda: "responds again" in worker.said(), "it is logged that this is over", 30)
    assert "not recorded" not in worker.said()


@pytest.mark.full
@pytest.mark.parametrize(("pool", "klass"), [("asyncio", "afreeze_once"), ("gevent", "freeze_once")])
def test_a_process_that_stays_stuck_is_killed_and_only_the_job_that_blocks_pays(stuck, pool, klass):
    worker = stuck.start(pool, "--import", "stuck", "--stuck-timeout", "2")
    beside = neighbour(stuck)
    jid = put(stuck, klass, "a")
    until(lambda: "is killed" in worker.said(), "it is killed", 60)
    stuck.open()
    until(lambda: {stuck.state(jid), stuck.state(beside)} == {"complete"}, "both end", 60)
    assert (stuck.job(jid).losses, stuck.job(beside).losses) == (1, 0)
    assert "stuck for" in str(stuck.job(jid).history)


@pytest.mark.full
@pytest.mark.parametrize(
    ("pool", "klass"), [("asyncio", "afreeze"), ("gevent", "freeze"), ("process", "freeze")]
)
def test_a_timeout_ends_a_job_that_blocks_its_process(stuck, pool, klass):
    stuck.start(pool, "--import", "stuck")
    beside = neighbour(stuck) if pool != "process" else None
    jid = put(stuck, klass, "a", timeout=1.0, retries=0)
    until(lambda: stuck.state(jid) == "failed", "it fails", 60)
    assert stuck.job(jid).failure["group"] == "q-TimedOut"
    if beside is not None:
        stuck.open()
        until(lambda: stuck.state(beside) == "complete", "its neighbour ends", 60)
        assert stuck.job(beside).losses == 0


def test_a_stuck_timeout_that_is_none_is_refused_in_a_sentence(shop):
    worker = shop.start("asyncio", "--stuck-timeout", "-1")
    assert worker.wait() == 2
    [line] = [line for line in worker.said().splitlines() if "stuck" in line]
    assert "-1" in line
    assert "Traceback" not in worker.said()


def survive_outage(shop, pool, namespace, seconds, children, jobs):
    with ScratchStore("valkey", "process") as store:
        client = Client(store.url, namespace=namespace)
        queue = client.queues["q"]
        queue.heartbeat = 2
        jids = queue.put_many([("chores.block", {"args": [str(n)]}) for n in range(jobs)])
        worker = shop.start(pool, workers=children, url=store.url)
        until(lambda: len(shop.notes("begin")) == jobs, "all have begun", 120)
        store.kill()
        sleep(seconds)
        store.restart()
        ends = client.store_time() + 3
        until(lambda: min(job.expires_at for job in client.jobs.get(*jids)) > ends, "leases are renewed", 60)
        shop.open()
        until(lambda: queue.length() == 0, "all end", 120)
        assert {(job.state, job.attempts, job.losses) for job in client.jobs.get(*jids)} == {
            ("complete", 1, 0)
        }
        assert "not recorded" not in worker.said()
        client.close()


@pytest.mark.full
def test_a_store_that_is_away_for_longer_than_a_lease_stops_no_job(shop, pool, namespace):
    survive_outage(shop, pool, namespace, 4, 1, 1 if pool in ("process", "fork", "serial") else 5)


@pytest.mark.full
@pytest.mark.parametrize("seconds", [5, 20, 60])
def test_a_store_that_is_away_stops_none_of_a_thousand_jobs(shop, namespace, seconds):
    survive_outage(shop, "asyncio", namespace, seconds, 10, 1000)
