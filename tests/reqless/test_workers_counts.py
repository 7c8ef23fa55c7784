"""workers.counts: who works here, and how much each holds."""

import pytest
from stories import popped, put
from two_doors import Door


def names(door: Door, now: float) -> list[str]:
    return [row["name"] for row in door.call("workers.counts", now)]


@pytest.mark.full
def test_nobody_is_an_empty_list(door: Door) -> None:
    assert door.raw("workers.counts", 1) == "[]"


def test_who_popped_last_comes_first(door: Door) -> None:
    for worker in ("a", "b"):
        popped(door, 1, worker=worker)
    assert names(door, 2) == ["b", "a"]  # of two of one moment, the name that is later
    popped(door, 3, worker="a")
    assert names(door, 4) == ["a", "b"]


@pytest.mark.full
def test_jobs_and_stalled_ones_are_counted_and_one_that_ends_now_is_both(door: Door) -> None:
    put(door, 1, "a")
    put(door, 2, "b")
    for now in (2, 3):
        popped(door, now, limit=1)
    assert door.call("workers.counts", 4) == [{"name": "w", "jobs": 2, "stalled": 0}]
    assert door.call("workers.counts", 62) == [{"name": "w", "jobs": 2, "stalled": 1}]
    assert door.call("workers.counts", 64) == [{"name": "w", "jobs": 0, "stalled": 2}]


@pytest.mark.full
def test_a_paused_queue_makes_no_worker_known(door: Door) -> None:
    door.call("queue.pause", 1, "q")
    popped(door, 1)
    assert names(door, 1) == []


@pytest.mark.full
def test_who_was_not_seen_for_a_day_is_forgotten_with_what_they_held(door: Door) -> None:
    door.call("config.set", 0, "heartbeat", 200000)
    put(door, 1, "j")
    popped(door, 1)
    assert names(door, 86400) == ["w"]
    assert names(door, 86401) == []
    assert door.call("worker.jobs", 86401, "w") == {"jobs": {}, "stalled": {}}
    assert door.call("job.get", 86401, "j")["state"] == "running"


@pytest.mark.full
def test_the_age_of_workers_can_be_set(door: Door) -> None:
    door.call("config.set", 0, "max-worker-age", 10)
    popped(door, 1)
    assert (names(door, 10.5), names(door, 11)) == (["w"], [])


@pytest.mark.full
def test_all_that_are_too_old_go_at_once(door: Door) -> None:
    for number in range(300):
        popped(door, number / 1000, worker=f"w{number}")
    popped(door, 50000, worker="new")
    assert names(door, 100000) == ["new"]


def test_a_heartbeat_is_a_sign_of_life(door: Door) -> None:
    door.call("config.set", 0, "heartbeat", 200000)
    put(door, 1, "j")
    popped(door, 1)
    door.call("job.heartbeat", 80000, "j", "w")
    assert names(door, 100000) == ["w"]  # W33: the reference takes it for gone, while it works
