"""`hf1_call`: the commands of the reqless protocol on a native root."""

import json
from typing import Any

import pytest

from holdfast.commands.base import Call
from holdfast.testing.clock import StoppedClock
from native_door import Door, StoreMessage


def call(door: Door, *words: Any, line: str = "", number: int = 0) -> Any:
    reply = door("call", line, number, *words)
    return reply.decode() if isinstance(reply, bytes) else reply


def put(door: Door, jid: str, data: str = "{}") -> None:
    assert call(door, "queue.put", "w", "q", jid, "k", data, 0) == jid


def test_a_command_acts_on_the_jobs_that_native_calls_know(door: Door, clock: StoppedClock):
    put(door, "mine")
    door.put("q", "theirs")
    clock.advance(seconds=1)
    assert [job.jid for job in door.pop("w", "q", n=2)] == ["mine", "theirs"]
    assert call(door, "job.complete", "theirs", "w", "q", "[1]") == "complete"
    assert door.state("theirs") == "complete"
    assert clock.core(Call("queue.length", ("q",))) == 1


@pytest.mark.usefixtures("long_leases")
def test_the_time_is_the_stores_whatever_the_caller_thinks(door: Door, clock: StoppedClock):
    put(door, "j")
    [job] = json.loads(call(door, "queue.pop", "q", "w", 1))
    assert job["expires"] == clock.now + 60
    clock.advance(seconds=0.5)
    assert call(door, "job.heartbeat", "j", "w") == int(clock.now + 60)


def test_a_call_that_is_sent_again_answers_as_it_did(door: Door):
    """Even if it answers with more than other verbs keep."""
    for jid in ("a", "b"):
        put(door, jid, json.dumps("x" * 5000))
    first = call(door, "queue.pop", "q", "w", 1, line="l", number=7)
    assert len(first) > 5000
    assert call(door, "queue.pop", "q", "w", 1, line="l", number=7) == first
    assert door.state("b") == "waiting"
    assert "b" in call(door, "queue.pop", "q", "w", 1, line="l", number=8)
    with pytest.raises(StoreMessage, match="HF_STALE_NUMBER"):
        call(door, "queue.pop", "q", "w", 1, line="l", number=7)


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("config.set", "mine", "1"), None),
        (("queue.unfail", "q", "none"), 0),
        (("queue.put", "w", "q", "j", "k", "{}", 0), "j"),
        (("job.cancel", "j", "x"), [b"j", b"x"]),
    ],
)
def test_every_kind_of_reply_is_kept(door: Door, words: tuple[Any, ...], reply: Any):
    put(door, "j")
    assert call(door, *words, line="l", number=1) == reply
    assert call(door, *words, line="l", number=1) == reply


def test_an_answer_that_is_too_long_to_keep_says_that_it_was_given(door: Door):
    door("setting", "", 0, "max-data", 8 << 20)
    put(door, "j", json.dumps("x" * 1_100_000))
    assert len(call(door, "queue.pop", "q", "w", 1, line="l", number=1)) > 1_100_000
    assert call(door, "queue.pop", "q", "w", 1, line="l", number=1) == [b"again"]
    assert door.state("j") == "running"


def test_a_refusal_is_the_sentence_of_the_protocol(door: Door):
    put(door, "j")
    with pytest.raises(StoreMessage) as said:
        call(door, "job.complete", "j", "w", "q", "{}")
    assert str(said.value) == "HF_REFUSED Complete(): Job is not currently running: waiting"


def test_limits_of_native_names_hold_in_lists_too(door: Door):
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT tags: expected 1 to 200 bytes"):
        call(door, "queue.put", "w", "q", "j", "k", "{}", 0, "tags", '["a", "\\n"]')
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT at most 64 tags a job"):
        call(door, "queue.put", "w", "q", "j", "k", "{}", 0, "tags", json.dumps([str(n) for n in range(65)]))
    assert door.state("j") == "absent"


def test_brackets_within_texts_are_no_depth(door: Door):
    put(door, "j", json.dumps({"a": '[["' * 200}))
    put(door, "k", "[" * 100 + "]" * 100)
    put(door, "l", json.dumps([[[]]] * 300))
    with pytest.raises(StoreMessage, match="deeper than 100"):
        put(door, "m", "[" * 101 + "]" * 101)
    with pytest.raises(StoreMessage, match="deeper than 100"):
        put(door, "m", '{"a":' * 101 + '"[]"' + "}" * 101)


def test_a_job_has_at_most_so_many_tags_however_they_came(door: Door):
    put(door, "j")
    call(door, "job.addTag", "j", *[f"t{n}" for n in range(40)])
    with pytest.raises(StoreMessage, match="HF_"):
        call(door, "job.addTag", "j", *[f"u{n}" for n in range(30)])
    assert len(json.loads(call(door, "job.get", "j"))["tags"]) == 40


def test_whoever_pops_is_listed(door: Door, clock: StoppedClock):
    put(door, "j")
    call(door, "queue.pop", "q", "bee", 1)
    clock.advance(seconds=1)
    call(door, "queue.pop", "q", "ant", 1)
    assert json.loads(call(door, "workers.counts")) == [
        {"name": "ant", "jobs": 0, "stalled": 0},
        {"name": "bee", "jobs": 1, "stalled": 0},
    ]


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(201, "limit: expected a whole number from 1 to 200"), (0, "must be greater than zero"), (-300, "must be greater than zero"),
     ("many", "limit: expected a whole number from 1 to 200")],
)  # fmt: skip
def test_a_refused_unfail_names_the_counts_that_are_taken(door: Door, count: Any, sentence: str):
    with pytest.raises(StoreMessage, match=sentence):
        call(door, "queue.unfail", "q", "G", count)
