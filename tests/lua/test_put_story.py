"""put: jobs come into a queue."""

import pytest

from holdfast.commands.jobs import Cancel, JobGet, Move, Put, PutMany
from holdfast.commands.queues import QueueNames
from holdfast.errors import JobExists, JobNotFound, Refused
from native_door import Door, StoreMessage

pytestmark = pytest.mark.each

LONG = b'"' + b"x" * 2000 + b'"'


def test_a_job_that_was_put_waits_with_all_it_was_given(core, clock):
    core(Put("mail", "Welcome", b'{"to":7}', jid="j", priority=3, retries=2))
    [job] = core(JobGet(["j"]))
    assert (job.state, job.queue, job.klass, job.data) == ("waiting", "mail", "Welcome", b'{"to":7}')
    assert (job.priority, job.retries, job.remaining, job.attempts) == (3, 2, 2, 0)
    assert (job.created_ms, job.queued_ms) == (clock.now_ms, clock.now_ms)
    assert [(line.what, line.when_ms, line.name) for line in job.history] == [("put", clock.now_ms, "mail")]


def test_a_minted_jid_put_again_changes_nothing(core, door: Door):
    core(Put("mail", "Welcome", jid="j"))
    [running] = door.pop("w", "mail")
    assert door("put", "", 0, "new", "other", 9, 1, 0, "j", "Other", "{}") == [0, 0, b"again"]
    job = door.job("j")
    assert job is not None
    assert (job.state, job.token, job.queue, job.klass) == ("running", running.token, "mail", "Welcome")


def test_move_takes_a_job_from_where_it_is_and_begins_a_new_life(core, door: Door, clock):
    core(Put("mail", "Welcome", b"1", jid="j", priority=5, retries=1))
    [held] = door.pop("w", "mail")
    clock.advance(seconds=5)
    core(Put("other", "Changed", b"2", jid="j", mode="move", retries=3))
    job = door.job("j")
    assert job is not None
    assert (job.state, job.queue, job.klass, job.data, job.priority) == (
        "waiting",
        "other",
        "Changed",
        b"2",
        0,
    )
    assert (job.retries, job.remaining, job.attempts, job.queued_ms) == (3, 3, 1, clock.now_ms)
    assert [line.what for line in job.history] == ["put", "popped", "put"]
    assert door("heartbeat", 0, "w", "j", held.token, "") == [0]


def test_only_new_recognises_itself_and_refuses_other_content(core):
    first = Put("mail", "Welcome", b"1", jid="j", mode="only")
    assert core(first) == core(first) == "j"
    for other in (
        Put("mail", "Welcome", b"2", jid="j", mode="only"),
        Put("mail", "W", b"1", jid="j", mode="only"),
    ):
        with pytest.raises(JobExists):
            core(other)


def test_a_batch_of_512_jobs_is_put_in_one_call_and_in_order(core, door: Door):
    jids = [f"j{number}" for number in range(512)]
    words = [word for jid in jids for word in (jid, "k", b"{}")]
    assert core(PutMany("q", words)) == jids
    assert [job.jid for job in door.pop("w", "q", n=512)] == jids


def test_a_batch_of_513_is_refused_whole(door: Door):
    before = door.dump()
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door.put("q", *[f"j{number}" for number in range(513)])
    assert door.dump() == before


def test_a_known_jid_in_a_batch_is_named_and_does_not_spoil_the_others(core, door: Door):
    core(Put("q", "k", b"0", jid="old"))
    words = [word for jid in ("a", "old", "b") for word in (jid, "k", b"1")]
    assert core(PutMany("q", words)) == ["a", "old", "b"]
    answers = core(PutMany("q", words, mode="only"))
    assert [answers[0], answers[2]] == ["a", "b"]
    assert isinstance(answers[1], Refused)
    assert [job.jid for job in door.pop("w", "q", n=9)] == ["old", "a", "b"]


