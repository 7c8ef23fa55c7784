"""What qless answers otherwise than reqless: stories that its reference tells, too."""

import pytest
from older_words import Older
from stories import refusal

EMPTY = [
    ("pop", ("q", "w", 1)), ("peek", ("q", 0, 5)), ("multiget", ()), ("multiget", ("x",)), ("queues", ()), ("failed", ()),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(("command", "words"), EMPTY)
def test_an_empty_list_is_an_empty_object(either: Older, command: str, words: tuple[object, ...]) -> None:
    assert either.raw(command, 1, *words) == "{}"


@pytest.mark.full
@pytest.mark.parametrize("words", [("complete",), ("running", "q"), ("stalled", "q"), ("scheduled", "q"),
                                   ("depends", "q"), ("throttled", "q"), ("recurring", "q")])  # fmt: skip
def test_jids_come_one_by_one(either: Older, words: tuple[object, ...]) -> None:
    assert either.call("jobs", 1, *words) == []


def test_jobs_are_listed_by_state(either: Older) -> None:
    either.put(1, "later", "q", 60)
    either.put(1, "now")
    assert either.popped(2) == [("now", 5, 62)]
    assert either.call("jobs", 3, "running", "q") == ["now"]
    assert either.call("jobs", 62, "stalled", "q", 0, 25) == ["now"]
    assert either.call("jobs", 3, "scheduled", "q") == ["later"]
    assert either.call("complete", 4, "now", "w", "q", "{}") == "complete"
    assert either.call("jobs", 5, "complete") == ["now"]
    assert either.call("jobs", 5, "complete", 1, 5) == []
    assert "Unknown type" in refusal(either.call("jobs", 5, "waiting", "q"))
    assert 'Arg "queue" missing' in refusal(either.call("jobs", 5, "running"))


def test_a_put_names_its_queue_shortly_and_a_throttled_line_in_full(either: Older) -> None:
    either.call("queue.throttle.set", 0, "q", 1)
    for jid in ("a", "b"):
        either.put(1, jid)
    either.call("pop", 2, "q", "w", 1)
    either.put(3, "c")
    assert either.call("get", 4, "c")["history"] == [
        {"what": "put", "when": 3, "q": "q"}, {"what": "throttled", "when": 3, "queue": "q"}
    ]  # fmt: skip


def test_a_job_shows_throttles_and_where_it_came_from(either: Older) -> None:
    either.put(1, "j", "q", 0, "throttles", '["t"]', "priority", 2.5)
    assert either.call("get", 2, "j") == {
        "jid": "j", "klass": "klass", "state": "waiting", "queue": "q", "worker": "", "tracked": False,
        "priority": 2.5, "expires": 0, "retries": 5, "remaining": 5, "data": "{}", "tags": {},
        "history": [{"what": "put", "when": 1, "q": "q"}], "failure": {}, "throttles": ["t", "ql:q:q"],
        "dependents": {}, "dependencies": {}, "spawned_from_jid": False,
    }  # fmt: skip
    assert either.call("get", 2, "x") is None


@pytest.mark.full
def test_counts_name_the_throttled(either: Older) -> None:
    either.put(1, "j")
    counts = {"name": "q", "waiting": 1, "running": 0, "stalled": 0, "scheduled": 0, "depends": 0, "throttled": 0,
              "recurring": 0, "paused": False}  # fmt: skip
    assert either.call("queues", 2) == [counts]
    assert either.call("queues", 2, "q") == counts
    assert either.call("length", 2, "q") == 1


@pytest.mark.full
def test_defaults_are_numbers_and_what_was_set_is_text(either: Older) -> None:
    shown = {"application": "qless", "grace-period": 10, "heartbeat": 60, "histogram-history": 7,
             "jobs-history": 604800, "jobs-history-count": 50000, "stats-history": 30}  # fmt: skip
    assert either.call("config.get", 1) == shown
    assert either.call("config.get", 1, "heartbeat") == 60
    assert either.call("config.get", 1, "application") == "qless"
    for unknown in ("max-job-history", "max-worker-age", "max-pop-retry", "colour"):
        assert either.call("config.get", 1, unknown) is None
    either.call("config.set", 1, "heartbeat", 33)
    assert either.call("config.get", 1) == {**shown, "heartbeat": "33"}
    assert either.call("config.get", 1, "heartbeat") == "33"
    either.call("config.unset", 1, "heartbeat")
    assert either.call("config.get", 1, "heartbeat") == 60
    assert [channel for channel, _ in either.meant()] == ["ql:log", "ql:log"]


@pytest.mark.full
def test_a_setting_that_is_not_shown_counts_all_the_same(either: Older) -> None:
    either.call("config.set", 1, "max-job-history", 3)
    either.put(1, "j")
    for now in range(2, 6):
        either.call("put", now, "w", "q", "j", "klass", "{}", 0)
    assert [line["when"] for line in either.call("get", 9, "j")["history"]] == [1, 4, 5]


def test_a_throttle_does_not_tell_its_time_unless_asked(either: Older) -> None:
    assert either.call("throttle.get", 1, "t") == {"id": "t", "maximum": 0}
    assert either.call("throttle.ttl", 1, "t") == -2
    either.call("throttle.set", 1, "t", 3, 30)
    assert either.call("throttle.get", 1, "t") == {"id": "t", "maximum": 3}
    assert 28 <= either.call("throttle.ttl", 1, "t") <= 30
    assert either.call("queue.throttle.set", 1, "q", 2) is None
    assert either.call("queue.throttle.get", 1, "q") == {"id": "ql:q:q", "maximum": 2}
    assert either.call("throttle.ttl", 1, "ql:q:q") == -1
    assert either.call("throttle.delete", 1, "t") is None
    assert "no tid provided" in refusal(either.call("throttle.ttl", 1))


@pytest.mark.full
def test_slots_and_who_waits_for_one_come_one_by_one(either: Older) -> None:
    either.call("throttle.set", 1, "t", 1)
    for jid in ("a", "b"):
        either.put(1 if jid == "a" else 2, jid, "q", 0, "throttles", '["t"]')
    assert either.popped(3) == [("a", 5, 63)]
    assert either.call("throttle.locks", 4, "t") == ["a"]
    assert either.call("throttle.pending", 4, "t") == ["b"]
    assert either.call("throttle.release", 4, "t", "a") is None
    assert either.call("throttle.locks", 4, "t") == []


@pytest.mark.full
def test_a_job_that_was_timed_out_shows_who_had_it(either: Older) -> None:
    either.put(1, "j")
    either.popped(2)
    either.meant()
    assert either.call("timeout", 3, "j") is None
    lost = {"jid": "j", "event": "lock_lost", "worker": "w"}
    assert either.meant() == [("ql:w:w", lost), ("ql:log", lost)]
    job = either.call("get", 3, "j")
    assert (job["state"], job["worker"], job["expires"]) == ("stalled", "w", 0)
    assert either.popped(4, "q", "v") == [("j", 5, 64)]


@pytest.mark.full
def test_a_retry_that_was_the_last_is_a_failure_in_the_history(either: Older) -> None:
    either.put(1, "j", "q", 0, "retries", 0)
    either.popped(2)
    assert either.call("retry", 3.5, "j", "q", "w") == -1
    job = either.call("get", 4, "j")
    assert job["history"][-1] == {"what": "failed", "when": 3, "group": "failed-retries-q"}
    assert job["failure"] == {
        "group": "failed-retries-q", "message": 'Job exhausted retries in queue "q"', "when": 3.5, "worker": ""
    }  # fmt: skip
    assert either.call("failed", 4) == {"failed-retries-q": 1}
    assert either.call("failed", 4, "failed-retries-q") == {"total": 1, "jobs": ["j"]}
    assert either.call("failed", 4, "x") == {"total": 0, "jobs": {}}


@pytest.mark.full
def test_marks_are_one_command(either: Older) -> None:
    either.put(1, "j")
    assert [either.call("track", 1, "track", "j") for _ in range(2)] == [1, 0]
    assert [either.call("track", 1, "untrack", "j") for _ in range(2)] == [1, 0]
    assert [channel for channel, _ in either.meant()][1:] == ["ql:track"] * 2 + ["ql:untrack"] * 2
    assert "Unknown action" in refusal(either.call("track", 1, "follow", "j"))
    assert 'Arg "jid" missing' in refusal(either.call("track", 1, "track"))
    assert "does not exist" in refusal(either.call("track", 1, "track", "x"))


@pytest.mark.full
@pytest.mark.parametrize(("command", "sentence"), [
    (("fly",), "Unknown command fly"), (("length",), "no queue name provided"), (("get",), "no jid provided"),
    (("put",), "no queue name provided"), (("pop", "q"), 'Pop(): Arg "worker" missing'),
    (("peek", "q"), 'Peek(): Arg "offset" missing or not a number'), (("stats", "q"), 'Arg "date" missing or not a number'),
    (("priority", "j"), 'Arg "priority" missing or not a number'), (("fail", "j", "w"), 'Fail(): Arg "group" missing'),
    (("pop", "q", "w"), 'Pop(): Arg "count" missing or not a number'), (("unfail",), "no queue name provided"),
    (("peek", "q", 0, "x"), 'Peek(): Arg "count" missing or not a number'),
    (("jobs", "running", "q", 0, "x"), 'Jobs(): Arg "count" not a number'),
    (("tag", "top", 0, "x"), 'Tag(): Arg "count" not a number'), (("unfail", "q"), 'Unfail(): Arg "group" missing'),
    (("failed", "g", 0, "x"), 'Failed(): Arg "limit" is not a number'),
    (("heartbeat", "x", "w"), "does not exist"), (("timeout", "x"), "Timeout(): Job x not running"),
    (("complete", "j", "w", "q", "{}"), "not currently running: waiting"),
    (("retry", "j", "q", "w"), "not currently running: waiting"),
    (("requeue", "w", "q", "x", "k", "{}", 0), "Requeue(): Job x does not exist"),
])  # fmt: skip
def test_refusals_read_alike(either: Older, command: tuple[object, ...], sentence: str) -> None:
    either.put(1, "j")
    assert sentence in refusal(either.call(str(command[0]), 2, *command[1:]))
