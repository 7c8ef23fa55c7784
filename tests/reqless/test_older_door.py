"""What only our door of qless does: what the protocol's last own release did and its reference does not, cured
weaknesses, and a database shared with clients of reqless."""

import re

import pytest
from older_words import Older
from stories import popped, put, refusal
from two_doors import Door

from holdfast.core.sources import source


@pytest.mark.full
def test_a_peek_without_an_offset_begins_at_the_head(older: Older) -> None:
    """So ask clients of the last release; those of the reference say an offset."""
    for now, jid in enumerate("abc"):
        older.put(now, jid)
    assert [job["jid"] for job in older.call("peek", 5, "q", 2)] == ["a", "b"]
    assert [job["jid"] for job in older.call("peek", 5, "q", 1, 2)] == ["b", "c"]


def limited(older: Older, most: object) -> None:
    older.call("config.set", 0, "q-max-concurrency", most)
    for now, jid in enumerate("abcd"):
        older.put(now, jid)


def test_a_queue_runs_no_more_jobs_at_once_than_its_setting_says(older: Older) -> None:
    limited(older, 3)
    assert older.popped(10, limit=2) == [("a", 5, 70), ("b", 5, 70)]
    assert older.popped(11, limit=2) == [("c", 5, 71)]
    assert older.popped(12) == []
    assert older.call("queues", 12, "q")["waiting"] == 1
    older.call("complete", 13, "a", "w", "q", "{}")
    assert older.popped(14) == [("d", 5, 74)]


def test_a_job_whose_lock_was_lost_counts_among_those_that_may_run(older: Older) -> None:
    """A lock that ended runs no more; who pops the job again takes one of the places."""
    limited(older, 1)
    older.call("config.set", 0, "grace-period", 0)
    assert older.popped(10) == [("a", 5, 70)]
    assert older.popped(69) == []
    assert older.popped(70) == [("a", 4, 130)]
    assert older.popped(71) == []


@pytest.mark.full
@pytest.mark.parametrize("most", [0, "many", -1])
def test_a_setting_that_is_no_limit_limits_nothing(older: Older, most: object) -> None:
    limited(older, most)
    assert len(older.popped(10)) == 4


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    (("complete", "x", "w", "q", "{}"), "Complete(): Job x does not exist"),
    (("fail", "x", "w", "g", "m"), "Fail(): Job x does not exist"),
    (("retry", "x", "q", "w"), "Retry(): Job x does not exist"),
    (("heartbeat", "x", "w"), "Heartbeat(): Job x does not exist"),
    (("fail", "j", "v", "g", "m"), "Fail(): Job j running with another worker: w"),
    (("complete", "j", "w", "p", "{}"), "Complete(): Job j running in another queue: q"),
    (("priority", "x", 1), "Priority(): Job x does not exist"),
])  # fmt: skip
def test_a_refusal_names_the_job(older: Older, words: tuple[object, ...], sentence: str) -> None:
    older.put(1, "j")
    older.popped(2)
    assert refusal(older.call(str(words[0]), 3, *words[1:])) == sentence


@pytest.mark.full
def test_who_tracks_a_job_hears_that_its_last_retry_failed(older: Older) -> None:
    older.put(1, "j", "q", 0, "retries", 0)
    older.call("track", 1, "track", "j")
    older.popped(2)
    older.messages()
    assert older.call("retry", 3, "j", "q", "w") == -1
    assert older.messages() == [("ql:failed", "j")]


@pytest.mark.full
def test_a_count_of_nothing_puts_all_failed_jobs_back(older: Older) -> None:
    """The reference does, too, and lists them as failed all the same."""
    older.run("a", "b")
    for now, jid in enumerate("ab", 3):
        older.call("fail", now, jid, "w", "g", "m")
    assert older.call("unfail", 5, "q", "g", 0) == 2
    assert (older.states(6, "a", "b"), older.call("failed", 6)) == (["waiting", "waiting"], {})


@pytest.mark.full
def test_clients_of_both_protocols_work_on_each_others_jobs(door: Door, older: Older) -> None:
    """Both doors open the same root of the same database."""
    assert door.connection is not older.connection
    older.put(1, "early")
    put(door, 2, "late")
    assert popped(door, 3, limit=1) == [("early", 5, 63)]
    assert older.popped(3) == [("late", 5, 63)]
    assert door.call("job.get", 4, "early")["history"][0] == {"what": "put", "when": 1, "queue": "q"}
    assert older.call("get", 4, "late")["history"][0] == {"what": "put", "when": 2, "q": "q"}
    assert older.call("complete", 5, "early", "w", "q", "{}") == "complete"
    assert door.call("job.complete", 5, "late", "w", "q", "{}") == "complete"
    assert (
        sorted(older.call("jobs", 6, "complete")) == door.call("jobs.completed", 6)[::-1] == ["early", "late"]
    )
    door.call("config.set", 6, "heartbeat", 9)
    assert older.call("config.get", 6, "heartbeat") == "9"


@pytest.mark.full
def test_each_door_shows_a_failure_in_its_own_words(door: Door, older: Older) -> None:
    older.put(1, "j", "q", 0, "retries", 0)
    older.popped(2)
    assert door.call("job.retry", 3, "j", "q", "w") == -1
    assert door.call("job.get", 4, "j")["history"][-1]["what"] == "failed-retries"
    assert older.call("get", 4, "j")["history"][-1]["what"] == "failed"


@pytest.mark.full
def test_only_the_older_door_names_the_last_holder_of_a_job_taken_away(door: Door, older: Older) -> None:
    older.put(1, "j")
    older.popped(2)
    door.call("job.timeout", 3, "j")
    assert (door.call("job.get", 4, "j")["worker"], older.call("get", 4, "j")["worker"]) == ("", "w")
    older.messages()
    older.put(5, "j", worker="v")
    assert [channel for channel, _ in older.messages()] == ["ql:log"]
    assert older.call("get", 6, "j")["worker"] == ""


@pytest.mark.full
def test_no_door_knows_the_names_of_the_other(door: Door, older: Older) -> None:
    assert refusal(older.call("queue.put", 1)) == "Unknown command queue.put"
    assert refusal(door.call("put", 1)) == "Unknown command put"


def test_no_message_of_the_protocol_is_forgotten_by_the_older_one() -> None:
    """It lists them one by one; only a list without gaps is the same protocol."""
    told = [
        set(re.findall(r"\bM\.(\w+)", source(name)))
        for name in ("nouns.event.event_log", "doors.qless.events")
    ]
    assert told[1] == told[0] | {"exhausted"}
