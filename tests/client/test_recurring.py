"""Recurring jobs through both clients."""

import pytest

from holdfast import JobNotFound, RecurringJob, UsageError
from holdfast.client.recurring import AsyncRecurringJob


def test_a_template_is_made_found_changed_and_cancelled(do):
    queue, recurring = do.client.queues["mail"], do.client.recurring
    jid = do(
        lambda: queue.recur("Report", {"a": 1}, interval=60, offset=3600, jid="daily", tags=["r"], backlog=2)
    )
    assert jid == "daily"
    job = do(lambda: recurring["daily"])
    assert isinstance(job, RecurringJob | AsyncRecurringJob)
    assert (job.jid, job.interval, job.count, str(job.queue)) == ("daily", 60.0, 0, "mail")
    assert (job.facts.data, job.facts.tags, job.facts.backlog, job.facts.retries) == (
        b'{"a":1}',
        ("r",),
        2,
        5,
    )
    assert "daily" in repr(job)
    assert "Report" in repr(job)
    assert do(lambda: job.update(interval=30, queue="post", data=[1], klass="Other", throttles=["t"])) is True
    assert do(lambda: job.tag("s")) == ["r", "s"]
    assert do(lambda: job.untag("r")) == ["s"]
    [again] = do(lambda: recurring.get("daily", "nobody"))
    assert (again.facts.queue, again.facts.data, again.facts.klass, again.interval) == (
        "post",
        b"[1]",
        "Other",
        30.0,
    )
    assert again.next == pytest.approx(job.next - 30)
    assert again.facts.throttles == ("t", "ql:q:post")
    assert do(lambda: again.cancel()) == ["daily"]
    assert do(lambda: recurring["daily"]) is None
    assert do(lambda: recurring.cancel("daily")) == [False]
    with pytest.raises(JobNotFound):
        do(lambda: again.update(priority=1))


def test_its_jobs_are_popped_like_others(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.recur("Report", interval=3600, priority=4, retries=2))
    job = do(lambda: queue.pop())
    assert (job.jid, job.facts.priority, job.original_retries) == (f"{jid}-1", 4, 2)


@pytest.mark.parametrize(
    "bad",
    [
        {"interval": 0}, {"interval": -1}, {"interval": "x"}, {"interval": 60, "offset": "x"},
        {"interval": 60, "jid": "r" * 181}, {"interval": 60, "backlog": -1}, {"interval": 60, "priority": 5000},
        {"interval": 60, "retries": 2000}, {"interval": 60, "colour": 1}, {"interval": 60, "tags": [""]},
    ],
)  # fmt: skip
def test_what_cannot_recur_is_refused_before_it_is_sent(do, bad):
    queue = do.client.queues["mail"]
    with pytest.raises(UsageError):
        do(lambda: queue.recur("Report", **bad))
    assert do(lambda: do.client.queues.names) == []


def test_a_change_that_does_not_exist_is_refused(do):
    queue, recurring = do.client.queues["mail"], do.client.recurring
    do(lambda: queue.recur("Report", interval=60, jid="r"))
    job = do(lambda: recurring["r"])
    for change in ({"count": 5}, {"interval": 0}, {"backlog": -1}, {"tags": ["a"]}):
        with pytest.raises(UsageError):
            do(lambda change=change: job.update(**change))
