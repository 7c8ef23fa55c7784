"""throttle.* and queue.throttle.*; config.*."""

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


def test_a_definition_is_a_hash_others_may_read(door: Door) -> None:
    door.call("throttle.set", 1, "tid", 5, 100)
    assert door.connection.ask("HMGET", "ql:th:tid", "id", "maximum") == ["tid", "5"]
    assert 0 < door.call("throttle.get", 1, "tid")["ttl"] <= 100
    assert door.call("throttle.get", 1, "none") == {"id": "none", "maximum": 0, "ttl": -2}
    door.call("queue.throttle.set", 1, "q", 3)
    assert door.call("queue.throttle.get", 1, "q") == {"id": "ql:q:q", "maximum": 3, "ttl": -1}
    door.call("throttle.delete", 1, "tid")
    assert door.call("throttle.get", 1, "tid")["ttl"] == -2


def test_a_limit_that_is_no_number_is_refused_and_one_that_was_written_counts_as_none(door: Door) -> None:
    assert "not a number" in refusal(door.call("throttle.set", 1, "tid", "many"))
    door.connection.ask("HSET", "ql:th:ql:q:q", "maximum", "many")
    put(door, 1, "j")
    assert len(popped(door, 2)) == 1


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


def test_a_raised_limit_lets_pending_jobs_go(door: Door) -> None:
    door.call("queue.throttle.set", 0, "q", 1)
    for jid in ("a", "b", "c"):
        put(door, 1, jid)
    popped(door, 2)
    door.call("queue.throttle.set", 3, "q", 2)
    assert locks_and_pending(door, "ql:q:q") == (["a"], ["c"])


def test_fresh_settings_are_the_eight_of_the_protocol(door: Door) -> None:
    assert door.call("config.getAll", 1) == {
        "application": "reqless", "grace-period": "10", "heartbeat": "60", "jobs-history": "604800",
        "jobs-history-count": "50000", "max-job-history": "100", "max-pop-retry": "1", "max-worker-age": "86400",
    }  # fmt: skip


def test_setting_and_unsetting_is_told(door: Door) -> None:
    door.messages()
    assert door.call("config.set", 1, "foo", "bar") is None
    assert door.call("config.get", 1, "foo") == "bar"
    assert door.call("config.unset", 1, "foo") is None
    assert door.call("config.get", 1, "foo") is None
    assert door.messages() == [
        ("ql:log", '{"option":"foo","event":"config_set","value":"bar"}'),
        ("ql:log", '{"event":"config_unset","option":"foo"}'),
    ]


def test_a_setting_that_is_no_number_counts_as_not_set(door: Door) -> None:
    door.call("config.set", 1, "heartbeat", "often")
    put(door, 1, "j")
    assert popped(door, 2) == [("j", 5, 62)]


def test_completed_jobs_are_kept_for_a_while(door: Door) -> None:
    door.call("config.set", 0, "jobs-history", 100)
    for jid, now in (("old", 0), ("new", 101)):
        put(door, now, jid)
        popped(door, now)
        assert door.call("job.get", now, "old") is not None
        door.call("job.complete", now, jid, "w", "q", "{}")
    assert door.call("jobs.completed", 101) == ["new"]
    assert door.call("job.get", 101, "old") is None


def test_queues_are_known_from_their_first_put_on(door: Door) -> None:
    for now, queue in ((2, "b"), (2, "a"), (1, "z")):
        put(door, now, f"j{queue}", queue)
    popped(door, 3, "never")
    assert door.call("queues.names", 3) == ["z", "a", "b"]
