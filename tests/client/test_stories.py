"""What people do with queues and jobs, for both clients."""

import time
from datetime import UTC, date, datetime

import pytest

from holdfast import (
    JobExists,
    JobFailed,
    JobNotFound,
    LeaseLost,
    Refused,
    UsageError,
    WrongState,
)

pytestmark = pytest.mark.each


class Shape:
    """Something whose name can be stored."""

    @staticmethod
    def default_job_options(data):
        return {"priority": data.get("size", 0), "delay": 100}


def test_a_job_is_put_popped_and_completed(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("app.Welcome", {"id": 7}))
    job = do(queue.pop)
    assert (job.jid, job.klass_name, job.data, job["id"]) == (jid, "app.Welcome", '{"id":7}', 7)
    assert (job.state, job.worker_name, job.retries_left) == ("running", do.client.worker_name, 5)
    assert 20 < job.ttl <= 31
    assert do(job.complete) == "complete"
    assert job.state_changed
    assert do(queue.pop) is None
    done = do(lambda: do.client.jobs[jid])
    assert [entry["what"] for entry in done.history] == ["put", "popped", "done"]
    assert do(do.client.jobs.complete) == [jid]


def test_jobs_come_by_priority_then_in_the_order_they_were_put(do):
    queue = do.client.queues["mail"]
    first, second = do(lambda: queue.put("K")), do(lambda: queue.put("K"))
    high = do(lambda: queue.put("K", priority=10))
    assert [job.jid for job in do(lambda: queue.pop(10))] == [high, first, second]
    assert do(lambda: queue.pop(0)) == []


def test_looking_does_not_take(do):
    queue = do.client.queues["mail"]
    assert do(queue.peek) is None
    jids = do(lambda: queue.put_many([("K", n) for n in range(5)]))
    assert do(queue.peek).jid == jids[0]
    assert [job.jid for job in do(lambda: queue.peek(2, 2))] == jids[2:4]
    assert do(lambda: queue.peek(count=0)) == []
    assert do(queue.length) == 5


