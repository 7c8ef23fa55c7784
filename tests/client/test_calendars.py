"""Recurring jobs that follow a calendar: cron expressions, zones, missed moments; for both clients."""

import re
import subprocess
import sys
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from holdfast import Client, UsageError
from holdfast.client.recurring import extend_plans, replan
from holdfast.code.calendar import Calendar, cron_at
from holdfast.code.registry import declared
from holdfast.commands.recurring import CalendarFacts, Recur, RecurUnplanned
from holdfast.settings import MAX_DELAY

BERLIN = ZoneInfo("Europe/Berlin")
MAX_MS = round(MAX_DELAY * 1000)


def report(name: str = "sales") -> str:
    return name


def moments(cron: str, zone: str, first: datetime, count: int) -> list[str]:
    calendar = Calendar(cron, zone).checked()
    found = calendar.moments(first.timestamp())
    return [datetime.fromtimestamp(next(found), ZoneInfo(zone)).isoformat() for _ in range(count)]


def test_a_fixed_time_in_a_skipped_hour_runs_right_after_it():
    assert moments("30 2 * * *", "Europe/Berlin", datetime(2026, 3, 28, 3, tzinfo=BERLIN), 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]


def test_a_fixed_time_in_a_repeated_hour_runs_once():
    assert moments("30 2 * * *", "Europe/Berlin", datetime(2026, 10, 24, 3, tzinfo=BERLIN), 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]


