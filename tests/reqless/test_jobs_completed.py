"""The command jobs.completed, and how long completed jobs are kept."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


def done(door: Door, now: float, jid: str, at: float | None = None) -> None:
    """Put a job and pop it at `now`, and complete it at `at` (default: `now`)."""
    put(door, now, jid)
    assert popped(door, now, limit=1)[0][0] == jid
    assert door.call("job.complete", now if at is None else at, jid, "w", "q", "{}") == "complete"


@pytest.mark.full
@pytest.mark.parametrize(("page", "jids"), [
    ((), ["c", "b", "a"]), ((0, 1), ["c"]), ((1, 1), ["b"]), ((0, 0), ["c", "b", "a"]), ((0, -1), ["c", "b"]),
    ((1, 0), []), ((-1, 1), ["a"]), ((3, 5), []),
])  # fmt: skip
def test_a_page_begins_with_the_job_completed_last(
    door: Door, page: tuple[int, ...], jids: list[str]
) -> None:
    for now, jid in ((1, "a"), (2, "b"), (3, "c")):
        done(door, now, jid)
    assert door.call("jobs.completed", 4, *page) == jids


@pytest.mark.full
def test_completed_jobs_are_ordered_and_deleted_by_the_time_of_the_caller(door: Door) -> None:
    for now, jid in ((1, "c"), (2, "b"), (3, "a")):
        put(door, now, jid)
    popped(door, 3)
    for now, jid in ((100, "c"), (50, "b"), (70, "a")):
        door.call("job.complete", now, jid, "w", "q", "{}")
    assert door.call("jobs.completed", 100) == ["c", "a", "b"]
    door.call("config.set", 100, "jobs-history", 35)
    done(door, 100, "d")
    assert door.call("jobs.completed", 100) == ["d", "c", "a"]


@pytest.mark.full
def test_jobs_that_are_too_old_are_deleted_by_the_next_completion(door: Door) -> None:
    door.call("config.set", 0, "jobs-history", 100)
    done(door, 0, "a")
    done(door, 99, "b")
    assert door.call("job.get", 100, "a")["state"] == "complete"
    done(door, 101, "c")
    assert door.call("job.get", 101, "a") is None
    assert door.call("jobs.completed", 101) == ["c", "b"]


@pytest.mark.full
def test_a_job_that_is_exactly_as_old_as_the_limit_is_deleted(door: Door) -> None:
    door.call("config.set", 0, "jobs-history", 100)
    done(door, 0, "a")
    done(door, 100, "b")
    assert door.call("jobs.completed", 100) == ["b"]


@pytest.mark.full
def test_the_newest_jobs_are_kept_up_to_the_limit_of_their_number(door: Door) -> None:
    door.call("config.set", 0, "jobs-history-count", 2)
    for now, jid in ((1, "a"), (2, "b"), (3, "c")):
        done(door, now, jid)
    assert door.call("jobs.completed", 3) == ["c", "b"]
    assert door.call("job.get", 3, "a") is None


@pytest.mark.full
@pytest.mark.parametrize(
    ("key", "value"), [("jobs-history", -1), ("jobs-history", 0), ("jobs-history-count", 0)]
)
def test_with_a_limit_of_zero_a_job_is_deleted_when_it_completes(door: Door, key: str, value: int) -> None:
    done(door, 1, "before")
    door.call("config.set", 1, key, value)
    put(door, 2, "j", "q", 0, "tags", '["x"]')
    popped(door, 2)
    assert door.call("job.complete", 2, "j", "w", "q", "{}") == "complete"
    assert door.call("jobs.completed", 2) == []
    assert door.call("job.get", 2, "j") is None
    assert door.connection.ask("EXISTS", "ql:tags") == 0


@pytest.mark.full
@pytest.mark.parametrize(("key", "value"), [("jobs-history", 0), ("jobs-history-count", 0)])
def test_jobs_beyond_the_limit_are_deleted_in_parts_but_the_one_just_completed_at_once(
    door: Door, key: str, value: int
) -> None:
    for number in range(3000):
        put(door, 1, f"j{number}")
    popped(door, 1, limit=3000)
    for number in range(3000):
        door.connection.send("EVALSHA", door.sha, 0, "job.complete", 2, f"j{number}", "w", "q", "{}")
    for _ in range(3000):
        assert door.connection.read() == "complete"
    door.call("config.set", 3, key, value)
    done(door, 3, "last")
    left = door.call("jobs.completed", 3, 0, 0)
    assert "last" not in left
    assert 1000 <= 3000 - len(left) < 3000
    for number in range(3):
        done(door, 4, f"more{number}")
    assert door.call("jobs.completed", 4) == []


def test_a_completed_job_that_is_put_again_is_not_deleted(door: Door) -> None:
    door.call("config.set", 0, "jobs-history", 100)
    done(door, 0, "a")
    put(door, 50, "a", "other")
    done(door, 500, "b")
    assert door.call("job.get", 500, "a")["state"] == "waiting"
    assert door.call("jobs.completed", 500) == ["b"]


def test_offset_and_limit_must_be_numbers(door: Door) -> None:
    assert door.raw("jobs.completed", 1) == "[]"
    assert 'Jobs(): Arg "offset" not a number' in refusal(door.call("jobs.completed", 1, "x"))
    assert 'Jobs(): Arg "limit" not a number' in refusal(door.call("jobs.completed", 1, 0, "x"))
