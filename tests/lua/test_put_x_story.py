"""put_x: jobs come into a queue with wishes. (What each wish does is told in the story of its noun.)"""

import pytest

from holdfast.commands.jobs import Cancel, JobGet, Put, PutMany
from holdfast.commands.leases import Complete, Pop
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import Retry
from holdfast.errors import JobExists, Refused
from native_door import Door, StoreMessage

PLAIN = ExtraOptions()
HEAD = ("new", "q", 0, 5, 0)
FULL = ExtraOptions(
    tags=["red"],
    depends=["parent"],
    backoff="fixed:1000:1000:0",
    expires_ms=9_000,
    limit_ms=8_000,
    keep_ms=7_000,
)


def wished(*jids: str, options: ExtraOptions = PLAIN, data: bytes = b"{}") -> list[JobWithOptions]:
    return [JobWithOptions("K", data, jid, options) for jid in jids]


def test_a_job_without_wishes_is_as_put_puts_it(core, door: Door):
    core(Put("q", "K", b"[1]", "a", 3, 2))
    core(PutX("q", [JobWithOptions("K", b"[1]", "b")], 3, 2))
    a, b = core(JobGet(["a", "b"]))
    assert door.ask("GET", door.key("j:a")) == door.ask("GET", door.key("j:b"))
    assert (a.state, a.flags, a.options) == (b.state, b.flags, b.options) == ("waiting", 0, {})


def test_each_job_of_a_call_has_wishes_of_its_own(core, door: Door):
    door.put("q", "parent")
    jobs = [*wished("a", options=FULL), *wished("b", options=ExtraOptions(tags=["blue"])), *wished("c")]
    assert core(PutX("q", jobs)) == ["a", "b", "c"]
    a, b, c = core(JobGet(["a", "b", "c"]))
    assert [job.state for job in (a, b, c)] == ["depends", "waiting", "waiting"]
    assert [job.tags for job in (a, b, c)] == [("red",), ("blue",), ()]
    assert (b.options, c.flags) == ({}, 0)


def test_a_minted_jid_that_is_put_again_changes_nothing(core, door: Door):
    door.put("q", "parent")
    core(PutX("q", wished("a", options=FULL)))
    before = door.dump()
    assert core(PutX("other", wished("a", options=ExtraOptions(tags=["blue"]), data=b"[]"), 9)) == ["a"]
    assert door.dump() == before


def test_a_jid_that_comes_twice_in_a_call_is_put_once_and_the_second_is_again(door: Door):
    words = ["a", "k", "1", 1, "tag", "red", "a", "k", "2", 1, "tag", "blue"]
    assert door("put_x", "", 0, *HEAD, *words) == [1, 1, b"again"]
    job = door.job("a")
    assert job
    assert (job.data, job.tags) == (b"1", ("red",))


def test_a_jid_that_comes_twice_in_a_moving_call_has_the_last_wishes(door: Door):
    words = ["a", "k", "1", 1, "tag", "red", "a", "k", "2", 1, "tag", "blue"]
    assert door("put_x", "", 0, "move", *HEAD[1:], *words) == [2, 1, b"again"]
    job = door.job("a")
    assert job
    assert (job.data, job.tags) == (b"2", ("blue",))
    assert door.ask("EXISTS", door.key("g:red")) == 0


def test_a_trace_comes_back_with_the_job_and_belongs_to_one_put(core, door: Door):
    core(PutX("q", wished("a", "b", options=ExtraOptions(trace="00-ab-cd-01 vendor=x,other=y"))))
    a, b = core(Pop("w", ["q"], 2))
    assert a.options == b.options == {"trace": "00-ab-cd-01 vendor=x,other=y"}
    assert door.job("a").options == a.options
    core(Retry("w", a))
    assert core(Pop("w", ["q"]))[0].options == a.options
    core(PutX("q", wished("b", options=ExtraOptions(keep_ms=5)), mode="move"))
    assert core(Pop("w", ["q"]))[0].options == {"keep": 5}


def test_only_compares_what_the_job_is_and_not_what_was_wished(core, door: Door):
    core(PutX("q", wished("a", options=ExtraOptions(tags=["red"])), mode="only"))
    before = door.dump()
    [same, other] = core(
        PutX("q", [*wished("a", options=ExtraOptions(tags=["blue"])), *wished("a", data=b"[]")], mode="only")
    )
    assert same == "a"
    assert isinstance(other, JobExists)
    assert door.dump() == before


def test_options_that_are_not_wished_again_stay_but_for_the_deadline_and_the_tags(core, clock, door: Door):
    core(PutX("q", wished("a", options=FULL)))
    core(PutX("q", wished("a", options=ExtraOptions(limit_ms=1_000)), mode="move"))
    job = door.job("a")
    assert job
    assert job.tags == ()
    assert job.options == {"backoff": "fixed:1000:1000:0", "limit": 1_000, "keep": 7_000}


