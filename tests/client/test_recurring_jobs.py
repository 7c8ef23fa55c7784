"""python-api 12: a recurring job as an object, what is assigned to it, and what it put."""

import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from sync_async import Async

from holdfast import HoldfastError, JobNotFound, RecurringJob, UsageError
from holdfast.client.recurring import AsyncRecurringJob


class Report:
    """What recurs."""


def recur(do, jid="r", queue="mail", **options):
    do(
        lambda: do.client.queues[queue].recur(
            "app.Report", {"a": 1}, **{"interval": 60, "offset": 3600, "jid": jid, **options}
        )
    )
    return fetched(do, jid)


def fetched(do, jid="r"):
    return do(lambda: do.client.jobs[jid])


def assign(do, job, name, value):
    """Assign, or what stands for it where assignments cannot be awaited."""
    if isinstance(do, Async):
        with pytest.raises(TypeError, match=f"set_{name}"):
            setattr(job, name, value)
        assert do(lambda: getattr(job, f"set_{name}")(value)) is True
    else:
        setattr(job, name, value)


def test_a_recurring_job_shows_what_the_store_knows(do):
    before = time.time()
    job = recur(do, tags=["red"], throttles=["gpu"], priority=2, retries=3, backlog=4)
    assert isinstance(job, RecurringJob | AsyncRecurringJob)
    assert (job.jid, job.klass_name, job.data, job.priority) == ("r", "app.Report", '{"a":1}', 2)
    assert (job.queue, job.queue_name, job.tags, job.throttles) == (
        "mail",
        "mail",
        ["red"],
        ["gpu", "ql:q:mail"],
    )
    assert (job.retries, job.interval, job.count, job.backlog) == (3, 60, 0, 4)
    assert job.next == pytest.approx(before + 3600, abs=60)
    assert isinstance(job.next, float)
    assert job.sandbox is None


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("priority", 7, 7), ("retries", 0, 0), ("interval", 90.0, 90.0), ("backlog", 2, 2),
        ("data", {"b": [2]}, '{"b":[2]}'), ("data", '{"c": 3}', '{"c": 3}'),
    ],
)  # fmt: skip
def test_what_is_assigned_is_written_at_once_here_and_in_the_store(do, name, value, shown):
    job = recur(do)
    assign(do, job, name, value)
    assert getattr(job, name) == getattr(fetched(do), name) == shown


def test_another_interval_moves_the_next_run_by_the_difference(do):
    job = recur(do)
    was = job.next
    assign(do, job, "interval", 90)
    assert job.next == fetched(do).next == pytest.approx(was + 30)


def test_assigning_a_class_stores_its_dotted_name(do):
    job = recur(do)
    assign(do, job, "klass", Report)
    assert job.klass_name == fetched(do).klass_name == f"{__name__}.Report"
    assert job.klass.__name__ == "Report"
    assign(do, job, "klass", "any.Name")
    assert fetched(do).klass_name == "any.Name"
    with pytest.raises(ModuleNotFoundError):
        _ = job.klass


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("priority", "high"),
        ("retries", -1),
        ("interval", 0),
        ("backlog", -1),
        ("data", {1, 2, object()}),
        ("klass", 7),
    ],
)
def test_what_cannot_be_assigned_is_named_and_nothing_is_written(do, name, value):
    job = recur(do)
    with pytest.raises(UsageError):
        do(lambda: getattr(job, f"set_{name}")(value))
    assert fetched(do).facts == job.facts


def test_only_the_store_counts(do):
    job = recur(do)
    with pytest.raises(HoldfastError, match="count"):
        job.count = 5
    assert job.count == fetched(do).count == 0


def test_each_job_it_puts_moves_the_next_run_by_exactly_the_interval(do):
    job = recur(do, offset=-30)
    do(do.client.queues["mail"].pop)
    again = fetched(do)
    assert (again.count, again.next) == (1, pytest.approx(job.next + 60))


