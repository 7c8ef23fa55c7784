"""job.addDependency and job.removeDependency."""

from typing import Any

import pytest
from stories import peeked, popped, put, refusal
from two_doors import Door


@pytest.fixture
def waiting(door: Door) -> Door:
    """`j` waits for `a`, with a delay that was kept; `b` is there, too."""
    for jid in "ab":
        put(door, 1, jid)
    put(door, 2, "j", "q", 500, "depends", '["a"]')
    door.messages()
    return door


def ties(door: Door, jid: str = "j") -> tuple[str, Any]:
    job = door.call("job.get", 3, jid)
    return job["state"], sorted(job["dependencies"])


def test_open_jobs_are_added_and_others_count_as_done(waiting: Door) -> None:
    popped(waiting, 2, limit=1)
    waiting.call("job.complete", 2, "a", "w", "q", "{}")
    put(waiting, 2, "j", "q", 0, "depends", '["b"]')
    put(waiting, 2, "c")
    assert waiting.call("job.addDependency", 3, "j", "c", "a", "unknown", "c") == 1
    assert (ties(waiting), waiting.call("job.get", 3, "c")["dependents"]) == (("depends", ["b", "c"]), ["j"])


def test_the_job_is_ready_at_once_when_nothing_is_left(waiting: Door) -> None:
    waiting.call("job.addDependency", 3, "j", "b")
    assert waiting.call("job.removeDependency", 3, "j", "a", "unknown") == 1
    assert ties(waiting) == ("depends", ["b"])
    assert waiting.call("job.removeDependency", 3, "j", "b") == 1
    assert (ties(waiting), peeked(waiting, 3)) == (("waiting", []), ["a", "b", "j"])
    assert waiting.call("job.get", 3, "a")["dependents"] == {}
    assert waiting.messages() == []


@pytest.mark.full
def test_all_lets_go_of_all(waiting: Door) -> None:
    waiting.call("job.addDependency", 3, "j", "b")
    assert waiting.call("job.removeDependency", 3, "j", "b", "all") == 1
    assert ties(waiting) == ("depends", ["a"])
    assert waiting.call("job.removeDependency", 3, "j", "all") == 1
    assert ties(waiting) == ("waiting", [])


@pytest.mark.full
def test_the_delay_that_was_ignored_is_not_kept_for_later(waiting: Door) -> None:
    waiting.call("job.removeDependency", 3, "j", "all")
    put(waiting, 4, "j", "q", 0, "depends", '["a"]')
    popped(waiting, 5, limit=1)
    waiting.call("job.complete", 6, "a", "w", "q", "{}")
    assert ties(waiting) == ("waiting", [])


@pytest.mark.full
def test_no_names_change_nothing(waiting: Door) -> None:
    assert waiting.call("job.addDependency", 3, "j") == waiting.call("job.removeDependency", 3, "j") == 1
    assert ties(waiting) == ("depends", ["a"])


@pytest.mark.full
def test_a_job_may_wait_for_more_than_a_thousand(waiting: Door) -> None:
    names = [f"p{number:04}" for number in range(1100)]
    for name in names:
        put(waiting, 2, name)
    assert waiting.call("job.addDependency", 3, "j", *names) == 1
    assert ties(waiting) == ("depends", ["a", *names])


@pytest.mark.full
@pytest.mark.parametrize("command", ["job.addDependency", "job.removeDependency"])
def test_only_a_job_that_waits_for_others_can_be_told_so(waiting: Door, command: str) -> None:
    assert refusal(waiting.call(command, 3)) == "no jid provided"
    sentence = "Depends(): Job {} not in the depends state: {}"
    assert refusal(waiting.call(command, 3, "none", "a")) == sentence.format("none", "false")
    assert refusal(waiting.call(command, 3, "a", "b")) == sentence.format("a", "waiting")


@pytest.mark.full
def test_nobody_waits_for_itself(waiting: Door) -> None:
    put(waiting, 3, "k", "q", 0, "depends", '["j"]')
    assert (
        refusal(waiting.call("job.addDependency", 3, "j", "b", "j")) == "Depends(): j cannot wait for itself"
    )
    sentence = "Depends(): j would wait for itself, through others"
    assert refusal(waiting.call("job.addDependency", 3, "j", "b", "k")) == sentence
    assert ties(waiting) == ("depends", ["a"])


@pytest.mark.full
def test_a_job_whose_delay_is_over_and_that_nobody_moved_yet_is_called_scheduled(door: Door) -> None:
    put(door, 1, "j", "q", 5)
    for command in ("job.addDependency", "job.removeDependency"):
        assert refusal(door.call(command, 10, "j", "a")).endswith(": scheduled")
