"""job.completeAndRequeue: a job is done here, and goes on there."""

from typing import Any

import pytest
from stories import peeked, popped, put, refusal
from two_doors import Door


@pytest.fixture
def running(door: Door) -> Door:
    """`j` of queue `q`, popped by `w` at 10, with all that may travel with it."""
    put(door, 1, "j", "q", 0, "tags", '["x"]', "priority", 7, "retries", 2, "throttles", '["db"]')
    popped(door, 10)
    door.messages()
    return door


def advance(door: Door, now: float, *words: object, jid: str = "j") -> Any:
    return door.call("job.completeAndRequeue", now, jid, "w", "q", '{"b": 2}', *words)


@pytest.mark.full
def test_the_job_waits_in_the_next_queue_in_the_same_life(running: Door) -> None:
    assert advance(running, 12.5, "next one") == "waiting"
    assert running.messages() == [("ql:log", '{"jid":"j","to":"next one","event":"advanced","queue":"q"}')]
    job = running.call("job.get", 13, "j")
    kept = (job["klass"], job["tags"], job["priority"], job["retries"], job["remaining"], job["data"])
    assert kept == ("klass", ["x"], 7, 2, 2, '{"b": 2}')
    assert (job["state"], job["queue"], job["worker"], job["expires"]) == ("waiting", "next one", "", 0)
    assert job["history"][2:] == [
        {"what": "done", "when": 12},
        {"what": "put", "when": 12, "queue": "next one"},
    ]
    assert (peeked(running, 13), peeked(running, 13, "next one")) == ([], ["j"])
    assert running.call("queues.names", 13) == ["q", "next one"]
    assert running.call("jobs.completed", 13) == []
    assert running.call("queue.stats", 13, "q", 13)["run"]["mean"] == 2.5


@pytest.mark.full
def test_a_tracked_job_completes_first(running: Door) -> None:
    running.call("job.track", 11, "j")
    running.messages()
    advance(running, 12, "r")
    assert [channel for channel, _ in running.messages()] == ["ql:completed", "ql:log"]


@pytest.mark.full
def test_slots_come_back_and_those_of_the_next_queue_count(running: Door) -> None:
    advance(running, 12, "r")
    assert running.call("job.get", 12, "j")["throttles"] == ["db", "ql:q:r"]
    assert [running.call("throttle.locks", 12, name) for name in ("db", "ql:q:q")] == [[], []]
    popped(running, 13, "r")
    locks = [running.call("throttle.locks", 13, name) for name in ("db", "ql:q:q", "ql:q:r")]
    assert locks == [["j"], [], ["j"]]


@pytest.mark.full
def test_a_failure_that_was_noted_is_forgotten(running: Door) -> None:
    running.call("job.retry", 11, "j", "q", "w", 0, "g", "m")
    popped(running, 12)
    advance(running, 13, "r")
    job = running.call("job.get", 13, "j")
    assert (job["failure"], job["remaining"]) == ({}, 2)


@pytest.mark.full
def test_a_delay_is_kept_whatever_is_said_of_parents(running: Door) -> None:
    assert advance(running, 12, "q", "delay", "30.5", "depends", '["unknown"]') == "scheduled"
    assert running.call("job.get", 42.25, "j")["state"] == "scheduled"
    assert running.call("job.get", 42.5, "j")["state"] == "waiting"


@pytest.mark.full
def test_it_waits_for_those_that_are_open(running: Door) -> None:
    for jid in ("p", "other"):
        put(running, 11, jid)
    words = ("r", "delay", 20, "depends", '["p","unknown","other"]')
    assert advance(running, 12, *words) == "depends"
    assert running.call("queue.jobsByState", 12, "depends", "r") == ["j"]
    running.call("job.cancel", 13, "other")
    popped(running, 14)
    running.call("job.complete", 15, "p", "w", "q", "{}")
    assert running.call("job.get", 16, "j")["state"] == "depends"


