"""How a lease ends: complete, advance, complete and pop, retry, fail, cancel."""

import pytest

from holdfast.commands.failures import Failed, Failures
from holdfast.commands.jobs import Await, Cancel, JobGet, JobsComplete, Move, Put
from holdfast.commands.leases import Complete, CompleteMany, CompletePop, Done, Lease, Pop
from holdfast.commands.outcomes import Advance, Fail, Retry
from holdfast.errors import JobNotFound, LeaseLost
from native_door import Door

pytestmark = pytest.mark.each


def popped(core, queue="q", worker="w"):
    [job] = core(Pop(worker, [queue]))
    return job


def lines(core, jid):
    return [(line.what, line.name) for line in core(JobGet([jid]))[0].history]


def test_a_completed_job_is_complete_and_listed_newest_first(core, clock, door: Door):
    door.put("q", "a", "b", retries=2)
    for _ in range(2):
        job = popped(core)
        clock.advance(seconds=3)
        assert core(Complete("w", job)) == "complete"
    [a] = core(JobGet(["a"]))
    assert (a.state, a.worker, a.token, a.expires_ms, a.remaining) == ("complete", "", 0, 0, 2)
    assert a.ended_ms == clock.now_ms - 3000
    assert lines(core, "a") == [("put", "q"), ("popped", "q"), ("done", "q")]
    assert core(JobsComplete()) == ["b", "a"]
    assert core(JobsComplete(offset=1, count=5)) == ["a"]


def test_completing_again_is_again_and_a_stranger_is_refused(core, door: Door):
    door.put("q", "a")
    job = popped(core)
    for worker, token in (("v", job.token), ("w", job.token + 1), ("w", 0)):
        with pytest.raises(LeaseLost):
            core(Complete(worker, Lease("a", token)))
    assert core(Complete("w", job)) == core(Complete("w", job)) == "complete"
    with pytest.raises(LeaseLost):
        core(Complete("v", job))
    with pytest.raises(JobNotFound):
        core(Complete("w", Lease("nobody", 1)))


def test_a_completion_repeated_after_the_job_began_a_new_life_is_again(core, door: Door):
    door.put("q", "a")
    job = popped(core)
    core(Complete("w", job))
    core(Move("q", "a"))
    assert core(Complete("w", job)) == "complete"
    assert door.state("a") == "waiting"


def test_one_lost_lease_does_not_spoil_a_batch(core, door: Door):
    door.put("q", *"abc")
    jobs = door.pop("w", "q", n=3)
    done = [Done(job.jid, job.token) for job in jobs]
    done[1] = Done("b", 1)
    lost = core(CompleteMany("w", done))
    assert list(lost) == ["b"]
    assert isinstance(lost["b"], LeaseLost)
    assert [door.state(jid) for jid in "abc"] == ["complete", "running", "complete"]


def test_a_jid_twice_in_a_batch_is_done_only_if_one_token_was_right(core, door: Door):
    door.put("q", "a", "b")
    a, b = door.pop("w", "q", n=2)
    reply = door("complete", "w", "a", 1, "", 0, "", "b", b.token, "", 0, "", "b", b.token, "", 0, "")
    assert reply[0] == 1
    assert reply[2].startswith(b"HF_LEASE_LOST")
    assert reply[3:] == [b"b", b"again"]
    reply = door("complete", "w", "a", 1, "", 0, "", "a", a.token, "", 0, "")
    assert (reply[0], door.state("a")) == (1, "complete")
    assert len(reply) == 3


def test_data_given_at_the_end_replace_the_job_s(core, door: Door):
    door.put("q", "a")
    core(Complete("w", popped(core), data=b'{"n":1}'))
    assert core(JobGet(["a"]))[0].data == b'{"n":1}'


def test_advance_goes_on_in_the_next_queue_in_the_same_life(core, clock, door: Door):
    door.put("one", "a", priority=4, retries=2)
    job = popped(core, "one")
    assert core(Retry("w", job)) == 1
    job = popped(core, "one")
    clock.advance(seconds=7)
    core(Advance("w", "two", job, data=b"2"))
    core(Advance("w", "two", job, data=b"2"))
    [a] = core(JobGet(["a"]))
    assert (a.state, a.queue, a.priority, a.remaining, a.data, a.worker) == ("waiting", "two", 4, 2, b"2", "")
    assert lines(core, "a")[-3:] == [("popped", "one"), ("done", "one"), ("put", "two")]
    with pytest.raises(LeaseLost):
        core(Complete("w", job))
    assert popped(core, "two").attempts == 3


def test_advance_with_a_delay_is_scheduled_there(core, clock, door: Door):
    door.put("one", "a")
    core(Advance("w", "two", popped(core, "one"), delay_ms=4000))
    assert door.state("a") == "scheduled"
    assert core(Pop("w", ["two"])) == []
    clock.advance(seconds=4)
    assert popped(core, "two").jid == "a"


def test_complete_pop_settles_and_takes_in_one_step(core, door: Door):
    door.put("q", "a", "b", "c")
    job = popped(core)
    answer = core(CompletePop("w", ["q"], [Done("a", job.token), Done("x", 1)], limit=1))
    assert [row.jid for row in answer.jobs] == ["b"]
    assert isinstance(answer.lost["x"], JobNotFound)
    none = core(CompletePop("w", ["q"], [Done("b", answer.jobs[0].token)], limit=0))
    assert (list(none.jobs), none.lost) == ([], {})
    assert [door.state(jid) for jid in "abc"] == ["complete", "complete", "waiting"]


