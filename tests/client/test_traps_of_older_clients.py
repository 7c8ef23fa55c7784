"""python-api 14: the traps of the older clients, and on which side of each we are. What a section says is proved there."""

import inspect
import time

import pytest

from holdfast import JobNotFound, UsageError
from holdfast.client.put_options import QueuePuts


def put(do, jid, queue="mail", **options):
    return do(lambda: do.client.queues[queue].put("app.K", jid=jid, **options))


def popped(do, jid="j", **options):
    put(do, jid, **options)
    return do(do.client.queues["mail"].pop)


def found(do, jid="j"):
    return do(lambda: do.client.jobs[jid])


def test_1_unfail_takes_the_group_first_and_answers_how_many(do):
    for jid in ("a", "b", "c"):
        job = popped(do, jid)
        do(lambda job=job: job.fail("group", "m"))
    assert do(lambda: do.client.unfail("group", "post", 2)) == 2
    assert [job.jid for job in do(lambda: do.client.queues["post"].pop(9))] == ["a", "b"]
    assert do(lambda: do.client.unfail("group", "post")) == 1


def test_2_higher_priorities_run_first(do):
    put(do, "low", priority=1)
    put(do, "high", priority=2)
    assert do(do.client.queues["mail"].pop).jid == "high"


def test_2_a_mapping_can_be_put_and_a_module_named(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put(inspect, {"id": 4}))
    assert (found(do, jid).klass_name, found(do, jid)["id"]) == ("inspect", 4)
    with pytest.raises(UsageError, match="interval"):
        do(lambda: queue.recur("K", "{}"))
    with pytest.raises(ValueError, match="klass must be"):
        do(lambda: queue.put(7, "{}"))


def test_3_a_popped_job_is_completed_though_the_worker_was_renamed(do):
    job = popped(do)
    do.client.worker_name = "another"
    assert do(job.complete) == "complete"


def test_6_data_of_a_job_reaches_the_store_with_the_next_call(do):
    job = popped(do)
    job.data = {"a": 1}
    assert found(do).data == "{}"
    do(job.heartbeat)
    assert found(do).data == '{"a":1}'


def test_8_no_jobs_asked_for_are_none(do):
    put(do, "j")
    queue = do.client.queues["mail"]
    assert do(lambda: queue.pop(0)) == do(lambda: queue.peek(count=0)) == []
    assert do(queue.length) == 1


def test_12_jobs_put_in_the_same_millisecond_keep_their_order(do):
    queue = do.client.queues["mail"]
    jids = do(lambda: queue.put_many([("K", n) for n in range(200)]))
    assert [job.jid for job in do(lambda: queue.pop(200))] == jids


def test_13_a_cancelled_job_is_made_again_by_a_put_and_not_by_a_requeue(do):
    put(do, "j")
    job = found(do)
    do(job.cancel)
    with pytest.raises(JobNotFound):
        do(lambda: job.requeue("mail"))
    with pytest.raises(JobNotFound):
        do(lambda: do.client.queues["mail"].requeue("K", "{}", jid="j"))
    assert found(do) is None
    put(do, "j")
    assert found(do).state == "waiting"


def test_14_a_tracked_job_stays_tracked_when_it_moves(do):
    put(do, "j")
    assert do(lambda: do.client.track("j"))
    job = found(do)
    do(lambda: job.move("post"))
    assert found(do).tracked
    with pytest.raises(JobNotFound):
        do(lambda: do.client.track("nobody"))


def test_15_leases_and_delays_go_by_the_clock_of_the_store(do, monkeypatch):
    put(do, "later", delay=60)
    real = time.time()
    monkeypatch.setattr(time, "time", lambda: real + 3600)
    queue = do.client.queues["mail"]
    assert do(queue.pop) is None
    put(do, "now")
    job = do(queue.pop)
    assert job.expires_at == pytest.approx(real + 30, abs=30)


@pytest.mark.parametrize("name", ["put", "requeue"])
def test_the_options_stand_in_the_order_in_which_older_programs_give_them(name):
    make = inspect.getattr_static(QueuePuts, name).make
    names = list(inspect.signature(make).parameters)
    assert names[1:10] == [
        "klass", "data", "priority", "tags", "delay", "retries", "jid", "depends", "throttles",
    ]  # fmt: skip
