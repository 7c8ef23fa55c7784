"""worker.jobs: what a worker holds, and what of it stalled."""

import pytest
from stories import popped, put
from two_doors import Door


def held(door: Door, now: float, worker: str = "w") -> tuple[object, object]:
    found = door.call("worker.jobs", now, worker)
    assert set(found) == {"jobs", "stalled"}
    return found["jobs"], found["stalled"]


def take(door: Door, now: float, jid: str, worker: str = "w") -> None:
    put(door, now, jid)
    assert popped(door, now, "q", worker, 1)[0][0] == jid


@pytest.mark.full
def test_the_latest_end_comes_first_and_one_that_ends_now_is_in_both(door: Door) -> None:
    for now, jid in ((2, "a"), (3, "b"), (4, "c")):
        take(door, now, jid)
    assert held(door, 5) == (["c", "b", "a"], {})
    assert held(door, 63) == (["c", "b"], ["b", "a"])
    assert held(door, 65) == ({}, ["c", "b", "a"])
    assert held(door, -5) == (["c", "b", "a"], {})


def test_an_unknown_worker_holds_nothing(door: Door) -> None:
    assert held(door, 1, "nobody") == ({}, {})


def test_a_lease_of_more_than_a_hundred_days_is_not_listed(door: Door) -> None:
    door.call("config.set", 0, "heartbeat", 8640000)
    take(door, 10, "j")
    assert held(door, 10) == (["j"], {})
    assert held(door, 9) == ({}, {})


@pytest.mark.full
@pytest.mark.parametrize("words", [
    ("job.complete", "j", "w", "q", "{}"), ("job.fail", "j", "w", "g", "m"), ("job.retry", "j", "q", "w"),
    ("queue.put", "v", "q", "j", "k", "{}", 0), ("job.cancel", "j"), ("job.timeout", "j"),
])  # fmt: skip
def test_a_job_leaves_when_it_is_settled_or_taken_away(door: Door, words: tuple[str, ...]) -> None:
    take(door, 1, "j")
    assert held(door, 2) == (["j"], {})
    door.call(words[0], 2, *words[1:])
    assert held(door, 2) == ({}, {})


@pytest.mark.full
def test_a_job_leaves_when_its_loss_is_noticed_and_comes_back_by_a_heartbeat(door: Door) -> None:
    take(door, 1, "j")
    assert held(door, 70) == ({}, ["j"])
    assert popped(door, 70, worker="v") == []
    assert held(door, 70) == ({}, {})
    assert door.call("job.heartbeat", 71, "j", "w") == 131
    assert held(door, 71) == (["j"], {})


@pytest.mark.full
def test_without_a_worker_all_are_counted(door: Door) -> None:
    assert door.raw("worker.jobs", 1) == "{}"
    take(door, 1, "j")
    assert door.call("worker.jobs", 2) == [{"name": "w", "jobs": 1, "stalled": 0}]
