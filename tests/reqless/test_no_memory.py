"""A store without memory takes no more work, lets work under way end, and keeps no trace of what it refused."""

from collections.abc import Iterator

import pytest
from stories import popped, put, refusal
from two_doors import Door

REFUSED = [
    ("queue.put", "w", "q", "new", "klass", "{}", 0),
    ("queue.pop", "q", "w", 1),
    ("job.heartbeat", "a", "w"),
    ("config.set", "heartbeat", 10),
]
TAKEN = [
    (("job.complete", "a", "w", "q", "{}"), "complete"),
    (("job.fail", "b", "w", "group", "message"), "b"),
    (("job.retry", "c", "q", "w"), 4),
    (("job.cancel", "d"), ["d"]),
]


@pytest.fixture
def full(door: Door) -> Iterator[Door]:
    """Three of four jobs are under way, and no memory is left."""
    for jid in "abcd":
        put(door, 1, jid)
    popped(door, 2, limit=3)
    door.connection.ask("CONFIG", "SET", "maxmemory", 1)
    yield door
    door.connection.ask("CONFIG", "SET", "maxmemory", 0)


@pytest.mark.parametrize("words", REFUSED)
def test_a_full_store_refuses_and_changes_nothing(full: Door, words: tuple[object, ...]) -> None:
    before = full.contents()
    assert "OOM" in refusal(full.raw(words[0], 3, *words[1:]))
    assert full.contents() == before


@pytest.mark.full
@pytest.mark.parametrize(("words", "reply"), TAKEN)
def test_work_under_way_ends_in_a_full_store(full: Door, words: tuple[str, ...], reply: object) -> None:
    assert full.call(words[0], 3, *words[1:]) == reply
    assert full.call("queue.peek", 4, "q", 0, 5) is not None