def test_a_jid_twice_in_a_batch_is_one_job_the_first(door: Door):
    reply = door("put", "", 0, "new", "q", 0, 5, 0, "a", "k", "1", "b", "k", "2", "a", "k", "3")
    assert reply == [2, 2, b"again"]
    assert [(job.jid, job.data) for job in door.pop("w", "q", n=9)] == [("a", b"1"), ("b", b"2")]


@pytest.mark.parametrize("mode", ["move", "old"])
def test_the_reply_of_a_put_names_jobs_that_were_there_and_were_moved(door: Door, mode: str):
    assert door("put", "", 0, "move", "q", 0, 5, 0, "a", "k", "1") == [1]
    assert door("put", "", 0, mode, "other", 0, 5, 0, "a", "k", "2") == [1, 0, b"again"]
    assert (door.job("a").queue, door.job("a").data) == ("other", b"2")
    words = ("b", "k", "1", "a", "k", "3", "c", "k", "1")
    added, *pairs = door("put", "", 0, mode, "q", 0, 5, 0, *words)
    codes = dict(zip(pairs[::2], pairs[1::2], strict=True))
    assert (added, codes.pop(1)) == (3 if mode == "move" else 1, b"again")
    assert list(codes) == ([] if mode == "move" else [0, 2])  # there are no such jobs


def test_a_long_body_lives_in_a_key_of_its_own_until_the_job_is_gone(core, door: Door):
    core(Put("q", "k", LONG, jid="long"))
    assert "b:long" in door.names()
    assert core(JobGet(["long"]))[0].data == LONG
    [job] = door.pop("w", "q")
    assert job.data == LONG
    core(Move("q", "long", data=b"short"))
    assert "b:long" not in door.names()
    core(Move("q", "long", data=LONG))
    assert core(Cancel(["long"])) == [True]
    assert not door.names() & {"b:long", "j:long", "x:long"}


def test_long_and_short_bodies_mix_in_one_batch_and_keep_their_order(core, door: Door):
    words = [word for number in range(20) for word in (f"j{number}", "k", LONG if number % 3 else b"{}")]
    core(PutMany("q", words))
    assert [(job.jid, job.data) for job in door.pop("w", "q", n=20)] == list(
        zip(words[::3], words[2::3], strict=True)
    )


def test_a_delayed_job_is_not_handed_out_before_its_time(core, clock, door: Door):
    core(Put("q", "k", jid="j", delay_ms=1500))
    assert (door.state("j"), core(JobGet(["j"]))[0].due_ms) == ("scheduled", clock.now_ms + 1500)
    clock.advance(seconds=1.499)
    assert door.pop("w", "q") == []
    clock.advance(seconds=0.001)
    assert door.state("j") == "waiting"
    assert [job.jid for job in door.pop("w", "q")] == ["j"]


def test_a_queue_is_known_from_its_first_job_on(core, clock, door: Door):
    core(Put("b", "k"))
    clock.advance(seconds=1)
    core(Put("a", "k", delay_ms=1000))
    clock.advance(seconds=1)
    core(Put("c", "k", jid="j", mode="only"))
    clock.advance(seconds=1)
    core(Move("d", "j", delay_ms=5))
    assert core(QueueNames()) == ["b", "a", "c", "d"]


def test_moving_an_unknown_job_is_refused(core):
    with pytest.raises(JobNotFound):
        core(Move("q", "nobody"))


def test_a_record_that_counted_65535_attempts_can_be_popped_again(core, door: Door):
    core(Put("q", "k", b'"data"', jid="j"))
    [job] = door.pop("w", "q")
    for attempts in (65_535, 65_535):
        record = bytearray(door.ask("GET", door.key("j:j")))
        record[5:7] = attempts.to_bytes(2, "little")
        door.ask("SET", door.key("j:j"), bytes(record))
        assert door("retry", "w", 0, "", "", "j", job.token, "")[0] >= 0
        [job] = door.pop("w", "q")
    assert (job.attempts, job.data, job.queue) == (65_535, b'"data"', "q")
