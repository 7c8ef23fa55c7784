"""complete_x: one lease ends, and all that follows from it happens in the same step."""

from typing import Any

import pytest

from holdfast.commands.dependencies import CompleteX, FollowUp
from holdfast.commands.jobs import Await, JobGet, JobsComplete
from holdfast.commands.leases import Complete, Lease
from holdfast.commands.options import ExtraOptions, JobWithOptions
from holdfast.commands.outcomes import Retry
from holdfast.commands.queues import ThrottleSet
from holdfast.errors import DependencyRefused, JobNotFound, LeaseLost
from holdfast.models import JobFacts
from native_door import Door, StoreMessage


def follow(jid: str, *parents: str, queue: str = "q", **options: Any) -> FollowUp:
    return FollowUp(queue, JobWithOptions("K", b"{}", jid, ExtraOptions(depends=parents)), **options)


def held(door: Door, jid: str = "j", **options: Any) -> JobFacts:
    door.put("q", jid, **options)
    [job] = door.pop("w", "q")
    assert job.jid == jid
    return job


def states(door: Door, *jids: str) -> list[str]:
    return [door.state(jid) for jid in jids]


def test_a_job_ends_with_data_and_result(core, door: Door):
    job = held(door)
    assert core(CompleteX("w", job, b"[2]", 60_000, b"42")) == "complete"
    [facts] = core(JobGet(["j"]))
    assert (facts.state, facts.data, facts.result) == ("complete", b"[2]", b"42")
    assert core(JobsComplete()) == ["j"]
    assert [outcome.result for outcome in core(Await(["j"]))] == [b"42"]
    assert [line.what for line in facts.history] == ["put", "popped", "done"]


def test_an_end_releases_those_that_waited(core, door: Door):
    job = held(door)
    door.put_waiting("c", "j")
    core(CompleteX("w", job))
    assert states(door, "j", "c") == ["complete", "waiting"]


def test_follow_ups_come_with_the_end_each_where_it_was_told_to(core, door: Door, clock):
    door.put("q", "open")
    job = held(door, priority=9)
    jobs = [
        FollowUp(
            "mail",
            JobWithOptions("Send", b"[1]", "a", ExtraOptions(tags=["red"], limit_ms=5_000)),
            priority=7,
            retries=2,
        ),
        follow("b", queue="other", delay_ms=900),
        follow("c", "open", "j"),
        follow("d", "j"),
    ]
    assert core(CompleteX("w", job, follow=jobs)) == "complete"
    assert states(door, "j", "a", "b", "c", "d") == ["complete", "waiting", "scheduled", "depends", "waiting"]
    a = door.job("a")
    assert (a.queue, a.klass, a.data, a.priority, a.retries, a.tags) == (
        "mail",
        "Send",
        b"[1]",
        7,
        2,
        ("red",),
    )
    assert door.job("b").due_ms == clock.now_ms + 900
    assert door.job("c").dependencies == ("open",)


def test_follow_ups_may_wait_for_each_other_in_any_order(core, door: Door):
    core(CompleteX("w", held(door), follow=[follow("c", "b"), follow("b", "a"), follow("a")]))
    assert states(door, "a", "b", "c") == ["waiting", "depends", "depends"]


def test_a_follow_up_wakes_who_waits_for_its_queue(core, door: Door):
    job = held(door)
    door.pop("sleeper", "other", mode=1)
    core(CompleteX("w", job, follow=[follow("a", queue="other")]))
    assert "n:other" in door.names()


def test_a_follow_up_that_is_there_already_stays_as_it_is(core, door: Door):
    door.put("z", "a")
    core(CompleteX("w", held(door), follow=[follow("a", delay_ms=5)]))
    assert (door.state("a"), door.job("a").queue) == ("waiting", "z")


# Going on in a next queue.


def test_a_job_goes_on_with_its_retries_renewed(core, door: Door):
    held(door, retries=3)
    core(Retry("w", door.job("j")))
    [job] = door.pop("w", "q")
    assert core(CompleteX("w", job, b"[3]", next_queue="next")) == "waiting"
    [facts] = core(JobGet(["j"]))
    assert (facts.state, facts.queue, facts.data, facts.remaining) == ("waiting", "next", b"[3]", 3)
    assert [line.what for line in facts.history][-2:] == ["done", "put"]


def test_a_job_goes_on_later(core, door: Door, clock):
    assert core(CompleteX("w", held(door), next_queue="next", delay_ms=700)) == "scheduled"
    assert door.job("j").due_ms == clock.now_ms + 700


def test_a_job_goes_on_when_others_are_complete_and_not_before_its_delay(core, door: Door, clock):
    job = held(door)
    door.put("z", "p1", "p2")
    assert (
        core(CompleteX("w", job, next_queue="next", delay_ms=700, depends=("p1", "p2", "gone"))) == "depends"
    )
    assert set(door.job("j").dependencies) == {"p1", "p2"}
    for jid in ("p1", "p2"):
        [parent] = door.pop("w", "z")
        core(Complete("w", parent))
        assert door.state("j") == ("depends" if jid == "p1" else "scheduled")
    assert door.job("j").due_ms == clock.now_ms + 700


def test_a_delay_counts_although_what_the_job_waits_for_is_complete(core, door: Door):
    job = held(door)
    assert core(CompleteX("w", job, next_queue="next", delay_ms=700, depends=("gone",))) == "scheduled"


