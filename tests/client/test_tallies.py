"""Tallies, minutes and percentiles through both clients."""

import pytest

from holdfast import UsageError
from holdfast.models import Sample


def test_a_queue_says_what_happened_in_it(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("Send"))
    assert do(lambda: queue.tallies())["put"] == 1
    job = do(lambda: queue.pop())
    do(lambda: job.complete())
    found = do(lambda: queue.tallies())
    assert found == {
        "put": 1, "popped": 1, "completed": 1, "failed": 0, "retried": 0, "lost": 0, "timed_out": 0, "cancelled": 0,
    }  # fmt: skip
    lines = do(lambda: queue.minutes())
    assert sum(line["completed"] for line in lines) == 1
    assert lines[0]["when"] > 1_700_000_000
    assert do(lambda: queue.minutes(since=lines[-1]["when"] + 3600)) == []
    with pytest.raises(UsageError):
        do(lambda: queue.minutes(since="noon"))


def scale(*durations_ms: int) -> Sample:
    """A sample of these durations, on the finer scale as the core keeps it."""
    found: dict[int, int] = {}
    for ms in durations_ms:
        power = (ms + 1).bit_length()
        bucket = power * 4 + (ms + 1) * 8 // 2**power
        found[bucket] = found.get(bucket, 0) + 1
    return Sample(len(durations_ms), 0, 0, (), tuple(found.items()))


@pytest.mark.parametrize("percent", [1, 25, 50, 75, 95, 99, 100])
def test_a_percentile_is_within_a_quarter_of_the_true_one(percent: int):
    durations = sorted((n * n) % 90_001 + 3 for n in range(1, 5_000))
    true = durations[max(round(percent / 100 * len(durations)) - 1, 0)] / 1000
    assert scale(*durations).percentile(percent) == pytest.approx(true, rel=0.25)


def test_percentiles_of_nothing_and_of_one():
    assert scale().percentile(50) == 0.0
    assert scale(1000).percentile(50) == pytest.approx(1.0, rel=0.25)
    assert scale(0, 0, 0).percentile(0) == 0.0
    with pytest.raises(UsageError):
        scale(1).percentile(101)
