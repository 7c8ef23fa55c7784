"""A key that another program filled with something else: the call fails, and no job is lost."""

import pytest
from stories import peeked, popped, put, refusal
from two_doors import Door


@pytest.fixture
def limited(door: Door) -> Door:
    """A door whose jobs `a`, `b` and `c` share the one slot of a throttle."""
    door.call("throttle.set", 0, "t", 1)
    for now, jid in ((1, "a"), (2, "b"), (3, "c")):
        put(door, now, jid, "q", 0, "throttles", '["t"]')
    return door


def spoiled(door: Door, key: str, *words: object) -> None:
    """The call fails while the key holds a text; afterwards it is what it was."""
    kept = door.connection.ask("RENAME", key, "kept")
    door.connection.ask("SET", key, "strange")
    assert "WRONGTYPE" in refusal(door.call(*words))  # type: ignore[arg-type]
    door.connection.ask("DEL", key)
    if kept == "OK":
        door.connection.ask("RENAME", "kept", key)


@pytest.mark.full
def test_jobs_that_a_pop_took_keep_their_places(limited: Door) -> None:
    put(limited, 4, "urgent", "q", 0, "priority", 5)
    spoiled(limited, "ql:th:t", "queue.pop", 5, "q", "w", 5)
    assert peeked(limited, 6) == ["urgent", "a", "b", "c"]
    assert [jid for jid, *_ in popped(limited, 7)] == ["urgent", "a"]


@pytest.mark.full
def test_a_job_that_was_about_to_be_let_go_pends_again(limited: Door) -> None:
    assert [jid for jid, *_ in popped(limited, 5)] == ["a"]
    assert limited.call("throttle.pending", 5, "t") == ["b", "c"]
    spoiled(limited, "ql:q:q-work", "job.complete", 6, "a", "w", "q", "{}")
    assert limited.call("job.get", 7, "a")["state"] == "running"
    assert sorted(limited.call("queue.jobsByState", 7, "throttled", "q")) == ["b", "c"]
    assert limited.call("job.complete", 7, "a", "w", "q", "{}") == "complete"
    assert [jid for jid, *_ in popped(limited, 8)] == ["b"]


def test_a_job_that_moves_stays_where_it_was(limited: Door) -> None:
    spoiled(limited, "ql:th:ql:q:other", "queue.put", 5, "w", "other", "a", "klass", "{}", 0)
    assert "a" in peeked(limited, 6)


@pytest.mark.full
def test_a_job_whose_failure_went_wrong_can_be_settled(limited: Door) -> None:
    popped(limited, 5)
    spoiled(limited, "ql:th:t", "job.fail", 6, "a", "w", "g", "m")
    assert limited.call("job.fail", 7, "a", "w", "g", "m") == "a"
    assert limited.call("jobs.failedByGroup", 7, "g") == {"total": 1, "jobs": ["a"]}
