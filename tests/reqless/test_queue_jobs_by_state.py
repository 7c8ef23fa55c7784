"""queue.jobsByState: the jobs of a queue that are in one state."""

import pytest
from stories import fail, popped, put, recur, refusal
from two_doors import Door


def listed(door: Door, now: float, state: str, *page: int) -> list[str]:
    found: list[str] = door.call("queue.jobsByState", now, state, "q", *page)
    return found


@pytest.fixture
def three(door: Door) -> Door:
    """A door with three jobs that run, until 62, 63 and 64."""
    for now, jid in ((2, "a"), (3, "b"), (4, "c")):
        put(door, now, jid)
        popped(door, now, limit=1)
    return door


def test_running_and_stalled_are_by_the_end_of_the_lease_and_may_meet(three: Door) -> None:
    assert (listed(three, 61, "running"), listed(three, 61, "stalled")) == (["a", "b", "c"], [])
    assert (listed(three, 63, "running"), listed(three, 63, "stalled")) == (["b", "c"], ["a", "b"])


@pytest.mark.full
@pytest.mark.parametrize(("page", "jids"), [
    ((0, 2), ["a", "b"]), ((1, 2), ["b", "c"]), ((0, 0), []), ((0, -1), ["a", "b", "c"]), ((3, 5), []),
])  # fmt: skip
def test_a_page_of_what_runs_has_at_most_so_many(three: Door, page: tuple[int, int], jids: list[str]) -> None:
    assert listed(three, 5, "running", *page) == jids
    assert listed(three, 100, "stalled", *page) == jids


@pytest.mark.full
@pytest.mark.parametrize(("page", "jids"), [
    ((0, 2), ["soon", "a"]), ((1, 2), ["a", "b"]), ((0, 0), ["soon", "a", "b"]), ((0, -1), ["soon", "a"]),
    ((1, 0), []), ((-1, 5), ["b"]), ((3, 5), []),
])  # fmt: skip
def test_a_page_of_what_is_scheduled_is_a_range(door: Door, page: tuple[int, int], jids: list[str]) -> None:
    put(door, 0, "due", "q", 3)
    put(door, 0, "b", "q", 50)
    put(door, 0, "a", "q", 50)
    put(door, 0, "soon", "q", 10)
    assert listed(door, 5, "scheduled", *page) == jids


@pytest.mark.full
def test_what_is_set_aside_is_by_the_time_it_was(door: Door) -> None:
    door.call("throttle.set", 0, "t", 1)
    for now, jid in ((1, "first"), (3, "b"), (3, "a"), (2, "c")):
        put(door, now, jid, "q", 0, "throttles", '["t"]')
        if jid == "first":
            popped(door, 1)
    assert listed(door, 4, "throttled") == ["c", "a", "b"]
    assert listed(door, 4, "throttled", 1, 1) == ["a"]
    assert listed(door, 4, "throttled", 0, 0) == ["c", "a", "b"]


@pytest.mark.full
def test_templates_are_by_their_next_occurrence(door: Door) -> None:
    recur(door, 0, "late", 10, 100)
    recur(door, 0, "b", 10, 5)
    recur(door, 0, "a", 10, 5)
    recur(door, 0, "past", 10, -50)  # W30: the reference does not list it
    assert listed(door, 1, "recurring") == ["past", "a", "b", "late"]
    assert listed(door, 1, "recurring", 1, 2) == ["a", "b"]
    assert listed(door, 1, "recurring", 0, 0) == []
    assert listed(door, 1, "recurring", 0, -1) == ["past", "a", "b", "late"]


@pytest.mark.full
def test_complete_is_the_list_of_all_completed_jobs(door: Door) -> None:
    for now, jid in ((1, "a"), (2, "b")):
        put(door, now, jid)
        popped(door, now)
        door.call("job.complete", now, jid, "w", "q", "{}")
    assert door.call("queue.jobsByState", 3, "complete") == ["b", "a"]
    assert door.call("queue.jobsByState", 3, "complete", 1, 1) == ["a"]


def test_nothing_is_an_empty_list(door: Door) -> None:
    fail(door, 1, "j")
    for state in ("running", "stalled", "throttled", "scheduled", "depends", "recurring", "complete"):
        assert door.raw("queue.jobsByState", 2, state, *(() if state == "complete" else ("q",))) == "[]"


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), 'Jobs(): Arg "state" missing'),
    (("running",), 'Jobs(): Arg "queue" missing'),
    (("none",), 'Jobs(): Arg "queue" missing'),
    (("none", "q", "x"), 'Jobs(): Arg "offset" not a number'),
    (("none", "q", "0", "x"), 'Jobs(): Arg "limit" not a number'),
    (("none", "q"), 'Jobs(): Unknown type "none"'),
    (("waiting", "q"), 'Jobs(): Unknown type "waiting"'),
    (("complete", "x"), 'Jobs(): Arg "offset" not a number'),
])  # fmt: skip
def test_a_list_that_there_is_not_is_refused(door: Door, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(door.call("queue.jobsByState", 1, *words))