@pytest.mark.parametrize("name", ["move", "requeue"])
def test_moving_keeps_the_next_run_and_swaps_the_throttle_of_the_queue(do, name):
    job = recur(do, throttles=["gpu"])
    before = job.next
    assert do(lambda: getattr(job, name)(do.client.queues["post"]))
    for shown in (job, fetched(do)):
        assert (shown.queue_name, shown.queue, shown.next) == ("post", "post", before)
        assert shown.throttles == ["gpu", "ql:q:post"]
    assert do(do.client.queues["mail"].jobs.recurring) == []
    assert do(do.client.queues["post"].jobs.recurring) == ["r"]


def test_other_throttles_stand_before_that_of_the_queue(do):
    job = recur(do, throttles=["gpu"])
    do(lambda: job.update(throttles=["disk"]))
    for shown in (job, fetched(do)):
        assert shown.throttles == ["disk", "ql:q:mail"]


def test_cancelling_stops_future_jobs_and_leaves_those_there_are(do):
    job = recur(do, offset=-30)
    held = do(do.client.queues["mail"].pop)
    assert do(job.cancel) == ["r"]
    assert fetched(do) is None
    assert fetched(do, "r-1").state == "running"
    assert do(held.complete) == "complete"
    assert do(job.cancel) == ["r"]


def test_tags_are_answered_as_a_list(do):
    job = recur(do, tags=["a"])
    assert do(lambda: job.tag("b", "a")) == job.tags == ["a", "b"]
    assert do(lambda: job.untag("a")) == job.tags == fetched(do).tags == ["b"]


def test_who_is_gone_can_be_told_nothing(do):
    job = recur(do)
    do(job.cancel)
    for act in (
        lambda: job.set_priority(1),
        lambda: job.move("post"),
        lambda: job.tag("a"),
        lambda: job.update(retries=1),
    ):
        with pytest.raises(JobNotFound):
            do(act)
    assert job.priority == 0


def test_it_knows_the_job_that_it_put_last(do):
    job = recur(do, offset=-70)
    assert (job.last_spawned_jid, do(lambda: job.last_spawned_job)) == (None, None)
    first, second = do(lambda: do.client.queues["mail"].pop(2))
    assert (first.jid, second.jid) == ("r-1", "r-2")
    again = fetched(do)
    assert again.last_spawned_jid == "r-2"
    last = do(lambda: again.last_spawned_job)
    assert (last.jid, last.state) == ("r-2", "running")
    do(second.complete)
    do(lambda: do.client.jobs.cancel("r-1"))
    assert do(lambda: again.last_spawned_job).state == "complete"


def test_it_is_a_template_for_the_jobs_it_puts(do):
    job = recur(do, offset=-30, tags=["red"], throttles=["gpu"], priority=2, retries=3)
    assign(do, job, "data", {"later": True})
    put = do(do.client.queues["mail"].pop)
    assert (put.klass_name, json.loads(put.data), put.priority) == ("app.Report", {"later": True}, 2)
    assert (put.tags, put.throttles, put.original_retries) == (["red"], ["gpu", "ql:q:mail"], 3)


def test_jobs_of_several_intervals_carry_the_time_they_were_due(do):
    job = recur(do, offset=-150)
    put = do(lambda: do.client.queues["mail"].pop(9))
    moments = [one.history[0]["when"] for one in put]
    assert moments == pytest.approx([job.next, job.next + 60, job.next + 120], abs=0.002)


def test_as_many_are_put_as_were_missed_and_no_more_than_the_backlog(do):
    recur(do, offset=-610)
    recur(do, "few", "post", offset=-610, backlog=2)
    queue = do.client.queues["mail"]
    assert [one.jid for one in do(lambda: queue.pop(3))] == ["r-1", "r-2", "r-3"]
    assert len(do(lambda: queue.pop(50))) == 8
    assert fetched(do).count == 11
    assert 2 <= len(do(lambda: do.client.queues["post"].pop(50))) <= 3


