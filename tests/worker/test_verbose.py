"""How much a worker logs: --quiet less than usual, VERBOSE more, VVERBOSE still more."""

import re

import pytest
from worker_kit import until

MESSY = """
from pathlib import Path

import chores
from holdfast import current_job


@chores.app.job(queue="q")
async def litter(gate: str) -> None:
    Path(current_job().sandbox, "left").touch()
    await chores.await_for(gate)
"""

ENDED = r"\[INFO\] jid={} queue=q attempt=1 \| job {} \(chores\.add\) took \d+\.\d+ seconds and is complete\n"
SLEEPS = "the worker sleeps until it is woken"
EMPTIED = r"\[DEBUG\] .*sandbox \S+ is empty now"
RENEWED = r"\[DEBUG\] heartbeat: worker=\S+-0 renewed_leases=1\n"


@pytest.mark.full
@pytest.mark.parametrize(("variable", "is_all"), [("VERBOSE", False), ("VVERBOSE", True)])
def test_vverbose_tells_of_sleeping_and_verbose_does_not(shop, monkeypatch, variable, is_all):
    monkeypatch.setenv(variable, "1")
    worker = shop.start("process")
    assert shop.chores.add.put(1).result(30) == 2
    until(lambda: "is complete" in worker.said(), "the job is told of")
    if is_all:
        until(lambda: SLEEPS in worker.said(), "it sleeps")
    worker.process.terminate()
    assert worker.wait() == 0
    assert ("[DEBUG]" in worker.said()) == is_all


@pytest.mark.full
def test_heartbeats_sleeping_and_sandbox_work_are_logged_with_vverbose(shop, pool, monkeypatch):
    monkeypatch.setenv("VVERBOSE", "1")
    (shop.here / "messy.py").write_text(MESSY)
    shop.q.heartbeat = 1
    worker = shop.start(pool, "--import", "messy")
    until(lambda: SLEEPS in worker.said(), "it sleeps")
    shop.q.put("messy.litter", {"args": ["gate"]})
    until(lambda: re.search(RENEWED, worker.said()), "the lease was renewed")
    before = len(re.findall(EMPTIED, worker.said()))
    shop.open()
    until(lambda: len(re.findall(EMPTIED, worker.said())) > before, "its sandbox was emptied")


CALLED = r"\[DEBUG\] .*worker \S+ reported \d+ outcomes? and took \d+ jobs? in [\d.]+ seconds: .*"


@pytest.mark.full
def test_vverbose_logs_each_call_of_a_busy_worker_with_its_jobs_and_verbose_does_not(shop, pool, monkeypatch):
    shop.chores.add.put(1)
    monkeypatch.setenv("VERBOSE", "1")
    worker = shop.start(pool, "--drain")
    assert worker.wait() == 0
    assert not re.search(CALLED, worker.said())
    jids = [shop.chores.add.put(number).jid for number in range(20)]
    monkeypatch.setenv("VVERBOSE", "1")
    worker = shop.start(pool, "--drain")
    assert worker.wait() == 0
    calls = "".join(re.findall(CALLED, worker.said()))
    assert all(f"{jid} of queue q" in calls for jid in jids)


def test_each_job_that_ends_has_one_line_with_its_jid_name_attempt_and_duration(shop, pool, monkeypatch):
    for name in ("VERBOSE", "VVERBOSE"):
        monkeypatch.delenv(name, raising=False)
    worker = shop.start(pool)
    jids = [shop.chores.add.put(number).jid for number in range(3)]
    for jid in jids:
        until(lambda jid=jid: re.search(ENDED.format(jid, jid), worker.said()), "its end is logged")
    assert "of queue q started" not in worker.said()
    assert "[DEBUG]" not in worker.said()
    assert all(worker.said().count(f"job {jid} ") == 1 for jid in jids)


@pytest.mark.full
def test_a_quiet_worker_logs_warnings_only(shop, pool, monkeypatch):
    monkeypatch.setenv("VERBOSE", "1")
    worker = shop.start(pool, "--quiet")
    assert shop.chores.add.put(1).result(30) == 2
    worker.process.terminate()
    assert worker.wait() == 0
    assert worker.said() == ""
