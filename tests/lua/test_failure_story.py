"""Failed jobs: the groups they are in, what is known of a group, and how they go back to work."""

import pytest

from holdfast.commands.failures import Failed, FailureGroup, FailureGroups, Failures, Unfail
from holdfast.commands.leases import WILL_WAIT, Complete, Pop
from holdfast.commands.outcomes import Fail
from holdfast.commands.queues import CountQueues, GetStats, QueueNames
from native_door import Door

HOUR, DAY = 3600, 86_400


def fail(core, door: Door, *jids: str, queue: str = "q", group: str = "G", **options) -> None:
    """Put jobs and let each fail."""
    door.put(queue, *jids, **options)
    for job in core(Pop("w", [queue], limit=len(jids))):
        core(Fail("w", job, group, "why"))


def group(core, name: str = "G") -> FailureGroup | None:
    cursor, groups = core(FailureGroups())
    assert cursor is None
    return {found.name: found for found in groups}.get(name)


def test_unfailed_jobs_wait_again_the_oldest_failures_first(core, clock, door: Door):
    for jid in ("c", "a", "b"):
        fail(core, door, jid)
        clock.advance(seconds=1)
    assert core(Unfail("q", "G", 2)) == 2
    assert (door.state("c"), door.state("a"), door.state("b")) == ("waiting", "waiting", "failed")
    assert core(Failed("G")) == (1, ["b"])
    assert core(Unfail("q", "G")) == 1
    assert [job.jid for job in core(Pop("w", ["q"], limit=9))] == ["c", "a", "b"]
    assert core(Failures()) == (None, {})


def test_an_unfailed_job_has_its_retries_again_and_keeps_the_rest(core, clock, door: Door):
    door.put("q", "a", priority=7, retries=1)
    for _ in range(2):
        [job] = core(Pop("w", ["q"]))
        door("retry", "w", 0, "G", "why", "a", job.token, b"[2]")
    clock.advance(seconds=5)
    assert core(Unfail("other", "G")) == 1
    job = door.job("a")
    assert (job.queue, job.priority, job.retries, job.remaining, job.losses) == ("other", 7, 1, 1, 0)
    assert (job.data, job.worker, job.token, job.expires_ms) == (b"[2]", "", 0, 0)
    assert job.failure is not None
    assert job.failure.message == "why"
    last = job.history[-1]
    assert (last.what, last.name, last.when_ms) == ("put", "other", clock.now_ms)
    core(Complete("w", core(Pop("w", ["other"]))[0]))
    assert door.job("a").failure is None


def test_unfailing_makes_the_queue_known_and_counts_where_the_job_failed(core, clock, door: Door):
    fail(core, door, "a", "b")
    failed_at = clock.now_ms
    clock.advance(seconds=1.5 * DAY)
    assert core(Unfail("fresh", "G", 1)) == 1
    assert core(QueueNames()) == ["q", "fresh"]
    day = core(GetStats("q", failed_at))
    assert (day.failed, day.failures) == (1, 2)
    assert core(GetStats("fresh")).failed == core(GetStats("fresh", failed_at)).failed == 0
    q, fresh = core(CountQueues())
    assert (q.failed, fresh.failed, fresh.waiting) == (1, 0, 1)


def test_unfailing_nothing_leaves_no_trace(core, door: Door):
    fail(core, door, "a")
    before = door.dump()
    assert door("unfail", "", 0, "fresh", "unknown", 5) == 0
    assert door.dump() == before


def test_a_vanished_job_is_dropped_from_its_group(core, door: Door):
    fail(core, door, "a", "b", "c")
    door.ask("UNLINK", door.key("j:a"), door.key("j:c"))
    assert core(Unfail("q", "G")) == 1
    assert core(Failures()) == (None, {})
    fail(core, door, "d", queue="r")
    door.ask("UNLINK", door.key("j:d"))
    assert core(Unfail("q", "G")) == 0
    assert group(core) is None
    assert "F" not in door.names()


def test_an_idle_worker_is_woken_for_an_unfailed_job(core, door: Door):
    fail(core, door, "a", "b")
    core(Pop("sleeper", ["q"], mode=WILL_WAIT))
    core(Unfail("q", "G"))
    assert door.ask("LLEN", door.key("n:q")) == 1
    assert [job.jid for job in core(Pop("sleeper", ["q"], limit=5))] == ["a", "b"]


