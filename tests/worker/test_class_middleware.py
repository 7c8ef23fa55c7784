"""Middleware of job classes in every pool, and what a failure formatter chooses there."""

from pathlib import Path

import pytest
from worker_kit import until

from holdfast import current_job
from holdfast.worker.settings import ONE_SLOT

WORN = """
import chores
from holdfast.middleware import *
from holdfast.worker.performing.outcome import Moved


class Noting:
    @classmethod
    def around_perform(cls, job):
        chores.note(f"around {job.jid}")
        return super().around_perform(job)


class Moving(Noting, SupportsMiddleware):
    @staticmethod
    def process(job):
        return Moved("elsewhere")


class Awaiting(Noting, SupportsMiddleware):
    @staticmethod
    async def process(job):
        await job.complete()


class Fetch(RetryExceptions(ConnectionError, delay=0.01), SupportsMiddleware):
    @staticmethod
    def perform(job):
        chores.note(f"try {job.retries_left}")
        raise ConnectionError("down")


class AsyncFetch(RetryExceptions(ConnectionError, delay=0.01), SupportsMiddleware):
    @staticmethod
    async def perform(job):
        chores.note(f"try {job.retries_left}")
        raise ConnectionError("down")


class Limited(RequeueExceptions(OSError, delay_range=(0, 0.01), max_attempts=2), SupportsMiddleware):
    @staticmethod
    def process(job):
        chores.note(f"try {job['requeues_by_exception'] if 'requeues' in job.data else {}}")
        raise OSError("busy")


class Hanging(Timeout(lambda job: job["limit"]), SupportsMiddleware):
    @staticmethod
    def process(job):
        chores.note("hangs")
        chores.wait_for("never")


class Returning(Timeout(lambda job: job["limit"]), RequeueExceptions, SupportsMiddleware):
    process = Hanging.process


Returning.requeue_on(JobTimedOutError, delay_range=(3600, 3600), max_attempts=1)


class Growing(MemoryUsageMonitor(1), SupportsMiddleware):
    @staticmethod
    def process(job):
        chores.note("grew")
        job.complete()


class GrowingAwaited(MemoryUsageMonitor(1), SupportsMiddleware):
    @staticmethod
    async def process(job):
        await job.complete()
        chores.note("grew")
        raise ValueError("after it settled itself")


class Counted(JobMetrics(counter=lambda klass: chores.note(f"counted {klass}")), SupportsMiddleware):
    @staticmethod
    def perform(job):
        chores.note("performed")


class NoBase(Noting):
    @staticmethod
    def process(job):
        chores.note("performed")


def shout():
    class Shouting:
        def format(self, job, error, lines_to_remove=()):
            return f"{job.klass_name}!", str(error).upper()

    use_failure_formatter(Shouting())
"""


@pytest.fixture
def worn(shop):
    Path(shop.here, "worn.py").write_text(WORN)
    return shop


def failure(shop, jid):
    until(lambda: shop.state(jid) == "failed", "the job failed")
    return shop.job(jid).failure


@pytest.mark.full
def test_middleware_surrounds_plain_and_async_methods_and_wishes_come_through(worn, pool):
    worn.start(pool)
    moved, done = worn.q.put("worn.Moving", {}), worn.q.put("worn.Awaiting", {})
    until(lambda: worn.state(done) == "complete", "the second is complete")
    until(lambda: worn.job(moved).queue_name == "elsewhere", "the first is moved")
    assert sorted(worn.notes()) == sorted([f"around {moved}", f"around {done}"])


@pytest.mark.full
@pytest.mark.parametrize("klass", ["worn.Fetch", "worn.AsyncFetch"])
def test_a_retried_exception_costs_retries_until_there_are_none(worn, pool, klass):
    worn.start(pool)
    failed = failure(worn, worn.q.put(klass, {}, retries=2))
    assert failed["group"] == "q-ConnectionError"
    assert worn.notes() == ["try 2", "try 1", "try 0"]


def test_a_requeued_exception_is_counted_in_the_data(worn, pool):
    worn.start(pool)
    failed = failure(worn, worn.q.put("worn.Limited", {}))
    assert failed["group"] == "q-OSError"
    assert worn.notes() == ["try {}", "try {'OSError': 1}", "try {'OSError': 2}"]


