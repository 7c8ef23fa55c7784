"""Jobs and handles found by a jid, for both clients: `client.job`, `client.jobs.handle`, what a handle can ask and do."""

import datetime

import pytest

import holdfast


def double(number: int) -> list[int]:
    return [2 * number]


@pytest.fixture
def doubled(do):
    return do.client.job(queue="q", name="double")(double)


def read(do, found):
    """A property: awaited where its client is async."""
    return found if isinstance(do.client, holdfast.Client) else do(lambda: found)


def test_a_job_is_found_by_its_jid_or_it_is_an_error(do, doubled):
    handle = do(lambda: doubled.put(4))
    assert do(lambda: do.client.job(handle.jid)).state == "waiting"
    with pytest.raises(holdfast.JobNotFound, match="there is no job 'nobody'"):
        do(lambda: do.client.job("nobody"))
    with pytest.raises(holdfast.UsageError):
        do(lambda: do.client.job(""))


def test_a_handle_made_from_a_jid_waits_for_the_result_as_a_type(do, doubled, works):
    jid = do(lambda: doubled.put(4)).jid
    plain, typed = do.client.jobs.handle(jid), do.client.jobs.handle(jid, result_type=list[float])
    wrong = do.client.jobs.handle(jid, datetime.date)
    assert jid in repr(plain)
    assert "double" not in repr(plain)
    works.all()
    assert do(lambda: plain.result(30)) == [8]
    assert [type(number) for number in do(lambda: typed.result(30))] == [float]
    with pytest.raises(holdfast.CodecError, match="the result of the job is not of the type"):
        do(lambda: wrong.result(30))
    job = do(lambda: do.client.job(jid))
    assert do(lambda: job.result(30)) == [8]
    with pytest.raises(holdfast.UsageError):
        do.client.jobs.handle("a\nb")


def test_a_handle_knows_state_progress_and_job_and_cancels(do, doubled):
    handle = do(lambda: doubled.put(4))
    assert read(do, handle.state) == "waiting"
    popped = do(do.client.queues["q"].pop)
    do(lambda: popped.progress(0.5))
    assert (read(do, handle.state), read(do, handle.progress)) == ("running", 0.5)
    assert read(do, handle.job).jid == handle.jid
    assert do(handle.cancel) is True
    assert do(handle.cancel) is False
    assert read(do, handle.state) == "cancelled"
    with pytest.raises(holdfast.JobNotFound):
        read(do, handle.job)
    assert read(do, do.client.jobs.handle("nobody").state) == "gone"


def test_a_complete_job_that_was_deleted_is_complete_while_its_result_is_kept(do, doubled, works):
    handle = do(lambda: doubled.put(4))
    works.all()
    assert read(do, handle.state) == "complete"
    do(lambda: do.client.config.set("jobs-history-count", 0))
    do(lambda: doubled.put(5))
    works.all()
    assert read(do, do.client.jobs.handle(handle.jid).state) == "complete"


def test_jobs_and_handles_stand_for_their_jids(do, doubled):
    first, second = do(lambda: doubled.put(1)), do(lambda: doubled.put(2))
    queue = do.client.queues["q"]
    job = do(lambda: do.client.job(second.jid))
    jid = do(lambda: queue.put("a.B", depends=[first, job]))
    job = do(lambda: do.client.job(jid))
    assert set(job.dependencies) == {first.jid, second.jid}
    do(lambda: job.undepend(first))
    with pytest.raises(holdfast.DependencyRefused, match="dependents=True"):
        do(second.cancel)
    third = do(lambda: doubled.options(depends=[first]).put(3))
    assert do(lambda: do.client.jobs.cancel(first, dependents=True)) == [True]
    assert read(do, third.state) == "gone"


def test_a_timedelta_stands_wherever_seconds_are_meant(do, doubled, stopped):
    hour = datetime.timedelta(hours=1)
    queue = do.client.queues["q"]
    jid = do(lambda: queue.put("a.B", delay=hour, timeout=hour, expires=2 * hour, result_keep=hour))
    handle = do(lambda: doubled.options(delay=hour, expires=2 * hour).put(1))
    do(lambda: queue.recur("a.B", interval=hour, offset=hour, jid="hourly"))
    assert do(lambda: do.client.job(jid)).facts.options["limit"] == 3_600_000
    assert {read(do, handle.state), do(lambda: do.client.job(jid)).state} == {"scheduled"}
    stopped.advance(seconds=3601)
    assert {job.jid for job in do(lambda: queue.pop(9))} == {jid, handle.jid, "hourly-1"}
    with pytest.raises(holdfast.UsageError, match="delay must be from 0"):
        do(lambda: queue.put("a.B", delay=-hour))
