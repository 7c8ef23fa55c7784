"""Cancelling a job that runs, or whose result somebody awaits: the waiter learns who did it and when."""

import json
import pickle
import threading
import time

import pytest

import holdfast
from command_line import holdfast as holdfast_command
from holdfast import JobCancelled, JobNotFound


def add(a: int, b: int) -> int:
    return a + b


@pytest.fixture
def job(do):
    return do.client.job(queue="q")(add)


def put(do, job):
    return do(lambda: job.put(1, 2))


def test_who_waits_for_a_running_job_learns_that_it_was_cancelled(do, job, client):
    handle = put(do, job)
    client.queues["q"].pop()
    assert do(lambda: handle.wait(0)) is False
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            do(lambda: handle.result(30))
        except BaseException as error:
            caught.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    client.worker_name = "desk"
    assert client.jobs.cancel(handle.jid) == [True]
    waiter.join(40)
    [error] = caught
    assert isinstance(error, JobCancelled)
    assert (error.jid, error.by) == (handle.jid, "desk")
    assert error.at == pytest.approx(time.time(), abs=60)
    assert str(error).startswith(f"job {handle.jid} was cancelled at 20")
    assert str(error).endswith(" UTC by desk")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(JobCancelled):
        do(lambda: handle.result(0))


def test_who_waits_for_a_job_that_nobody_took_yet_learns_it_too(do, job):
    handle = put(do, job)
    assert do(lambda: handle.wait(0)) is False
    do(lambda: do.client.jobs.cancel(handle.jid))
    with pytest.raises(JobCancelled):
        do(lambda: handle.result(30))


def test_who_asks_later_learns_it_of_a_job_that_ran(do, job, client):
    handle = put(do, job)
    client.queues["q"].pop()
    do(lambda: do.client.jobs.cancel(handle.jid))
    with pytest.raises(JobCancelled, match=f"by {do.client.worker_name}$"):
        do(lambda: do.client.result_of(handle.jid, 0))


def test_several_are_waited_for_and_one_of_them_was_cancelled(do, job, works):
    cancelled, other = put(do, job), put(do, job)
    assert do(lambda: cancelled.wait(0)) is False
    do(lambda: do.client.jobs.cancel(cancelled.jid))
    works.all()

    found = do(lambda: holdfast.gather(cancelled, other, timeout=30, return_exceptions=True))
    assert isinstance(found[0], JobCancelled)
    assert found[1] == 3
    with pytest.raises(JobCancelled):
        do(lambda: holdfast.gather(cancelled, other, timeout=30))


def test_as_completed_gives_the_handle_of_a_cancelled_job(client):
    job = client.job(queue="q")(add)
    handle = job.put(1, 2)
    assert handle.wait(0) is False
    client.jobs.cancel(handle.jid)
    [ended] = holdfast.as_completed([handle], timeout=30)
    with pytest.raises(JobCancelled):
        ended.result()


def test_a_job_that_never_ran_and_nobody_awaits_leaves_nothing(do, job):
    handle = put(do, job)
    do(lambda: do.client.jobs.cancel(handle.jid))
    with pytest.raises(JobNotFound):
        do(lambda: handle.result(0))


def test_a_job_put_again_under_its_name_has_its_own_end(do, client):
    client.queues["q"].put("k", {}, jid="j")
    client.queues["q"].pop()
    client.jobs.cancel("j")
    client.queues["q"].put("k", {}, jid="j")
    with pytest.raises(TimeoutError):
        do(lambda: do.client.result_of("j", 0))
    client.queues["q"].pop().complete()
    assert do(lambda: do.client.result_of("j", 30)) is None


def test_why_says_when_and_by_whom_a_job_was_cancelled(client, url, namespace):
    client.queues["q"].put("k", {}, jid="j")
    client.worker_name = "bee"
    client.queues["q"].pop()
    client.worker_name = "desk"
    client.jobs.cancel("j")
    place = ("--url", url, "--namespace", namespace)
    why = holdfast_command("jobs", "why", "j", *place)
    assert "The job was cancelled at 20" in why.stdout
    assert "UTC by desk; it was running in worker bee, in queue q, tried once." in why.stdout
    found = json.loads(holdfast_command("jobs", "why", "j", "--json", *place).stdout)
    assert found["checks"][0]["facts"]["by"] == "desk"
