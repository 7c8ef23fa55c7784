"""What a job only reports, where the store is full or does not respond: the job neither fails nor waits long for it."""

import os
import signal

import pytest
from worker_kit import until

import holdfast
from holdfast.testing.store import ScratchStore

REPORTERS = """
import chores
from chores import app, note
from holdfast import current_async_job, current_job

@app.job(queue="q")
def report(gate: str) -> list[bool]:
    job = current_job()
    note(f"begin {job.jid}")
    chores.wait_for(gate)
    told = [job.progress(0.5, "half"), job.report(0.7, lines=["a line"]), job.log("a line", {"n": 1})]
    note("reported")
    chores.wait_for(gate + "2")
    return [*told, job.progress(0.9)]


@app.job(queue="q")
async def areport(gate: str) -> list[bool]:
    job = current_async_job()
    note(f"begin {job.jid}")
    await chores.await_for(gate)
    told = [await job.progress(0.5, "half"), await job.report(0.7, lines=["a line"]), await job.log("a line", {"n": 1})]
    note("reported")
    await chores.await_for(gate + "2")
    return [*told, await job.progress(0.9)]
"""


@pytest.fixture
def own(shop, monkeypatch):
    """A worker's directory with a store of its own."""
    (shop.here / "reporters.py").write_text(REPORTERS)
    with ScratchStore() as store:
        monkeypatch.setenv("CHORES_URL", store.url)
        with holdfast.Client(store.url, namespace=shop.namespace) as client:
            yield store, client


@pytest.mark.full
@pytest.mark.parametrize("name", ["report", "areport"])
def test_reports_to_a_full_store_are_dropped_and_the_job_completes(shop, pool, own, name):
    store, client = own
    worker = shop.start(pool, "--import", "reporters", url=store.url)
    jid = client.queues["q"].put(f"reporters.{name}", {"args": ["gate"]}, retries=0)
    until(lambda: shop.notes("begin"), "it runs")
    store.ask("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
    shop.open()
    until(lambda: shop.notes("reported"), "it reported")
    store.ask("CONFIG", "SET", "maxmemory", "0")
    shop.open("gate2")
    assert client.result_of(jid, 30) == b"[false,false,false,true]"
    assert client.jobs[jid].attempts == 1
    assert worker.said().count("could not be written") == 1
    assert "3 were dropped meanwhile" in worker.said()


@pytest.mark.full
@pytest.mark.parametrize("name", ["report", "areport"])
def test_reports_to_a_store_that_does_not_respond_are_dropped(shop, own, name):
    store, client = own
    worker = shop.start("process", "--import", "reporters", url=store.url)
    jid = client.queues["q"].put(f"reporters.{name}", {"args": ["gate"]}, retries=0)
    until(lambda: shop.notes("begin"), "it runs")
    os.kill(store.pid, signal.SIGSTOP)
    shop.open()
    until(lambda: shop.notes("reported"), "it reported")
    os.kill(store.pid, signal.SIGCONT)
    shop.open("gate2")
    assert client.result_of(jid, 30).startswith(b"[false,false,false,")
    assert worker.said().count("could not be written") == 1


def test_a_report_of_a_lost_lease_still_raises_and_so_does_a_report_outside_of_a_job(own):
    store, client = own
    queue = client.queues["q"]
    queue.put("reporters.report", {})
    [job] = queue.pop(1)
    store.ask("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
    with pytest.raises(holdfast.StoreFull):
        job.progress(0.5)
    store.ask("CONFIG", "SET", "maxmemory", "0")
    assert job.progress(0.5) is True
    job.timeout()
    with pytest.raises(holdfast.LeaseLost):
        job.progress(0.6)
