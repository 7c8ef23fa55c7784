"""queues.names: the known queues, in the order they were first used."""

import pytest
from stories import fail, popped, put, recur
from two_doors import Door


@pytest.mark.full
def test_no_queue_is_an_empty_list(door: Door) -> None:
    assert door.raw("queues.names", 1) == "[]"


@pytest.mark.full
def test_the_first_use_counts_and_then_the_name(door: Door) -> None:
    put(door, 5, "a", "late")
    put(door, 3, "b", "early")
    put(door, 5, "c", "also late")
    put(door, 9, "d", "early")
    assert door.call("queues.names", 9) == ["early", "also late", "late"]


def test_what_makes_a_queue_known(door: Door) -> None:
    recur(door, 1, "r", 60, queue="by template")
    door.call("recurringJob.update", 2, "r", "queue", "by move of a template")
    put(door, 3, "later", "by delayed put", 100)
    fail(door, 4, "j", queue="by put")
    door.call("queue.unfail", 5, "by unfail", "g")  # W20: not by the reference
    assert door.call("queues.names", 6) == [
        "by template", "by move of a template", "by delayed put", "by put", "by unfail",
    ]  # fmt: skip


@pytest.mark.full
def test_what_does_not(door: Door) -> None:
    popped(door, 1, "popped")
    door.call("queue.peek", 1, "seen", 0, 1)
    door.call("queue.pause", 1, "paused")
    door.call("queue.throttle.set", 1, "limited", 1)
    door.call("config.set", 1, "configured-heartbeat", 1)
    door.call("queue.counts", 1, "counted")
    assert door.call("queues.names", 1) == []
