"""worker.forget: a worker leaves the list, its jobs run on."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_a_worker_leaves_and_its_jobs_run_on(door: Door) -> None:
    put(door, 1, "j")
    for worker in ("a", "b", "c"):
        popped(door, 2, worker=worker)
    assert door.call("worker.forget", 3, "a", "b", "nobody") is None
    assert door.call("workers.counts", 3) == [{"name": "c", "jobs": 0, "stalled": 0}]
    assert door.call("worker.jobs", 3, "a") == {"jobs": {}, "stalled": {}}  # W32
    assert door.call("job.complete", 4, "j", "a", "q", "{}") == "complete"


def test_a_worker_comes_back_with_its_next_pop(door: Door) -> None:
    popped(door, 1)
    door.call("worker.forget", 2, "w")
    popped(door, 3)
    assert [row["name"] for row in door.call("workers.counts", 3)] == ["w"]


@pytest.mark.full
def test_somebody_has_to_be_named(door: Door) -> None:
    refusal(door.call("worker.forget", 1))
