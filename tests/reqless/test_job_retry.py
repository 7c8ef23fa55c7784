"""job.retry."""

import pytest
from stories import history, peeked, popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_a_retry_writes_no_history_and_says_nothing(running: Door) -> None:
    assert running.call("job.retry", 11, "j", "q", "w", 5, "g", "m") == 4
    assert running.messages() == []
    job = running.call("job.get", 11, "j")
    assert (job["state"], job["worker"], job["expires"]) == ("scheduled", "", 0)
    assert history(job) == [("put", 1), ("popped", 10)]
    assert job["failure"] == {"group": "g", "message": "m", "when": 11, "worker": "w"}
    assert running.call("job.get", 16, "j")["state"] == "waiting"


def test_a_group_alone_notes_no_failure(running: Door) -> None:
    assert running.call("job.retry", 11, "j", "q", "w", -1, "g") == 4
    job = running.call("job.get", 11, "j")
    assert (job["state"], job["failure"]) == ("waiting", {})


@pytest.mark.full
@pytest.mark.parametrize("delay", [0, 5])
def test_any_queue_may_be_named_and_the_job_stays_in_its_own(running: Door, delay: float) -> None:
    assert running.call("job.retry", 11, "j", "other", "w", delay) == 4
    assert running.call("job.get", 11, "j")["queue"] == "q"
    assert (peeked(running, 16), peeked(running, 16, "other")) == (["j"], [])


def test_the_former_holder_is_not_told_of_what_becomes_of_the_job(running: Door) -> None:
    running.call("job.retry", 11, "j", "q", "w")
    put(running, 12, "j", "other", worker="v")
    assert [channel for channel, _ in running.messages()] == ["ql:log"]


@pytest.fixture
def last(door: Door) -> Door:
    """`j` runs for the last time."""
    put(door, 1, "j", "q", 0, "retries", 0)
    popped(door, 2)
    door.messages()
    return door


@pytest.mark.full
def test_the_last_retry_fails_the_job_in_silence(last: Door) -> None:
    last.call("job.track", 2, "j")
    last.messages()
    assert last.call("job.retry", 3.5, "j", "q", "w", 0, "g") == -1
    assert last.messages() == []
    job = last.call("job.get", 4, "j")
    assert (job["state"], job["remaining"], job["worker"], job["expires"]) == ("failed", -1, "", 0)
    assert job["failure"] == {
        "group": "g", "message": 'Job exhausted retries in queue "q"', "when": 3.5, "worker": ""}  # fmt: skip
    assert job["history"][-1] == {"what": "failed-retries", "when": 3, "group": "g"}
    assert last.call("failureGroups.counts", 4) == {"g": 1}
    stats = last.call("queue.stats", 4, "q", 4)
    assert (stats["failures"], stats["failed"], stats["retries"]) == (1, 1, 0)


@pytest.mark.full
@pytest.mark.parametrize(("words", "failure"), [
    ((), {"group": "failed-retries-q", "message": 'Job exhausted retries in queue "q"', "when": 3.5, "worker": ""}),
    (("g", "m"), {"group": "g", "message": "m", "when": 3, "worker": "w"}),
    (("", "m"), {"group": "", "message": "m", "when": 3, "worker": "w"}),
    (("g", ""), {"group": "g", "message": "", "when": 3, "worker": "w"}),
])  # fmt: skip
def test_why_it_failed_is_said_if_all_of_it_is_given(
    last: Door, words: tuple[str, ...], failure: object
) -> None:
    last.call("job.retry", 3.5, "j", "q", "w", 0, *words)
    assert last.call("job.get", 4, "j")["failure"] == failure
    assert last.call("jobs.failedByGroup", 4, (*words, "failed-retries-q")[0])["jobs"] == ["j"]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no jid provided"),
    (("j",), 'Retry(): Arg "queue_name" missing'),
    (("j", "q"), 'Retry(): Arg "worker" missing'),
    (("j", "q", "w", "x"), 'Retry(): Arg "delay" not a number'),
    (("j", "q", "w", "inf"), 'Retry(): Arg "delay" not a number'),
    (("x", "q", "w"), "Retry(): Job does not exist"),
    (("idle", "q", "w"), "Retry(): Job is not currently running: waiting"),
    (("j", "q", "v"), "Retry(): Job has been given to another worker: w"),
])  # fmt: skip
def test_what_cannot_be_retried_stays_as_it_is(running: Door, words: tuple[str, ...], sentence: str) -> None:
    put(running, 11, "idle")
    before = running.call("job.getMulti", 11, "j", "idle")
    running.messages()
    assert sentence in refusal(running.call("job.retry", 12, *words))
    assert (running.call("job.getMulti", 12, "j", "idle"), running.messages()) == (before, [])