@pytest.mark.parametrize("days", [1, 2, 7])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"])
def test_an_interval_of_days_runs_at_its_time_of_day_on_both_sides_of_a_change(zone: str, days: int):
    start = datetime(2026, 2, 3, 1, tzinfo=ZoneInfo(zone))
    calendar = Calendar(cron_at(timedelta(days=days), time(3, 30)), zone, start=start.timestamp()).checked()
    found = [
        datetime.fromtimestamp(moment, ZoneInfo(zone))
        for moment, _ in zip(calendar.moments(0), range(400 // days), strict=False)
    ]
    assert [one.date() for one in found] == [
        start.date() + timedelta(days=days * n) for n in range(len(found))
    ]
    assert {(one.hour, one.minute) for one in found} == {(3, 30)}
    later = Calendar(calendar.cron, zone, start=calendar.start).moments(found[7].timestamp())
    assert next(later) == found[8].timestamp()


@pytest.mark.parametrize(
    ("day", "shown"),
    [
        (datetime(2026, 3, 27), ["27 02:30 +0100", "29 03:00 +0200", "31 02:30 +0200"]),
        (datetime(2026, 10, 23), ["23 02:30 +0200", "25 02:30 +0200", "27 02:30 +0100"]),
    ],
)
def test_a_time_of_day_in_the_changed_hour_runs_once_as_a_fixed_time_does(day: datetime, shown: list[str]):
    start = day.replace(tzinfo=BERLIN).timestamp()
    found = Calendar(cron_at(timedelta(days=2), time(2, 30)), "Europe/Berlin", start=start).moments(0)
    assert [f"{datetime.fromtimestamp(next(found), BERLIN):%d %H:%M %z}" for _ in shown] == shown


def test_weeks_without_a_start_are_counted_from_a_monday():
    calendar = Calendar(cron_at(timedelta(weeks=2), time(2, 30)), "Europe/Berlin").checked()
    found = calendar.moments(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    shown = [datetime.fromtimestamp(next(found), BERLIN) for _ in range(30)]
    assert {(one.weekday(), one.hour) for one in shown} == {(0, 2)}


def test_a_time_of_day_is_given_beside_an_interval_of_days(do):
    job = do.client.job(queue="q", every=timedelta(days=1), at=time(3), zone="Europe/Berlin", name="daily")(
        report
    )
    daily = do(lambda: job.every(timedelta(days=1), at=time(3), zone="Europe/Berlin").put("tax"))
    other = do(
        lambda: do.client.queues["q"].recur("K", {}, 172_800, at=time(3, 30), zone="Europe/Berlin", jid="r")
    )
    assert do(lambda: do.client.recurring[daily.jid]).cron == "0 3 * * *"
    facts = do(lambda: do.client.recurring[other]).facts
    assert facts.calendar.cron == "@every 2 days at 03:30"
    assert facts.interval_ms >= 47 * 3_600_000
    shown = datetime.fromtimestamp(facts.next_ms / 1000, BERLIN)
    assert (shown.hour, shown.minute) == (3, 30)


@pytest.mark.parametrize(
    ("interval", "at", "words"),
    [
        (timedelta(hours=36), time(3), "whole days or weeks, such as timedelta"),
        (60, time(3), "whole days or weeks, such as timedelta"),
        ("0 3 * * *", time(3), "not a cron expression"),
        (timedelta(days=1), 3, "time of day in whole minutes"),
        (timedelta(days=1), time(3, 0, 5), "time of day in whole minutes"),
        (timedelta(days=1), time(3, tzinfo=UTC), "its zone in zone="),
        (timedelta(days=5000), time(3), "1 to 3660 days"),
    ],
)
def test_a_time_of_day_that_does_not_fit_is_refused(do, interval: Any, at: Any, words: str):
    job = do.client.job(queue="q")(report)
    for call in (
        lambda: job.every(interval, at=at),
        lambda: do.client.schedule(job.call(), every=interval, at=at),
        lambda: do.client.job(queue="q", every=interval, at=at, name="wrong")(report),
    ):
        with pytest.raises(UsageError, match=words):
            do(call)


def test_zones_are_known_on_a_machine_without_any():
    code = "from holdfast.code.calendar import check_zone, tz_version; print(check_zone('Europe/Berlin'), tz_version())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert re.fullmatch(r"Europe/Berlin 20\d\d[a-z]\n", found.stdout)


def test_every_hour_runs_by_elapsed_time_in_both_nights():
    for day, hours in (
        (datetime(2026, 3, 29, tzinfo=BERLIN), 23),
        (datetime(2026, 10, 25, tzinfo=BERLIN), 25),
    ):
        calendar, end = Calendar("0 * * * *", "Europe/Berlin"), day + timedelta(days=1)
        begin = day.timestamp() - 1
        found = [moment for moment, _ in zip(calendar.moments(begin), range(30), strict=False)]
        assert sum(moment < end.timestamp() for moment in found) == hours


def test_a_name_stands_for_an_expression():
    assert moments("@daily", "UTC", datetime(2026, 1, 1, 5, tzinfo=UTC), 1) == ["2026-01-02T00:00:00+00:00"]


def test_a_template_has_the_next_moment_of_its_calendar(do):
    queue = do.client.queues["q"]
    jid = do(lambda: queue.recur("shop.Report", {}, cron="0 3 * * *", zone="Europe/Berlin", jid="nightly"))
    found = do(lambda: do.client.recurring[jid])
    due = datetime.fromtimestamp(found.next, BERLIN)
    assert (due.hour, due.minute) == (3, 0)
    assert (found.cron, found.zone, found.left_out, found.interval) == (
        "0 3 * * *",
        "Europe/Berlin",
        0,
        86_400,
    )


def test_a_function_job_follows_a_calendar(do):
    job = do.client.job(queue="q")(report)
    made = do(
        lambda: job.every("*/15 8-18 * * 1-5", zone="America/New_York", missed="all", jitter=5).put("tax")
    )
    found = do(lambda: do.client.recurring[made.jid])
    assert found.facts.calendar.missed == "all"
    assert found.facts.calendar.jitter_ms == 5000
    again = do(
        lambda: job.every("*/15 8-18 * * 1-5", zone="America/New_York", missed="all", jitter=5).put("tax")
    )
    assert again.jid == made.jid
    assert do(lambda: do.client.recurring[made.jid]).next == found.next


def test_the_calendar_of_a_recurring_job_is_changed(do):
    queue = do.client.queues["q"]
    do(lambda: queue.recur("k", {}, cron="0 3 * * *", zone="Europe/Berlin", missed=5, jid="r"))
    job = do(lambda: do.client.recurring["r"])
    do(lambda: job.update(cron="30 4 * * *", jitter=60, overlap="skip"))
    found = do(lambda: do.client.recurring["r"])
    assert (found.cron, found.zone, found.missed, found.overlap, found.jitter) == (
        *("30 4 * * *", "Europe/Berlin", "5", "skip", 60.0),
    )
    local = datetime.fromtimestamp(found.facts.calendar.nominal_ms / 1000, BERLIN)
    assert (local.hour, local.minute) == (4, 30)
    assert (job.facts.calendar.cron, job.next) == (found.cron, found.next)
    do(lambda: job.set_zone("UTC"))
    do(lambda: job.update(at=time(5), interval=timedelta(days=1)))
    assert do(lambda: do.client.recurring["r"]).cron == "0 5 * * *"
    do(lambda: job.set_cron("30 4 * * *"))
    do(lambda: job.set_missed("all"))
    found = do(lambda: do.client.recurring["r"])
    assert (found.zone, found.missed, found.cron, job.missed) == ("UTC", "all", "30 4 * * *", "all")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cron": "61 * * * *"}, "bad minute"),
        ({"zone": "Mars"}, "no time zone"),
        ({"jitter": 1e6}, "less than"),
        ({"cron": "* * * * *", "interval": 5}, "interval cannot be given"),
        ({"end": 5}, "end"),
    ],
)
def test_a_change_that_does_not_fit_a_calendar_is_refused_before_anything_is_sent(
    do, changes: dict[str, Any], words: str
):
    do(lambda: do.client.queues["q"].recur("k", {}, cron="0 3 * * *", jid="r"))
    job = do(lambda: do.client.recurring["r"])
    with pytest.raises(UsageError, match=words):
        do(lambda: job.update(**changes))
    assert do(lambda: do.client.recurring["r"]).facts == job.facts


def test_a_recurring_job_of_a_unique_function_has_the_key_of_its_calls(do):
    job = do.client.job(queue="q", unique=True, debounce=5)(report)
    mine = do(lambda: job.put("tax"))
    made = do(lambda: job.every(60, overlap="queue").put("tax"))
    assert do(lambda: do.client.queues["q"].pop()) is None
    found = do(lambda: do.client.recurring[made.jid])
    assert (found.count, found.facts.overlap) == (0, "queue")
    assert do(lambda: do.client.job(mine.jid)).state == "scheduled"


def test_only_newer_data_about_zones_plan_once_more(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    now = client.store_time()
    due, later = round(now * 1000) - 5000, round(now * 1000) + 10_000_000
    for jid, tz in (("older", "2020a"), ("newer", "9999a"), ("unknown", "")):
        facts = CalendarFacts("0 3 * * *", "UTC", tz)
        client.run(Recur("q", "K", 60_000, jid=jid, calendar=facts, plan=[(due, due), (later, later)]))
    monkeypatch.setattr("holdfast.client.recurring.tz_version", lambda: "2026a")
    assert client.runner.run(replan(client._plan_of, now)) == 1
    assert client.runner.run(replan(client._plan_of, now)) == 0
    rows = {jid: client.recurring[jid].facts for jid in ("older", "newer", "unknown")}  # type: ignore[union-attr]
    assert {jid: row.calendar.tz for jid, row in rows.items()} == {  # type: ignore[union-attr]
        "older": "2026a",
        "newer": "9999a",
        "unknown": "",
    }
    assert rows["older"].next_ms == due  # what is due already stays
    assert rows["older"].calendar.planned_ms > later  # type: ignore[union-attr]
    client.queues["q"].pop(3)
    local = datetime.fromtimestamp(client.recurring["older"].next or 0, UTC)  # type: ignore[union-attr]
    assert (local.hour, local.minute) == (3, 0)
    assert client.recurring["newer"].facts.next_ms == later  # type: ignore[union-attr]


def test_jitter_is_the_same_for_one_moment_whoever_computes_it():
    calendar = Calendar("0 * * * *", jitter=600).checked()
    one, other = (calendar.plan("r", 1_800_000_000 + later) for later in (0, 7200))
    assert {moment.nominal_ms: moment.due_ms for moment in one}.items() >= {
        moment.nominal_ms: moment.due_ms for moment in other[:50]
    }.items()
    late = [moment.due_ms - moment.nominal_ms for moment in one]
    assert 0 <= min(late) < max(late) < 600_000
    assert len(set(late)) > 50


@pytest.mark.few(99)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cron": "* * *"}, "five fields"),
        ({"cron": "61 * * * *"}, "bad minute"),
        ({"cron": "0 0 31 2 *"}, "day-of-month"),
        ({"cron": "0 0 29 2 *", "end": 1_800_000_000}, "no moment"),
        ({"cron": "@dayly"}, "expected one of @yearly"),
        ({"cron": 5}, "expected an expression"),
        ({"cron": "1," * 500_000 + "1 * * * *"}, "at most 200 characters, got 1000009"),
        ({"cron": "9" * 190 + " * * * *"}, "bad minute"),
        ({"cron": "٣ * * * *"}, "bad minute"),
        ({"cron": "*/0 * * * *"}, "bad minute"),
        ({"cron": "@every ٣ days at 03:00"}, "expected such as"),
        ({"cron": "* * * *\0*"}, "five fields"),
        ({"cron": "0 0 */30 2 1#5"}, "no moment before the year 2100"),
        ({"cron": "* * * * *", "zone": "Europe/Berln"}, "did you mean 'Europe/Berlin'"),
        ({"cron": "* * * * *", "zone": "e" * 1_000_000}, "at most 100 characters, got 1000000"),
        ({"cron": "* * * * *", "zone": "localtime"}, "no time zone 'localtime'"),
        ({"cron": "* * * * *", "zone": "right/Europe/Berlin"}, "did you mean 'Europe/Berlin'"),
        ({"cron": "* * * * *", "zone": "../../etc/passwd"}, "no time zone"),
        ({"cron": "* * * * *", "jitter": -1}, "jitter must be from 0"),
        ({"cron": "* * * * *", "jitter": float("nan")}, "jitter must be a finite"),
        (
            {"cron": "* * * * *", "start": datetime(2100, 1, 1, tzinfo=UTC)},
            "start: expected a moment from 1970 to",
        ),
        ({"cron": "* * * * *", "end": 10**400}, "end: expected a moment from 1970 to"),
        ({"cron": "* * * * *", "end": 5}, "no moment before the end"),
        ({"cron": "* * * * *", "jitter": 60}, "less than the 60 s"),
        ({"cron": "* * * * *", "missed": "never"}, "'once', 'skip', 'all' or a number"),
        ({"cron": "* * * * *", "overlap": "wait"}, "'allow', 'skip' or 'queue'"),
        ({"interval": 5, "overlap": "wait"}, "'allow', 'skip' or 'queue'"),
        ({"interval": 5, "unique_for": 5}, "unique_for needs a unique_key"),
        ({"interval": 5, "on_conflict": "raise"}, "no option"),
        ({"cron": "* * * * *", "start": 2_000_000_000, "end": 1_900_000_000}, "end must be later"),
        ({"cron": "* * * * *", "interval": 5}, "interval cannot be given"),
        ({"interval": 5, "zone": "UTC"}, "zone needs cron"),
    ],
)
def test_a_calendar_that_does_not_fit_is_refused_before_anything_is_sent(
    do, options: dict[str, Any], words: str
):
    with pytest.raises(UsageError, match=words):
        do(lambda: do.client.queues["q"].recur("k", {}, jid="r", **options))
    assert do(lambda: do.client.recurring["r"]) is None