def test_the_due_time_is_remembered_while_it_waits_for_others(running: Door) -> None:
    put(running, 11, "p")
    advance(running, 12, "r", "delay", 20, "depends", '["p"]')
    popped(running, 14)
    running.call("job.complete", 15, "p", "w", "q", "{}")
    assert running.call("queue.jobsByState", 31, "scheduled", "r") == ["j"]
    assert peeked(running, 32, "r") == ["j"]


def test_whoever_depends_on_it_keeps_waiting(running: Door) -> None:
    put(running, 11, "child", "q", 0, "depends", '["j"]')
    advance(running, 12, "r")
    assert running.call("job.get", 12, "child")["dependencies"] == ["j"]
    popped(running, 13, "r")
    running.call("job.complete", 14, "j", "w", "r", "{}")
    assert running.call("job.get", 14, "child")["state"] == "waiting"


def test_without_a_next_queue_it_is_complete(running: Door) -> None:
    assert advance(running, 12) == "complete"
    assert running.messages() == [("ql:log", '{"jid":"j","event":"completed","queue":"q"}')]
    assert running.call("jobs.completed", 12) == ["j"]


def test_a_name_without_a_value_and_an_unknown_one_are_left_alone(running: Door) -> None:
    assert advance(running, 12, "r", "colour", "blue", "delay") == "waiting"


@pytest.mark.full
@pytest.mark.parametrize(("words", "queue", "state"), [
    (("next", "r"), "r", "waiting"), (("next", "r", "delay", 5), "r", "scheduled"),
    (("next", "r", "delay", 0, "depends", "[]"), "r", "waiting"),
    (("next",), "next", "waiting"), (("next", "delay", 5), "next", "scheduled"),
])  # fmt: skip
def test_the_word_next_before_the_queue_is_understood(
    running: Door, words: tuple[object, ...], queue: str, state: str
) -> None:
    assert advance(running, 12, *words) == state
    assert running.call("job.get", 12, "j")["queue"] == queue


@pytest.mark.full
def test_lines_are_kept_as_many_as_are_allowed(running: Door) -> None:
    running.call("config.set", 11, "max-job-history", 4)
    for now in (12, 14):
        advance(running, now, "q")
        popped(running, now + 1)
    lines = [(line["what"], line["when"]) for line in running.call("job.get", 16, "j")["history"]]
    assert lines == [("put", 1), ("done", 14), ("put", 14), ("popped", 15)]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no jid provided"),
    (("j",), 'Complete(): Arg "worker" missing'),
    (("j", "w"), 'Complete(): Arg "queue_name" missing'),
    (("j", "w", "q"), "not JSON"),
    (("j", "w", "q", "{"), "not JSON"),
    (("none", "w", "q", "{}", "r"), "Complete(): Job does not exist"),
    (("j", "v", "q", "{}", "r"), "Complete(): Job has been handed out to another worker: w"),
    (("j", "w", "p", "{}", "r"), "Complete(): Job running in another queue: q"),
    (("none", "w", "q", "{}", "r", "delay", "x"), 'Complete(): Arg "delay" not a number'),
    (("none", "w", "q", "{}", "r", "depends", "{"), "Expected"),
    (("j", "w", "q", "{}", "r", "depends", "7"), "depends is not a JSON list"),
    (("j", "w", "q", "{}", "r", "depends", '["j"]'), "Complete(): j cannot wait for itself"),
    (("j", "w", "q", "{}", "r", "depends", '["child"]'), "Complete(): j would wait for itself, through others"),
    (("child", "w", "q", "{}", "r"), "Complete(): Job is not currently running: depends"),
])  # fmt: skip
def test_what_cannot_go_on_stays_as_it_is(running: Door, words: tuple[object, ...], sentence: str) -> None:
    put(running, 11, "child", "q", 0, "depends", '["j"]')
    before = running.call("job.get", 11, "j")
    running.messages()
    assert sentence in refusal(running.call("job.completeAndRequeue", 12, *words))
    assert (running.call("job.get", 12, "j"), running.messages()) == (before, [])
    assert running.call("queues.names", 12) == ["q"]
