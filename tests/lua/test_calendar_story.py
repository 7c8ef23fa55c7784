"""recur: templates that follow a calendar, whose moments clients plan ahead."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from msgspec.structs import replace

from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions
from holdfast.commands.outcomes import Retry
from holdfast.commands.recurring import (
    CalendarFacts,
    Recur,
    RecurCancel,
    RecurExtend,
    RecurGet,
    RecurPause,
    RecurRun,
    RecurUnplanned,
    RecurUpdate,
)
from holdfast.errors import NotUnique, Refused, WrongState
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


def test_of_thousands_of_missed_moments_one_gets_a_job(core, door: Door, clock):
    minutes = [clock.now_ms + 60_000 * number for number in range(1, 4501)]
    pieces = [[(one, one) for one in minutes[at : at + 1500]] for at in (0, 1500, 3000)]
    core(recur(pieces[0]))
    for before, piece in pairwise(pieces):
        assert core(RecurExtend("r", before[-1][1], "", piece))
    clock.advance(seconds=60 * 4500)
    assert [job.created_ms for job in door.pop("w", "q", n=9)] == [minutes[-1]]
    assert template(core).calendar.left_out == 4499


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


def test_of_a_template_that_queues_one_job_waits_behind_the_one_that_runs(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 9), overlap="queue"))
    clock.advance(seconds=3600)
    [job] = door.pop("w", "q", lease=86_400_000)
    for _ in range(3):
        clock.advance(seconds=3600)
        assert door.pop("w", "q") == []
    assert (door.job("r-2").state, door.job("r-2").scheduled_for_ms) == ("depends", clock.now_ms - 2 * HOUR)
    assert (template(core).count, template(core).left_out) == (2, 2)
    door("fail", "w", "G", "", job.jid, job.token, "")
    [second] = door.pop("w", "q", lease=86_400_000)
    assert second.jid == "r-2"
    clock.advance(seconds=3600)
    assert door.pop("w", "q") == []
    assert door.job("r-3").state == "depends"


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_jobs_of_an_interval_do_not_overlap_either(core, door: Door, clock, overlap: str):
    core(Recur("q", "k", HOUR, jid="r", overlap=overlap))
    [job] = door.pop("w", "q", lease=86_400_000)
    clock.advance(seconds=5 * 3600)
    assert door.pop("w", "q", n=9) == []
    assert (template(core).overlap, template(core).left_out) == (overlap, 5 if overlap == "skip" else 4)
    door("complete", "w", job.jid, job.token, "", 0, "")
    clock.advance(seconds=3600)
    assert [one.jid for one in door.pop("w", "q", n=9)] == ["r-2"]
    core(Recur("q", "k", HOUR, jid="r"))
    assert template(core).overlap == "allow"


def test_a_run_that_an_operator_wants_overlaps_and_does_not_hide_the_one_before(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 9), overlap="skip"))
    clock.advance(seconds=3600)
    [first] = door.pop("w", "q", lease=86_400_000)
    assert core(RecurRun("r")) == "r-2"
    [second] = door.pop("w", "q", lease=86_400_000)
    door("complete", "w", second.jid, second.token, "", 0, "")
    clock.advance(seconds=3600)
    assert door.pop("w", "q") == []
    door("complete", "w", first.jid, first.token, "", 0, "")
    assert core(RecurRun("r")) == "r-3"
    clock.advance(seconds=3600)
    assert [one.jid for one in door.pop("w", "q", n=9)] == ["r-3"]


def keyed(key: str = "a", unique_for: str = "") -> Recur:
    return Recur("q", "k", HOUR, jid="r", options=ExtraOptions(unique_key=key, unique_for=unique_for))


def test_an_occurrence_that_meets_its_unique_key_gets_no_job_and_is_counted(core, door: Door, clock):
    put = JobWithOptions("k", b"{}", "mine", ExtraOptions(unique_key="a"))
    core(PutWithOptions("q", put))
    core(keyed())
    [mine] = door.pop("w", "q", n=9, lease=86_400_000)
    assert (mine.jid, template(core).count, template(core).left_out) == ("mine", 0, 1)
    with pytest.raises(NotUnique, match="mine"):
        core(RecurRun("r"))
    door("complete", "w", mine.jid, mine.token, "", 0, "")
    clock.advance(seconds=3600)
    [job] = door.pop("w", "q", n=9)
    assert (job.jid, template(core).options["unique_key"]) == ("r-1", "a")
    other = JobWithOptions("k", b"{}", "other", ExtraOptions(unique_key="a"))
    assert core(PutWithOptions("q", other)) == "r-1"


def test_a_key_that_is_held_until_the_start_lets_one_more_wait(core, door: Door, clock):
    core(keyed(unique_for="start"))
    assert [one.jid for one in door.pop("w", "q", n=9, lease=86_400_000)] == ["r-1"]
    clock.advance(seconds=3600)
    assert [one.jid for one in door.pop("w", "q", n=9, lease=86_400_000)] == ["r-2"]
    assert template(core).left_out == 0


def test_a_template_that_was_resumed_leaves_out_what_it_missed(core, door: Door, clock):
    start = clock.now_ms
    core(recur(hourly(start, 9), missed="all"))
    core(RecurPause("r"))
    clock.advance(seconds=3 * 3600 + 60)
    assert door.pop("w", "q") == []
    core(RecurPause("r", on=False))
    assert (template(core).next_ms, template(core).left_out) == (start + 4 * HOUR, 3)
    assert door.pop("w", "q") == []
    clock.advance(seconds=3600)
    assert len(door.pop("w", "q", n=9)) == 1


def test_a_calendar_goes_on_at_the_end_of_its_pause_and_missed_concerns_what_came_after(
    core, door: Door, clock
):
    start = clock.now_ms
    core(recur(hourly(start, 9), missed="all"))
    core(RecurPause("r", until_ms=start + 3 * HOUR + 60_000))
    clock.advance(seconds=5 * 3600 + 60)
    found = door.pop("w", "q", n=9)
    assert [(job.created_ms - start) // HOUR for job in found] == [4, 5]
    assert (template(core).paused, template(core).left_out) == (False, 3)


def test_a_template_that_is_set_again_keeps_its_plan_unless_its_calendar_changed(core, clock):
    start = clock.now_ms
    core(recur(hourly(start, 9), tz="2026a"))
    core(recur(hourly(start, 9, 3), tz="2026b"))
    assert (template(core).next_ms, template(core).calendar.tz) == (start + HOUR, "2026a")
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


def test_an_older_client_that_puts_an_interval_in_place_of_a_calendar_is_refused(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 9)))
    words = ("q", "r", "k", "{}", 1000, 0, 0, 0, 0)
    with pytest.raises(
        StoreMessage, match=r"HF_WRONG_STATE r follows a calendar, which this client does not know"
    ):
        door("recur", "", 0, "set", *words, 0)
    assert template(core).calendar is not None
    door("recur", "", 0, "set", *words, 1, "overlap", "allow")
    assert (template(core).calendar, template(core).overlap) == (None, "allow")
    door("recur", "", 0, "set", *words, 0)


def test_a_calendar_has_no_interval_to_change(core, clock):
    core(recur(hourly(clock.now_ms, 9)))
    with pytest.raises(WrongState, match="follows a calendar, and has no interval: put it again"):
        core(RecurUpdate("r", interval_ms=5))
    assert core(RecurUpdate("r", priority=5))
    assert template(core).calendar is not None


def changed(plan: Sequence[tuple[int, int]], **calendar: str) -> RecurUpdate:
    return RecurUpdate(
        "r", interval_ms=2 * HOUR, calendar=CalendarFacts("0 */2 * * *", **calendar), plan=plan
    )


@pytest.mark.parametrize("was", ["calendar", "interval", "paused"])
def test_a_template_follows_another_calendar_from_now_on(core, door: Door, clock, was: str):
    core(
        Recur("q", "k", HOUR, jid="r", offset_ms=HOUR)
        if was == "interval"
        else recur(hourly(clock.now_ms, 9))
    )
    if was == "paused":
        core(RecurPause("r"))
    plan = [(clock.now_ms + number * HOUR, clock.now_ms + number * HOUR) for number in (-2, 2, 4)]
    assert core(changed(plan, zone="Europe/Berlin", overlap="skip"))
    found = template(core)
    assert (found.interval_ms, found.next_ms, found.overlap) == (2 * HOUR, clock.now_ms + 2 * HOUR, "skip")
    assert (found.calendar.cron, found.calendar.zone) == ("0 */2 * * *", "Europe/Berlin")
    assert found.calendar.planned_ms == clock.now_ms + 4 * HOUR
    core(RecurPause("r", on=False))
    clock.advance(seconds=3600)
    assert door.pop("w", "q", n=9) == []
    clock.advance(seconds=3600)
    assert [one.scheduled_for_ms for one in door.pop("w", "q", n=9)] == [clock.now_ms]


def test_what_becomes_of_missed_moments_and_overlaps_changes_without_a_plan(core, clock):
    core(recur(hourly(clock.now_ms, 9)))
    core(RecurUpdate("r", missed="all", overlap="queue"))
    found = template(core)
    assert (found.calendar.missed, found.calendar.overlap, found.overlap) == ("all", "queue", "queue")
    assert (found.next_ms, found.calendar.planned_ms) == (clock.now_ms + HOUR, clock.now_ms + 9 * HOUR)
    core(Recur("q", "k", HOUR, jid="r"))
    with pytest.raises(WrongState, match="has an interval, and follows no calendar"):
        core(RecurUpdate("r", missed="all"))
    core(RecurUpdate("r", overlap="skip"))
    assert template(core).overlap == "skip"


def test_a_deleted_template_leaves_no_plan(core, door: Door, clock):
    core(recur(hourly(clock.now_ms, 9)))
    core(RecurCancel(["r"]))
    assert door.ask("EXISTS", door.key("L:r"), door.key("L")) == 0


@pytest.mark.few(99)
@pytest.mark.parametrize(
    "plan",
    [
        "x",
        "1",
        "1 2 3",
        "-1 2",
        "",
        "1.5 2",
        "2 1.5",
        "5 5 5 5",
        "5 7 6 6",
        "nan nan",
        "inf 1",
        "1 9e15",
        f"{2**53} 1",
    ],
)
def test_a_plan_that_is_none_is_refused(core, door: Door, plan: str):
    words = ("", 0, "set", "q", "r", "k", "{}", 1000, 0, 0, 0, 0, 2, "cron", "* * * * *", "plan", plan)
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door("recur", *words)
    assert core(RecurGet(["r"])) == [None]


@pytest.mark.few(99)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("missed", value) for value in ("", "1.5", "0", "-1", "1001", "nan", "never")),
        *((option, value) for option in ("jitter", "start", "end") for value in ("x", "-1", "1.5", "9e15")),
        *((option, value) for option in ("cron", "zone") for value in ("", "a\0b", "x" * 201, b"\xff")),
        ("overlap", ""),
    ],
)
def test_an_odd_calendar_is_refused(core, door: Door, option: str, value: str | bytes):
    found = {"cron": "* * * * *", "plan": "5 5", option: value}
    pairs = [word for pair in found.items() for word in pair]
    with pytest.raises(StoreMessage, match=f"HF_BAD_ARGUMENT.*{option}"):
        door("recur", "", 0, "set", "q", "r", "k", "{}", 1000, 0, 0, 0, 0, len(found), *pairs)
    assert core(RecurGet(["r"])) == [None]
    door("recur", "", 0, "set", "q", "r", "k", "{}", 1000, 0, 0, 0, 0, 2, "cron", "* * * * *", "plan", "5 5")
    before = template(core)
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door("recur_update", "", 0, "r", *pairs)
    assert template(core) == before


def test_a_plan_that_begins_before_what_it_follows_is_refused(core, clock):
    start = clock.now_ms
    core(recur(hourly(start, 2)))
    for first in (-5, 2):
        with pytest.raises(Refused, match="before the moment"):
            core(RecurExtend("r", start + 2 * HOUR, "", hourly(start, 2, first)))
    assert template(core).calendar.planned_ms == start + 2 * HOUR


def test_a_run_of_three_days_a_paused_night_and_a_clock_that_is_set_back_put_each_moment_once(
    core, door: Door, clock
):
    start = clock.now_ms
    nights = [(start + day * 24 * HOUR, start + day * 24 * HOUR) for day in range(1, 12)]
    nights[5] = (
        nights[5][0] - HOUR,
        nights[5][1] - HOUR,
    )  # the night in which the clock is changed has an hour less
    core(replace(recur(nights, overlap="skip"), retries=1))
    clock.advance(seconds=24 * 3600)
    [first] = door.pop("w", "q")
    core(Retry("w", first, delay_ms=73 * HOUR))
    for _ in range(3):
        clock.advance(seconds=24 * 3600)
        assert door.pop("w", "q") == []
    clock.advance(seconds=3600)
    [first] = door.pop("w", "q", n=9)
    door("complete", "w", first.jid, first.token, "", 0, "")
    assert (template(core).count, template(core).left_out) == (1, 3)
    core(RecurPause("r", until_ms=nights[5][0] + HOUR))
    clock.advance(seconds=2 * 24 * 3600)
    assert door.pop("w", "q") == []
    assert (template(core).paused, template(core).left_out) == (False, 5)
    put: list[int] = []
    for hours in (23, -1, 1, 24, -1, 1, 24):
        clock.advance(seconds=hours * 3600)
        for job in door.pop("w", "q", n=9):
            put.append(job.scheduled_for_ms)
            door("complete", "w", job.jid, job.token, "", 0, "")
    assert put == [nominal for _, nominal in nights[6:9]]
    assert template(core).left_out == 5
