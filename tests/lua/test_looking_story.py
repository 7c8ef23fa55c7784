"""Looking: counts, peek, jobs, failures, statistics. None of it may write."""

from math import isclose, sqrt

import pytest

from holdfast.commands.admin import ConfigSet
from holdfast.commands.failures import Failed, Failures
from holdfast.commands.jobs import JobGet, JobsComplete
from holdfast.commands.leases import Complete, CompleteMany, Done, Pop
from holdfast.commands.outcomes import Fail
from holdfast.commands.queues import CountQueues, GetStats, Pause, Peek, QueueNames
from native_door import Door

DAY = 86_400


@pytest.fixture
def varied(core, clock, door: Door) -> Door:
    """A root with a job in every state, one lease past its end and one scheduled job that is due."""
    door("throttle_set", "", 0, "ql:q:full", 1, 0)
    door.put("full", "holder")
    door.pop("w", "full")
    door.put("full", "aside")
    door.put("q", "lost", "done", "bad")
    [_, done, bad] = door.pop("w", "q", n=3)
    core(Complete("w", done))
    core(Fail("w", bad, "G", "m"))
    door.put("q", "due", delay=30_000)
    clock.advance(seconds=60)
    door.put("q", "a", "b", "running")
    door("priority", 9, "running")
    assert [job.jid for job in door.pop("w", "never", n=1)] == []
    door.put("q", "later", delay=5_000)
    return door


LOOKS = [
    ("counts",), ("counts", "q", "unknown"), ("queues",), ("peek", "q", 0, 50), ("job_get", "lost", "due", "done", "x"),
    ("jobs_complete", 0, 9), ("failures", "0", 9), ("failure_groups", "0", 9), ("explain", "due"), ("explain", "lost"), ("explain", "bad"), ("failed", "G", 0, 9), ("stats", "q", 0), ("config_get",),
    ("config_get", "heartbeat"), ("throttle_get", "ql:q:full"), ("describe",),
    ("list", "waiting", "q", "", "", 2), ("list", "completed", "", "0", "done", 5), ("list", "failed", "q", "", "", 5),
]  # fmt: skip


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look)))
def test_a_look_runs_as_a_read_and_leaves_no_trace(look, varied: Door):
    before = varied.dump()
    assert varied.look(*look) == varied(*look)
    assert varied.dump() == before


def test_counts_tell_what_is_due_and_what_is_lost_without_moving_it(core, varied: Door):
    q, full = core(CountQueues(["q", "full"]))
    assert (q.waiting, q.running, q.stalled, q.scheduled, q.failed) == (4, 0, 1, 1, 1)
    assert (full.running, full.stalled, full.throttled) == (0, 1, 1)
    assert [count.name for count in core(CountQueues())] == core(QueueNames()) == ["full", "q"]
    assert core(CountQueues(["unknown"]))[0].length == 0
    assert q.length == 6


def test_counts_tell_how_long_the_next_waits_and_when_the_next_is_due(core, clock, door: Door):
    door.put("q", "due", delay=1000)
    door.put("q", "later", delay=9000)
    start = clock.now_ms
    [q] = core(CountQueues(["q"]))
    assert (q.waiting, q.oldest_ms, q.next_ms) == (0, 0, start + 1000)
    clock.advance(seconds=5)
    [q] = core(CountQueues(["q"]))
    assert (q.waiting, q.oldest_ms, q.next_ms) == (1, start + 1000, start + 9000)
    door.put("q", "low")
    clock.advance(seconds=1)
    door.put("q", "high", priority=5)
    [q] = core(CountQueues(["q"]))
    assert q.oldest_ms == clock.now_ms
    door.pop("w", "q", n=3)
    [q] = core(CountQueues(["q"]))
    assert (q.running, q.oldest_ms, q.next_ms) == (3, 0, start + 9000)


def test_counts_tell_the_limit_the_heartbeat_and_the_pause_of_a_queue(core, clock, door: Door):
    door("throttle_set", "", 0, "ql:q:q", 3, 0)
    core(ConfigSet("heartbeat", "30"))
    core(ConfigSet("r-heartbeat", "5"))
    core(Pause(("q",), True, "ann", "deploy"))
    door.ask("HSET", door.key("o:q"), "max-waiting", 7)
    q, r = core(CountQueues(["q", "r"]))
    assert (q.limit, q.heartbeat_ms, q.max_waiting) == (3, 30_000, 7)
    assert (q.paused, q.paused_by, q.paused_why, q.paused_since_ms) == (True, "ann", "deploy", clock.now_ms)
    assert (r.limit, r.heartbeat_ms, r.max_waiting, r.paused, r.paused_by) == (0, 5000, 0, False, "")


def test_all_counts_are_those_of_the_first_256_queues_and_the_rest_is_asked_by_name(core, clock, door: Door):
    for n in range(520):
        door.put(f"q{n:03}", f"j{n}")
    assert len(core(CountQueues())) == 256
    counts = clock._client.queues.counts
    assert [row["name"] for row in counts] == [f"q{n:03}" for n in range(520)] == core(QueueNames())
    assert {row["waiting"] for row in counts} == {1}


