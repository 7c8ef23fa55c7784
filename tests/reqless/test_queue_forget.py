"""queue.forget: a queue leaves the list of known ones, and nothing else changes."""

import pytest
from stories import peeked, popped, put, recur, refusal
from two_doors import Door


@pytest.mark.full
def test_a_queue_leaves_the_list_and_keeps_its_jobs(door: Door) -> None:
    for now, queue in enumerate(("one", "two", "three")):
        put(door, now, queue, queue)
    assert door.call("queue.forget", 3, "one", "two", "unknown") is None
    assert door.call("queues.names", 3) == ["three"]
    assert [row["name"] for row in door.call("queues.counts", 3)] == ["three"]
    assert peeked(door, 4, "one") == ["one"]
    assert door.call("queues.names", 4) == ["three"]


def test_the_next_put_makes_it_known_as_a_new_one(door: Door) -> None:
    put(door, 1, "a", "first")
    put(door, 2, "b", "second")
    door.call("queue.forget", 3, "first")
    put(door, 4, "c", "first")
    assert door.call("queues.names", 5) == ["second", "first"]


@pytest.mark.full
def test_a_template_does_not_make_it_known_again(door: Door) -> None:
    recur(door, 1, "r", 60)
    door.call("queue.forget", 1, "q")
    assert peeked(door, 1) == ["r-1"]
    assert door.call("queues.names", 1) == []


@pytest.mark.full
def test_an_empty_queue_stays_paused(door: Door) -> None:
    door.call("queue.pause", 1, "q")
    door.call("queue.forget", 2, "q")
    put(door, 3, "j")
    assert popped(door, 4) == []


@pytest.mark.full
def test_some_queue_has_to_be_named(door: Door) -> None:
    refusal(door.call("queue.forget", 1))
