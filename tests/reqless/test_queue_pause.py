"""queue.pause and queue.unpause: queues that hand out nothing for a while."""

import pytest
from stories import peeked, popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_a_paused_queue_hands_out_nothing_and_knows_no_worker(door: Door) -> None:
    for queue in ("one", "two", "three"):
        put(door, 1, queue, queue)
    assert door.call("queue.pause", 2, "one", "two") is None
    assert [popped(door, 3, queue, "w") for queue in ("one", "two")] == [[], []]
    assert door.call("workers.counts", 3) == []
    assert [row["paused"] for row in door.call("queues.counts", 3)] == [True, False, True]
    assert popped(door, 3, "three") == [("three", 5, 63)]
    assert door.call("queue.unpause", 4, "one", "two", "three") is None
    assert popped(door, 5, "one") == [("one", 5, 65)]


@pytest.mark.full
def test_all_else_goes_on(door: Door) -> None:
    put(door, 1, "running")
    popped(door, 1)
    door.call("queue.pause", 2, "q")
    put(door, 3, "new")
    assert peeked(door, 3) == ["new"]
    assert door.call("job.heartbeat", 3, "running", "w") == 63
    assert door.call("job.complete", 4, "running", "w", "q", "{}") == "complete"


def test_nothing_is_published(door: Door) -> None:
    door.messages()
    door.call("queue.pause", 1, "q")
    door.call("queue.unpause", 1, "q")
    assert door.messages() == []


@pytest.mark.full
@pytest.mark.parametrize("command", ["queue.pause", "queue.unpause"])
def test_some_queue_has_to_be_named(door: Door, command: str) -> None:
    refusal(door.call(command, 1))
