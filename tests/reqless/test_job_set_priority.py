"""job.setPriority."""

import pytest
from stories import peeked, put, refusal
from two_doors import Door


@pytest.mark.full
def test_a_new_priority_goes_ahead_of_its_class(door: Door) -> None:
    for number, jid in enumerate("abc", 1):
        put(door, number, jid)
    assert door.call("job.setPriority", 9, "c", 0) == 0
    assert peeked(door, 9) == ["c", "a", "b"]


def test_a_fraction_is_kept_and_left_out_of_the_answer(door: Door) -> None:
    put(door, 1, "a")
    put(door, 2, "b", "q", 0, "priority", 2.6)
    assert [door.call("job.setPriority", 3, "a", priority) for priority in (2.7, "-2.7", "0x10")] == [
        2,
        -2,
        16,
    ]
    door.call("job.setPriority", 3, "a", 2.7)
    assert (door.call("job.get", 3, "a")["priority"], peeked(door, 3)) == (2.7, ["a", "b"])


@pytest.mark.full
def test_it_counts_in_every_state(running: Door) -> None:
    put(running, 11, "later", "q", 5)
    for jid in ("j", "later"):
        running.call("job.setPriority", 12, jid, 7)
    running.call("job.retry", 13, "j", "q", "w")
    put(running, 14, "k", "q", 0, "priority", 6)
    assert peeked(running, 16) == ["j", "later", "k"]


@pytest.mark.full
def test_a_completed_job_has_one_too(running: Door) -> None:
    running.call("job.complete", 12, "j", "w", "q", "{}")
    assert running.call("job.setPriority", 13, "j", 3) == 3
    assert running.call("job.get", 13, "j")["priority"] == 3
    assert running.call("queue.length", 13, "q") == 0


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no jid provided"),
    (("j",), 'Priority(): Arg "priority" missing or not a number'),
    (("j", "x"), 'Priority(): Arg "priority" missing or not a number'),
    (("j", "nan"), 'Priority(): Arg "priority" missing or not a number'),
    (("none", 1), "does not exist"),
])  # fmt: skip
def test_a_priority_is_a_number_of_a_job(running: Door, words: tuple[object, ...], sentence: str) -> None:
    assert sentence in refusal(running.call("job.setPriority", 11, *words))
    assert running.call("job.get", 11, "j")["priority"] == 0