def test_a_delayed_job_is_scheduled_and_counted(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", delay=60))
    counts = do(lambda: queue.counts)
    assert (counts["name"], counts["scheduled"], counts["waiting"]) == ("mail", 1, 0)
    assert do(queue.pop) is None
    assert do(lambda: do.client.queues.counts) == [counts]
    assert do(lambda: do.client.queues.names) == ["mail"]


def test_a_job_goes_on_in_the_next_queue_with_the_data_it_was_given(do):
    do(lambda: do.client.queues["one"].put("K", {"n": 1}))
    job = do(do.client.queues["one"].pop)
    job["n"] = 2
    assert do(lambda: job.complete("two")) is True
    later = do(do.client.queues["two"].pop)
    assert (later.jid, later["n"], later.queue_name) == (job.jid, 2, "two")
    assert do(lambda: later.complete("three", delay=60)) is True
    assert do(lambda: do.client.queues["three"].counts)["scheduled"] == 1


def test_a_delay_without_a_next_queue_is_a_usage_error(do):
    do(lambda: do.client.queues["one"].put("K"))
    job = do(do.client.queues["one"].pop)
    with pytest.raises(UsageError, match="next queue"):
        do(lambda: job.complete(delay=5))


def test_a_failed_job_is_listed_under_its_group_and_can_be_moved_back(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K"))
    job = do(queue.pop)
    assert do(lambda: job.fail("mail-ValueError", "no such user")) == jid
    assert do(do.client.jobs.failed) == {"mail-ValueError": 1}
    page = do(lambda: do.client.jobs.failed("mail-ValueError"))
    assert (page["total"], page["jobs"][0].failure["message"]) == (1, "no such user")
    assert do(lambda: do.client.jobs.failed("nothing")) == {"total": 0, "jobs": []}
    failed = do(lambda: do.client.jobs[jid])
    assert do(lambda: failed.move("mail")) == jid
    assert do(queue.pop).jid == jid


def test_retries_are_counted_down_until_the_job_fails(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K", retries=1))
    assert do(lambda: do.client.jobs[jid]).retries_left == 1
    job = do(queue.pop)
    assert do(job.retry) == 0
    job = do(queue.pop)
    assert do(lambda: job.retry(0, "mine", "gave up")) < 0
    assert do(lambda: do.client.jobs[jid]).failure["group"] == "mine"


def test_a_heartbeat_moves_the_end_and_saves_the_data(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K", {"n": 1}))
    job = do(queue.pop)
    job.data = {"n": 2}
    end = do(job.heartbeat)
    assert end == job.expires_at >= time.time() + 20
    assert do(lambda: do.client.jobs[jid]).data == '{"n":2}'


def test_a_job_that_was_cancelled_cannot_be_heartbeat_or_completed(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    job = do(queue.pop)
    assert do(job.cancel) == [job.jid]
    with pytest.raises(LeaseLost):
        do(job.heartbeat)
    with pytest.raises(Refused):
        do(job.complete)
    assert do(lambda: do.client.jobs[job.jid]) is None


def test_taking_a_lease_away_needs_a_running_job(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K"))
    waiting = do(lambda: do.client.jobs[jid])
    with pytest.raises(WrongState):
        do(waiting.timeout)
    job = do(queue.pop)
    do(job.timeout)
    again = do(queue.pop)
    assert again.jid == jid
    assert again.token > job.token
    with pytest.raises(LeaseLost):
        do(job.complete)


def test_a_priority_is_told_at_once(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    jid = do(lambda: queue.put("K"))
    job = do(lambda: do.client.jobs[jid])
    do(lambda: job.set_priority(7))
    assert job.priority == 7
    assert do(queue.pop).jid == jid
    do(lambda: do.client.jobs.cancel(jid))
    with pytest.raises(JobNotFound):
        do(lambda: job.set_priority(8))


def test_a_jid_of_ones_own_moves_the_job_that_has_it(do):
    one, two = do.client.queues["one"], do.client.queues["two"]
    assert do(lambda: one.put("K", {"n": 1}, jid="mine")) == "mine"
    assert do(lambda: two.put("K", {"n": 2}, jid="mine")) == "mine"
    assert do(one.pop) is None
    assert do(two.pop)["n"] == 2


def test_only_new_leaves_an_existing_job_alone(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", {"n": 1}, jid="mine", only_new=True))
    assert do(lambda: queue.put("K", {"n": 1}, jid="mine", only_new=True)) == "mine"
    with pytest.raises(JobExists):
        do(lambda: queue.put("K", {"n": 2}, jid="mine", only_new=True))
    assert do(queue.length) == 1


def test_many_jobs_are_put_in_steps_and_keep_their_order(do):
    queue = do.client.queues["mail"]
    jids = do(lambda: queue.put_many((("K", {"n": n}) for n in range(1100)), priority=2))
    assert len(set(jids)) == 1100
    assert [job.jid for job in do(lambda: queue.pop(512))] == jids[:512]


def test_items_of_many_may_have_options_of_their_own(do):
    queue = do.client.queues["mail"]
    jids = do(lambda: queue.put_many([{"klass": "A"}, {"klass": "B", "data": [1], "priority": 5}, ("C", 2)]))
    assert [job.jid for job in do(lambda: queue.pop(3))] == [jids[1], jids[0], jids[2]]


def test_refused_items_are_raised_when_all_others_are_in(do):
    queue = do.client.queues["mail"]
    items = [{"klass": "K", "data": n, "jid": "same", "only_new": True} for n in range(3)]
    with pytest.raises(JobExists) as caught:
        do(lambda: queue.put_many([*items, ("K", 9)]))
    assert "2 of 4" in caught.value.__notes__[0]
    assert do(queue.length) == 2


def test_a_class_is_stored_by_its_name_and_may_give_defaults(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put(Shape, {"size": 3}, delay=0))
    job = do(lambda: do.client.jobs[jid])
    assert job.klass_name.endswith("test_stories.Shape")
    assert (job.priority, job.state) == (3, "waiting")
    jid = do(lambda: queue.put(Shape, {"size": 4}))
    assert do(lambda: do.client.jobs[jid]).state == "scheduled"


def test_a_paused_queue_hands_out_nothing(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    do(lambda: queue.pause(why="deploy"))
    assert do(lambda: queue.paused) is True
    assert do(queue.pop) is None
    do(queue.unpause)
    assert do(lambda: queue.paused) is False
    assert do(queue.pop) is not None


def test_statistics_count_what_waited_and_what_ran(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    job = do(queue.pop)
    do(job.complete)
    today = datetime.now(UTC)
    for day in (None, today.timestamp(), today.date(), today.date().isoformat()):
        stats = do(lambda day=day: queue.stats(day))
        assert (stats["wait"]["count"], stats["run"]["count"], stats["failed"]) == (1, 1, 0)
        assert len(stats["wait"]["histogram"]) == 148
    assert do(lambda: queue.stats(date(2001, 1, 1)))["wait"]["count"] == 0
    with pytest.raises(UsageError):
        do(lambda: queue.stats("yesterday"))


def test_a_queue_has_a_heartbeat_of_its_own_or_the_common_one(do):
    queue = do.client.queues["mail"]
    assert do(lambda: queue.heartbeat) == 30
    do(lambda: queue.set_heartbeat(30))
    assert do(lambda: queue.heartbeat) == 30
    assert do(lambda: do.client.queues["other"].heartbeat) == 30
    do(lambda: queue.put("K"))
    assert 25 < do(queue.pop).ttl <= 31
    with pytest.raises(UsageError):
        do(lambda: queue.set_heartbeat(0))


def test_a_queue_runs_at_most_as_many_as_its_throttle_allows(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.throttle.set_maximum(2))
    assert do(queue.throttle.maximum) == 2
    do(lambda: queue.put_many([("K", n) for n in range(5)]))
    assert len(do(lambda: queue.pop(5))) == 2


def test_the_end_of_a_job_is_pushed_to_who_waits(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K"))
    assert do(lambda: do.client.wait_for(jid, 0.05)).status == "open"
    job = do(queue.pop)
    do(job.complete)
    assert do(lambda: do.client.wait_for(jid, 30)).status == "done"
    assert do(lambda: do.client.result_of(jid, 30)) is None
    with pytest.raises(JobNotFound):
        do(lambda: do.client.result_of("unknown", 30))


def test_waiting_for_a_failed_job_raises_its_failure(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K"))
    job = do(queue.pop)
    do(lambda: job.fail("broken", "because"))
    with pytest.raises(JobFailed, match="because") as caught:
        do(lambda: do.client.result_of(jid, 30))
    assert caught.value.group == "broken"


def test_waiting_too_long_is_a_timeout(do):
    jid = do(lambda: do.client.queues["mail"].put("K"))
    with pytest.raises(TimeoutError):
        do(lambda: do.client.result_of(jid, 0.05))


def test_unknown_jobs_are_none_or_left_out(do):
    jid = do(lambda: do.client.queues["mail"].put("K"))
    assert do(lambda: do.client.jobs["unknown"]) is None
    assert [job.jid for job in do(lambda: do.client.jobs.get("unknown", jid))] == [jid]
    assert do(lambda: do.client.jobs.get()) == []
    assert do(lambda: do.client.jobs.cancel("unknown", jid)) == [False, True]


def test_the_worker_name_may_be_pinned_to_a_queue_handle(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    queue.worker_name = "box-7"
    assert do(queue.pop).worker_name == "box-7"
    do.client.worker_name = "box-8"
    assert do.client.queues["mail"].worker_name == "box-8"
