"""A database in which an older core keeps jobs is left as it is."""

import pytest
from reference import reference_text
from stories import refusal
from two_doors import Door


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


def test_what_other_programs_keep_beforehand_is_no_hindrance(door: Door) -> None:
    """Definitions of throttles and patterns are written by anybody."""
    door.connection.ask("HSET", "ql:th:db", "id", "db", "maximum", 1)
    door.connection.ask("HSET", "ql:qp:identifiers", "mail", '["mail*"]')
    assert door.call("queue.put", 1, "w", "q", "j", "klass", "{}", 0) == "j"
    assert door.call("throttle.get", 1, "db")["maximum"] == 1
