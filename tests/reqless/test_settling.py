"""job.complete, job.fail, job.retry, job.heartbeat, job.timeout, job.setPriority."""

import pytest
from stories import history, peeked, popped, put, refusal
from two_doors import Door


@pytest.fixture
def running(door: Door) -> Door:
    """One job, `j` of queue `q`, popped by `w` at 10."""
    put(door, 1, "j")
    popped(door, 10)
    door.messages()
    return door


@pytest.mark.parametrize(("command", "words", "sentence"), [
    ("job.complete", ("j", "w", "q", "{}"), "Complete(): Job is not currently running: waiting"),
    ("job.fail", ("j", "w", "g", "m"), "Fail(): Job not currently running: waiting"),
    ("job.retry", ("j", "q", "w"), "Retry(): Job is not currently running: waiting"),
    ("job.heartbeat", ("j", "w"), "Heartbeat(): Job not currently running: waiting"),
    ("job.timeout", ("j",), "Timeout(): Job j not running"),
    ("job.complete", ("x", "w", "q", "{}"), "Complete(): Job does not exist"),
    ("job.fail", ("x", "w", "g", "m"), "Fail(): Job does not exist"),
    ("job.retry", ("x", "q", "w"), "Retry(): Job does not exist"),
    ("job.heartbeat", ("x", "w"), "Heartbeat(): Job does not exist"),
])  # fmt: skip
def test_what_does_not_run_cannot_be_settled(
    door: Door, command: str, words: tuple[object, ...], sentence: str
) -> None:
    put(door, 1, "j")
    assert refusal(door.call(command, 2, *words)) == sentence


@pytest.mark.parametrize(("command", "words", "sentence"), [
    ("job.complete", ("j", "v", "q", "{}"), "Complete(): Job has been handed out to another worker: w"),
    ("job.complete", ("j", "w", "p", "{}"), "Complete(): Job running in another queue: q"),
    ("job.fail", ("j", "v", "g", "m"), "Fail(): Job running with another worker: w"),
    ("job.retry", ("j", "q", "v"), "Retry(): Job has been given to another worker: w"),
    ("job.heartbeat", ("j", "v"), "Heartbeat(): Job given out to another worker: w"),
    ("job.complete", ("j", "w", "q"), "not JSON"),
    ("job.fail", ("j", "w", "g"), 'Fail(): Arg "message" missing'),
    ("job.retry", ("j", "q", "w", "x"), 'Retry(): Arg "delay" not a number'),
    ("job.heartbeat", (), "no jid provided"),
])  # fmt: skip
def test_only_its_holder_settles_a_job(
    running: Door, command: str, words: tuple[object, ...], sentence: str
) -> None:
    assert sentence in refusal(running.call(command, 11, *words))
    assert running.messages() == []


def test_a_completed_job_has_no_queue_and_no_holder(running: Door) -> None:
    assert running.call("job.complete", 30, "j", "w", "q", '{"b":2}') == "complete"
    assert running.messages() == [("ql:log", '{"jid":"j","event":"completed","queue":"q"}')]
    job = running.call("job.get", 31, "j")
    assert (job["state"], job["queue"], job["worker"], job["expires"]) == ("complete", "", "", 0)
    assert (job["data"], job["remaining"], history(job)[-1]) == ('{"b":2}', 5, ("done", 30))
    assert running.call("jobs.completed", 31) == ["j"]
    stats = running.call("queue.stats", 31, "q", 31)
    assert (stats["wait"]["count"], stats["wait"]["mean"], stats["run"]["mean"]) == (1, 9, 20)


def test_a_failed_job_is_listed_newest_call_first(door: Door) -> None:
    for jid in ("b", "a", "c"):
        put(door, 1, jid)
    popped(door, 2)
    door.messages()
    for jid in ("b", "a", "c"):
        assert door.call("job.fail", 3.5, jid, "w", "grp", "mess") == jid
    assert door.messages()[0] == (
        "ql:log", '{"message":"mess","jid":"b","group":"grp","event":"failed","worker":"w"}')  # fmt: skip
    assert door.call("jobs.failedByGroup", 4, "grp") == {"total": 3, "jobs": ["c", "a", "b"]}
    job = door.call("job.get", 4, "a")
    assert job["failure"] == {"group": "grp", "message": "mess", "when": 3, "worker": "w"}
    assert job["history"][-1] == {"what": "failed", "when": 3, "worker": "w", "group": "grp"}


