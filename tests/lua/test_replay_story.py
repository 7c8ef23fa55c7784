"""Numbered calls: sent again they are answered as before, and a straggler is refused."""

import pytest

from holdfast.commands.jobs import PutMany
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions, PutX
from holdfast.errors import QueueFull
from native_door import Door, StoreMessage, rows


def pop(door: Door, line: str, number: int, n: int = 2, worker: str = "w", queue: str = "q"):
    return door("pop", worker, line, number, n, 0, queue, 0)


def test_a_repeated_pop_answers_the_same_leases_with_the_same_tokens(door: Door):
    door.put("q", *"abcd")
    first = pop(door, "l", 1)
    assert pop(door, "l", 1) == first
    assert [job.jid for job in rows(pop(door, "l", 2))] == ["c", "d"]


def test_a_repeated_pop_leaves_out_what_ended_since(door: Door, clock):
    door.put("q", *"abc")
    a, _, c = rows(pop(door, "l", 1, n=3))
    door("complete", "w", "a", a.token, "", 0, "")
    door("cancel", "", 0, "b")
    assert [(job.jid, job.token) for job in rows(pop(door, "l", 1, n=3))] == [("c", c.token)]
    assert rows(pop(door, "l", 1, n=3, worker="v")) == []


def test_a_repeated_pop_never_shows_a_later_grant_of_the_same_moment(door: Door):
    door.put("q", "a")
    [first] = rows(pop(door, "l", 1))
    door("retry", "w", 0, "", "", "a", first.token, "")
    [second] = rows(pop(door, "m", 1))
    assert second.token > first.token
    assert rows(pop(door, "l", 1)) == []
    assert [job.token for job in rows(pop(door, "m", 1))] == [second.token]


def test_an_empty_pop_is_not_kept(door: Door):
    assert pop(door, "l", 1) == [-1]
    assert "i:l" not in door.names()
    door.put("q", "a")
    assert len(rows(pop(door, "l", 1))) == 1


def test_a_call_that_comes_after_the_question_about_it_takes_nothing(door: Door):
    door.put("q", "a", "b")
    [a] = rows(pop(door, "other", 1, n=1))
    assert rows(pop(door, "l", 7, n=0)) == []
    assert rows(pop(door, "l", 7)) == []
    late = door("complete_pop", "w", "l", 7, 1, 0, 1, "q", 0, a.jid, a.token, "", 0, "")
    assert (late[0], len(late)) == (0, 2)
    assert (door.state("a"), door.state("b")) == ("complete", "waiting")
    assert len(rows(pop(door, "l", 8))) == 1


