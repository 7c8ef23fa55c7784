"""failureGroups.counts: how many failed jobs each group has."""

import pytest
from stories import fail, refusal
from two_doors import Door


def test_groups_come_with_their_first_job_and_go_with_their_last(door: Door) -> None:
    assert door.raw("failureGroups.counts", 0) == "{}"
    for now, (jid, group) in enumerate((("a", "g"), ("b", "g"), ("c", "h"))):
        fail(door, now, jid, group)
    assert door.call("failureGroups.counts", 4) == {"g": 2, "h": 1}
    door.call("job.cancel", 5, "c")
    assert door.call("failureGroups.counts", 5) == {"g": 2}
    door.call("queue.put", 6, "w", "q", "a", "klass", "{}", 0)
    door.call("queue.put", 6, "w", "q", "b", "klass", "{}", 0)
    assert door.raw("failureGroups.counts", 6) == "{}"


@pytest.mark.full
def test_two_numbers_are_looked_at_though_nobody_needs_them(door: Door) -> None:
    assert door.call("failureGroups.counts", 1, "0", "25") == {}
    assert 'Failed(): Arg "start" is not a number' in refusal(door.call("failureGroups.counts", 1, "x"))
    assert 'Failed(): Arg "limit" is not a number' in refusal(door.call("failureGroups.counts", 1, "0", "x"))
