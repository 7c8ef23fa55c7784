"""queue.unfail: failed jobs go back to work."""

import pytest
from stories import fail, history, peeked, popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_the_oldest_failures_go_first(door: Door) -> None:
    for now, jid in enumerate(("a", "b", "c")):
        fail(door, now, jid)
    door.messages()
    assert door.call("queue.unfail", 6, "q", "g", 2) == 2
    assert door.call("jobs.failedByGroup", 7, "g") == {"total": 1, "jobs": ["c"]}
    assert peeked(door, 7) == ["a", "b"]
    assert door.call("queue.unfail", 8, "q", "g") == 1
    assert door.call("failureGroups.counts", 9) == {}
    assert peeked(door, 9) == ["a", "b", "c"]
    assert door.messages() == []


@pytest.mark.full
def test_a_job_begins_anew_and_still_shows_its_failure(door: Door) -> None:
    put(door, 1, "j", "q", 0, "priority", 3, "retries", 2, "throttles", '["t"]')
    popped(door, 2)
    assert door.call("job.retry", 3, "j", "q", "w") == 1
    popped(door, 4)
    door.call("job.fail", 5, "j", "w", "g", "mess")
    assert door.call("queue.unfail", 6, "other", "g") == 1
    job = door.call("job.get", 7, "j")
    assert (job["state"], job["queue"], job["worker"], job["expires"]) == ("waiting", "other", "", 0)
    assert (job["remaining"], job["priority"]) == (2, 3)
    assert job["failure"] == {"group": "g", "message": "mess", "when": 5, "worker": "w"}
    assert history(job)[-1] == ("put", 6)
    assert job["history"][-1]["queue"] == "other"
    assert job["throttles"] == ["t", "ql:q:other"]  # W17: the reference keeps the old queue's


@pytest.mark.full
def test_the_queue_becomes_known_and_the_day_of_the_failure_counts_one_less(door: Door) -> None:
    fail(door, 1, "j")
    assert door.call("queue.unfail", 90000, "other", "g") == 1
    assert door.call("queues.names", 90000) == ["q", "other"]
    stats = door.call("queue.stats", 90000, "q", 1)
    assert (stats["failed"], stats["failures"]) == (0, 1)
    assert door.call("queue.stats", 90000, "other", 90000)["failed"] == 0


def test_the_wait_is_counted_from_the_last_pop(door: Door) -> None:
    fail(door, 1, "j")
    door.call("queue.unfail", 5, "q", "g")
    popped(door, 11)
    assert door.call("queue.stats", 11, "q", 11)["wait"]["mean"] == 5  # 0 and 10


def test_jobs_used_up_by_lost_leases_go_back_too(door: Door) -> None:
    put(door, 1, "j", "q", 0, "retries", 0)
    for now in (2, 100, 200):
        popped(door, now)
    assert door.call("failureGroups.counts", 201) == {"failed-retries-q": 1}
    assert door.call("queue.unfail", 202, "q", "failed-retries-q") == 1
    assert popped(door, 203) == [("j", 0, 263)]


@pytest.mark.full
def test_five_and_twenty_go_unless_a_number_is_said(door: Door) -> None:
    for number in range(27):
        fail(door, number, f"j{number}")
    assert door.call("queue.unfail", 30, "q", "g") == 25
    assert door.call("queue.unfail", 30, "q", "g") == 2


@pytest.mark.full
def test_an_unknown_group_moves_nothing(door: Door) -> None:
    assert door.call("queue.unfail", 1, "q", "none") == 0
    assert door.call("queues.names", 1) == []


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), 'Arg "queue" missing'),
    (("q",), 'Unfail(): Arg "group" missing'),
    (("q", "g", "x"), 'Unfail(): Arg "count" not a number'),
    (("q", "g", "0"), "must be greater than zero"),
    (("q", "g", "-1"), "must be greater than zero"),
    (("q", "g", "1.5"), "not a number"),
])  # fmt: skip
def test_an_unfail_that_is_not_whole_is_refused(door: Door, words: tuple[object, ...], sentence: str) -> None:
    fail(door, 1, "j")
    assert sentence in refusal(door.call("queue.unfail", 2, *words))
    assert door.call("failureGroups.counts", 2) == {"g": 1}
