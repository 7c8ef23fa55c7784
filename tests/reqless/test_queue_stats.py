"""queue.stats: how long the jobs of a day waited and ran, and what went wrong."""

import pytest
from stories import fail, popped, put, refusal
from two_doors import Door

DAY = 86400


def test_a_day_without_jobs_is_all_zero(door: Door) -> None:
    series = {"count": 0, "mean": 0, "std": 0, "histogram": [0] * 148}
    expected = {"retries": 0, "failed": 0, "failures": 0, "wait": series, "run": series}
    assert door.call("queue.stats", 5, "q", 5) == expected


@pytest.mark.full
def test_mean_and_deviation_are_those_of_the_sample(door: Door) -> None:
    for number in range(20):
        put(door, 0, f"j{number:02}")
    for now in range(20):
        popped(door, now, limit=1)
    wait = door.call("queue.stats", 20, "q", 0)["wait"]
    assert (wait["count"], wait["mean"], wait["std"]) == (20, 9.5, 5.9160797830996)
    assert wait["histogram"] == [1] * 20 + [0] * 128


@pytest.mark.full
@pytest.mark.parametrize(("seconds", "bucket"), [
    (0, 0), (59.9, 59), (60, 60), (3599, 118), (3600, 119), (86399, 141), (86400, 142), (604799, 147),
])  # fmt: skip
def test_a_sample_is_booked_by_its_length(door: Door, seconds: float, bucket: int) -> None:
    put(door, 0, "j")
    popped(door, seconds)
    wait = door.call("queue.stats", seconds, "q", seconds)["wait"]
    assert (wait["count"], wait["mean"], wait["std"]) == (1, seconds, 0)
    assert [index for index, count in enumerate(wait["histogram"]) if count] == [bucket]


@pytest.mark.full
def test_a_week_is_in_no_bucket(door: Door) -> None:
    put(door, 0, "j")
    popped(door, 604800)
    wait = door.call("queue.stats", 604800, "q", 604800)["wait"]
    assert (wait["count"], wait["mean"], sum(wait["histogram"])) == (1, 604800, 0)


def test_a_run_is_counted_from_the_last_pop_on_the_day_it_ends(door: Door) -> None:
    door.call("config.set", 0, "heartbeat", 2 * DAY)
    put(door, 0, "j")
    popped(door, 10)
    door.call("job.complete", DAY + 70, "j", "w", "q", "{}")
    assert door.call("queue.stats", DAY, "q", 10)["run"]["count"] == 0
    run = door.call("queue.stats", DAY, "q", DAY)["run"]
    assert (run["count"], run["mean"]) == (1, DAY + 60)


def test_a_failure_that_was_put_right_is_not_failed_any_more(door: Door) -> None:
    fail(door, 0, "j")
    put(door, 1.5 * DAY, "j")
    first, second = (door.call("queue.stats", 2 * DAY, "q", day * DAY) for day in (0, 1))
    assert [(day["failed"], day["failures"]) for day in (first, second)] == [(0, 1), (0, 0)]


@pytest.mark.full
def test_a_move_takes_the_failure_back_where_it_happened(door: Door) -> None:
    fail(door, 0, "j")
    put(door, 5, "j", "other")
    assert door.call("queue.stats", 5, "q", 0)["failed"] == 0  # W20: the reference goes below 0 in the other
    assert door.call("queue.stats", 5, "other", 0)["failed"] == 0


@pytest.mark.full
def test_lost_leases_are_retries_and_retries_are_not(door: Door) -> None:
    put(door, 0, "j")
    popped(door, 0)
    door.call("job.retry", 1, "j", "q", "w")
    assert door.call("queue.stats", 2, "q", 0)["retries"] == 0
    popped(door, 2)
    popped(door, 100, worker="v")
    assert door.call("queue.stats", 100, "q", 0)["retries"] == 1


@pytest.mark.full
def test_thousands_of_samples_are_folded(door: Door) -> None:
    for number in range(1200):
        put(door, number, f"j{number}")
    assert len(popped(door, 1200, limit=1200)) == 1200
    wait = door.call("queue.stats", 1200, "q", 0)["wait"]
    assert (wait["count"], wait["mean"], sum(wait["histogram"])) == (1200, 600.5, 1200)


@pytest.mark.full
def test_statistics_are_dropped_after_400_days(door: Door) -> None:
    put(door, 0, "lost")
    popped(door, 0)
    for number in range(600):
        put(door, 0, f"j{number:03}")
    popped(door, 60, limit=600)
    fail(door, 61, "bad")
    kept = [key for key in door.connection.ask("KEYS", "ql:hf:*:0") if not key.startswith("ql:hf:j:")]
    assert len(kept) >= 2
    days = {key: door.connection.ask("TTL", key) / DAY for key in kept}
    assert all(399 < left <= 400 for left in days.values()), days


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no queue name provided"),
    (("q",), 'Stats(): Arg "date" missing or not a number'),
    (("q", "x"), 'Stats(): Arg "date" missing or not a number'),
])  # fmt: skip
def test_a_day_has_to_be_named(door: Door, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(door.call("queue.stats", 1, *words))