def test_tags_are_replaced_and_taken_off_where_that_is_said(core, door: Door):
    core(PutX("q", wished("a", options=ExtraOptions(tags=["red", "blue"]))))
    core(PutX("q", wished("a", options=ExtraOptions(tags=["blue", "green", "blue"])), mode="move"))
    assert door.job("a").tags == ("blue", "green")
    core(PutX("q", wished("a", options=ExtraOptions(tags=[])), mode="move"))
    assert door.job("a").tags == ()
    assert not {name for name in door.names() if name.startswith("g:")}


def test_a_numbered_call_that_is_sent_again_gets_its_first_answer(door: Door):
    words = ["line", 7, "move", "q", 0, 5, 0, "a", "k", "1", 1, "tag", "red"]
    assert door("put_x", *words) == [1]
    [job] = door.pop("w", "q")
    before = door.dump()
    assert door("put_x", *words) == [1]
    assert door.dump() == before
    assert door.job("a").token == job.token
    with pytest.raises(StoreMessage, match="HF_STALE_NUMBER"):
        door("put_x", "line", 6, *words[2:])


def test_a_dependency_on_itself_is_refused_for_that_job_alone(core, door: Door):
    jobs = [*wished("a", options=ExtraOptions(depends=["a"])), *wished("b")]
    refused, put = core(PutX("q", jobs))
    assert isinstance(refused, Refused)
    assert refused.code == "HF_DEPENDENCY_REFUSED"
    assert (put, door.job("a")) == ("b", None)
    core(Cancel(["b"]))
    assert not {name for name in door.names() if name[:2] in ("j:", "x:", "d:", "g:")}


@pytest.mark.parametrize("count", [513, 2_000])
def test_more_jobs_than_a_call_may_carry_are_refused(count: int, door: Door):
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("put_x", "", 0, *HEAD, *(word for n in range(count) for word in (f"j{n}", "k", "{}", 0)))


def test_more_options_than_a_call_may_carry_are_refused(door: Door):
    words = [
        word
        for n in range(40)
        for word in (f"j{n}", "k", "{}", 60, *(w for m in range(60) for w in ("tag", f"t{m}")))
    ]
    before = door.dump()
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("put_x", "", 0, *HEAD, *words)
    assert door.dump() == before


def test_a_call_that_would_take_too_much_from_its_jobs_is_refused(core, door: Door):
    """Seventeen jobs with 64 tags each have more than a call may take away."""
    many = [f"t{n}" for n in range(64)]
    for n in range(17):
        core(PutX("q", wished(f"j{n}", options=ExtraOptions(tags=many))))
    before = door.dump()
    moved = [*wished(*(f"j{n}" for n in range(17)), options=ExtraOptions(tags=["red"]))]
    with pytest.raises(Refused, match="more than 1024"):
        core(PutX("q", moved, mode="move"))
    assert door.dump() == before
    assert len(core(PutX("q", moved[:16], mode="move"))) == 16
    assert (door.job("j15").tags, door.job("j16").tags) == (("red",), tuple(many))


def test_plain_puts_take_tags_away_too_and_no_more_than_others_in_one_call(core, door: Door):
    many = [f"t{n}" for n in range(64)]
    for n in range(17):
        core(PutX("q", wished(f"j{n}", options=ExtraOptions(tags=many))))
    words = [word for n in range(17) for word in (f"j{n}", "K", b"{}")]
    before = door.dump()
    for mode in ("move", "old"):
        with pytest.raises(Refused, match="more than 1024"):
            core(PutMany("q", words, mode=mode))
    assert door.dump() == before
    core(PutMany("q", words[:48], mode="move"))
    core(Put("q", "K", jid="j16", mode="move"))
    assert {door.job(f"j{n}").tags for n in range(17)} == {()}
    assert door("tagged", "t0", 0, 1) == [0]


def test_a_put_with_wishes_wakes_a_sleeper(core, door: Door):
    core(Pop("w", ["q"], mode=1))
    core(PutX("q", wished("a", options=ExtraOptions(tags=["red"]))))
    assert door.ask("LLEN", door.key("n:q")) == 1


def test_a_job_that_ran_with_all_wishes_leaves_nothing_behind(core, clock, door: Door):
    core(PutX("q", wished("a", options=FULL)))
    door("config_set", "jobs-history-count", "0")
    [job] = door.pop("w", "q")
    core(Complete("w", job))
    left = {name for name in door.names() if name.partition(":")[2] == "a"}
    assert left == set()
