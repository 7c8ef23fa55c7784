"""job.get and job.getMulti."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_a_job_shows_every_field_byte_for_byte(door: Door) -> None:
    put(door, 0.25, "p")
    door.call("queue.put", 12345.678, "w", "a/b", 'j"1', "k\x7f", '{"a": 1}', 0, "priority", 2, "retries", 3, "tags",
              '["x",7]', "throttles", '["t1"]', "depends", '["p"]')  # fmt: skip
    assert door.raw("job.get", 12346, 'j"1') == (
        '{"jid":"j\\"1","klass":"k\\u007f","state":"depends","queue":"a\\/b","worker":"","tracked":false,"priority":2,'
        '"expires":0,"retries":3,"remaining":3,"data":"{\\"a\\": 1}","tags":["x",7],'
        '"history":[{"what":"put","when":12345,"queue":"a\\/b"}],"failure":{},"throttles":["t1","ql:q:a\\/b"],'
        '"dependents":{},"dependencies":["p"],"spawned_from_jid":false}'
    )
    assert door.call("job.get", 12346, "p")["dependents"] == ['j"1']


@pytest.mark.full
def test_numbers_have_fourteen_digits(door: Door) -> None:
    put(door, 1, "j", "q", 0, "priority", 0.1 + 0.2)
    popped(door, 1700000000.323456)
    job = door.raw("job.get", 1700000001, "j")
    assert '"priority":0.3,' in job
    assert '"expires":1700000060.3235,' in job


@pytest.mark.full
def test_a_job_of_a_template_says_so(door: Door) -> None:
    door.call("queue.recurAtInterval", 0, "q", "daily", "k", "{}", 60, 0)
    popped(door, 0)
    assert door.call("job.get", 0, "daily-1")["spawned_from_jid"] == "daily"


@pytest.mark.full
def test_many_come_in_the_order_they_were_asked_for(door: Door) -> None:
    for jid in "ab":
        put(door, 1, jid)
    found = door.call("job.getMulti", 2, "b", "none", "a", "b")
    assert [job["jid"] for job in found] == ["b", "a", "b"]
    assert (door.raw("job.getMulti", 2), door.raw("job.getMulti", 2, "none")) == ("[]", "[]")


def test_nothing_is_answered_for_an_unknown_job(door: Door) -> None:
    assert door.raw("job.get", 1, "none") is None
    assert refusal(door.raw("job.get", 1)) == "no jid provided"