def test_a_lower_number_is_a_straggler(door: Door):
    door.put("q", *"abcd")
    pop(door, "l", 5)
    before = door.dump()
    calls = [
        ("pop", "w", "l", 4, 1, 0, "q", 0), ("cancel", "l", 4, "a"), ("move", "l", 4, "q", 0, "a", "", ""),
        ("put", "l", 4, "move", "q", 0, 5, 0, "n", "k", "{}"), ("complete_pop", "w", "l", 4, 1, 0, 1, "q", 0),
        ("pause", "l", 4, 1, "", "", "q"), ("timeout", "l", 4, "a"), ("throttle_set", "l", 4, "ql:q:q", 1, 0),
        ("sweep", "l", 4), ("config_unset", "l", 4, "heartbeat"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(StoreMessage, match="HF_STALE_NUMBER"):
            door(*call)
    assert door.dump() == before
    pop(door, "other", 1)


def test_a_repeated_put_or_move_of_a_caller_s_own_jid_happens_once(door: Door):
    put = ("put", "l", 1, "move", "q", 0, 5, 0, "j", "k", "{}")
    assert door(*put) == [1]
    [job] = door.pop("w", "q")
    assert door(*put) == [1]
    assert door.state("j") == "running"
    move = ("move", "l", 2, "other", 0, "j", "", "")
    assert door(*move) == b"j"
    [job] = door.pop("w", "other")
    assert door(*move) == b"j"
    assert door("heartbeat", 0, "w", "j", job.token, "")[0] > 0


def test_a_repeated_put_replaces_a_job_once_although_that_has_started(core, door: Door):
    def put(jid: str, number: int):
        job = JobWithOptions("k", b"{}", jid, ExtraOptions(unique_key="a", on_conflict="replace"))
        command = PutX("q", [job])
        assert command.numbered
        assert PutWithOptions("q", job).numbered
        return door("put_x", "l", number, *command.words())

    put("one", 1)
    replaced = put("two", 2)
    door.pop("w", "q")
    assert put("two", 2) == replaced == [0, 0, b"replaced one"]
    assert door.state("two") == "absent"
    assert put("three", 3) == [1]


def test_a_repeated_cancel_answers_what_it_did(door: Door):
    door.put("q", "a")
    assert door("cancel", "l", 1, "a", "b") == [1, 0]
    door.put("q", "a")
    assert door("cancel", "l", 1, "a", "b") == [1, 0]
    assert door.state("a") == "waiting"


def test_a_repeated_complete_pop_says_again_and_gives_the_same_next_lease(door: Door):
    door.put("q", *"abc")
    [a] = rows(pop(door, "l", 1, n=1))
    call = ("complete_pop", "w", "l", 2, 1, 0, 1, "q", 0, "a", a.token, "", 0, "")
    first, second = door(*call), door(*call)
    assert first[0] == 0
    assert second[:3] == [1, b"a", b"again"]
    assert rows(second, at=3) == rows(first, at=1)
    assert door.state("c") == "waiting"


def test_a_reply_over_4_kilobytes_is_answered_again_without_the_details_of_its_codes(door: Door):
    for first in range(0, 400, 100):
        door.put("q", *[f"j{n}" for n in range(first, first + 100)])
    jobs = [word for n in range(400) for word in (f"j{n}", "other", "{}")]
    call = ("put", "l", 1, "only", "q", 0, 5, 0, "new", "k", "{}", *jobs)
    first = door(*call)
    assert first[0] == 1
    assert len(first) == 801
    again = door(*call)
    assert again[:3] == [1, 1, b"HF_JOB_EXISTS"]
    assert again[1::2] == first[1::2]
    assert door.ask("STRLEN", door.key("i:l")) < 2_048


def test_a_repeated_batch_names_the_jobs_that_were_refused_however_many(core, door: Door):
    door("queue_set", "", 0, "q", "max-waiting", 2)
    batch = PutMany("q", [word for n in range(512) for word in (f"job-number-{n}", "k", b"{}")], mode="move")
    first = core(batch)
    wished = PutX(
        "q",
        [JobWithOptions("k", b"{}", f"other-{n}", ExtraOptions(tags=["t"])) for n in range(100)],
        mode="move",
    )
    others = core(wished)
    for command, said in ((batch, first), (wished, others)):
        words = list(command.words())
        core_words = (f"hf1_{command.verb}", 1, door.root, "l", 1, *words)
        door.ask("UNLINK", door.key("i:l"))
        door.ask("FCALL", *core_words)
        answer = command.read(door.ask("FCALL", *core_words))
        assert [type(one) for one in answer] == [type(one) for one in said]
        assert any(isinstance(one, QueueFull) for one in answer)


def test_what_is_kept_of_a_line_goes_after_a_minute(door: Door):
    door.put("q", "a")
    pop(door, "l", 1)
    assert 0 < door.ask("PTTL", door.key("i:l")) <= 60_000
    door("cancel", "m", 1, "x")
    assert 0 < door.ask("PTTL", door.key("i:m")) <= 60_000


def test_a_repeated_report_adds_its_lines_once(door: Door):
    door.put("q", "a")
    [job] = door.pop("w", "q")
    for _ in range(2):
        assert door("report", "l", 1, "w", "a", job.token, "0.5", "half", "one", "two") == 1
    facts = door.job("a")
    assert facts
    assert facts.log == ("one", "two")


def test_a_repeated_mark_changed_what_its_first_time_changed(door: Door):
    door.put("q", "a")
    assert [door("track", "l", 1, 1, "a") for _ in range(2)] == [1, 1]
    assert door("track", "l", 2, 1, "a") == 0
    assert [door("track", "l", 3, 0, "a") for _ in range(2)] == [1, 1]