def test_a_retry_writes_no_history_and_says_nothing(running: Door) -> None:
    assert running.call("job.retry", 11, "j", "q", "w", 5, "g", "m") == 4
    assert running.messages() == []
    job = running.call("job.get", 11, "j")
    assert (job["state"], job["worker"], history(job)) == ("scheduled", "", [("put", 1), ("popped", 10)])
    assert job["failure"] == {"group": "g", "message": "m", "when": 11, "worker": "w"}
    assert running.call("job.get", 16, "j")["state"] == "waiting"


def test_the_last_retry_fails_the_job_without_a_message(door: Door) -> None:
    put(door, 1, "j", "q", 0, "retries", 0)
    popped(door, 2)
    door.messages()
    assert door.call("job.retry", 3.5, "j", "q", "w", 0, "g") == -1
    assert door.messages() == []
    job = door.call("job.get", 4, "j")
    assert job["failure"]["when"] == 3.5
    assert job["history"][-1] == {"what": "failed-retries", "when": 3, "group": "g"}
    assert door.call("failureGroups.counts", 4) == {"g": 1}


def test_a_heartbeat_moves_the_end_and_keeps_data_as_it_came(running: Door) -> None:
    assert running.call("job.heartbeat", 12.5, "j", "w", "[]") == 72
    job = running.call("job.get", 13, "j")
    assert (job["expires"], job["data"]) == (72.5, "[]")
    assert running.messages() == []


def test_every_loss_has_its_own_grace(running: Door) -> None:
    assert popped(running, 70, worker="v") == []
    assert running.call("job.heartbeat", 71, "j", "w") == 131
    assert popped(running, 131, worker="v") == []
    assert popped(running, 140, worker="v") == []
    assert popped(running, 141, worker="v") == [("j", 4, 201)]


def test_a_timed_out_job_goes_ahead_of_everything(running: Door) -> None:
    put(running, 11, "first", "q", 0, "priority", 1000)
    running.messages()
    assert running.call("job.timeout", 12, "j") is None
    lost = '{"jid":"j","event":"lock_lost","worker":"w"}'
    assert running.messages() == [("ql:w:w", lost), ("ql:log", lost)]
    assert peeked(running, 12) == ["j", "first"]
    assert running.call("job.get", 12, "j")["state"] == "stalled"


def test_one_job_that_does_not_run_spares_all_from_the_timeout(running: Door) -> None:
    put(running, 11, "idle")
    assert refusal(running.call("job.timeout", 12, "j", "idle")) == "Timeout(): Job idle not running"
    assert running.call("job.get", 12, "j")["state"] == "running"


@pytest.mark.parametrize("delay", [0, 5])
def test_a_retry_names_any_queue_and_the_job_stays_in_its_own(running: Door, delay: float) -> None:
    assert running.call("job.retry", 11, "j", "other", "w", delay) == 4
    assert running.call("job.get", 11, "j")["queue"] == "q"
    assert (peeked(running, 16), peeked(running, 16, "other")) == (["j"], [])


def test_a_group_without_a_name_is_one(door: Door) -> None:
    put(door, 1, "j", "q", 0, "retries", 0)
    popped(door, 2)
    assert door.call("job.retry", 3, "j", "q", "w", 0, "", "m") == -1
    assert door.call("jobs.failedByGroup", 4, "") == {"total": 1, "jobs": ["j"]}


def test_a_new_priority_goes_ahead_of_its_class(door: Door) -> None:
    for number, jid in enumerate("abc", 1):
        put(door, number, jid)
    assert door.call("job.setPriority", 9, "c", 0) == 0
    assert peeked(door, 9) == ["c", "a", "b"]
    assert door.call("job.setPriority", 9, "a", 2.7) == 2
    assert door.call("job.get", 9, "a")["priority"] == 2.7
    assert peeked(door, 9) == ["a", "c", "b"]
    assert "does not exist" in refusal(door.call("job.setPriority", 9, "x", 1))
