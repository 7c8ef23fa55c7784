"""job.requeue."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


def requeue(door: Door, now: float, *words: object) -> object:
    return door.call("job.requeue", now, "w", "q", "j", "klass", "[1]", 0, *words)


def test_a_job_that_exists_is_put_anew_with_what_is_wished_for_it(door: Door) -> None:
    put(door, 1, "j", "other", 0, "tags", '["old"]', "priority", 3)
    assert requeue(door, 2, "tags", '["new"]') == "j"
    job = door.call("job.get", 2, "j")
    assert (job["queue"], job["priority"], job["tags"], job["data"]) == ("q", 3, ["new"], "[1]")
    assert door.call("jobs.tagged", 2, "old") == {"total": 0, "jobs": {}}


@pytest.mark.full
def test_a_cancelled_job_does_not_come_back(door: Door) -> None:
    put(door, 1, "j")
    door.call("job.cancel", 2, "j")
    assert refusal(requeue(door, 3)) == "Requeue(): Job j does not exist"
    assert door.call("queue.length", 3, "q") == 0


@pytest.mark.full
def test_a_completed_job_does_come_back(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 2)
    door.call("job.complete", 3, "j", "w", "q", "{}")
    assert requeue(door, 4) == "j"
    assert (door.call("jobs.completed", 4), popped(door, 5)) == ([], [("j", 5, 65)])


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no jid provided"),
    (("w", "q", "none"), "Requeue(): Job none does not exist"),
    (("w", "q", "j"), 'Put(): Arg "klass" missing'),
    (("w", "q", "j", "k", "{}", 0, "tags"), "Odd number of additional args"),
])  # fmt: skip
def test_a_refused_requeue_changes_nothing(door: Door, words: tuple[object, ...], sentence: str) -> None:
    put(door, 1, "j", "other")
    before = door.call("job.get", 1, "j")
    assert sentence in refusal(door.call("job.requeue", 2, *words))
    assert door.call("job.get", 2, "j") == before
