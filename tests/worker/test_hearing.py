"""Class jobs that want to be told of their end, in workers of every kind."""

from pathlib import Path

import pytest
from worker_kit import until

TOLD = """
from chores import note

def told(what):
    return lambda job: note(f"told {what} {job.state_changed}")

def listen(job):
    for event in ("complete", "fail"):
        getattr(job, "before_" + event)(told("before " + event))
        getattr(job, "after_" + event)(told("after " + event))

class Done:
    @staticmethod
    def perform(job):
        listen(job)
        job["seen"] = True

class AsyncDone:
    @staticmethod
    async def perform(job):
        async def later(job): note("told later")
        job.after_complete(later)
        listen(job)

class Bad:
    @staticmethod
    def perform(job):
        listen(job)
        raise ValueError("on purpose")

class AsyncBad:
    @staticmethod
    async def perform(job):
        listen(job)
        raise ValueError("on purpose")

class Moved:
    @staticmethod
    def perform(job):
        listen(job)
        job.complete("other")

class Unsure:
    @staticmethod
    def perform(job):
        listen(job)
        job.before_complete(lambda job: 1 / 0)
"""


@pytest.fixture
def told(shop, pool):
    Path(shop.here, "told.py").write_text(TOLD)
    shop.start(pool)

    def run(name, state):
        jid = shop.q.put(f"told.{name}", {})
        until(lambda: shop.state(jid) == state, f"the job is {state}")
        return shop.job(jid)

    return run


@pytest.mark.full
@pytest.mark.parametrize("name", ["Done", "AsyncDone"])
def test_a_job_that_returned_is_completed_with_its_callbacks(told, shop, name):
    job = told(name, "complete")
    notes = ["told before complete False", "told after complete True"]
    expected = [*notes, "told later"] if name == "AsyncDone" else notes
    until(lambda: shop.notes("told") == expected, "the callbacks ran")
    assert [entry["what"] for entry in job.history].count("done") == 1
    assert name == "AsyncDone" or job["seen"] is True


@pytest.mark.full
@pytest.mark.parametrize("name", ["Bad", "AsyncBad"])
def test_a_job_that_raised_is_failed_with_its_callbacks(told, shop, name):
    job = told(name, "failed")
    until(
        lambda: shop.notes("told") == ["told before fail False", "told after fail True"], "the callbacks ran"
    )
    assert job.failure["group"] == "q-ValueError"
    assert "on purpose" in job.failure["message"]
    assert "in perform" in job.failure["message"]


def test_a_job_that_settled_itself_is_told_once(told, shop):
    jid = told("Moved", "waiting").jid
    expected = ["told before complete False", "told after complete True"]
    until(lambda: shop.notes("told") == expected, "the callbacks ran")
    until(lambda: shop.job(jid).queue_name == "other", "the job went on")


@pytest.mark.full
def test_a_callback_that_raises_fails_the_job_it_was_for(told, shop):
    job = told("Unsure", "failed")
    assert job.failure["group"] == "q-ZeroDivisionError"