def test_an_unfail_that_is_sent_again_moves_no_more(core, door: Door):
    fail(core, door, "a", "b", "c")
    assert door("unfail", "line", 1, "q", "G", 2) == 2
    assert door("unfail", "line", 1, "q", "G", 2) == 2
    assert core(Failures()) == (None, {"G": 1})


@pytest.mark.parametrize("way", ["put", "cancel", "unfail", "move"])
def test_a_group_is_gone_with_its_last_job(way, core, door: Door):
    fail(core, door, "a")
    assert group(core).count == 1
    if way == "put":
        door.put("q", "a", mode="move")
    elif way == "cancel":
        door("cancel", "", 0, "a")
    elif way == "move":
        door("move", "", 0, "q", 0, "a", "", "")
    else:
        core(Unfail("q", "G"))
    assert group(core) is None
    assert {"F", "f:G", "fq:q"} & door.names() == set()


def test_a_group_tells_its_size_its_first_and_its_last_failure(core, clock, door: Door):
    fail(core, door, "a")
    first = clock.now_ms
    clock.advance(seconds=90)
    fail(core, door, "b", queue="other")
    clock.advance(seconds=90)
    fail(core, door, "c", group="H")
    facts = group(core)
    assert (facts.count, facts.first_ms, facts.last_ms, facts.newest) == (2, first, first + 90_000, "b")
    door("cancel", "", 0, "a")
    facts = group(core)
    assert (facts.count, facts.first_ms, facts.last_ms, facts.newest) == (
        1,
        first + 90_000,
        first + 90_000,
        "b",
    )
    assert group(core, "H").newest == "c"


def test_a_trend_counts_failures_by_the_hour_for_two_days(core, clock, door: Door):
    clock.advance(seconds=HOUR - clock.now_ms / 1000 % HOUR)  # an hour begins
    fail(core, door, "a", "b", "c")
    start = clock.now_ms
    facts = group(core)
    assert (facts.trend_from_ms, facts.trend) == (start - 47 * HOUR * 1000, (*[0] * 47, 3))
    clock.advance(seconds=HOUR - 1)
    fail(core, door, "d")
    assert group(core).trend[-2:] == (0, 4)
    clock.advance(seconds=1)
    assert group(core).trend[-2:] == (4, 0)
    fail(core, door, "e")
    core(Unfail("q", "G", 4))  # what became of a job does not change that it failed
    assert group(core).trend[-2:] == (4, 1)
    clock.advance(seconds=46 * HOUR)
    facts = group(core)
    assert (facts.trend_from_ms, facts.trend) == (start, (4, 1, *[0] * 46))
    fail(core, door, "f", queue="r")
    clock.advance(seconds=HOUR)
    assert group(core).trend == (1, *[0] * 45, 1, 0)
    clock.advance(seconds=500 * HOUR)
    assert group(core).trend == (0,) * 48
    fail(core, door, "g", queue="s")
    assert group(core).trend == (*[0] * 47, 1)


def test_many_groups_are_told_page_by_page(core, door: Door):
    jids = [f"j{n}" for n in range(300)]
    door.put("q", *jids)
    for job in core(Pop("w", ["q"], limit=300)):
        core(Fail("w", job, f"G-{job.jid}", "why"))
    found: dict[str, int] = {}
    pages, cursor = 0, "0"
    while cursor is not None:
        cursor, groups = core(FailureGroups(cursor, 50))
        assert len(groups) < 100
        found.update({facts.name: facts.count for facts in groups})
        pages += 1
    assert pages > 3
    assert found == {f"G-{jid}": 1 for jid in jids}
    sizes, cursor = {}, "0"
    while cursor is not None:
        cursor, some = core(Failures(cursor, 50))
        sizes.update(some)
    assert sizes == found


def test_an_exhausted_job_is_counted_in_the_trend_of_its_group(core, clock, door: Door):
    door.put("q", "a", retries=0)
    core(Pop("w", ["q"], ttl=1))
    for seconds in (1, 10):
        clock.advance(seconds=seconds)
        assert core(Pop("v", ["q"])) == []
    assert group(core, "failed-retries-q").trend[-1] == 1
