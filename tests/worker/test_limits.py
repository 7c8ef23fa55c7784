"""Run-time limits, deadlines and results that travel with the job, with real workers."""

import json
import os
import signal

import pytest
from worker_kit import process_lives, until

from holdfast import JobFailed
from holdfast.wire.plans import Step

SLOW = """
import asyncio, time
from chores import app, note

@app.job(queue="q")
async def unwind():
    try:
        await asyncio.sleep(60)
    finally:
        note("unwinding")
        time.sleep(60)
"""


def began(shop, name=""):
    until(lambda: shop.notes(f"begin {name}".strip()), f"{name} began")
    return [int(line.split()[2]) for line in shop.notes(f"begin {name}".strip())]


@pytest.mark.full
def test_a_job_over_its_limit_is_stopped_and_tried_again(shop, pool):
    shop.client.config["grace-period"] = 0
    worker = shop.start(pool)
    jid = shop.q.put("chores.block", {"args": ["a"]}, timeout=2.0, retries=9)
    pid = began(shop)[0]
    until(lambda: "exceeded its timeout" in worker.said(), "the worker says so")
    shop.open()
    until(lambda: shop.state(jid) == "complete", "it is tried again")
    if pool in ("process", "fork"):
        until(lambda: not process_lives(pid), "its process was killed")
    job = shop.job(jid)
    # It took too long: a failure, and no loss.
    assert "[ERROR]" not in worker.said()
    assert job.losses == 0
    assert job.attempts >= 2
    assert shop.chores.add.put(1).result(30) == 2


@pytest.mark.full
def test_the_timeout_of_the_last_attempt_is_one_error_with_the_job_in_every_pool(shop, pool):
    worker = shop.start(pool, "--log-format", "json")
    jid = shop.q.put("chores.block", {"args": ["a"]}, timeout=1.5, retries=0)
    until(lambda: shop.state(jid) == "failed", "it fails")
    until(lambda: '"ERROR"' in worker.said(), "that is logged")
    shop.open()
    assert shop.chores.add.put(1).result(30) == 2
    said = [json.loads(line) for line in worker.said().splitlines()]
    [error] = [line for line in said if line["level"] == "ERROR"]
    assert error["message"] == f"job {jid} (chores.block) failed: it exceeded its timeout of 1.5 s"
    expected = {"logger": "holdfast.jobs", "jid": jid, "queue": "q", "klass": "chores.block", "attempt": 1}
    assert error.items() >= expected.items()
    assert not any("interrupted" in line["message"] for line in said)


@pytest.mark.full
def test_a_crash_is_logged_with_the_job_and_as_an_error_if_it_was_once_too_often(shop):
    worker = shop.start("process", "--log-format", "json")
    jid = shop.chores.block.options(max_losses=1).put("a").jid
    for run in range(2):
        until(lambda run=run: len(began(shop)) > run, "it runs")
        os.kill(began(shop)[run], signal.SIGKILL)
    until(lambda: shop.state(jid) == "failed", "it fails")
    until(lambda: '"ERROR"' in worker.said(), "that is logged")
    said = [json.loads(line) for line in worker.said().splitlines()]
    lost, failed = (line for line in said if "its process ended with SIGKILL" in line["message"])
    assert (lost["level"], failed["level"]) == ("WARNING", "ERROR")
    assert (lost["jid"], lost["klass"], lost["attempt"]) == (jid, "chores.block", 1)
    assert (failed["jid"], failed["klass"], failed["attempt"]) == (jid, "chores.block", 2)


@pytest.mark.full
def test_an_async_job_that_is_interrupted_while_it_unwinds_takes_no_event_loop_from_the_next(shop):
    (shop.here / "slow.py").write_text(SLOW)
    worker = shop.start("serial", "--import", "slow")
    shop.q.put("slow.unwind", {"args": []}, timeout=1.0, retries=0)
    until(lambda: shop.notes("unwinding"), "it unwinds")
    assert shop.chores.aadd.put(1).result(30) == 2
    assert "Event loop is closed" not in worker.said()


def test_a_limit_that_is_not_reached_disturbs_nobody(shop, pool):
    worker = shop.start(pool)
    assert [shop.chores.add.options(timeout=30).put(n).result(30) for n in range(3)] == [1, 2, 3]
    assert "WARNING" not in worker.said()


@pytest.mark.full
def test_a_limit_longer_than_the_lease_is_kept_by_heartbeats_up_to_it(shop, pool):
    shop.q.heartbeat = 1
    shop.client.config["grace-period"] = 0
    worker = shop.start(pool)
    jid = shop.q.put("chores.block", {"args": ["a"]}, timeout=2.5, retries=9)
    began(shop)
    first = shop.job(jid)
    until(lambda: shop.job(jid).expires_at > first.expires_at + 0.9, "it was renewed")
    assert shop.job(jid).token == first.token
    until(lambda: "exceeded its timeout" in worker.said(), "the worker says so")
    shop.open()
    until(lambda: shop.state(jid) == "complete", "it is tried again")


@pytest.mark.full
def test_a_job_that_came_too_late_fails_and_its_waiter_hears_of_it(shop, pool):
    late = shop.chores.add.options(expires=0.001).put(1)
    good = shop.chores.add.put(2)
    until(lambda: shop.job(late.jid).facts.options, "it is there")
    shop.start(pool)
    assert good.result(30) == 3
    with pytest.raises(JobFailed, match="in time") as caught:
        late.result(30)
    assert caught.value.group == "expired-q"


@pytest.mark.full
@pytest.mark.parametrize("drain", [True, False])
def test_a_long_row_of_late_jobs_does_not_keep_a_worker_from_the_job_behind(shop, pool, drain):
    shop.q.put_many([("chores.add", n) for n in range(2_000)], expires=0.001)
    good = shop.chores.add.put(2)
    worker = shop.start(pool, *(["--drain"] if drain else []))
    assert good.result(30) == 3
    if drain:
        assert worker.wait() == 0
    assert shop.client.jobs.failed() == {"expired-q": 2_000}


@pytest.mark.full
def test_a_result_is_kept_as_long_as_its_put_said(shop, pool):
    shop.start(pool)
    usual, short, none = (
        shop.chores.add.options(**changes).put(1) for changes in ({}, {"result_keep": 5}, {"result_keep": 0})
    )
    assert [usual.result(30), short.result(30), none.result(30)] == [2, 2, None]

    keys = [f"{shop.client.root}a:{handle.jid}" for handle in (usual, short, none)]
    left = [shop.client.link.send(Step([("PTTL", key)]))[0] for key in keys]
    assert 3_500_000 < left[0] <= 3_600_000
    assert 0 < left[1] <= 5_000
    assert left[2] == -2


@pytest.mark.full
def test_a_backoff_of_its_own_decides_when_a_job_is_tried_again(shop, pool):
    shop.start(pool)
    handle = shop.chores.unlucky.options(backoff=600).put()
    until(lambda: shop.state(handle.jid) == "scheduled", "it waits for its next try")
    assert shop.job(handle.jid).retries_left == 1
    assert shop.notes() == ["unlucky"]