@pytest.mark.parametrize(
    ("interval", "options", "words"),
    [
        ("0 3 * *", {}, "five fields"),
        ("0 3 * * *", {"backlog": 5}, "missed="),
        (60, {"zone": "UTC"}, "zone needs a cron expression"),
    ],
)
def test_a_wrong_timing_of_a_function_job_is_refused_at_once(
    do, interval: Any, options: dict[str, Any], words: str
):
    job = do.client.job(queue="q")(report)
    with pytest.raises(UsageError, match=words):
        job.every(interval, **options)


def test_an_every_that_is_not_put_warns_with_the_call_that_is_missing(do):
    job = do.client.job(queue="q")(report)
    with pytest.warns(RuntimeWarning, match=r"report\.every\('0 3 \* \* \*'\) was never put: write") as found:
        job.every("0 3 * * *")
    assert found[0].filename == __file__
    with pytest.raises(UsageError, match="no argument"):
        do(lambda: job.every(60).put(wrong=1))
    do(lambda: job.every(60).put("tax"))


def test_a_schedule_is_declared_and_sends_nothing(do):
    job = do.client.job(queue="q", name="scheduled")(report)
    do.client.schedule(job.options(priority=3).call("tax"), every="0 3 * * *", zone="Europe/Berlin")
    do.client.schedule(job.call("tax"), every=60, jid="minutely")
    [(_, jid, first), (_, _, second)] = [one for one in declared() if one[0].name == "scheduled"]
    assert jid.startswith("scheduled:")
    assert (first.module, first.args, first.changes) == (__name__, ("tax",), {"priority": 3})
    assert second.timing == {"interval": 60, "jid": "minutely"}
    assert do(lambda: do.client.recurring[jid]) is None


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (lambda app, job: app.schedule(job, every=60), "expected a call such as"),
        (lambda app, job: app.schedule(job.call(name="again"), every=60), "give one of them jid="),
        (lambda app, job: app.schedule(job.call(1, 2), every=60), "at most 1 argument"),
        (lambda app, job: app.schedule(job.call(), every="0 3 * *"), "five fields"),
        (lambda app, job: app.schedule(job.call(), every=60, zone="UTC"), "zone needs a cron expression"),
        (lambda app, job: app.schedule(job.options(jid="a").call(), every=60), "has no jid"),
    ],
)
def test_a_schedule_that_does_not_fit_is_refused_where_it_is_written(do, schedule: Any, words: str):
    job = do.client.job(queue="q", name="refused")(report)
    do.client.schedule(job.call("again"), every=60)
    with pytest.raises(UsageError, match=words):
        schedule(do.client, job)