def test_peek_shows_what_pops_would_see_page_by_page(core, varied: Door):
    everything = [job.jid for job in core(Peek("q", count=50))]
    assert everything == ["lost", "running", "a", "b", "due"]
    assert [job.jid for job in core(Peek("q", offset=1, count=2))] == ["running", "a"]
    assert [job.jid for job in core(Peek("q", offset=4, count=9))] == ["due"]
    assert core(Peek("q", offset=9, count=9)) == []
    assert core(Peek("q", count=0)) == []


def test_a_due_job_shows_as_waiting_before_a_pop_moves_it(core, varied: Door):
    due, later, missing = core(JobGet(["due", "later", "missing"]))
    assert (due.state, later.state, missing) == ("waiting", "scheduled", None)
    assert core(JobsComplete(0, 5)) == ["done"]
    assert core(Failures()) == (None, {"G": 1})
    assert core(Failed("G")) == (1, ["bad"])
    assert core(Failed("G", count=0)) == (1, [])
    assert core(Failed("unknown")) == (0, [])


def test_twenty_waits_give_the_protocol_s_own_figures(core, clock, door: Door):
    door.put("q", *[f"j{n}" for n in range(20)])
    for n in range(20):
        core(Pop("w", ["q"]))
        clock.advance(seconds=1 if n < 19 else 0)
    wait = core(GetStats("q")).wait
    assert (wait.count, wait.mean) == (20, 9.5)
    assert isclose(wait.std, 5.916079783099616)
    assert wait.histogram == (1,) * 20 + (0,) * 128


def test_every_edge_of_the_148_buckets(core, clock, door: Door):
    seconds = [0, 59.999, 60, 3599, 3600, DAY - 1, DAY, 7 * DAY - 1, 7 * DAY]
    start = clock.now_ms // (DAY * 1000) * DAY * 1000 + DAY * 1000
    clock.advance(seconds=(start - clock.now_ms) / 1000)
    for n in range(len(seconds)):
        door.put("q", f"j{n}", priority=n)
    leases = {}
    for n in reversed(range(len(seconds))):
        leases[n] = core(Pop("w", ["q"], ttl=DAY))[0]
    now = 0.0
    seen: dict[int, int] = {}
    for n, run in enumerate(seconds):
        clock.advance(seconds=run - now)
        now = run
        core(Complete("w", leases[n]))
    for day in range(9):
        histogram = core(GetStats("q", start + day * DAY * 1000)).run.histogram
        assert len(histogram) == 148
        for bucket, count in enumerate(histogram):
            seen[bucket] = seen.get(bucket, 0) + count
    assert {bucket for bucket, count in seen.items() if count} == {0, 59, 60, 118, 119, 141, 142, 147}
    assert sum(seen.values()) == len(seconds) - 1  # seven days are in no bucket


def test_a_folded_log_gives_the_same_figures_as_one_that_is_not(core, clock, door: Door):
    samples: list[float] = []
    for batch in range(10):
        door.put("q", *[f"{batch}-{n}" for n in range(130)])
        jobs = core(Pop("w", ["q"], limit=130))
        clock.advance(seconds=batch * 1.7)
        core(CompleteMany("w", [Done(job.jid, job.token) for job in jobs]))
        samples += [batch * 1.7] * 130
        run = core(GetStats("q")).run
        mean = sum(samples) / len(samples)
        spread = sqrt(sum((x - mean) ** 2 for x in samples) / (len(samples) - 1))
        assert run.count == len(samples)
        assert isclose(run.mean, mean, rel_tol=1e-9, abs_tol=1e-12)
        assert isclose(run.std, spread, rel_tol=1e-9, abs_tol=1e-9)
        assert sum(run.histogram) == sum(number for _, number in run.fine) == len(samples)
    logs = [name for name in door.names() if name.startswith("ar:q:")]
    assert all(door.ask("STRLEN", door.key(name)) < 4096 for name in logs)
    assert any(name.startswith("z:q:") for name in door.names())


def test_a_new_day_begins_at_midnight_by_universal_time(core, clock, door: Door):
    midnight = (clock.now_ms // (DAY * 1000) + 1) * DAY * 1000
    clock.advance(seconds=(midnight - clock.now_ms) / 1000 - 1)
    door.put("q", "a", "b")
    core(Pop("w", ["q"]))
    clock.advance(seconds=1)
    core(Pop("w", ["q"]))
    assert core(GetStats("q", midnight - 1)).wait.count == 1
    assert (core(GetStats("q", midnight)).wait.count, core(GetStats("q")).wait.mean) == (1, 1.0)


def test_failed_goes_down_on_the_day_of_the_failure_and_failures_never(core, clock, door: Door):
    day_of_failure = clock.now_ms
    door.put("q", "a")
    core(Fail("w", core(Pop("w", ["q"]))[0], "G", "m"))
    clock.advance(seconds=1.5 * DAY)
    door.put("other", "a", mode="move")
    for when in (day_of_failure, clock.now_ms):
        assert core(GetStats("q", when)).failed == core(GetStats("other", when)).failed == 0
    assert core(GetStats("q", day_of_failure)).failures == 1


def test_waits_count_from_the_moment_at_which_a_job_became_ready(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    door.put("q", "a")
    clock.advance(seconds=4)
    [job] = core(Pop("w", ["q"]))
    clock.advance(seconds=2)
    door("retry", "w", 0, "", "", "a", job.token, "")
    clock.advance(seconds=3)
    core(Pop("w", ["q"]))
    wait = core(GetStats("q")).wait
    assert (wait.count, wait.mean) == (2, 3.5)
