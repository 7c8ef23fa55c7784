"""recur: templates that follow a calendar, whose moments clients plan ahead."""

from collections.abc import Sequence

import pytest

from holdfast.commands.recurring import (
    CalendarFacts,
    Recur,
    RecurCancel,
    RecurExtend,
    RecurGet,
    RecurPause,
    RecurUnplanned,
    RecurUpdate,
)
from holdfast.errors import WrongState
from native_door import Door, StoreMessage

pytestmark = pytest.mark.each

HOUR = 3_600_000


def hourly(now_ms: int, count: int, first: int = 1) -> list[tuple[int, int]]:
    """Moments an hour apart, the first one hour from now."""
    return [(now_ms + number * HOUR, now_ms + number * HOUR) for number in range(first, first + count)]


def recur(plan: Sequence[tuple[int, int]], jid: str = "r", keeps: bool = False, **calendar: str) -> Recur:
    facts = CalendarFacts("0 * * * *", **calendar)
    return Recur("q", "k", HOUR, jid=jid, calendar=facts, plan=plan, keeps_time=keeps)


def template(core, jid: str = "r"):
    [found] = core(RecurGet([jid]))
    assert found is not None
    return found


def test_each_moment_of_a_plan_gets_a_job(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 3)))
    assert template(core).next_ms == clock.now_ms + HOUR
    for number in (1, 2, 3):
        assert door.pop("w", "q") == []
        clock.advance(seconds=3600)
        [job] = door.pop("w", "q")
        assert (job.jid, job.created_ms) == (f"r-{number}", clock.now_ms)
    assert template(core).calendar.left_out == 0


def test_a_job_of_a_calendar_has_the_moment_that_it_is_for_without_its_jitter(core, door: Door, clock):
    nominal = clock.now_ms + HOUR
    core(recur([(nominal + 60_000, nominal)]))
    clock.advance(seconds=3660)
    [job] = door.pop("w", "q")
    assert (job.created_ms, job.scheduled_for_ms) == (nominal + 60_000, nominal)
    assert door.job(job.jid).scheduled_for_ms == nominal


def test_a_template_whose_plan_ran_out_goes_on_when_it_is_planned_again(core, door: Door, clock):
    start = clock.now_ms
    core(recur(hourly(start, 1)))
    clock.advance(seconds=3600)
    assert len(door.pop("w", "q")) == 1
    clock.advance(seconds=7200)
    assert door.pop("w", "q") == []
    [short] = core(RecurUnplanned(clock.now_ms))
    assert (short.jid, short.last_ms) == ("r", start + HOUR)
    assert core(RecurExtend("r", short.last_ms, "2026a", hourly(start, 5, 2)))
    [job] = door.pop("w", "q")
    assert (job.jid, job.created_ms) == ("r-2", start + 3 * HOUR)
    assert template(core).calendar.left_out == 1
    assert template(core).calendar.tz == "2026a"
    assert core(RecurUnplanned(clock.now_ms)) == []


def test_of_two_who_plan_on_one_does(core, clock):
    start = clock.now_ms
    core(recur(hourly(start, 2)))
    more = hourly(start, 2, 3)
    assert core(RecurExtend("r", start + 2 * HOUR, "", more))
    assert not core(RecurExtend("r", start + 2 * HOUR, "", more))
    assert template(core).calendar.planned_ms == start + 4 * HOUR


def test_a_calendar_that_is_over_is_not_looked_for_again(core, clock):
    core(recur(hourly(clock.now_ms, 1)))
    assert core(RecurExtend("r", clock.now_ms + HOUR, "", ()))
    assert core(RecurUnplanned(clock.now_ms + 1000 * HOUR)) == []


@pytest.mark.parametrize(
    ("missed", "jobs", "left_out"),
    [("once", ["5"], 4), ("skip", [], 5), ("all", ["1", "2", "3", "4", "5"], 0), ("2", ["4", "5"], 3)],
)
def test_of_the_moments_that_were_missed_some_get_a_job(
    core, door: Door, clock, missed: str, jobs: list[str], left_out: int
):
    start = clock.now_ms
    core(recur(hourly(start, 9), missed=missed))
    clock.advance(seconds=5 * 3600 + 120)
    found = door.pop("w", "q", n=9)
    assert [str((job.created_ms - start) // HOUR) for job in found] == jobs
    assert template(core).calendar.left_out == left_out
    clock.advance(seconds=3600 - 120)
    assert len(door.pop("w", "q", n=9)) == 1


def test_missed_moments_are_made_up_over_many_pops(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 30), missed="all"))
    clock.advance(seconds=20 * 3600)
    seen = [job.jid for _ in range(30) for job in door.pop("w", "q")]
    assert seen == [f"r-{number}" for number in range(1, 21)]
    assert template(core).calendar.left_out == 0


def test_no_two_jobs_of_a_template_overlap_where_they_must_not(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 9), overlap="skip"))
    clock.advance(seconds=3600)
    [job] = door.pop("w", "q", lease=86_400_000)
    clock.advance(seconds=3600)
    assert door.pop("w", "q") == []
    door("complete", "w", job.jid, job.token, "", 0, "")
    clock.advance(seconds=3600)
    assert len(door.pop("w", "q")) == 1
    assert template(core).calendar.left_out == 1


def test_a_template_that_was_resumed_leaves_out_what_it_missed(core, door: Door, clock):
    start = clock.now_ms
    core(recur(hourly(start, 9), missed="all"))
    core(RecurPause("r"))
    clock.advance(seconds=3 * 3600 + 60)
    assert door.pop("w", "q") == []
    core(RecurPause("r", on=False))
    assert template(core).next_ms == start + 4 * HOUR
    assert door.pop("w", "q") == []
    clock.advance(seconds=3600)
    assert len(door.pop("w", "q", n=9)) == 1


def test_a_template_that_is_set_again_keeps_its_plan_unless_its_calendar_changed(core, clock):
    start = clock.now_ms
    core(recur(hourly(start, 9)))
    core(recur(hourly(start, 9, 3)))
    assert template(core).next_ms == start + HOUR
    core(recur(hourly(start, 9, 3), zone="Europe/Berlin"))
    assert template(core).next_ms == start + 3 * HOUR


def test_a_calendar_gives_way_to_an_interval_and_back(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 9)))
    core(Recur("q", "k", 1000, jid="r", offset_ms=1000))
    assert template(core).calendar is None
    assert core(RecurUnplanned(clock.now_ms + 1000 * HOUR)) == []
    clock.advance(seconds=1)
    assert len(door.pop("w", "q")) == 1
    core(recur(hourly(clock.now_ms, 9)))
    assert template(core).calendar is not None


def test_a_calendar_has_no_interval_to_change(core, clock):
    core(recur(hourly(clock.now_ms, 9)))
    with pytest.raises(WrongState, match="calendar"):
        core(RecurUpdate("r", interval_ms=5))
    assert core(RecurUpdate("r", priority=5))
    assert template(core).calendar is not None


def test_a_deleted_template_leaves_no_plan(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 9)))
    core(RecurCancel(["r"]))
    assert door.ask("EXISTS", door.key("L:r"), door.key("L")) == 0


@pytest.mark.parametrize("plan", ["x", "1", "1 2 3", "-1 2", ""])
def test_a_plan_that_is_none_is_refused(core, door: Door, plan: str):
    words = ("", 0, "set", "q", "r", "k", "{}", 1000, 0, 0, 0, 0, 2, "cron", "* * * * *", "plan", plan)
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door("recur", *words)
    assert core(RecurGet(["r"])) == [None]
