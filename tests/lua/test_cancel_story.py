"""cancel: jobs are deleted wherever they are, and nobody is left waiting for them."""

import pytest

from holdfast.commands.admin import SetClock, Sweep
from holdfast.commands.jobs import Await, Cancel, CancelBy, JobGet
from holdfast.commands.leases import Complete, Heartbeat, Lease, Pop
from holdfast.commands.outcomes import Retry
from holdfast.commands.queues import ThrottleSet
from holdfast.errors import DependencyRefused, LeaseLost, Refused
from native_door import Door


def family(door: Door) -> None:
    """p, of which a and b wait, and c for both."""
    door.put("q", "p")
    for jid, parents in (("a", ["p"]), ("b", ["p"]), ("c", ["a", "b"])):
        door.put_waiting(jid, *parents)


def lasting(door: Door) -> dict[str, bytes]:
    return {name: value for name, value in door.dump().items() if not name.startswith("i:")}


@pytest.mark.parametrize(
    ("given", "left"), [("p", "a"), ("pa", "[bc]"), ("a", "c"), ("pab", "c"), ("bp", "[ac]"), ("pc", "a")]
)
def test_a_set_that_leaves_somebody_waiting_is_refused_as_a_whole(given: str, left: str, core, door: Door):
    family(door)
    door.put("q", "bystander")
    before = lasting(door)
    with pytest.raises(DependencyRefused, match=rf"^[pab] is a dependency of {left}"):
        core(Cancel((*given, "bystander")))
    assert lasting(door) == before


@pytest.mark.parametrize("given", ["c", "cab", "pabc", "cbap", "apcb"])
def test_a_set_that_is_closed_goes_in_any_order(given: str, core, door: Door):
    family(door)
    assert core(Cancel(tuple(given))) == [True] * len(given)
    assert {jid for jid in "pabc" if door.state(jid) == "absent"} == set(given)


def test_nothing_is_left_of_a_cancelled_family(core, door: Door):
    door.put("q", "stay")
    before = lasting(door).keys()
    family(door)
    core(Cancel(tuple("pabc")))
    assert lasting(door).keys() - before == {"k:q"}  # how many were cancelled


def test_the_parents_of_a_cancelled_job_forget_it(core, door: Door):
    family(door)
    core(Cancel(("c",)))
    assert [door.job(jid).dependents for jid in "ab"] == [(), ()]
    assert core(Cancel(("a",))) == [True]


def test_a_job_named_twice_is_cancelled_once(core, door: Door):
    door.put("q", "j")
    assert core(Cancel(("j", "j", "nobody"))) == [True, False, False]


def test_a_complete_parent_is_left_alone_and_refuses_nothing(core, door: Door):
    door.put("q", "p")
    for n in range(150):
        door.put_waiting(f"c{n}", "p")
    [job] = door.pop("w", "q")
    core(Complete("w", job))
    assert any(door.state(f"c{n}") == "depends" for n in range(150))
    assert core(Cancel(("p",))) == [False]
    assert door.state("p") == "complete"


def test_the_holder_of_a_cancelled_job_is_told_at_its_next_heartbeat(core, door: Door):
    door.put("q", "j")
    [job] = door.pop("w", "q")
    core(Cancel(("j",)))
    with pytest.raises(LeaseLost, match="gone"):
        core(Heartbeat("w", job))


def test_a_job_that_a_freed_slot_made_ready_in_the_same_call_is_cancelled_there(core, door: Door):
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "a")
    door.pop("w", "q")
    door.put("q", "b", "c")
    assert [door.state(jid) for jid in "abc"] == ["running", "throttled", "throttled"]
    assert core(Cancel(("a", "b"))) == [True, True]
    assert [door.state(jid) for jid in "abc"] == ["absent", "absent", "throttled"]
    assert [job.jid for job in door.pop("w", "q", n=5)] == ["c"]


def test_an_orphan_among_the_dependents_refuses_nothing(core, door: Door):
    """A foreign hand deleted a child."""
    door.put("q", "p")
    door.put_waiting("c", "p")
    door.ask("DEL", door.key("j:c"), door.key("x:c"))
    assert core(Cancel(("p",))) == [True]
    assert "d:p" not in door.names()


