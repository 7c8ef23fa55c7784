"""cancel: jobs are deleted wherever they are, and nobody is left waiting for them."""

import pytest

from holdfast.commands.jobs import Cancel, JobGet
from holdfast.commands.leases import Complete, Heartbeat
from holdfast.commands.throttles import ThrottleSet
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
