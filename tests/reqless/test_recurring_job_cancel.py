"""recurringJob.cancel: a template goes, its jobs stay."""

import pytest
from stories import peeked, recur, refusal
from two_doors import Door


def test_a_template_goes_and_its_jobs_stay(door: Door) -> None:
    recur(door, 0, "r", 60)
    assert peeked(door, 60) == ["r-1", "r-2"]
    assert door.call("recurringJob.cancel", 61, "r") == 1
    assert door.call("recurringJob.get", 61, "r") is None
    assert door.call("queue.jobsByState", 61, "recurring", "q") == []
    assert peeked(door, 1000) == ["r-1", "r-2"]


@pytest.mark.full
def test_an_unknown_template_is_fine(door: Door) -> None:
    assert door.call("recurringJob.cancel", 1, "none") == 1
    assert "no jid provided" in refusal(door.call("recurringJob.cancel", 1))
