"""queue.peek: what a pop would see."""

import pytest
from stories import popped, put, recur, refusal
from two_doors import Door


def seen(door: Door, now: float, offset: int, limit: int) -> list[str]:
    return [job["jid"] for job in door.call("queue.peek", now, "q", offset, limit)]


def test_lost_leases_come_before_what_is_ready_and_are_left_alone(door: Door) -> None:
    for now, jid in ((1, "a"), (2, "b"), (3, "c"), (4, "d")):
        put(door, now, jid)
    popped(door, 5, limit=2)
    assert seen(door, 64, 0, 5) == ["c", "d"]
    assert seen(door, 65, 0, 5) == ["a", "b", "c", "d"]
    job = door.call("queue.peek", 65, "q", 0, 1)[0]
    assert (job["state"], job["worker"], job["expires"]) == ("running", "w", 65)
    assert [what["what"] for what in job["history"]] == ["put", "popped"]


@pytest.mark.full
@pytest.mark.parametrize(("page", "jids"), [
    ((0, 2), ["a", "b"]), ((1, 2), ["b", "c"]), ((2, 1), ["c"]), ((3, 9), ["d"]), ((4, 9), []),
    ((0, 0), []), ((0, -1), []), ((-1, 2), []),
])  # fmt: skip
def test_a_page_is_a_slice_of_both_together(door: Door, page: tuple[int, int], jids: list[str]) -> None:
    for now, jid in ((1, "a"), (2, "b"), (3, "c"), (4, "d")):
        put(door, now, jid)
    popped(door, 5, limit=2)
    assert seen(door, 65, *page) == jids


@pytest.mark.full
def test_lost_leases_leave_less_room_for_what_comes_due(door: Door) -> None:
    put(door, 1, "a")
    popped(door, 1)
    for jid in ("soon", "late"):
        put(door, 1, jid, "q", 5)
    recur(door, 1, "r", 60, 10)
    assert seen(door, 70, 0, 2) == ["a", "r-1"]
    assert door.call("job.get", 70, "r-2") is None  # one of each was moved: there was room for one
    assert door.connection.ask("ZCARD", "ql:q:q-scheduled") == 1


def test_priority_comes_before_time(door: Door) -> None:
    put(door, 1, "low")
    put(door, 2, "high", "q", 0, "priority", 2)
    put(door, 3, "between", "q", 0, "priority", 1.5)
    assert seen(door, 4, 0, 5) == ["high", "between", "low"]


@pytest.mark.full
def test_what_is_due_waits_from_the_moment_somebody_looks(door: Door) -> None:
    put(door, 0, "due", "q", 10)
    put(door, 20, "ready")
    assert seen(door, 30, 0, 5) == ["ready", "due"]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no queue name provided"),
    (("q",), 'Peek(): Arg "offset" missing or not a number'),
    (("q", "x", 1), 'Peek(): Arg "offset" missing or not a number'),
    (("q", 0), 'Peek(): Arg "limit" missing or not a number'),
    (("q", 0, "x"), 'Peek(): Arg "limit" missing or not a number'),
    (("q", "0.5", 1), "not a number"),
    (("q", 0, "1.5"), "not a number"),
])  # fmt: skip
def test_a_look_that_is_not_whole_is_refused_and_moves_nothing(
    door: Door, words: tuple[object, ...], sentence: str
) -> None:
    put(door, 0, "due", "q", 1)
    assert sentence in refusal(door.call("queue.peek", 5, *words))
    assert door.connection.ask("ZCARD", "ql:q:q-scheduled") == 1