def test_a_retry_costs_one_and_the_last_one_fails_the_job(core, clock, door: Door):
    door.put("q", "a", retries=1)
    job = popped(core)
    assert core(Retry("w", job, delay_ms=2000, group="G", message="why")) == 0
    [a] = core(JobGet(["a"]))
    assert (a.state, a.remaining, a.due_ms) == ("scheduled", 0, clock.now_ms + 2000)
    assert a.failure is not None
    assert (a.failure.group, a.failure.message, a.failure.worker) == ("G", "why", "w")
    clock.advance(seconds=2)
    assert core(Retry("w", popped(core))) == -1
    [a] = core(JobGet(["a"]))
    assert (a.state, a.remaining) == ("failed", -1)
    assert a.failure is not None
    assert (a.failure.group, a.failure.message) == (
        "failed-retries-q",
        'Job exhausted retries in queue "q"',
    )
    assert lines(core, "a")[-1] == ("failed-retries", "failed-retries-q")


def test_a_repeated_retry_answers_what_it_did_however_late(core, door: Door):
    door.put("q", "a", retries=5)
    first = popped(core)
    assert core(Retry("w", first)) == 4
    assert core(Retry("w", first)) == 4
    second = popped(core)
    assert core(Retry("w", second)) == 3
    assert core(Retry("w", first)) == 4
    core(Move("q", "a"))
    assert core(Retry("w", first)) == 4
    assert core(JobGet(["a"]))[0].remaining == 5


def test_failed_jobs_are_listed_by_group_until_somebody_acts(core, clock, door: Door):
    door.put("q", *"abc")
    for jid, group in zip("abc", ("G", "G", "H"), strict=True):
        job = popped(core)
        assert core(Fail("w", job, group, "because")) == jid
        assert core(Fail("w", job, group, "because")) == jid
        clock.advance(seconds=1)
    assert core(Failures()) == (None, {"G": 2, "H": 1})
    assert core(Failed("G")) == (2, ["b", "a"])
    assert core(Failed("G", offset=1, count=1)) == (2, ["a"])
    core(Cancel(["c"]))
    core(Put("q", "k", jid="b", mode="move"))
    assert core(Failures()) == (None, {"G": 1})
    failure = core(JobGet(["b"]))[0].failure
    assert failure is not None
    assert (failure.group, failure.message, failure.worker) == ("G", "because", "w")
    core(Complete("w", popped(core)))
    assert core(JobGet(["b"]))[0].failure is None


@pytest.mark.parametrize(
    "state", ["waiting", "scheduled", "running", "failed", "stalled", "throttled", "complete"]
)
@pytest.mark.parametrize("act", ["cancel", "move"])
def test_a_job_can_be_cancelled_and_moved_from_every_state(state: str, act: str, core, door: Door):
    bring_into(state, core, door)
    assert door.state("j") == state
    if act == "cancel":
        assert core(Cancel(["j", "nobody"])) == [state != "complete", False]
        assert door.state("j") == ("complete" if state == "complete" else "absent")
    else:
        core(Move("other", "j"))
        assert door.state("j") == "waiting"
        assert core(Pop("w", ["q"], limit=9)) == []
        assert popped(core, "other").jid == "j"
    counts = [row[1:8] for row in door.look("counts", "q")]
    assert sum(counts[0]) == (1 if state == "throttled" else 0)
    assert core(Failures()) == (None, {})
    assert door.look("jobs_complete", 0, 9) == ([b"j"] if state == "complete" and act == "cancel" else [])


def bring_into(state: str, core, door: Door) -> None:
    if state == "throttled":
        door("throttle_set", "", 0, "ql:q:q", 1, 0)
        door.put("q", "holder")
        door.pop("w", "q")
    door.put("q", "j", delay=5000 if state == "scheduled" else 0)
    if state in ("running", "failed", "stalled", "complete"):
        job = popped(core)
        if state == "failed":
            core(Fail("w", job, "G", "m"))
        elif state == "stalled":
            door("timeout", "", 0, "j")
        elif state == "complete":
            core(Complete("w", job))


def test_a_result_outlives_the_job_and_its_end_is_told(core, door: Door):
    door.put("q", "a", "b", "c")
    a, b = door.pop("w", "q", n=2)
    assert [outcome.status for outcome in core(Await(["a", "b", "c", "x"]))] == [
        "open",
        "open",
        "open",
        "gone",
    ]
    core(Complete("w", a, keep_ms=60_000, result=b"42"))
    core(Fail("w", b, "G", "why"))
    core(Cancel(["c"]))
    done, failed, gone = core(Await(["a", "b", "c"]))
    assert (done.status, done.result) == ("done", b"42")
    assert failed.status == "failed"
    assert failed.error is not None
    assert (failed.error.group, failed.error.message) == ("G", "why")
    assert gone.status == "cancelled"
    assert core(JobGet(["a"]))[0].result == b"42"
    door.ask("UNLINK", door.key("j:a"))
    assert core(Await(["a"]))[0].result == b"42"
    assert 0 < door.ask("PTTL", door.key("a:a")) <= 60_000
