"""Resume: a worker goes on under another name with what it held, in the same attempts."""

import pytest

from holdfast.commands.admin import ConfigSet
from holdfast.commands.jobs import Cancel, JobGet
from holdfast.commands.leases import Complete, Heartbeat, HeartbeatMany, Lease, Pop, Resume
from holdfast.commands.workers import WorkerJobs
from holdfast.errors import LeaseLost
from native_door import Door


def held(jobs, worker="old-0"):
    return [Lease(job.jid, job.token, worker) for job in jobs]


@pytest.mark.usefixtures("long_leases")
def test_a_lease_goes_over_with_its_attempt_and_is_whole_again(core, clock, door: Door):
    door.put("q", "a", "b")
    jobs = core(Pop("old-0", ["q"], limit=2))
    clock.advance(seconds=40)
    taken = core(Resume("new-0", held(jobs)))
    assert [job.jid for job in taken] == ["a", "b"]
    for before, now in zip(jobs, taken, strict=True):
        assert (now.token, now.attempts, now.data) == (before.token, 1, before.data)
        assert (now.worker, now.lease_ms, now.expires_ms) == ("new-0", 60_000, clock.now_ms + 60_000)
    with pytest.raises(LeaseLost):
        core(Heartbeat("old-0", jobs[0]))
    assert [(job.jid, job.worker) for job in core(WorkerJobs("new-0")).jobs] == [
        ("a", "new-0"),
        ("b", "new-0"),
    ]
    assert core(WorkerJobs("old-0")).jobs == ()
    assert core(Complete("new-0", taken[0])) == "complete"
    assert [job.what for job in core(JobGet(["a"]))[0].history] == ["put", "popped", "done"]


def test_a_call_that_is_sent_again_answers_the_same(core, door: Door):
    door.put("q", "a")
    jobs = core(Pop("old-0", ["q"]))
    assert core(Resume("new-0", held(jobs))) == core(Resume("new-0", held(jobs)))


@pytest.mark.usefixtures("long_leases")
def test_what_was_lost_is_not_taken_over(core, clock, door: Door):
    door.put("q", "lost", "gone", "noticed", "other")
    _, _, noticed, other = jobs = core(Pop("old-0", ["q"], limit=4))
    core(Cancel(["gone"]))
    core(Complete("old-0", other))
    clock.advance(seconds=61)
    core(Pop("w", ["q"]))  # notices, and lets the grace period begin
    assert [job.jid for job in core(Resume("new-0", held([noticed])))] == ["noticed"]
    clock.advance(seconds=11)
    [again] = core(Pop("w", ["q"]))
    assert again.jid == "lost"
    assert core(Resume("new-0", held(jobs))) == core(Resume("new-0", held([noticed])))
    assert core(JobGet(["lost"]))[0].worker == "w"
    assert core(Resume("new-0", [Lease("noticed", noticed.token + 1, "new-0")])) == []
    assert core(HeartbeatMany([Lease("noticed", noticed.token, "new-0")])) == [clock.now_ms + 60_000]


def test_the_length_is_the_queue_s_or_the_one_asked_for(core, clock, door: Door):
    door.put("q", "a")
    jobs = core(Pop("old-0", ["q"]))
    core(ConfigSet("q-heartbeat", "20"))
    assert core(Resume("new-0", held(jobs)))[0].lease_ms == 20_000
    assert core(Resume("new-0", held(jobs), ttl=7))[0].expires_ms == clock.now_ms + 7_000
