"""Leases: kept by heartbeats, lost after a grace period, given back, taken away."""

import json

import pytest

from holdfast.client.sync import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.failures import Failures
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Complete, Heartbeat, HeartbeatMany, Lease, Pop
from holdfast.commands.outcomes import Expire, Fail, Retry, Timeout
from holdfast.commands.queues import CountQueues, GetStats
from holdfast.errors import LeaseLost, WrongState
from native_door import Door

pytestmark = pytest.mark.each


def popped(core, worker="w", queue="q"):
    [job] = core(Pop(worker, [queue]))
    return job


def facts(core, jid="j"):
    return core(JobGet([jid]))[0]


def whats(core, jid="j"):
    return [line.what for line in facts(core, jid).history]


def test_a_lease_has_the_queue_s_length_or_the_one_asked_for(core, clock, door: Door):
    door.put("q", "a", "b", "c")
    door.put("other", "d")
    assert popped(core).expires_ms == clock.now_ms + 30_000
    core(ConfigSet("heartbeat", "20"))
    core(ConfigSet("q-heartbeat", "2.5"))
    second = popped(core)
    assert (second.expires_ms, second.lease_ms) == (clock.now_ms + 2_500, 2_500)
    assert core(Pop("w", ["q"], ttl=7))[0].lease_ms == 7_000
    assert popped(core, queue="other").lease_ms == 20_000
    assert core(Heartbeat("w", second)) == clock.now_ms + 2_500
    assert core(Heartbeat("w", second, ttl=9)) == clock.now_ms + 9_000


@pytest.mark.usefixtures("long_leases")
def test_heartbeats_keep_a_lease_and_may_bring_new_data(core, clock, door: Door):
    door.put("q", "j")
    job = popped(core)
    for _ in range(5):
        clock.advance(seconds=50)
        assert core(Heartbeat("w", job, data=b'{"at":1}')) == clock.now_ms + 60_000
        assert core(Pop("v", ["q"])) == []
    assert (facts(core).data, facts(core).losses) == (b'{"at":1}', 0)


@pytest.mark.usefixtures("long_leases")
def test_one_call_renews_many_leases_and_names_the_lost_and_the_gone(core, clock, door: Door):
    door.put("q", "a", "b")
    a, b = core(Pop("w", ["q"], limit=2))
    leases = [
        Lease("a", a.token, "w"), Lease("b", b.token + 1, "w"), Lease("b", b.token, "v"), Lease("x", 1, "w"),
    ]  # fmt: skip
    assert core(HeartbeatMany(leases)) == [clock.now_ms + 60_000, 0, 0, -1]


def test_a_lost_lease_gets_its_grace_and_then_goes_to_the_next_worker(core, clock, door: Door):
    door.put("q", "j", retries=2)
    lost = popped(core)
    clock.advance(seconds=30)
    assert core(Pop("v", ["q"])) == []
    assert whats(core)[-1] == "timed-out"
    assert (facts(core).remaining, facts(core).worker) == (2, "w")
    clock.advance(seconds=4.999)
    assert core(Pop("v", ["q"])) == []
    clock.advance(seconds=0.001)
    won = popped(core, "v")
    assert won.token > lost.token
    assert (won.remaining, won.losses, won.attempts) == (1, 1, 2)
    with pytest.raises(LeaseLost):
        core(Complete("w", lost))
    core(Complete("v", won))


def test_a_worker_cannot_finish_a_job_it_lost_and_won_again(core, clock, door: Door):
    door.put("q", "j")
    lost = popped(core)
    clock.advance(seconds=61)
    assert core(Pop("v", ["q"])) == []
    clock.advance(seconds=11)
    won = popped(core)
    with pytest.raises(LeaseLost):
        core(Complete("w", lost))
    core(Complete("w", won))


@pytest.mark.parametrize("end", ["complete", "fail", "retry", "heartbeat"])
def test_within_the_grace_period_the_holder_may_still_end_or_keep_its_lease(
    end: str, core, clock, door: Door
):
    door.put("q", "j")
    job = popped(core)
    clock.advance(seconds=60)
    assert core(Pop("v", ["q"])) == []
    clock.advance(seconds=9)
    calls = {"complete": Complete("w", job), "fail": Fail("w", job, "G"), "retry": Retry("w", job)}
    core(calls.get(end, Heartbeat("w", job)))
    expected = {"complete": "complete", "fail": "failed", "retry": "waiting", "heartbeat": "running"}
    assert (facts(core).state, facts(core).losses) == (expected[end], 0)
    if end == "heartbeat":
        clock.advance(seconds=60)
        assert core(Pop("v", ["q"])) == []  # a new loss has a grace period of its own
        assert whats(core).count("timed-out") == 2


