"""queue.counts and queues.counts: how many jobs a queue has in each state."""

import pytest
from stories import popped, put, recur
from two_doors import Door

NOTHING = {
    "waiting": 0,
    "running": 0,
    "stalled": 0,
    "scheduled": 0,
    "depends": 0,
    "throttled": 0,
    "recurring": 0,
}


def counted(door: Door, now: float, queue: str = "q") -> dict[str, int]:
    """The numbers that are not zero."""
    found = door.call("queue.counts", now, queue)
    assert set(found) == {"name", "paused", *NOTHING}
    return {name: found[name] for name in NOTHING if found[name]}


def test_an_unknown_queue_has_nothing(door: Door) -> None:
    assert door.call("queue.counts", 1, "none") == {"name": "none", "paused": False, **NOTHING}
    assert door.call("queues.names", 1) == []


def test_without_a_name_all_known_queues_are_counted(door: Door) -> None:
    assert (door.raw("queue.counts", 1), door.raw("queues.counts", 1)) == ("{}", "[]")
    put(door, 1, "j", "b")
    put(door, 1, "i", "a")
    rows = door.call("queues.counts", 1)
    assert [(row["name"], row["waiting"]) for row in rows] == [("a", 1), ("b", 1)]
    assert door.call("queue.counts", 1) == rows


@pytest.mark.full
def test_a_lease_that_ends_now_is_stalled(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 1)
    assert (counted(door, 60), counted(door, 61)) == ({"running": 1}, {"stalled": 1})
    popped(door, 61, worker="v")
    assert counted(door, 61) == {"running": 1}  # in its grace period


@pytest.mark.full
def test_what_is_due_counts_as_waiting_and_is_not_moved(door: Door) -> None:
    put(door, 1, "j", "q", 9)
    assert (counted(door, 9), counted(door, 10)) == ({"scheduled": 1}, {"waiting": 1})
    assert door.call("job.get", 10, "j")["state"] == "waiting"
    assert door.call("queue.jobsByState", 10, "scheduled", "q") == []
    assert door.connection.ask("ZCARD", "ql:q:q-scheduled") == 1


@pytest.mark.full
def test_a_promoted_job_counts_as_waiting_though_its_state_says_throttled(door: Door) -> None:
    door.call("throttle.set", 0, "t", 1)
    for now, jid in ((1, "a"), (2, "b")):
        put(door, now, jid, "q", 0, "throttles", '["t"]')
    popped(door, 3)
    assert counted(door, 3) == {"running": 1, "throttled": 1}
    door.call("job.complete", 4, "a", "w", "q", "{}")
    assert counted(door, 4) == {"waiting": 1}
    assert door.call("job.get", 4, "b")["state"] == "throttled"


@pytest.mark.full
def test_templates_count_whether_due_or_not_and_failed_jobs_do_not(door: Door) -> None:
    recur(door, 0, "due", 10)
    recur(door, 0, "future", 10, 1000)
    assert counted(door, 5) == {"recurring": 2}
    put(door, 5, "j", "other")
    popped(door, 5, "other")
    door.call("job.fail", 6, "j", "w", "g", "m")
    assert counted(door, 6, "other") == {}


@pytest.mark.full
def test_a_job_that_was_timed_out_counts_as_waiting(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 1)
    door.call("job.timeout", 2, "j")
    assert counted(door, 2) == {"waiting": 1}


@pytest.mark.full
def test_twenty_thousand_due_jobs_are_counted_without_being_moved(door: Door) -> None:
    put(door, 0, "first", "q", 1)
    for number in range(0, 20000, 1000):
        entries = [word for jid in range(number, number + 1000) for word in (1000, f"j{jid}")]
        door.connection.ask("ZADD", "ql:q:q-scheduled", *entries)
    before = door.connection.ask("INFO", "commandstats")
    assert counted(door, 2) == {"waiting": 20001}
    after = door.connection.ask("INFO", "commandstats")
    for command in ("zrem", "zadd", "mset", "set"):
        assert calls_of(command, before) == calls_of(command, after)


def calls_of(command: str, statistics: str) -> str:
    lines = [line for line in statistics.splitlines() if line.startswith(f"cmdstat_{command}:calls=")]
    return lines[0].partition(",")[0] if lines else ""
