"""queue.length: what runs, is ready or scheduled."""

import pytest
from stories import popped, put, recur, refusal
from two_doors import Door


@pytest.mark.full
def test_running_ready_and_scheduled_jobs_count(door: Door) -> None:
    assert door.raw("queue.length", 1, "q") == 0
    put(door, 1, "running")
    popped(door, 1)
    put(door, 2, "ready")
    put(door, 2, "scheduled", "q", 100)
    put(door, 2, "due", "q", 1)
    assert door.raw("queue.length", 3, "q") == 4
    assert door.raw("queue.length", 100, "q") == 4


@pytest.mark.full
def test_jobs_set_aside_and_templates_do_not(door: Door) -> None:
    door.call("queue.throttle.set", 0, "q", 1)
    for jid in ("a", "b"):
        put(door, 1, jid)
    popped(door, 1)
    recur(door, 1, "r", 60)
    assert door.raw("queue.length", 1, "q") == 1


def test_programs_that_count_by_themselves_find_the_same_sets(door: Door) -> None:
    put(door, 1, "running")
    popped(door, 1)
    put(door, 2, "ready")
    put(door, 2, "scheduled", "q", 100)
    cards = [door.connection.ask("ZCARD", f"ql:q:q-{name}") for name in ("locks", "work", "scheduled")]
    assert cards == [1, 1, 1]


@pytest.mark.full
def test_a_queue_has_to_be_named(door: Door) -> None:
    assert "no queue name provided" in refusal(door.call("queue.length", 1))
