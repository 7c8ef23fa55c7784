"""depend: jobs wait until others are complete, and for nothing else."""

import pytest

from holdfast.commands.dependencies import Depend, Dependents
from holdfast.commands.jobs import Cancel, JobGet, Move, Put
from holdfast.commands.leases import Complete
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import Advance, Fail, Timeout
from holdfast.commands.queues import ThrottleSet
from holdfast.errors import DependencyRefused, JobNotFound, WrongState
from native_door import Door, StoreMessage

pytestmark = pytest.mark.each


def finish(door: Door, jid: str, queue: str = "q") -> None:
    """Pop until `jid` comes, and complete it."""
    [job] = door.pop("w", queue)
    assert job.jid == jid
    door("complete", "w", jid, job.token, "", 0, "")


def edges(door: Door, jid: str) -> tuple[set[str], list[str]]:
    """Whom a job waits for, and who waits for it."""
    job = door.job(jid)
    assert job is not None
    return set(job.dependencies), list(job.dependents)


def test_a_job_waits_for_its_parent_and_is_ready_when_that_is_complete(door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p")
    assert door.state("c") == "depends"
    assert (edges(door, "c"), edges(door, "p")) == (({"p"}, []), (set(), ["c"]))
    finish(door, "p")
    assert door.state("c") == "waiting"
    assert edges(door, "c") == (set(), [])
    finish(door, "c")
    assert door.names() & {"d:p", "x:c", "D:q", "u"} == set()


def test_a_job_waits_for_all_of_its_parents(door: Door):
    door.put("q", "p1", "p2", "p3")
    door.put_waiting("c", "p1", "p2", "p3")
    for parent in ("p1", "p2"):
        finish(door, parent)
        assert door.state("c") == "depends"
    finish(door, "p3")
    assert door.state("c") == "waiting"


def test_a_released_job_that_uses_nothing_else_takes_the_usual_path_again(door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p")
    finish(door, "p")
    assert door.job("c").flags == 0


def test_unknown_and_complete_parents_count_as_done_and_failed_ones_do_not(door: Door):
    door.put("q", "done")
    finish(door, "done")
    door.put("q", "bad")
    [bad] = door.pop("w", "q")
    door("fail", "w", "G", "", "bad", bad.token, "")
    door.put_waiting("free", "done", "never-there")
    door.put_waiting("bound", "done", "bad")
    assert (door.state("free"), door.state("bound")) == ("waiting", "depends")
    assert edges(door, "bound")[0] == {"bad"}


def test_a_failed_parent_releases_when_it_is_complete_after_all(door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p")
    [job] = door.pop("w", "q")
    door("fail", "w", "G", "", "p", job.token, "")
    assert door.state("c") == "depends"
    door.put("q", "p", mode="move")
    finish(door, "p")
    assert door.state("c") == "waiting"


def test_a_delay_is_remembered_as_the_due_time_it_was_put_with(door: Door, clock):
    door.put("q", "p1", "p2")
    door.put_waiting("soon", "p1", delay=5_000)
    door.put_waiting("late", "p2", delay=5_000)
    finish(door, "p1")
    assert door.state("soon") == "scheduled"
    assert door.job("soon").due_ms == clock.now_ms + 5_000
    clock.advance(seconds=60)
    finish(door, "p2")
    assert door.job("late").due_ms == clock.now_ms - 55_000
    assert door.state("late") == "waiting"  # it is due already
    assert {job.jid for job in door.pop("w", "q", n=5)} == {"soon", "late"}


def test_a_remembered_delay_is_forgotten_at_the_next_placement(door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p", delay=5_000)
    door.put_waiting("c", "p", mode="move")
    finish(door, "p")
    assert door.state("c") == "waiting"


def test_a_remembered_delay_does_not_outlive_its_dependencies(door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p", delay=5_000)
    door("depend", "", 0, "all", "c")
    door.put_waiting("c", "p", mode="move")
    finish(door, "p")
    assert door.state("c") == "waiting"


def test_dependents_are_released_in_the_order_they_came(door: Door, clock):
    door.put("q", "p")
    names = [f"c{n}" for n in (5, 3, 9, 1)]
    for jid in names:
        door.put_waiting(jid, "p")
        clock.advance(seconds=1)
    finish(door, "p")
    assert [job.jid for job in door.pop("w", "q", n=9)] == names


def test_a_released_job_wakes_who_waits_for_its_queue(door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p", queue="other")
    door.pop("sleeper", "other", mode=1)
    finish(door, "p")
    assert "n:other" in door.names()


def test_an_advanced_parent_keeps_its_dependents_waiting(door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p")
    [job] = door.pop("w", "q")
    door("advance", "w", "next", 0, "p", job.token, "")
    assert door.state("c") == "depends"
    finish(door, "p", "next")
    assert door.state("c") == "waiting"


@pytest.mark.parametrize("again", ["move", "put"])
def test_a_waiting_job_that_is_moved_keeps_waiting_there(again: str, door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p", delay=9_000)
    if again == "move":
        door("move", "", 0, "other", 0, "c", "", "")
    else:
        door.put("other", "c", mode="move")
    job = door.job("c")
    assert (job.state, job.queue, job.dependencies) == ("depends", "other", ("p",))
    finish(door, "p")
    assert (door.state("c"), door.job("c").queue) == ("waiting", "other")
    assert "D:q" not in door.names()


def test_a_put_with_parents_replaces_the_earlier_ones(door: Door):
    door.put("q", "p1", "p2", "p3")
    door.put_waiting("c", "p1", "p2")
    door.put_waiting("c", "p2", "p3", mode="move")
    assert edges(door, "c")[0] == {"p2", "p3"}
    assert [edges(door, jid)[1] for jid in ("p1", "p2", "p3")] == [[], ["c"], ["c"]]
    door.put_waiting("c", "gone", mode="move")
    assert (door.state("c"), edges(door, "p2")[1]) == ("waiting", [])


def test_a_running_job_that_is_put_with_parents_waits_and_its_holder_loses_it(door: Door):
    door.put("q", "p", "c")
    held = door.pop("w", "q", n=2)
    assert door.put_waiting("c", "p", mode="move") == [1, 0, b"again"]
    assert door.state("c") == "depends"
    assert door("heartbeat", 0, "w", "c", held[1].token, "") == [0]


def test_a_move_into_a_full_queue_is_set_aside(core, door: Door):
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "a")
    door.pop("w", "q")
    door.put("other", "b")
    core(Move("q", "b"))
    assert door.state("b") == "throttled"


# Changing what a job waits for.


def test_dependencies_are_added_and_removed_while_a_job_waits(core, door: Door):
    door.put("q", "p1", "p2", "p3")
    door.put_waiting("c", "p1")
    assert core(Depend("c", ("p2", "p3", "p1", "nobody"))) == 1
    assert edges(door, "c")[0] == {"p1", "p2", "p3"}
    assert core(Depend("c", ("p1", "never"), "remove")) == 1
    assert edges(door, "c")[0] == {"p2", "p3"}
    assert edges(door, "p1")[1] == []
    finish(door, "p1")
    finish(door, "p2")
    assert door.state("c") == "depends"
    finish(door, "p3")
    assert door.state("c") == "waiting"


@pytest.mark.parametrize("mode", ["remove", "all"])
def test_letting_go_of_the_last_one_makes_a_job_ready_at_once(mode: str, core, door: Door):
    door.put("q", "p1", "p2")
    door.put_waiting("c", "p1", "p2", delay=60_000)
    door.pop("sleeper", "other", mode=1)
    core(Depend("c", ("p1", "p2") if mode == "remove" else (), mode))
    assert (door.state("c"), edges(door, "c")[0]) == ("waiting", set())
    assert door.names() & {"d:p1", "d:p2", "D:q", "x:c"} == set()


def test_only_a_job_that_waits_can_be_told_to_wait_for_more(core, door: Door):
    door.put("q", "p", "free")
    with pytest.raises(WrongState, match=r"not in the depends state: waiting"):
        core(Depend("free", ("p",)))
    with pytest.raises(WrongState, match=r"depends state"):
        core(Depend("free", (), "all"))
    with pytest.raises(JobNotFound):
        core(Depend("nobody", ("p",)))


def test_a_change_that_is_sent_again_answers_the_same_although_the_job_waits_no_more(door: Door):
    door.put("q", "p")
    door.put_waiting("c", "p")
    assert [door("depend", "line", 7, "all", "c"), door("depend", "line", 7, "all", "c")] == [1, 1]
    assert door.state("c") == "waiting"


def test_who_waits_is_read_page_by_page_in_the_order_they_came(core, door: Door, clock):
    door.put("q", "p")
    names = [f"c{n:02}" for n in range(7)]
    for jid in names:
        door.put_waiting(jid, "p")
        clock.advance(seconds=1)
    found, cursor = [], ""
    while True:
        cursor, page = core(Dependents("p", cursor, 3))
        found.append(page)
        if not cursor:
            break
    assert found == [names[:3], names[3:6], names[6:]]
    assert core(Dependents("nobody")) == ("", [])


# What cannot be.


def test_a_job_cannot_wait_for_itself(core, door: Door):
    door.put("q", "p")
    [refused, waits] = core(PutX("q", [JobWithOptions("K", jid="j", options=ExtraOptions(depends=["j"])), JobWithOptions("K", jid="c", options=ExtraOptions(depends=["p"]))]))  # fmt: skip
    assert isinstance(refused, DependencyRefused)
    assert (door.state("j"), waits) == ("absent", "c")
    with pytest.raises(DependencyRefused, match="cannot wait for itself"):
        core(Depend("c", ("c",)))


def lasting(door: Door) -> dict[str, bytes]:
    """The key space without the replies kept for repeats."""
    return {name: value for name, value in door.dump().items() if not name.startswith("i:")}


def circle_of(door: Door, size: int) -> list[str]:
    """Jobs of which each waits for the one before, and the first for a job of its own."""
    door.put("q", "root")
    names = [f"c{n}" for n in range(size)]
    for jid, parent in zip(names, ["root", *names], strict=False):
        door.put_waiting(jid, parent)
    return names


@pytest.mark.parametrize("size", [2, 3, 40])
def test_a_circle_is_refused_however_it_would_come_about(size: int, core, door: Door):
    names = circle_of(door, size)
    before = lasting(door)
    with pytest.raises(DependencyRefused, match="wait for itself"):
        core(Depend(names[0], (names[-1],)))
    [refused] = core(
        PutX("q", [JobWithOptions("k", jid=names[0], options=ExtraOptions(depends=["root", names[-1]]))])
    )
    [moved] = core(
        PutX("q", [JobWithOptions("k", jid=names[0], options=ExtraOptions(depends=[names[-1]]))], mode="move")
    )
    assert refused == names[0]  # it is there already: nothing happens
    assert isinstance(moved, DependencyRefused)
    assert lasting(door) == before


def test_two_ways_to_the_same_parent_are_no_circle(core, door: Door):
    names = circle_of(door, 3)
    door.put_waiting("side", names[0])
    core(Depend(names[2], ("side", "root")))
    assert edges(door, names[2])[0] == {names[1], "side", "root"}


def test_a_job_that_nobody_waits_for_is_not_walked_from(door: Door):
    """Its parents may have as many ancestors as they like."""
    door.put("q", "root")
    for start in range(0, 3000, 200):
        words = ["", 0, "new", "q", 0, 5, 0]
        for n in range(start, start + 200):
            words += [f"c{n}", "k", "{}", 1, "depends", f"c{n - 1}" if n else "root"]
        assert door("put_x", *words) == [200]
    assert door.put_waiting("last", "c2999") == [1]


@pytest.mark.full
def test_a_circle_that_is_too_large_to_be_looked_for_is_refused(door: Door):
    door.put("q", "root", "bud")
    for start in range(0, 3000, 200):
        words = ["", 0, "new", "q", 0, 5, 0]
        for n in range(start, start + 200):
            words += [f"up{n}", "k", "{}", 1, "depends", f"up{n - 1}" if n else "root"]
        assert door("put_x", *words) == [200]
        words = ["", 0, "new", "q", 0, 5, 0]
        for n in range(start, start + 200):
            words += [f"low{n}", "k", "{}", 1, "depends", f"low{n - 1}" if n else "bud"]
        assert door("put_x", *words) == [200]
    before = door.dump()
    assert b"too many jobs wait" in door.put_waiting("bud", "up2999", mode="move")[2]
    assert door.dump() == before


# Batches.


def family(core, *jobs: tuple[str, list[str]], mode: str = "new") -> list[object]:
    return list(core(PutX("q", [JobWithOptions("k", jid=jid, options=ExtraOptions(depends=parents)) for jid, parents in jobs], mode=mode)))  # type: ignore[arg-type]  # fmt: skip


def test_a_job_of_a_batch_may_wait_for_one_that_stands_behind_it(core, door: Door):
    family(core, ("c", ["b"]), ("b", ["a"]), ("a", []))
    assert [door.state(jid) for jid in "abc"] == ["waiting", "depends", "depends"]
    for jid in "abc":
        finish(door, jid)


def test_a_circle_inside_a_batch_is_refused_and_so_is_who_would_wait_for_it(core, door: Door):
    answers = family(core, ("a", ["c"]), ("b", ["a"]), ("c", ["b"]), ("d", ["a"]), ("free", []))
    assert [isinstance(answer, DependencyRefused) for answer in answers] == [True, True, True, True, False]
    assert [door.state(jid) for jid in ("a", "b", "c", "d", "free")] == ["absent"] * 4 + ["waiting"]


def test_a_circle_between_a_batch_and_what_is_there_is_refused(core, door: Door):
    door.put("q", "root")
    door.put_waiting("old", "root")
    door.put_waiting("child", "old")
    answers = family(core, ("old", ["new"]), ("new", ["child"]), mode="move")
    assert isinstance(answers[0], DependencyRefused)
    assert answers[1] == "new"
    assert edges(door, "old")[0] == {"root"}


def test_a_batch_that_is_sent_again_changes_nothing(core, door: Door):
    family(core, ("b", ["a"]), ("a", []))
    before = door.dump()
    family(core, ("b", ["a"]), ("a", []))
    assert door.dump() == before


# Large families.


def fan(door: Door, count: int, parent: str = "p", prefix: str = "c") -> None:
    for start in range(0, count, 200):
        words: list[str | int] = ["", 0, "new", "q", 0, 5, 0]
        for n in range(start, min(count, start + 200)):
            words += [f"{prefix}{n}", "k", "{}", 1, "depends", parent]
        door("put_x", *words)


def traces(door: Door) -> set[str]:
    """Keys that only dependencies leave."""
    return {name for name in door.names() if name and name[0] in "duxD"}


def tick(door: Door) -> None:
    """Any changing call."""
    door("priority", 0, "nobody")


def test_a_hundred_go_with_the_completion_and_the_rest_with_the_calls_after_it(door: Door):
    door.put("q", "p")
    fan(door, 350)
    finish(door, "p")
    waiting = [int(door.look("counts", "q")[0][1])]
    while waiting[-1] < 350:
        tick(door)
        waiting.append(int(door.look("counts", "q")[0][1]))
    assert waiting == [100, 200, 300, 350]
    tick(door)
    assert traces(door) == set()
    assert [job.jid for job in door.pop("w", "q", n=350)] == sorted(f"c{n}" for n in range(350))


def test_one_call_releases_a_hundred_however_many_jobs_it_completes(door: Door):
    parents = [f"p{n}" for n in range(5)]
    door.put("q", *parents)
    for parent in parents:
        fan(door, 60, parent, f"of-{parent}-")
    jobs = door.pop("w", "q", n=5)
    door("complete", "w", *[word for job in jobs for word in (job.jid, job.token, "", 0, "")])
    assert int(door.look("counts", "q")[0][1]) == 100
    for _ in range(3):
        tick(door)
    assert int(door.look("counts", "q")[0][1]) == 300
    assert "u" not in door.names()


def test_a_complete_parent_that_is_forgotten_still_releases_everybody(door: Door):
    door("config_set", "jobs-history-count", "0")
    door.put("q", "p")
    fan(door, 250)
    finish(door, "p")
    assert door.state("p") == "absent"
    tick(door)
    tick(door)
    assert int(door.look("counts", "q")[0][1]) == 250


def test_who_waits_for_a_parents_next_life_is_not_released_by_the_last_one(door: Door):
    door.put("q", "p")
    fan(door, 150)
    finish(door, "p")
    late = [f"c{n}" for n in range(150) if door.state(f"c{n}") == "depends"]
    door.put("z", "p", mode="move")  # goes on releasing, too
    assert all(door.state(jid) == "waiting" for jid in late)


def test_a_child_put_anew_for_the_next_life_keeps_waiting(door: Door):
    door.put("q", "p")
    fan(door, 350)
    finish(door, "p")
    door.put("z", "p", mode="move")
    late = next(f"c{n}" for n in range(350) if door.state(f"c{n}") == "depends")
    door.put_waiting(late, "p", mode="move")
    for _ in range(4):
        tick(door)
    assert [door.state(f"c{n}") for n in range(350)].count("depends") == 1
    assert (door.state(late), edges(door, "p")[1]) == ("depends", [late])
    finish(door, "p", "z")
    assert door.state(late) == "waiting"


def test_a_child_that_is_cancelled_before_its_turn_does_not_stop_the_others(core, door: Door):
    door.put("q", "p")
    fan(door, 250)
    finish(door, "p")
    late = [f"c{n}" for n in range(250) if door.state(f"c{n}") == "depends"]
    core(Cancel(late[:10]))
    tick(door)
    tick(door)
    assert int(door.look("counts", "q")[0][1]) == 240
    assert traces(door) == set()


def test_an_orphan_is_dropped_silently(door: Door):
    """Foreign hands deleted a child, its record or its place."""
    door.put("q", "p")
    for jid in ("a", "b", "c"):
        door.put_waiting(jid, "p")
    door.ask("DEL", door.key("j:a"))
    door.ask("DEL", door.key("x:b"))
    finish(door, "p")
    assert [door.state(jid) for jid in "abc"] == ["absent", "depends", "waiting"]


def test_a_thousand_parents_are_allowed_and_one_more_is_not(door: Door):
    for start in (0, 500):
        door.put("q", *[f"p{n}" for n in range(start, start + 500)])
    door.put("q", "one-more")
    parents = [f"p{n}" for n in range(1000)]
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door.put_waiting("c", *parents)  # in one call
    assert door.put_waiting("c", *parents[:500]) == [1]
    door("depend", "", 0, "add", "c", *parents[500:])
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door("depend", "", 0, "add", "c", "one-more")
    assert len(edges(door, "c")[0]) == 1000


def test_states_other_than_complete_release_nobody(core, door: Door):
    door.put("q", "p", retries=0)
    door.put_waiting("c", "p")
    [job] = door.pop("w", "q")
    core(Timeout(("p",)))
    assert door.state("c") == "depends"
    [job] = door.pop("w", "q")
    core(Fail("w", job, "G"))
    assert door.state("c") == "depends"
    core(Put("q", "K", jid="p", mode="move"))
    [job] = door.pop("w", "q")
    core(Advance("w", "q", job))
    assert door.state("c") == "depends"
    [job] = door.pop("w", "q")
    core(Complete("w", job))
    assert [facts.state for facts in core(JobGet(["c"])) if facts] == ["waiting"]