@pytest.mark.full
def test_a_job_that_hangs_fails_with_where_it_was_and_its_process_is_replaced(worn, pool):
    worker = worn.start(pool)
    failed = failure(worn, worn.q.put("worn.Hanging", {"limit": 0.2}))
    assert failed["group"] == "q-JobTimedOutError"
    assert "ran longer than 0.2 seconds" in failed["message"]
    assert "in wait_for" in failed["message"]
    assert "holdfast/work" not in failed["message"]
    assert worn.notes() == ["hangs"]
    if pool == "serial":
        assert worker.wait() == 73
        return
    ended = "ended with status 73" if pool in ONE_SLOT else "it is replaced"
    until(lambda: ended in worker.said(), "the parent says so")
    assert worn.chores.add.put(1).result(30) == 2


@pytest.mark.full
@pytest.mark.parametrize("pool", ["asyncio", "thread", "gevent"])
def test_a_job_that_hangs_takes_no_neighbour_along(worn, pool):
    worker = worn.start(pool)
    neighbour = worn.chores.hog.put("a")
    until(lambda: worn.notes("begin"), "the neighbour began")
    failed = failure(worn, worn.q.put("worn.Hanging", {"limit": 0.2}))
    assert failed["group"] == "q-JobTimedOutError"
    until(lambda: "its process ends after its other jobs" in worker.said(), "it says so")
    worn.open()
    assert neighbour.result(30) == "a"
    assert worn.job(neighbour.jid).attempts == 1
    until(lambda: "it is replaced" in worker.said(), "the parent says so")
    assert worn.chores.add.put(1).result(30) == 2


@pytest.mark.full
def test_a_job_that_hangs_goes_back_if_its_class_says_so(worn, pool):
    worker = worn.start(pool)
    jid = worn.q.put("worn.Returning", {"limit": 0.2})
    until(lambda: worn.state(jid) == "scheduled", "the job is requeued")
    assert worn.job(jid)["requeues_by_exception"] == {"JobTimedOutError": 1}
    until(lambda: "its process ends" in worker.said(), "the process ends")


@pytest.mark.full
def test_a_limit_that_is_none_fails_the_job_and_nothing_else(worn, pool):
    worn.start(pool)
    assert failure(worn, worn.q.put("worn.Hanging", {"limit": -1}))["group"] == "q-InvalidTimeout"
    assert worn.chores.add.put(1).result(30) == 2


@pytest.mark.full
def test_a_class_without_the_base_is_not_run(worn, pool):
    worn.start(pool)
    assert failure(worn, worn.q.put("worn.NoBase", {}))["group"] == "q-MiddlewareMisconfigured"
    assert worn.notes() == []


@pytest.mark.full
def test_a_failure_formatter_is_used_by_every_child(worn, pool):
    worn.start(pool, "--setup", "worn:shout")
    failed = failure(worn, worn.q.put("chores.Broken", {}))
    assert (failed["group"], failed["message"]) == ("chores.Broken!", "'BROKEN INSIDE'")
    failed = failure(worn, worn.chores.hopeless.put().jid)
    assert (failed["group"], failed["message"]) == ("chores.hopeless!", "NO HOPE")
    assert current_job() is None


@pytest.mark.full
@pytest.mark.parametrize("klass", ["worn.Growing", "worn.GrowingAwaited"])
def test_a_process_that_has_grown_ends_after_its_job_and_is_replaced(worn, pool, klass):
    worker = worn.start(pool)
    jid = worn.q.put(klass, {})
    until(lambda: worn.state(jid) == "complete", "the job is complete")
    until(lambda: "more than 1 KB: it ends after its jobs" in worker.said(), "the process ends")
    if pool == "serial":
        assert worker.wait() == 0
    elif pool == "fork":
        assert worn.chores.add.put(1).result(30) == 2  # that process ends in any case
    else:
        until(lambda: "it is replaced in" in worker.said(), "the parent says so")
        assert worn.chores.add.put(1).result(30) == 2
    assert worn.notes() == ["grew"]


@pytest.mark.full
def test_what_the_worker_completes_is_counted_too(worn, pool):
    worn.start(pool)
    jid = worn.q.put("worn.Counted", {})
    until(lambda: worn.state(jid) == "complete", "the job is complete")
    until(lambda: worn.notes() == ["performed", "counted worn.Counted"], "it is counted")
