"""jobs.failedByGroup: the failed jobs of a group, newest first."""

import pytest
from stories import fail, refusal
from two_doors import Door


@pytest.mark.full
@pytest.mark.parametrize(("page", "jids"), [
    ((), ["c", "b", "a"]),
    ((0, 1), ["c"]),
    ((1, 1), ["b"]),
    ((0, 0), ["c", "b", "a"]),
    ((0, -1), ["c", "b"]),
    ((1, 0), {}),
    ((-1, 1), ["a"]),
    ((5, 5), {}),
])  # fmt: skip
def test_a_page_begins_with_the_newest_failure(door: Door, page: tuple[int, ...], jids: object) -> None:
    for jid in ("a", "b", "c"):
        fail(door, 3, jid)
    assert door.call("jobs.failedByGroup", 4, "g", *page) == {"total": 3, "jobs": jids}


@pytest.mark.full
def test_an_unknown_group_has_no_jobs(door: Door) -> None:
    assert door.call("jobs.failedByGroup", 1, "none") == {"total": 0, "jobs": {}}


def test_without_a_group_all_are_counted(door: Door) -> None:
    assert door.raw("jobs.failedByGroup", 1) == "{}"
    fail(door, 3, "j")
    assert door.call("jobs.failedByGroup", 4) == {"g": 1}


@pytest.mark.full
def test_offset_and_limit_must_be_numbers(door: Door) -> None:
    assert 'Failed(): Arg "start" is not a number' in refusal(door.call("jobs.failedByGroup", 1, "g", "x"))
    assert 'Failed(): Arg "limit" is not a number' in refusal(door.call("jobs.failedByGroup", 1, "g", 0, "x"))
