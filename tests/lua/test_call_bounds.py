"""What one call may carry, and what it leaves to the next: no call may keep others from the store for long."""

import pytest

from native_door import Door, StoreMessage

TOLD = 128
"""Jobs of one call that get a line of history each."""


def held(door: Door, count: int, queue: str = "q") -> list[str]:
    names = [f"{queue}{n}" for n in range(count)]
    for at in range(0, count, 200):
        door.put(queue, *names[at : at + 200])
    for at in range(0, count, 200):
        door.pop("w", queue, n=min(200, count - at))
    return names


def of_each(names: list[str], token: int, *tail: object) -> list[object]:
    return [word for name in names for word in (name, token, *tail)]


@pytest.mark.parametrize(
    ("verb", "head"),
    [("retry", ("w", 0, "", "")), ("fail", ("w", "g", "m")), ("advance", ("w", "r", 0))],
)
def test_a_verb_that_tells_a_line_a_job_takes_its_most_and_no_more(door: Door, clock, verb, head):
    words = of_each(held(door, TOLD + 1), clock.now_ms, "")
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door(verb, *head, *words)
    assert door.state("q0") == "running"
    door(verb, *head, *words[: 3 * TOLD])
    assert (door.state(f"q{TOLD - 1}") == "running", door.state(f"q{TOLD}")) == (False, "running")


def test_timeout_and_expire_take_their_most_and_no_more(door: Door, clock):
    names = held(door, TOLD + 1)
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("timeout", "", 0, *names)
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("expire", *[word for name in names for word in ("w", name, clock.now_ms)])
    assert {door.state(name) for name in names} == {"running"}
    door("timeout", "", 0, *names[1:])
    assert door.state("q0") == "running"


def test_jobs_of_many_throttles_are_completed_a_hundred_and_two_a_call(door: Door, clock):
    names = [f"j{n}" for n in range(103)]
    for name in names:
        door("put_x", "", 0, "new", "q", 0, 5, 0, name, "k", "{}", 1, "throttle", "t")
    assert len(door.pop("w", "q", n=103)) == 103
    words = of_each(names, clock.now_ms, "", 0, "")
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("complete", "w", *words)
    assert {door.state(name) for name in names} == {"running"}
    assert door("complete", "w", *words[:-5]) == [102]


def test_jobs_of_many_tags_are_not_all_cancelled_in_one_call(door: Door):
    tags = [word for n in range(64) for word in ("tag", f"t{n}")]
    names = [f"j{n}" for n in range(40)]
    for name in names:
        door("put_x", "", 0, "new", "q", 0, 5, 0, name, "k", "{}", 64, *tags)
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("cancel", "", 0, *names)
    assert {door.state(name) for name in names} == {"waiting"}
    assert door("cancel", "", 0, *names[:15]) == [1] * 15


def test_a_pop_from_many_queues_notices_a_hundred_lost_leases_in_all(door: Door, clock):
    queues = [f"q{n}" for n in range(4)]
    for queue in queues:
        held(door, 60, queue)
    clock.advance(seconds=61)

    def noticed() -> int:
        return sum(int(door("stats", queue, 0)[0] or 0) for queue in queues)

    words = [word for queue in queues for word in (queue, 0)]
    seen = []
    for _ in range(3):
        assert door("pop", "x", "", 0, 1, 0, *words)[0] >= 0
        seen.append(noticed())
    assert seen[0] <= 110
    assert seen[-1] == 240


def test_a_pop_leaves_queues_whose_minute_is_not_noted_to_the_next_and_says_so(door: Door, clock):
    queues = [f"q{n}" for n in range(100)]
    for queue in queues:
        door.put(queue, f"j{queue}")
    clock.advance(seconds=61)
    words = [word for queue in queues for word in (queue, 0)]
    got = []
    for _ in range(10):
        reply = door("pop", "x", "", 0, 100, 0, *words)
        got.append((len(reply) - 1) // 4)
        if sum(got) < 100:
            assert reply[0] == 0
    assert sum(got) == 100
    assert got[0] < 100


def test_rows_of_jobs_with_many_parents_are_more_than_one_call_tells(door: Door):
    parents = [f"p{n}" for n in range(400)]
    for at in range(0, 400, 200):
        door.put("q", *parents[at : at + 200])
    words = [word for parent in parents for word in ("depends", parent)]
    names = [f"c{n}" for n in range(30)]
    for name in names:
        door("put_x", "", 0, "new", "r", 0, 5, 0, name, "k", "{}", 400, *words)
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("job_get", *names)
    assert len(door("job_get", *names[:10])) == 10