def test_it_is_written_with_class_and_jid(do):
    job = recur(do)
    assert repr(job) == f"<{type(job).__name__} app.Report r>"


def test_recurring_jobs_are_equal_by_class_jid_and_client(do):
    job, again = recur(do), fetched(do)
    assert job == again
    assert hash(job) == hash(again)
    other = recur(do, "other")
    assert job != other
    assert job != "r"
    do(lambda: do.client.queues["mail"].put("K", jid="r"))
    assert fetched(do) != job


def test_what_is_settable_here_stays_here(do):
    job = recur(do, tags=["a"])
    job.tags, job.throttles, job.klass_name, job.queue_name, job.sandbox = ["x"], ["y"], "L", "post", "/tmp"
    assert (job.tags, job.throttles, job.klass_name, job.queue, job.sandbox) == (
        ["x"],
        ["y"],
        "L",
        "post",
        "/tmp",
    )
    again = fetched(do)
    assert (again.tags, again.klass_name, again.queue_name) == (["a"], "app.Report", "mail")
    job.jid = "nobody"
    with pytest.raises(JobNotFound):
        do(lambda: job.set_priority(1))


def test_a_recurring_job_is_paused_and_resumed(stopped, do):
    job = recur(do, offset=-10, backlog=0)
    due = job.next
    assert (job.paused, do(job.pause), job.paused, fetched(do).paused) == (False, True, True, True)
    assert do(job.pause) is False
    stopped.advance(seconds=120)
    assert do(lambda: do.client.queues["mail"].pop(9)) == []
    assert do(do.client.queues["mail"].jobs.recurring) == ["r"]
    assert fetched(do).next == due
    assert (do(job.resume), job.paused) == (True, False)
    assert job.next == fetched(do).next == due + 180
    assert do(job.resume) is False
    stopped.advance(seconds=50)
    assert [put.jid for put in do(lambda: do.client.queues["mail"].pop(9))] == ["r-1"]


def test_a_recurring_job_that_is_changed_stays_paused(do):
    job = recur(do)
    do(job.pause)
    job = fetched(do)
    assign(do, job, "interval", 90)
    do(lambda: job.move("post"))
    assert job.paused
    assert fetched(do).facts == job.facts
    assert recur(do, queue="post").paused


@pytest.mark.parametrize("paused", [False, True])
def test_a_recurring_job_is_run_now(stopped, do, paused):
    job = recur(do, tags=["red"])
    due = job.next
    if paused:
        do(job.pause)
        job = fetched(do)
    assert do(job.run_now) == job.last_spawned_jid == "r-1"
    assert (job.count, job.next, fetched(do).facts) == (1, due, job.facts)
    put = do(do.client.queues["mail"].pop)
    assert (put.jid, put.tags, put.spawned_from_jid) == ("r-1", ["red"], "r")
    assert put.scheduled_for == put.created_at
    later = do(lambda: do.client.job("r-1"))
    assert later.scheduled_for == put.scheduled_for


def test_a_recurring_job_is_paused_until_a_moment(do):
    job = recur(do)
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    assert do(lambda: job.pause(until=end)) is True
    assert job.facts.paused_until_ms == fetched(do).facts.paused_until_ms == round(end.timestamp() * 1000)
    with pytest.raises(UsageError, match="until has no time zone"):
        do(lambda: job.pause(until=datetime(2030, 1, 1)))
    do(job.resume)
    assert (job.facts.paused_until_ms, fetched(do).facts.paused) == (0, False)


def test_a_job_that_no_recurring_job_has_put_is_scheduled_for_no_moment(do):
    jid = do(lambda: do.client.queues["q"].put("K"))
    assert do(lambda: do.client.job(jid)).scheduled_for is None


def test_a_recurring_job_that_is_gone_is_not_paused_or_run(do):
    job = recur(do)
    do(job.cancel)
    for act in (job.pause, job.resume, job.run_now):
        with pytest.raises(JobNotFound):
            do(act)
    assert (job.paused, job.count) == (False, 0)