def test_a_job_fans_out_and_goes_on_when_the_last_part_is_complete(core, door: Door):
    job = held(door)
    parts = [follow(f"part{n}", queue="parts") for n in range(3)]
    answer = core(
        CompleteX("w", job, next_queue="gather", depends=[f"part{n}" for n in range(3)], follow=parts)
    )
    assert answer == "depends"
    for _ in range(3):
        assert door.state("j") == "depends"
        [part] = door.pop("w", "parts")
        core(Complete("w", part))
    assert (door.state("j"), door.job("j").queue) == ("waiting", "gather")


def test_a_follow_up_may_wait_for_the_job_that_goes_on(core, door: Door):
    core(CompleteX("w", held(door), next_queue="next", follow=[follow("after", "j")]))
    assert states(door, "j", "after") == ["waiting", "depends"]
    assert door.job("j").dependents == ("after",)
    [job] = door.pop("w", "next")
    core(CompleteX("w", job))
    assert door.state("after") == "waiting"


def test_who_waits_for_a_job_that_goes_on_keeps_waiting(core, door: Door):
    job = held(door)
    door.put_waiting("c", "j")
    core(CompleteX("w", job, next_queue="next"))
    assert door.state("c") == "depends"


def test_a_slot_goes_to_those_set_aside_before_the_follow_ups(core, door: Door):
    core(ThrottleSet("ql:q:q", 1))
    job = held(door)
    door.put("q", "aside")
    assert door.state("aside") == "throttled"
    core(CompleteX("w", job, follow=[follow("a")]))
    assert [popped.jid for popped in door.pop("w", "q", n=2)] == ["aside"]


# Sent again.


@pytest.mark.parametrize("next_queue", ["", "next"])
def test_a_call_that_is_sent_again_does_nothing_more(next_queue: str, core, door: Door):
    job = held(door)
    door.put("z", "p")
    parents = ("p",) if next_queue else ()
    call = CompleteX(
        "w", job, b"[1]", next_queue=next_queue, depends=parents, follow=[follow("a"), follow("b", "a")]
    )
    first = core(call)
    before = door.dump()
    assert core(call) == first
    assert door.dump() == before


def test_a_repeat_says_what_the_job_came_to_since(core, door: Door):
    job = held(door)
    call = CompleteX("w", job, next_queue="next")
    assert core(call) == "waiting"
    door.pop("v", "next")
    assert core(call) == "running"


# What is refused, before anything is written.


def unchanged(core, door: Door, command: CompleteX, error: type[Exception], match: str = "j") -> None:
    before = door.dump()
    with pytest.raises(error, match=match):
        core(command)
    assert door.dump() == before


def test_who_does_not_hold_the_job_changes_nothing(core, door: Door):
    job = held(door)
    for lease in (Lease("j", job.token + 1), Lease("j", 0)):
        unchanged(core, door, CompleteX("w", lease, b"[]", follow=[follow("a")]), LeaseLost)
    unchanged(core, door, CompleteX("v", job, b"[]", next_queue="new", follow=[follow("a")]), LeaseLost)
    unchanged(core, door, CompleteX("w", Lease("nobody", 1), follow=[follow("a")]), JobNotFound)


@pytest.mark.parametrize(
    ("jobs", "match"),
    [
        ([("a", ["a"])], "a cannot wait for itself"),
        ([("a", ["b"]), ("b", ["a"])], "would wait for each other"),
        ([("free", []), ("a", ["c"]), ("b", ["a"]), ("c", ["b"])], "would wait for each other"),
    ],
)
@pytest.mark.parametrize("next_queue", ["", "next"])
def test_follow_ups_in_a_circle_are_refused(jobs, match: str, next_queue: str, core, door: Door):
    job = held(door)
    follow_ups = [follow(jid, *parents) for jid, parents in jobs]
    unchanged(
        core,
        door,
        CompleteX("w", job, b"[1]", next_queue=next_queue, follow=follow_ups),
        DependencyRefused,
        match,
    )


def test_a_job_cannot_go_on_into_a_circle(core, door: Door):
    job = held(door)
    door.put("z", "root")
    door.put_waiting("c1", "j")
    door.put_waiting("c2", "c1", "root")
    for parents, jobs in [
        (("j",), []),
        (("c1",), []),
        (("root", "c2"), []),
        (("a",), [follow("a", "j")]),
        (("a",), [follow("b", "c2"), follow("a", "b")]),
    ]:
        unchanged(
            core,
            door,
            CompleteX("w", job, next_queue="next", depends=parents, follow=jobs),
            DependencyRefused,
        )
    assert (
        core(CompleteX("w", job, next_queue="next", depends=("root", "a"), follow=[follow("a")])) == "depends"
    )


def test_512_follow_ups_are_allowed_and_one_more_is_not(core, door: Door):
    job = held(door)
    before = door.dump()
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("complete_x", *CompleteX("w", job, follow=[follow(f"a{n}") for n in range(513)]).words())
    many = [follow(f"a{n}", *(f"p{m}" for m in range(5))) for n in range(410)]
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("complete_x", *CompleteX("w", job, follow=many).words())
    assert door.dump() == before
    assert core(CompleteX("w", job, follow=[follow(f"a{n}") for n in range(512)])) == "complete"
    assert int(door.look("counts", "q")[0][1]) == 512
