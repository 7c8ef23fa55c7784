"""throttle.* and queue.throttle.*; config.*."""

import pytest
from stories import peeked, popped, put, refusal
from two_doors import Door


def locks_and_pending(door: Door, name: str) -> tuple[list[str], list[str]]:
    return door.call("throttle.locks", 99, name), door.call("throttle.pending", 99, name)


def test_a_limit_written_by_another_program_holds_at_once(door: Door) -> None:
    for jid in ("a", "b"):
        put(door, 1, jid)
    door.connection.ask("HSET", "ql:th:ql:q:q", "id", "ql:q:q", "maximum", 1)
    assert [jid for jid, *_ in popped(door, 2)] == ["a"]
    assert locks_and_pending(door, "ql:q:q") == (["a"], ["b"])


@pytest.mark.full
def test_a_definition_is_a_hash_others_may_read(door: Door) -> None:
    door.call("throttle.set", 1, "tid", 5, 100)
    assert door.connection.ask("HMGET", "ql:th:tid", "id", "maximum") == ["tid", "5"]
    assert 0 < door.call("throttle.get", 1, "tid")["ttl"] <= 100
    assert door.call("throttle.get", 1, "none") == {"id": "none", "maximum": 0, "ttl": -2}
    door.call("queue.throttle.set", 1, "q", 3)
    assert door.call("queue.throttle.get", 1, "q") == {"id": "ql:q:q", "maximum": 3, "ttl": -1}
    door.call("throttle.delete", 1, "tid")
    assert door.call("throttle.get", 1, "tid")["ttl"] == -2


@pytest.mark.full
def test_a_limit_that_is_no_number_is_refused_and_one_that_was_written_counts_as_none(door: Door) -> None:
    assert "not a number" in refusal(door.call("throttle.set", 1, "tid", "many"))
    door.connection.ask("HSET", "ql:th:ql:q:q", "maximum", "many")
    put(door, 1, "j")
    assert len(popped(door, 2)) == 1


@pytest.mark.full
def test_releasing_a_pending_job_strands_it_until_it_is_put_again(door: Door) -> None:
    door.call("throttle.set", 0, "db", 1)
    for jid in ("holds", "waits"):
        put(door, 1, jid, "q", 0, "throttles", '["db"]')
    popped(door, 2)
    door.call("throttle.release", 3, "db", "waits", "holds")
    assert locks_and_pending(door, "db") == ([], [])
    assert door.call("queue.jobsByState", 3, "throttled", "q") == ["waits"]
    put(door, 4, "waits")
    assert peeked(door, 4) == ["waits"]


def test_releasing_the_holder_lets_the_pending_one_go(door: Door) -> None:
    door.call("throttle.set", 0, "db", 1)
    for jid in ("holds", "waits"):
        put(door, 1, jid, "q", 0, "throttles", '["db"]')
    popped(door, 2)
    door.call("throttle.release", 3, "db", "holds", "waits")
    assert peeked(door, 3) == ["waits"]
    assert door.call("job.get", 3, "waits")["state"] == "throttled"


@pytest.mark.full
def test_a_raised_limit_lets_pending_jobs_go(door: Door) -> None:
    door.call("queue.throttle.set", 0, "q", 1)
    for jid in ("a", "b", "c"):
        put(door, 1, jid)
    popped(door, 2)
    door.call("queue.throttle.set", 3, "q", 2)
    assert locks_and_pending(door, "ql:q:q") == (["a"], ["c"])


@pytest.mark.full
def test_a_release_lets_ten_go_where_the_limit_is_gone(door: Door) -> None:
    """Another program deleted the definition, or its time was over: nobody was told."""
    door.call("throttle.set", 0, "db", 1)
    for number in range(14):
        put(door, 1 + number, f"j{number:02}", "q", 0, "throttles", '["db"]')
    assert [jid for jid, *_ in popped(door, 20, limit=14)] == ["j00"]
    door.connection.ask("DEL", "ql:th:db")
    assert len(door.call("throttle.pending", 21, "db")) == 13
    door.call("job.complete", 22, "j00", "w", "q", "{}")
    assert door.call("throttle.pending", 23, "db") == ["j11", "j12", "j13"]
    assert peeked(door, 23) == [f"j{number:02}" for number in range(1, 11)]
