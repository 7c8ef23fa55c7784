"""Entries whose job is gone: a call drops them and goes on."""

import pytest
from stories import fail, peeked, popped, put, recur
from two_doors import Door


def vanish(door: Door, *jids: str) -> None:
    """All that a job has but its places in the lists of others."""
    for jid in jids:
        found = door.connection.ask("KEYS", f"ql:hf:[jxb]:{jid}")
        assert found
        door.connection.ask("DEL", *found)


@pytest.mark.full
def test_a_lock_of_a_job_that_is_gone_does_not_stop_a_pop(door: Door) -> None:
    for jid in ("gone", "lost"):
        put(door, 1, jid)
    popped(door, 2)
    put(door, 3, "ready")
    vanish(door, "gone")
    assert [jid for jid, *_ in popped(door, 62, worker="v")] == ["ready"]
    assert [jid for jid, *_ in popped(door, 72, worker="v")] == ["lost"]
    assert door.call("queue.counts", 72, "q")["running"] == 2


def test_a_ready_or_scheduled_job_that_is_gone_is_dropped(door: Door) -> None:
    put(door, 1, "gone")
    put(door, 1, "late", "q", 5)
    put(door, 2, "here")
    put(door, 2, "due", "q", 5)
    vanish(door, "gone", "late")
    assert peeked(door, 10) == ["here", "due"]
    assert [jid for jid, *_ in popped(door, 11)] == ["here", "due"]
    assert door.raw("queue.length", 11, "q") == 2


@pytest.mark.full
def test_a_pending_job_that_is_gone_leaves_its_turn_to_the_next(door: Door) -> None:
    door.call("throttle.set", 0, "t", 1)
    for now, jid in ((1, "holder"), (2, "gone"), (3, "next")):
        put(door, now, jid, "q", 0, "throttles", '["t"]')
        if jid == "holder":
            popped(door, 1)
    vanish(door, "gone")
    assert door.call("job.complete", 4, "holder", "w", "q", "{}") == "complete"
    assert peeked(door, 5) == ["next"]


@pytest.mark.full
def test_a_failed_job_that_is_gone_leaves_its_group(door: Door) -> None:
    for now, jid in ((1, "gone"), (2, "here")):
        fail(door, now, jid)
    vanish(door, "gone")
    assert door.call("queue.unfail", 3, "q", "g") == 1
    assert door.call("failureGroups.counts", 3) == {}
    assert peeked(door, 3) == ["here"]


@pytest.mark.full
@pytest.mark.parametrize("limit", ["jobs-history", "jobs-history-count"])
def test_a_completed_job_that_is_gone_is_dropped_with_the_others(door: Door, limit: str) -> None:
    for now, jid in ((1, "gone"), (2, "here")):
        put(door, now, jid)
        popped(door, now)
        door.call("job.complete", now, jid, "w", "q", "{}")
    vanish(door, "gone")
    assert door.call("jobs.completed", 3) == ["here", "gone"]
    assert len(door.call("job.getMulti", 3, "gone", "here")) == 1
    door.call("config.set", 3, limit, 0)
    put(door, 4, "last")
    popped(door, 4)
    assert door.call("job.complete", 4, "last", "w", "q", "{}") == "complete"
    assert door.call("jobs.completed", 4) == []


def test_a_template_that_is_gone_puts_nothing(door: Door) -> None:
    for jid in ("gone", "here"):
        recur(door, 1, jid, 10)
    door.connection.ask("DEL", "ql:hf:r:gone")
    assert peeked(door, 5) == ["here-1"]
    assert door.call("queue.jobsByState", 5, "recurring", "q") == ["here"]
