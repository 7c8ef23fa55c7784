"""Virtual time: a worker for tests jumps from one due moment to the next, on the real core."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from debian_cron import debian
from holdfast import Client, JobFailed, UsageError, current_job
from holdfast.testing import LocalWorker
from holdfast.testing.clock import START_MS

DAY = 86_400


def test_a_delayed_job_is_performed_when_it_is_due(crew, still):
    moments = []

    @crew.client.job(queue="mail", name="virtual_time.note16")
    def note():
        moments.append(still.now)

    crew(lambda: note.options(delay=90).put())
    assert crew(lambda: crew.worker.run_for(seconds=89)) == []
    [performed] = crew(lambda: crew.worker.run_for(minutes=1))
    assert performed.state == "complete"
    assert moments == [START_MS / 1000 + 90]
    assert still.now == START_MS / 1000 + 149


@pytest.mark.full
def test_a_day_of_retries_and_a_daily_recurrence(crew, still):
    moments = []

    @crew.client.job(queue="mail", retries=1000, name="virtual_time.never_well31")
    def never_well():
        raise ConnectionError

    @crew.client.job(queue="digest", name="virtual_time.digest35")
    def digest():
        moments.append(round(still.now - START_MS / 1000))

    crew(lambda: never_well.put())
    crew(
        lambda: crew.client.queues["digest"].recur(
            digest.registered.name, {}, interval=DAY, offset=3600, jid="daily"
        )
    )
    performed = crew(lambda: crew.worker.run_for(hours=26))
    assert moments == [3600, DAY + 3600]
    tries = [each for each in performed if each.queue == "mail"]
    # Backoff from 1 s to 10 min with jitter: far more than a dozen, far fewer than one a minute.
    assert 100 < len(tries) < 1000
    assert {each.state for each in tries} == {"scheduled"}


def test_retries_that_are_used_up_by_night_are_raised(crew):
    @crew.client.job(queue="mail", retries=3, backoff=3600, name="virtual_time.never_well54")
    def never_well():
        raise ConnectionError("nobody there")

    crew(lambda: never_well.put())
    crew(lambda: crew.worker.run_for(hours=2, minutes=30))
    with pytest.raises(JobFailed, match="nobody there"):
        crew(lambda: crew.worker.run_for(hours=1))


def test_a_job_that_nobody_holds_on_to_is_handed_out_again(crew):
    crew(lambda: crew.client.queues["mail"].put("builtins.nothing", jid="lost"))
    assert crew(lambda: crew.client.queues["mail"].pop()).jid == "lost"
    assert crew(lambda: crew.worker.drain(raises=False)) == []
    [performed] = crew(lambda: crew.worker.run_for(minutes=2, raises=False))
    assert performed.jid == "lost"


def test_time_passes_until_a_moment(crew, still):
    moment = still.moment + timedelta(hours=5)
    crew(lambda: crew.worker.run_until(moment))
    assert still.moment == moment
    assert still.moment.tzinfo is UTC
    crew(lambda: crew.worker.run_until(still.now + 60))
    assert still.moment == moment + timedelta(minutes=1)


def test_a_moment_that_has_passed_is_refused(crew, still):
    with pytest.raises(UsageError, match="has passed"):
        crew(lambda: crew.worker.run_until(datetime(2020, 1, 1, tzinfo=UTC)))


@pytest.mark.parametrize(
    ("moment", "why"), [("tomorrow", "not 'tomorrow'"), (datetime(2030, 1, 1), "no time zone")]
)
def test_a_moment_that_is_none_is_refused(crew, still, moment, why):
    with pytest.raises(UsageError, match=f"moment .*{why}"):
        crew(lambda: crew.worker.run_until(moment))


def test_the_clock_alone_performs_nothing(crew, still):
    crew(lambda: crew.client.queues["mail"].put("builtins.nothing", delay=60))
    still.advance(days=1)
    assert crew(lambda: crew.client.queues["mail"].counts)["waiting"] == 1


def test_a_worker_cannot_run_for_less_than_nothing(crew):
    with pytest.raises(UsageError, match="minutes"):
        crew(lambda: crew.worker.run_for(minutes=-1))


@pytest.mark.parametrize("span", [{"hours": float("nan")}, {"days": "one"}])
def test_no_odd_span_of_time_is_accepted(still, span):
    [name] = span
    with pytest.raises(UsageError, match=name):
        still.advance(**span)


def test_without_a_stopped_clock_time_cannot_be_told_to_pass(url, namespace):
    with Client(url, namespace=namespace) as client:
        worker = LocalWorker(client)
        with pytest.raises(UsageError, match="holdfast_clock"):
            worker.run_for(hours=1)
        worker.close()


def test_a_year_of_nights_gets_one_job_each_whatever_the_clocks_of_the_zone_do(crew, still):
    berlin = ZoneInfo("Europe/Berlin")
    nights: list[datetime] = []

    @crew.client.job(queue="q", name="virtual_time.nightly")
    def nightly():
        nights.append(datetime.fromtimestamp(still.now, berlin))

    crew(lambda: nightly.every("30 2 * * *", zone="Europe/Berlin").put())
    crew(lambda: crew.worker.run_for(days=365))
    assert len(nights) == 365
    assert len({moment.date() for moment in nights}) == 365
    assert [(moment.hour, moment.minute) for moment in nights].count((3, 0)) == 1
    assert {(moment.hour, moment.minute) for moment in nights} == {(2, 30), (3, 0)}


NIGHTS = [
    ("Europe/Berlin", "2026-03-29", "2026-10-25"),
    ("America/New_York", "2026-03-08", "2026-11-01"),
    ("America/St_Johns", "2026-03-08", "2026-11-01"),
    ("America/Havana", "2026-03-08", "2026-11-01"),
    ("America/Santiago", "2026-09-06", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04", "2026-04-05"),
    ("Australia/Adelaide", "2026-10-04", "2026-04-05"),
    ("Pacific/Auckland", "2026-09-27", "2026-04-05"),
    ("Africa/Cairo", "2026-04-24", "2026-10-30"),
    ("Antarctica/Troll", "2026-03-29", "2026-10-25"),
    ("Asia/Beirut", "2026-03-29", "2026-10-25"),
    ("Pacific/Apia", "2011-12-30", "2011-09-24"),
]
"""Zones, and a day of each change of their clocks; Samoa had no 30 December 2011."""

IN_A_NIGHT = ("30 2 * * *", "45 0 * * *", "15 1,2 * * *", "0 * * * *", "*/20 1-3 * * *")


@pytest.mark.few(4)
@pytest.mark.parametrize(("zone", "night"), [(zone, night) for zone, *nights in NIGHTS for night in nights])
def test_in_the_nights_in_which_clocks_are_changed_each_moment_gets_its_job_at_its_time(
    crew, still, zone, night
):
    runs: list[tuple[str, float, float]] = []

    @crew.client.job(queue="q", name=f"virtual_time.of_{zone}_{night}")
    def note(cron: str):
        job = current_job()
        assert job.scheduled_for is not None
        runs.append((cron, job.scheduled_for.timestamp(), still.now))

    begin = datetime.fromisoformat(night).replace(hour=12, tzinfo=ZoneInfo(zone)) - timedelta(days=1)
    still.set(begin)
    for cron in IN_A_NIGHT:
        crew(lambda cron=cron: note.every(cron, zone=zone, missed="all").put(cron))
    crew(lambda: crew.worker.run_until(begin + timedelta(days=2)))
    first, last = (round((begin + timedelta(days=days)).timestamp()) // 60 for days in (0, 2))
    expected = debian(IN_A_NIGHT).moments(ZoneInfo(zone), first + 1, last + 1)
    for cron, minutes in zip(IN_A_NIGHT, expected, strict=True):
        moments = [minute * 60.0 for minute in minutes]
        assert [(nominal, now) for own, nominal, now in runs if own == cron] == [
            (moment, moment) for moment in moments
        ]


def test_a_clock_that_is_set_back_or_forward_puts_no_moment_twice(crew, still):
    runs: list[datetime] = []

    @crew.client.job(queue="q", name="virtual_time.stepped")
    def note():
        job = current_job()
        assert job.scheduled_for is not None
        runs.append(job.scheduled_for)

    begin = datetime(2026, 11, 28, 12, 5, tzinfo=UTC)
    still.set(begin)
    handle = crew(lambda: note.every("*/10 * * * *").put())
    every = [begin + timedelta(minutes=5 + 10 * number) for number in range(40)]
    crew(lambda: crew.worker.run_for(hours=1))
    assert runs == every[:6]
    still.advance(hours=-1)
    assert crew(lambda: crew.worker.run_for(minutes=59)) == []
    crew(lambda: crew.worker.run_for(hours=1, minutes=1))
    assert runs == every[:12]
    still.advance(hours=1)
    crew(lambda: crew.worker.run_for(hours=1))
    assert runs == [*every[:12], *every[17:24]]
    assert crew(lambda: crew.client.recurring[handle.jid]).left_out == 5
