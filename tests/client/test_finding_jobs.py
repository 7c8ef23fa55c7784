"""python-api 3: `client.jobs`, by jid and by what they have in common."""

from time import time_ns
from types import SimpleNamespace

import pytest

from holdfast import AsyncJob, Job, RecurringJob, UsageError
from holdfast.client.recurring import AsyncRecurringJob
from waiting import until


def put(do, jid, queue="mail", **options):
    return do(lambda: do.client.queues[queue].put("app.K", jid=jid, **options))


def finished(do, jid, queue="mail"):
    put(do, jid, queue)
    job = do(do.client.queues[queue].pop)
    do(job.complete)


def failed(do, jid, group):
    put(do, jid)
    job = do(do.client.queues["mail"].pop)
    do(lambda: job.fail(group, "why"))


def test_a_jid_names_a_job_a_recurring_job_or_nothing(do):
    put(do, "j")
    do(lambda: do.client.queues["mail"].recur("app.Daily", interval=60, offset=60, jid="r"))
    job, recurring = do(lambda: do.client.jobs["j"]), do(lambda: do.client.jobs["r"])
    assert isinstance(job, (Job, AsyncJob))
    assert isinstance(recurring, (RecurringJob, AsyncRecurringJob))
    assert (job.jid, recurring.jid, recurring.klass_name) == ("j", "r", "app.Daily")
    assert do(lambda: do.client.jobs["nobody"]) is None


@pytest.mark.parametrize("name", ["get", "multiget"])
def test_many_jobs_are_found_in_the_order_asked_without_those_that_are_gone(do, name):
    for jid in ("a", "b", "c"):
        put(do, jid)
    ask = getattr(do.client.jobs, name)
    assert [job.jid for job in do(lambda: ask("c", "nobody", "a"))] == ["c", "a"]


def test_no_jids_ask_nobody(do, monkeypatch):
    monkeypatch.setattr(do.client.runner, "link", SimpleNamespace(send=None))
    assert do(do.client.jobs.get) == []


def test_completed_jids_come_newest_first_and_in_pages(do):
    for jid in ("a", "b", "c"):
        finished(do, jid)
    assert do(do.client.jobs.complete) == ["c", "b", "a"]
    assert do(lambda: do.client.jobs.complete(1, 1)) == ["b"]
    assert do(lambda: do.client.jobs.complete(offset=3)) == []


def test_tracked_jobs_are_listed_and_those_that_are_gone_by_jid(do):
    assert do(do.client.jobs.tracked) == {"jobs": [], "expired": {}}
    put(do, "a")
    put(do, "b")
    for jid in ("a", "b"):
        do(lambda jid=jid: do.client.track(jid))
    do(lambda: do.client.jobs.cancel("b"))
    tracked = do(do.client.jobs.tracked)
    assert ([job.jid for job in tracked["jobs"]], tracked["expired"]) == (["a"], ["b"])


def test_tagged_jids_come_in_the_order_of_their_tagging(do):
    for jid in ("b", "a", "c"):
        put(do, jid, tags=["red"])
        now = time_ns()
        until(lambda now=now: time_ns() > now + 2_000_000, "two milliseconds on, for the order is by time")
    assert do(lambda: do.client.jobs.tagged("red")) == {"total": 3, "jobs": ["b", "a", "c"]}
    assert do(lambda: do.client.jobs.tagged("red", 1, 1)) == {"total": 3, "jobs": ["a"]}
    assert do(lambda: do.client.jobs.tagged("blue")) == {"total": 0, "jobs": {}}


def test_failure_groups_are_counted(do):
    assert do(do.client.jobs.failed) == {}
    for jid, group in (("a", "one"), ("b", "two"), ("c", "one")):
        failed(do, jid, group)
    assert do(do.client.jobs.failed) == {"one": 2, "two": 1}


def test_the_jobs_of_a_failure_group_come_newest_first_and_in_pages(do):
    for jid in ("a", "b", "c"):
        failed(do, jid, "one")
    page = do(lambda: do.client.jobs.failed("one"))
    assert (page["total"], [job.jid for job in page["jobs"]]) == (3, ["c", "b", "a"])
    assert page["jobs"][0].failure["message"] == "why"
    page = do(lambda: do.client.jobs.failed("one", start=1, limit=1))
    assert (page["total"], [job.jid for job in page["jobs"]]) == (3, ["b"])
    assert do(lambda: do.client.jobs.failed("none")) == {"total": 0, "jobs": []}


@pytest.mark.parametrize("bad", ["", "a\nb", 7, None])
def test_what_is_no_jid_is_named(do, bad):
    for ask in (lambda: do.client.jobs[bad], lambda: do.client.jobs.get("a", bad)):
        with pytest.raises(UsageError, match="jid"):
            do(ask)


def test_nothing_there_is_falsy_and_has_no_length(do):
    for empty in (do(do.client.jobs.tracked)["expired"], do(lambda: do.client.jobs.tagged("x"))["jobs"]):
        assert not empty
        assert len(empty) == 0