def test_a_moment_at_which_a_calendar_starts_is_one_of_it():
    start = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    calendar = Calendar("0 0 1 1 *", start=start, end=start + 86_400).checked()
    assert list(calendar.moments(0.0)) == [start]


SOON_MS = round(datetime.now(UTC).timestamp() * 1000) + 60_000


def put_calendar(client: Client, jid: str, facts: CalendarFacts, last_ms: int = SOON_MS) -> None:
    """Put a template of which one moment is planned."""
    client.run(Recur("q", "K", 60_000, jid=jid, calendar=facts, plan=[(last_ms, last_ms)]))


def unplanned(client: Client) -> list[str]:
    return [one.jid for one in client.run(RecurUnplanned(SOON_MS + 60_000))]


@pytest.mark.parametrize(
    "facts",
    [
        CalendarFacts("61 * * * *"),
        CalendarFacts("* * * * *", "Mars/Olympus"),
        CalendarFacts("9" * 190 + " * * * *"),
    ],
    ids=["cron", "zone", "digits"],
)
def test_a_calendar_that_cannot_be_read_is_logged_and_stops_no_other(
    client: Client, caplog: pytest.LogCaptureFixture, facts: CalendarFacts
) -> None:
    put_calendar(client, "bad", facts)
    put_calendar(client, "good", CalendarFacts("* * * * *"))
    client.runner.run(extend_plans(client._plan_of, SOON_MS / 1000))
    assert "recurring job bad is not planned on" in caplog.text
    assert unplanned(client) == ["bad"]