def test_more_ties_than_a_call_can_look_at_are_refused_before_anything_is_deleted(core, door: Door):
    parents = [f"p{n}" for n in range(60)]
    door.put("q", *parents)
    for n in range(40):
        door.put_waiting(f"c{n}", *parents)
    before = lasting(door)
    with pytest.raises(Refused, match="at most 2048 a call") as refused:
        core(Cancel((*parents, *(f"c{n}" for n in range(40)))))
    assert refused.value.code == "HF_TOO_MANY"
    assert lasting(door) == before
    for start in range(0, 40, 20):
        core(Cancel([f"c{n}" for n in range(start, start + 20)]))
    assert core(Cancel(parents)) == [True] * 60


def test_a_cancel_that_is_sent_again_answers_the_same(door: Door):
    family(door)
    assert door("cancel", "line", 3, *"pabc") == [1, 1, 1, 1]
    assert door("cancel", "line", 3, *"pabc") == [1, 1, 1, 1]


def test_a_cancelled_job_may_be_put_again_and_waits_for_nobody(core, door: Door):
    family(door)
    core(Cancel(("c",)))
    door.put("q", "c")
    [facts] = core(JobGet(("c",)))
    assert (facts.state, facts.dependencies) == ("waiting", ())


def life(door: Door, jid: str = "j") -> int:
    """Put a job and take it; its token."""
    door.put("q", jid)
    [job] = door.pop("w", "q")
    return job.token


def test_a_job_put_again_at_once_gets_a_token_of_its_own_and_the_former_holder_is_refused(core, door: Door):
    first = life(door)
    core(Cancel(["j"]))
    second = life(door)
    core(Cancel(["j"]))
    third = life(door)
    assert first < second < third
    for old in (first, second):
        with pytest.raises(LeaseLost):
            core(Complete("w", Lease("j", old, "w")))
    assert core(Complete("w", Lease("j", third, "w"))) == "complete"


def test_tokens_of_a_name_grow_also_where_one_millisecond_saw_many_attempts(core, door: Door):
    tokens = [life(door)]
    for _ in range(3):
        core(Retry("w", Lease("j", tokens[-1], "w")))
        tokens.append(door.pop("w", "q")[0].token)
    core(Cancel(["j"]))
    assert life(door) > max(tokens)


def test_tokens_of_a_name_grow_also_if_the_clock_was_set_back(core, clock, door: Door):
    clock.advance(seconds=60)
    first = life(door)
    core(Cancel(["j"]))
    core(SetClock(clock.now_ms - 30_000))
    assert life(door) > first


def test_a_job_that_never_ran_leaves_no_trace_in_the_tokens_of_others(core, clock, door: Door):
    door.put("q", "j")
    core(Cancel(["j"]))
    assert life(door, "other") == clock.now_ms


def test_what_is_kept_of_cancelled_jobs_has_an_end_in_time_and_number(core, clock, door: Door):
    def cancel_running(*jids: str) -> None:
        door.put("q", *jids)
        core(Pop("w", ["q"], limit=512))
        core(CancelBy(jids, who="desk"))

    cancel_running("first")
    clock.advance(seconds=1800)
    cancel_running("second")
    assert [outcome.status for outcome in core(Await(["first", "second"]))] == ["cancelled", "cancelled"]
    clock.advance(seconds=1801)
    core(Sweep())
    assert [outcome.status for outcome in core(Await(["first", "second"]))] == ["gone", "cancelled"]
    for start in range(0, 10_240, 512):
        cancel_running(*[f"j{n}" for n in range(start, start + 512)])
    assert door.ask("ZCARD", door.key("E")) == 10_000
    statuses = [outcome.status for outcome in core(Await(["second", "j0", "j10239"]))]
    assert statuses == ["gone", "gone", "cancelled"]
    clock.advance(seconds=3601)
    while door.ask("ZCARD", door.key("E")):
        core(Sweep())
    assert not {name for name in door.names() if name.startswith("E")}


def test_the_earlier_cancel_still_works_and_names_nobody(core, door: Door):
    door.put("q", "j")
    door.pop("w", "q")
    assert door("cancel", "", 0, "j") == [1]
    [outcome] = core(Await(["j"]))
    assert outcome.error.by == ""
    # An earlier client reads the first of the two only.
    assert door("await", "j")[0] == b"gone"
