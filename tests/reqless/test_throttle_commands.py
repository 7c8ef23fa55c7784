"""throttle.set, .get, .delete, .locks, .pending, .release and queue.throttle.get, .set."""

import pytest
from stories import peeked, popped, put, refusal
from two_doors import Door


def limited(door: Door, now: float, jid: str, *ids: str) -> None:
    names = ",".join(f'"{each}"' for each in ids or ("t",))
    put(door, now, jid, "q", 0, "throttles", f"[{names}]")


@pytest.mark.full
def test_a_definition_and_what_is_left_of_its_time(door: Door) -> None:
    assert door.call("throttle.get", 1, "t") == {"id": "t", "maximum": 0, "ttl": -2}
    assert door.call("throttle.set", 1, "t", 5) is None
    assert door.call("throttle.get", 1, "t") == {"id": "t", "maximum": 5, "ttl": -1}
    door.call("throttle.set", 1, "t", 6, 100)
    assert door.call("throttle.get", 1, "t") == {"id": "t", "maximum": 6, "ttl": 100}
    for seconds in ((), (0,), (-5,)):
        door.call("throttle.set", 1, "t", 7, *seconds)
        assert door.call("throttle.get", 1, "t") == {"id": "t", "maximum": 7, "ttl": 100}
    assert door.call("throttle.delete", 1, "t") is None
    assert door.call("throttle.get", 1, "t") == {"id": "t", "maximum": 0, "ttl": -2}
    assert door.call("throttle.delete", 1, "t") is None


def test_a_maximum_is_kept_as_it_came_and_told_as_a_number(door: Door) -> None:
    door.call("throttle.set", 1, "t", "0x10")
    assert door.connection.ask("HGETALL", "ql:th:t") == ["id", "t", "maximum", "0x10"]
    assert door.call("throttle.get", 1, "t")["maximum"] == 16


@pytest.mark.full
def test_the_throttle_of_a_queue_has_the_name_of_the_queue(door: Door) -> None:
    assert door.call("queue.throttle.get", 1, "q") == {"id": "ql:q:q", "maximum": 0, "ttl": -2}
    assert door.call("queue.throttle.set", 1, "q", 4) is None
    assert door.call("queue.throttle.get", 1, "q") == {"id": "ql:q:q", "maximum": 4, "ttl": -1}
    assert door.call("throttle.get", 1, "ql:q:q")["maximum"] == 4
    assert door.connection.ask("HGETALL", "ql:th:ql:q:q") == ["id", "ql:q:q", "maximum", "4"]


def test_the_name_that_was_asked_for_is_told_and_not_the_one_that_is_stored(door: Door) -> None:
    door.connection.ask("HSET", "ql:th:t", "id", "other", "maximum", 3)
    assert door.call("throttle.get", 1, "t") == {"id": "t", "maximum": 3, "ttl": -1}


@pytest.mark.full
def test_slots_are_by_jid_and_those_pending_by_their_time(door: Door) -> None:
    assert (door.raw("throttle.locks", 1, "t"), door.raw("throttle.pending", 1, "t")) == ("[]", "[]")
    door.call("throttle.set", 1, "t", 2)
    for now, jid in ((1, "z"), (2, "a")):
        limited(door, now, jid)
    popped(door, 2)
    for now, jid in ((5, "late"), (3, "d"), (3, "c")):
        limited(door, now, jid)
    assert door.call("throttle.locks", 5, "t") == ["a", "z"]
    assert door.call("throttle.pending", 5, "t") == ["c", "d", "late"]


def test_a_throttle_without_a_limit_says_who_holds_it(door: Door) -> None:
    limited(door, 1, "j")
    popped(door, 1)
    assert door.call("throttle.locks", 1, "t") == ["j"]
    assert door.call("throttle.locks", 1, "ql:q:q") == ["j"]


@pytest.mark.full
def test_a_lower_maximum_lets_nobody_go_before_there_is_room(door: Door) -> None:
    door.call("throttle.set", 0, "t", 3)
    for now, jid in enumerate("abcde"):
        limited(door, now, jid)
    popped(door, 6, limit=5)
    door.call("throttle.set", 7, "t", 1)
    for jid, pending in (("a", ["d", "e"]), ("b", ["d", "e"]), ("c", ["e"])):
        door.call("job.complete", 8, jid, "w", "q", "{}")
        assert door.call("throttle.pending", 8, "t") == pending
    assert peeked(door, 9) == ["d"]


@pytest.mark.full
def test_a_job_needs_all_its_throttles_and_pends_on_the_first_that_is_full(door: Door) -> None:
    for each in ("t", "u"):
        door.call("throttle.set", 0, each, 1)
    for now, jid, ids in ((1, "a", ("t",)), (2, "b", ("u",)), (3, "c", ("t", "u"))):
        limited(door, now, jid, *ids)
    popped(door, 6)
    assert (door.call("throttle.pending", 6, "t"), door.call("throttle.pending", 6, "u")) == (["c"], [])
    door.call("job.complete", 7, "a", "w", "q", "{}")
    assert peeked(door, 7) == ["c"]
    assert popped(door, 8) == []
    assert (door.call("throttle.pending", 8, "t"), door.call("throttle.pending", 8, "u")) == ([], ["c"])
    assert door.call("throttle.locks", 8, "t") == []
    lines = [line["what"] for line in door.call("job.get", 8, "c")["history"]]
    assert lines == ["put", "throttled"]


@pytest.mark.full
def test_a_promoted_job_holds_no_slot_before_it_is_popped(door: Door) -> None:
    door.call("throttle.set", 0, "t", 1)
    limited(door, 1, "a")
    popped(door, 1)
    limited(door, 2, "b")
    door.call("throttle.release", 3, "t", "a")
    assert (door.call("throttle.locks", 3, "t"), door.call("throttle.pending", 3, "t")) == ([], [])
    assert peeked(door, 3) == ["b"]
    assert door.call("job.complete", 4, "a", "w", "q", "{}") == "complete"  # it ran on


@pytest.mark.full
@pytest.mark.parametrize("command", [
    "throttle.set", "throttle.get", "throttle.delete", "throttle.locks", "throttle.pending", "throttle.release",
])  # fmt: skip
def test_a_throttle_has_to_be_named(door: Door, command: str) -> None:
    assert "no tid provided" in refusal(door.call(command, 1))


@pytest.mark.full
@pytest.mark.parametrize("words", [
    ("throttle.set", "t"), ("throttle.set", "t", "x"), ("throttle.set", "t", ""), ("throttle.set", "t", "nan"),
    ("throttle.set", "t", "5", "x"), ("throttle.set", "t", "5", "1.5"), ("throttle.set", "t", "5", "1e17"), ("queue.throttle.set", "t"),
    ("queue.throttle.set",), ("queue.throttle.get",),
])  # fmt: skip
def test_a_definition_that_is_not_whole_is_refused_and_not_stored(door: Door, words: tuple[str, ...]) -> None:
    refusal(door.call(words[0], 1, *words[1:]))
    assert door.call("throttle.get", 1, "t")["ttl"] == -2
    assert door.call("queue.throttle.get", 1, "t")["ttl"] == -2


@pytest.mark.full
def test_nobody_to_release_is_fine(door: Door) -> None:
    assert door.call("throttle.release", 1, "t") is None
    assert door.call("throttle.release", 1, "t", "unknown") is None