@pytest.mark.parametrize(
    ("facts", "last_ms"),
    [(CalendarFacts("0 0 */30 2 1#5"), SOON_MS), (CalendarFacts("* * * * *"), 2 * MAX_MS)],
    ids=["never", "beyond 2100"],
)
def test_a_calendar_without_a_moment_to_come_is_not_looked_at_again(
    client: Client, facts: CalendarFacts, last_ms: int
) -> None:
    put_calendar(client, "over", facts, last_ms)
    client.runner.run(extend_plans(client._plan_of, last_ms / 1000))
    assert [one.jid for one in client.run(RecurUnplanned(2 * MAX_MS))] == []


def test_a_hundred_calendars_that_cannot_be_read_do_not_stand_before_another(client: Client) -> None:
    for number in range(120):
        put_calendar(client, f"bad-{number}", CalendarFacts("* * * * *", "Mars/Olympus"))
    put_calendar(client, "good", CalendarFacts("* * * * *"), SOON_MS + 1)
    assert client.runner.run(extend_plans(client._plan_of, SOON_MS / 1000)) == 121
    assert client.recurring["good"].facts.calendar.planned_ms > SOON_MS + 86_400_000


def test_planning_ends_after_some_seconds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    put_calendar(client, "r", CalendarFacts("* * * * *"))
    monkeypatch.setattr("holdfast.client.recurring._SECONDS", -1)
    assert client.runner.run(extend_plans(client._plan_of, SOON_MS / 1000)) == 0
    assert unplanned(client) == ["r"]
