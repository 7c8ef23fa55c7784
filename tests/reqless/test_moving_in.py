"""A database in which an older core keeps jobs is left as it is."""

import pytest
from reference import older_reference_text, reference_text
from stories import refusal
from two_doors import Door


@pytest.mark.full
def test_the_jobs_of_an_older_core_are_refused_and_stay_as_they_are(door: Door) -> None:
    text = reference_text()
    if text is None:
        pytest.skip("the reference cannot be fetched")
    ours = door.sha
    door.sha = door.connection.ask("SCRIPT", "LOAD", text)
    door.call("queue.put", 1, "w", "q", "j", "klass", "{}", 0)
    before = door.contents()
    theirs, door.sha = door.sha, ours
    for call in (
        ("queue.pop", 2, "q", "w", 1),
        ("queue.put", 2, "w", "q", "k", "klass", "{}", 0),
        ("queues.counts", 2),
    ):
        assert "holds jobs of an older core" in refusal(door.raw(*call))
    assert door.contents() == before
    door.sha = theirs
    assert door.call("queue.pop", 3, "q", "w", 1)[0]["jid"] == "j"


@pytest.mark.full
def test_what_other_programs_keep_beforehand_is_no_hindrance(door: Door) -> None:
    """Definitions of throttles and patterns are written by anybody."""
    door.connection.ask("HSET", "ql:th:db", "id", "db", "maximum", 1)
    door.connection.ask("HSET", "ql:qp:identifiers", "mail", '["mail*"]')
    assert door.call("queue.put", 1, "w", "q", "j", "klass", "{}", 0) == "j"
    assert door.call("throttle.get", 1, "db")["maximum"] == 1


@pytest.mark.full
@pytest.mark.parametrize("words", ["queue.pop queue.put", "pop put"])
def test_a_forgotten_worker_on_an_older_core_takes_no_job_out_of_its_queue(door: Door, words: str) -> None:
    text = reference_text() if "." in words else older_reference_text()
    if text is None:
        pytest.skip("the reference cannot be fetched")
    for jid in ("j", "k"):
        door.call("queue.put", 1, "w", "q", jid, "klass", "{}", 0)
    before = door.contents()
    ours, door.sha = door.sha, door.connection.ask("SCRIPT", "LOAD", text)
    pop, put = words.split()
    assert "WRONGTYPE" in refusal(door.raw(put, 2, "w", "q", "theirs", "klass", "{}", 0))
    assert door.contents() == before
    assert "WRONGTYPE" in refusal(door.raw(pop, 2, "q", "forgotten", 5))
    door.connection.ask("DEL", "ql:workers")  # all that it could write
    assert door.contents() == before
    door.sha = ours
    assert [job["jid"] for job in door.call("queue.pop", 3, "q", "w", 5)] == ["j", "k"]


@pytest.mark.full
def test_the_settings_of_an_older_core_are_not_overwritten(door: Door) -> None:
    door.connection.ask("HSET", "ql:config", "heartbeat", 10)
    before = door.connection.ask("KEYS", "*")
    assert "holds settings of an older core (key ql:config)" in refusal(door.raw("config.getAll", 1))
    assert door.connection.ask("KEYS", "*") == before == ["ql:config"]
    door.connection.ask("DEL", "ql:config")
    assert door.call("config.getAll", 2)["heartbeat"] == "60"


def test_a_root_that_was_taken_away_is_made_again_beside_its_guard(door: Door) -> None:
    door.call("queue.put", 1, "w", "q", "j", "klass", "{}", 0)
    door.connection.ask("DEL", "ql:hf:")
    assert door.call("job.get", 2, "j")["state"] == "waiting"