def test_without_grace_a_lost_job_is_handed_out_by_the_pop_that_sees_it(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    door.put("q", "j", retries=1)
    popped(core)
    clock.advance(seconds=60)
    assert popped(core, "v").remaining == 0
    assert whats(core) == ["put", "popped", "timed-out", "lost", "popped"]


def test_used_up_retries_fail_a_lost_job_in_its_own_group(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    door.put("q", "j", retries=1)
    first = popped(core)
    for _ in range(2):
        clock.advance(seconds=60)
        last = core(Pop("v", ["q"]))
    assert last == []
    job = facts(core)
    assert (job.state, job.remaining, job.losses, job.worker) == ("failed", -1, 2, "")
    assert job.failure is not None
    assert (job.failure.group, job.failure.worker) == ("failed-retries-q", "")
    assert job.failure.message == 'Job exhausted retries in queue "q"'
    assert core(Failures()) == (None, {"failed-retries-q": 1})
    stats = core(GetStats("q"))
    assert (stats.retries, stats.failed, stats.failures) == (2, 1, 1)
    for token in (first.token, first.token + 60_000):
        with pytest.raises(LeaseLost):
            core(Fail("v", Lease("j", token), "G"))


def test_lost_jobs_go_before_waiting_ones_whatever_the_priority(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    door.put("q", "lost", priority=-5)
    popped(core)
    door.put("q", "urgent", priority=4000)
    clock.advance(seconds=60)
    assert [job.jid for job in core(Pop("v", ["q"], limit=2))] == ["lost", "urgent"]


def test_a_dead_child_s_leases_come_back_at_once_one_retry_poorer(core, clock, door: Door):
    door.put("q", "j", "k")
    job, other = core(Pop("w", ["q"], limit=2))
    assert core(Expire([Lease("j", job.token, "w"), Lease("k", other.token, "v"), Lease("x", 1, "w")])) == 1
    again = popped(core, "v")
    assert (again.jid, again.remaining, again.losses) == ("j", 4, 1)
    with pytest.raises(LeaseLost):
        core(Complete("w", job))
    assert core(Expire([Lease("j", job.token, "w")])) == 0


def test_a_timeout_takes_the_lease_away_without_costing_a_retry(core, door: Door):
    door.put("q", "j")
    job = popped(core)
    assert core(Timeout(["j"])) == 1
    assert (facts(core).state, facts(core).remaining, whats(core)[-1]) == ("stalled", 5, "timed-out")
    [counts] = core(CountQueues(["q"]))
    assert (counts.waiting, counts.running) == (1, 0)
    with pytest.raises(LeaseLost):
        core(Complete("w", job))
    assert popped(core).losses == 0


def test_a_timeout_of_several_is_all_or_nothing(core, door: Door):
    door.put("q", "a", "b")
    door.pop("w", "q")
    before = door.dump()
    with pytest.raises(WrongState):
        core(Timeout(["a", "b"]))
    assert door.dump() == before


def test_tokens_of_a_job_only_grow_also_within_one_millisecond(core, door: Door):
    door.put("q", "j")
    tokens = []
    for _ in range(5):
        job = popped(core)
        tokens.append(job.token)
        core(Retry("w", job))
    assert tokens == sorted(set(tokens))


def test_the_holder_is_told_of_a_lost_lease_and_of_a_cancelled_job(
    core, clock, door: Door, engine_store, namespace
):
    with Client(engine_store.url, namespace=namespace) as client:
        listener = client.link.listener()
        listener.subscribe(client.shard.worker_channel("w"))
        door.put("q", "a", "b", "c", "d")
        core(Pop("w", ["q"], limit=4))
        core(Timeout(["a"]))
        door("cancel", "", 0, "b")
        door("move", "", 0, "q", 0, "c", "", "")
        clock.advance(seconds=60)
        core(Pop("v", ["other", "q"], limit=1))
        news = []
        while len(news) < 4 and (heard := listener.receive(5.0)):
            news.append(json.loads(heard[1]))
        listener.close()
    assert [(item["jid"], item["event"], item["worker"]) for item in news] == [
        ("a", "lock_lost", "w"), ("b", "canceled", "w"), ("c", "lock_lost", "w"), ("d", "lock_lost", "w"),
    ]  # fmt: skip


@pytest.mark.usefixtures("long_leases")
def test_the_due_time_of_a_pop_is_the_next_timer_of_its_queues(core, clock, door: Door):
    assert core(Pop("w", ["q"])).due is None
    door.put("q", "a")
    assert core(Pop("w", ["q"])).due == 60.0
    door.put("q", "b", delay=3_000)
    assert core(Pop("w", ["q", "empty"])).due == 3.0
    clock.advance(seconds=1)
    assert core(Pop("w", ["empty", "q"])).due == 2.0
    assert core(Pop("w", ["empty"])).due is None
    door("pause", "", 0, 1, "", "", 0, "q")
    assert core(Pop("w", ["q"])).due is None
