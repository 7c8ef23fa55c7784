"""recurringJob.get: a template as it is shown."""

import pytest
from stories import recur, refusal
from two_doors import Door


@pytest.mark.full
def test_a_template_shows_all_but_its_next_occurrence(door: Door) -> None:
    recur(door, 1, "jid", 60, 5)
    assert door.call("recurringJob.get", 1, "jid") == {
        "jid": "jid", "klass": "klass", "state": "recur", "queue": "q", "priority": 0, "interval": 60, "retries": 0,
        "count": 0, "data": "{}", "tags": {}, "backlog": 0, "throttles": ["ql:q:q"],
    }  # fmt: skip


def test_a_template_shows_what_was_wished(door: Door) -> None:
    more = ("priority", 1.5, "retries", 2, "backlog", 1.5, "tags", '["x", 7]', "throttles", '["t"]')
    recur(door, 1, "jid", 5.25, -20, *more)
    found = door.call("recurringJob.get", 1, "jid")
    assert (found["priority"], found["retries"], found["backlog"], found["interval"]) == (1.5, 2, 1.5, 5.25)
    assert (found["tags"], found["throttles"]) == (["x", 7], ["t", "ql:q:q"])


@pytest.mark.full
def test_an_unknown_template_is_nothing(door: Door) -> None:
    assert door.raw("recurringJob.get", 1, "none") is None
    assert "no jid provided" in refusal(door.call("recurringJob.get", 1))


@pytest.mark.full
def test_a_template_is_no_job(door: Door) -> None:
    recur(door, 1, "jid", 60)
    assert door.call("job.get", 1, "jid") is None
