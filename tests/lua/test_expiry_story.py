"""Expiry: a job that must not start after a moment is not started."""

import pytest

from holdfast.commands.failures import Failures
from holdfast.commands.jobs import Await, Move, Put
from holdfast.commands.leases import WILL_WAIT, WOKEN, Complete, Pop
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import OWN_BACKOFF, Retry
from holdfast.commands.queues import CountQueues, GetStats
from native_door import Door, rows


def put(core, *jids: str, expires: int = 5_000, delay: int = 0, mode: str = "new", **wish) -> None:
    jobs = [JobWithOptions("K", b"{}", jid, ExtraOptions(expires_ms=expires, **wish)) for jid in jids]
    core(PutX("q", jobs, delay_ms=delay, mode=mode))


def test_a_job_starts_until_its_moment_and_not_at_it(core, clock, door: Door):
    put(core, "early", "late")
    clock.advance(seconds=4.999)
    assert [job.jid for job in door.pop("w", "q")] == ["early"]
    clock.advance(seconds=0.001)
    assert door.pop("w", "q") == []
    job = door.job("late")
    assert job
    assert (job.state, job.attempts, job.worker, job.ended_ms) == ("failed", 0, "", clock.now_ms)
    assert job.failure
    assert (job.failure.group, job.failure.worker) == ("expired-q", "")
    assert job.failure.message == "The job was not started in time"
    assert [(line.what, line.name) for line in job.history] == [("put", "q"), ("failed", "expired-q")]


def test_a_job_that_came_too_late_counts_as_a_failure(core, clock, door: Door):
    put(core, "a", "b")
    clock.advance(seconds=5)
    door.pop("w", "q", n=2)
    assert core(Failures())[1] == {"expired-q": 2}
    stats = core(GetStats("q"))
    assert (stats.failed, stats.failures, stats.retries, stats.wait.count) == (2, 2, 0, 0)
    [counts] = core(CountQueues(["q"]))
    assert (counts.waiting, counts.failed) == (0, 2)


@pytest.mark.parametrize("n", [1, 3])
def test_a_pop_looks_further_for_a_job_that_may_start(n: int, core, clock, door: Door):
    put(core, "a", "b", "c")
    door.put("q", "good")
    clock.advance(seconds=5)
    assert [job.jid for job in door.pop("w", "q", n=n)] == ["good"]
    assert core(Failures())[1] == {"expired-q": 3}


def test_who_waits_for_the_job_hears_of_it(core, clock, door: Door):
    put(core, "a")
    assert core(Await(["a"]))[0].status == "open"
    clock.advance(seconds=5)
    door.pop("w", "q")
    [outcome] = core(Await(["a"]))
    assert (outcome.status, outcome.error.group) == ("failed", "expired-q")


def test_a_scheduled_job_is_looked_at_when_it_comes_due(core, clock, door: Door):
    put(core, "late", delay=6_000)
    put(core, "good", expires=60_000, delay=6_000)
    clock.advance(seconds=6)
    assert [job.jid for job in door.pop("w", "q")] == ["good"]
    assert door.state("late") == "failed"
    assert door.pop("w", "q", n=5) == []


def test_what_has_started_once_may_be_tried_again_later(core, clock, door: Door):
    put(core, "a")
    [job] = door.pop("w", "q")
    core(Retry("w", job, OWN_BACKOFF))
    clock.advance(seconds=60)
    [job] = door.pop("w", "q")
    clock.advance(seconds=60)
    assert door.pop("v", "q") == []
    clock.advance(seconds=10)
    [again] = door.pop("v", "q")
    assert (again.jid, again.losses) == ("a", 1)
    core(Complete("v", again))


@pytest.mark.parametrize("again", ["put", "put_x"])
def test_a_job_that_is_put_again_has_the_moment_of_that_put(again: str, core, clock, door: Door):
    put(core, "a")
    clock.advance(seconds=4)
    if again == "put":
        core(Put("q", "K", b"1", "a", mode="move"))
    else:
        put(core, "a", mode="move")
    clock.advance(seconds=4)
    row = door.job("a")
    assert row
    assert row.options == ({} if again == "put" else {"expires": clock.now_ms + 1_000})
    clock.advance(seconds=1)
    assert len(door.pop("w", "q")) == (1 if again == "put" else 0)


def test_a_job_that_was_moved_keeps_its_moment(core, clock, door: Door):
    put(core, "a")
    core(Move("r", "a"))
    clock.advance(seconds=5)
    assert door.pop("w", "r") == []
    assert core(Failures())[1] == {"expired-r": 1}


def test_a_failed_job_that_is_put_again_starts(core, clock, door: Door):
    put(core, "a")
    clock.advance(seconds=5)
    door.pop("w", "q")
    put(core, "a", mode="move")
    assert [job.jid for job in door.pop("w", "q")] == ["a"]
    assert core(Failures())[1] == {}


@pytest.mark.usefixtures("long_leases")
def test_a_long_row_of_late_jobs_is_cleared_by_several_calls_and_no_worker_sleeps_meanwhile(
    core, clock, door: Door
):
    for first in range(0, 1_000, 250):
        put(core, *(f"j{n}" for n in range(first, first + 250)))
    door.put("q", "good")
    clock.advance(seconds=5)
    calls, found = 0, []
    while not found:
        popped = core(Pop("w", ["q"], limit=5, mode=WILL_WAIT))
        found += popped
        calls += 1
        assert found or popped.due == 0.0
        assert core(Failures())[1]["expired-q"] <= 100 * calls + 1
    assert [job.jid for job in found] == ["good"]
    assert calls >= 10
    assert core(Failures())[1] == {"expired-q": 1_000}
    assert core(Pop("w", ["q"], mode=WILL_WAIT)).due == 60.0


def test_a_worker_that_was_woken_comes_back_at_once_while_there_is_more_to_look_at(core, clock, door: Door):
    for first in range(0, 400, 200):
        put(core, *(f"j{n}" for n in range(first, first + 200)))
    clock.advance(seconds=5)
    for _ in range(3):
        popped = core(Pop("w", ["q"], mode=WOKEN))
        assert (popped, popped.due) == ([], 0.0)


def test_a_pop_that_is_sent_again_gives_the_same_jobs_though_others_came_too_late(core, clock, door: Door):
    put(core, "a", "b")
    door.put("q", "good", "better")
    clock.advance(seconds=5)
    first = rows(door("pop", "w", "line", 1, 3, 0, "q", 0))
    again = rows(door("pop", "w", "line", 1, 3, 0, "q", 0))
    assert [job.jid for job in first] == [job.jid for job in again] == ["good", "better"]


def test_a_full_queue_with_a_limit_does_not_count_late_jobs(core, clock, door: Door):
    door("throttle_set", "", 0, "ql:q:q", 2, 0)
    put(core, "a", "b", "c", "d")
    clock.advance(seconds=5)
    door.put("q", "good")
    assert [job.jid for job in door.pop("w", "q", n=2)] == ["good"]
    assert core(Failures())[1] == {"expired-q": 4}


def test_a_job_that_got_a_slot_too_late_fails_and_the_pop_goes_on(core, clock, door: Door):
    door("throttle_set", "", 0, "printer", 1, 0)
    put(core, "first", "late", throttles=["printer"])
    put(core, "next", expires=60_000)
    [first] = core(Pop("w", ["q"]))
    assert [job.jid for job in door.pop("w", "q", n=2)] == ["next"]
    assert door.state("late") == "throttled"
    core(Complete("w", first))
    clock.advance(seconds=6)
    assert door.pop("w", "q") == []
    assert door.state("late") == "failed"
