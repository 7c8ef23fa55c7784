"""The run-time limit: a lease ends five seconds after the start and the limit at the latest.

In these seconds its worker says that the run took too long, so that it is a failure of the job and no loss.
"""

import pytest

from holdfast.commands.leases import Complete, Heartbeat, HeartbeatMany, Lease, Pop
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import Fail, Retry
from holdfast.errors import LeaseLost
from native_door import Door, rows


def put(core, *jids: str, limit: int = 90_000) -> None:
    core(PutX("q", [JobWithOptions("K", b"{}", jid, ExtraOptions(limit_ms=limit)) for jid in jids]))


@pytest.mark.usefixtures("long_leases")
def test_a_lease_ends_at_the_limit_if_that_is_sooner(core, clock, door: Door):
    put(core, "short", limit=5_000)
    put(core, "long")
    short, long = core(Pop("w", ["q"], limit=2))
    assert (short.expires_ms, short.lease_ms) == (clock.now_ms + 10_000, 10_000)
    assert (long.expires_ms, long.lease_ms) == (clock.now_ms + 60_000, 60_000)
    assert core(Pop("w", ["q"])).due == 10.0


def test_a_single_pop_knows_the_limit_too(core, clock, door: Door):
    put(core, "short", limit=5_000)
    [job] = door.pop("w", "q")
    assert job.lease_ms == 10_000
    assert core(Pop("w", ["q"])).due == 10.0


@pytest.mark.usefixtures("long_leases")
def test_heartbeats_push_a_lease_up_to_the_limit_and_not_beyond(core, clock, door: Door):
    put(core, "a")
    [job] = door.pop("w", "q")
    began = clock.now_ms
    for second, end in ((20, 80), (50, 95), (80, 95)):
        clock.advance(seconds=second - (clock.now_ms - began) / 1000)
        assert core(Heartbeat("w", job)) == began + end * 1000
    assert core(Heartbeat("w", job, ttl=3_600)) == began + 95_000
    clock.advance(seconds=15)
    with pytest.raises(LeaseLost):
        core(Heartbeat("w", job))


@pytest.mark.usefixtures("long_leases")
def test_a_heartbeat_for_several_tells_who_is_over(core, clock, door: Door):
    put(core, "short", limit=50_000)
    door.put("q", "plain")
    short, plain = core(Pop("w", ["q"], limit=2))
    clock.advance(seconds=55)
    leases = [Lease("short", short.token, "w"), Lease("plain", plain.token, "w")]
    assert core(HeartbeatMany(leases)) == [0, clock.now_ms + 60_000]
    assert core(HeartbeatMany(leases[:1])) == [0]


@pytest.mark.parametrize("end", ["complete", "fail", "retry"])
def test_after_the_limit_the_loss_rules_run_and_the_grace_is_kept(end: str, core, clock, door: Door):
    put(core, "a", limit=5_000)
    [job] = door.pop("w", "q")
    clock.advance(seconds=10)
    assert door.pop("v", "q") == []
    assert door.job("a").history[-1].what == "timed-out"
    with pytest.raises(LeaseLost):
        core(Heartbeat("w", job))
    clock.advance(seconds=9.9)
    core({"complete": Complete("w", job), "fail": Fail("w", job, "G"), "retry": Retry("w", job)}[end])
    assert door.state("a") == {"complete": "complete", "fail": "failed", "retry": "waiting"}[end]


def test_a_job_over_its_limit_is_handed_out_again_with_the_limit_anew(core, clock, door: Door):
    put(core, "a", limit=5_000)
    door.pop("w", "q")
    clock.advance(seconds=10)
    assert door.pop("v", "q") == []
    clock.advance(seconds=10)
    [again] = door.pop("v", "q")
    assert (again.losses, again.remaining, again.expires_ms) == (1, 4, clock.now_ms + 10_000)


def test_a_repeated_pop_tells_the_same_end(core, clock, door: Door):
    put(core, "a", limit=5_000)
    first = rows(door("pop", "w", "line", 1, 1, 0, "q", 0))
    assert rows(door("pop", "w", "line", 1, 1, 0, "q", 0)) == first
    assert first[0].lease_ms == 10_000


def test_the_worker_is_told_what_the_job_brings(core, clock, door: Door):
    wish = ExtraOptions(
        tags=["red", "blau 💙"],
        backoff="fixed:1000:2000:0",
        expires_ms=9_000,
        limit_ms=7_000,
        keep_ms=0,
    )
    core(PutX("q", [JobWithOptions("K", b"{}", "a", wish)]))
    [job] = door.pop("w", "q")
    assert job.tags == ("red", "blau 💙")
    assert job.options == {
        "backoff": "fixed:1000:2000:0", "expires": clock.now_ms + 9_000, "limit": 7_000, "keep": 0,
    }  # fmt: skip
    assert job.failure is None


def test_the_worker_is_told_the_last_failure_even_if_it_is_no_text(core, clock, door: Door):
    door.put("q", "a")
    [job] = door.pop("w", "q")
    door("retry", "w", 0, "q-Oops", b"no \xff text", "a", job.token, "")
    [job] = door.pop("w", "q")
    assert job.failure
    assert (job.failure.group, job.failure.message, job.failure.worker) == ("q-Oops", "no \ufffd text", "w")
    assert job.failure.when_ms == clock.now_ms


def test_the_row_of_a_plain_job_brings_nothing(door: Door):
    door.put("q", "a")
    assert door("pop", "w", "", 0, 1, 0, "q", 0)[4] == b""
