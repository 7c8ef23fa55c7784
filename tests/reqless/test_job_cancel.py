"""job.cancel."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


def canceled(jid: str, worker: str = "", queue: str = "q") -> str:
    return f'{{"jid":"{jid}","queue":"{queue}","event":"canceled","worker":"{worker}"}}'


def test_a_running_job_is_gone_and_its_holder_hears_of_it(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", '["x"]')
    door.call("job.track", 1, "j")
    popped(door, 2)
    door.messages()
    assert door.call("job.cancel", 3, "j") == ["j"]
    assert door.messages() == [
        ("ql:log", canceled("j", "w")), ("ql:w:w", canceled("j", "w")), ("ql:canceled", "j"),
    ]  # fmt: skip
    assert (door.call("job.get", 3, "j"), door.call("queue.length", 3, "q")) == (None, 0)
    assert "does not exist" in refusal(door.call("job.complete", 4, "j", "w", "q", "{}"))


def test_who_had_the_job_before_does_not_hear_of_it(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 2)
    door.call("job.retry", 3, "j", "q", "w")
    door.messages()
    door.call("job.cancel", 4, "j")
    assert door.messages() == [("ql:log", canceled("j"))]


@pytest.mark.full
def test_unknown_and_completed_jobs_are_left_alone_in_silence(door: Door) -> None:
    put(door, 1, "done")
    popped(door, 2)
    door.call("job.complete", 3, "done", "w", "q", "{}")
    put(door, 3, "j")
    door.messages()
    assert door.call("job.cancel", 4, "unknown", "done", "j", "j") == ["unknown", "done", "j", "j"]
    assert door.messages() == [("ql:log", canceled("j"))]
    assert door.call("job.get", 4, "done")["state"] == "complete"
    assert door.call("job.cancel", 4) == []


@pytest.mark.full
def test_a_job_that_others_wait_for_is_cancelled_with_them_only(door: Door) -> None:
    put(door, 1, "a")
    put(door, 2, "b", "q", 0, "depends", '["a"]')
    put(door, 3, "c", "q", 0, "depends", '["b"]')
    sentence = "Cancel(): {} is a dependency of {} but is not mentioned to be canceled"
    assert refusal(door.call("job.cancel", 4, "a")) == sentence.format("a", "b")
    assert refusal(door.call("job.cancel", 4, "a", "b")) == sentence.format("b", "c")
    assert [door.call("job.get", 4, jid)["state"] for jid in "abc"] == ["waiting", "depends", "depends"]
    assert door.call("job.cancel", 5, "b", "c") == ["b", "c"]
    assert door.call("job.get", 5, "a")["dependents"] == {}
    assert door.call("job.cancel", 6, "a") == ["a"]


@pytest.mark.full
@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_a_chain_goes_in_any_order(door: Door, order: str) -> None:
    put(door, 1, "a")
    put(door, 2, "b", "q", 0, "depends", '["a"]')
    put(door, 3, "c", "q", 0, "depends", '["b"]')
    assert door.call("job.cancel", 4, *order) == list(order)
    assert door.call("job.getMulti", 4, "a", "b", "c") == []


@pytest.mark.full
def test_a_slot_that_comes_back_goes_to_the_next(door: Door) -> None:
    door.call("throttle.set", 0, "db", 1)
    for now, jid in enumerate("abc", 1):
        put(door, now, jid, "q", 0, "throttles", '["db"]')
    popped(door, 4)
    assert door.call("throttle.pending", 4, "db") == ["b", "c"]
    door.call("job.cancel", 5, "c")
    assert door.call("throttle.pending", 5, "db") == ["b"]
    door.call("job.cancel", 6, "a")
    assert [jid for jid, *_ in popped(door, 7)] == ["b"]


@pytest.mark.full
def test_a_failed_job_leaves_its_group_and_the_count_of_its_day(door: Door) -> None:
    put(door, 0, "j")
    popped(door, 0)
    door.call("job.fail", 0, "j", "w", "g", "m")
    door.call("job.cancel", 200000, "j")
    assert door.call("failureGroups.counts", 200000) == {}
    stats = door.call("queue.stats", 200000, "q", 0)
    assert (stats["failed"], stats["failures"]) == (0, 1)
