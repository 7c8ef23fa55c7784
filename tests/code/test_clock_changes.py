"""Moments of cron expressions around changes of the clock: they are those of Debian's cron."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import takewhile
from zoneinfo import ZoneInfo, available_timezones

import pytest

from debian_cron import DAY, FIRST, HOUR, MINUTE, MONTH, OF_MONTH, WEEKDAY, Field, changes, debian, offset
from holdfast.code.calendar import Calendar

ZONES = sorted(available_timezones() - {"Factory", "localtime"})
EXPRESSIONS = (
    "30 2 * * *",
    "0 2,3 * * *",
    "15,45 1-3 * * *",
    "0 0 * * *",
    "59 23 * * *",
    "1 0 * * *",
    "0 8-18/2 * * 1-5",
    "30 1 * * sun",
    "5 3 1,15 * mon",
    "0 12 */2 * *",
    "10/20 0-4 * * *",
    "0 * * * *",
    "*/30 * * * *",
    "*/15 4 * * *",
    "*/20 2 * * *",
    "* 2 * * sun",
    "*/10 0 * * *",
    "45 */2 * * *",
    "7 */6 * 3,10 *",
    "0 * 28-31 * *",
)


@cache
def every_change() -> Sequence[tuple[str, int]]:
    """The changes of all zones, as a zone and a minute; of those that are alike, one."""
    found: dict[tuple[int, int, int], tuple[str, int]] = {}
    for name in ZONES:
        zone = ZoneInfo(name)
        for minute in changes(zone):
            found.setdefault((minute, offset(zone, minute - 1), offset(zone, minute)), (name, minute))
    return tuple(found.values())


def ours(cron: str, zone: str, first: int, last: int) -> list[int]:
    found = Calendar(cron, zone).moments(first * 60 - 1)
    return [round(moment) // 60 for moment in takewhile(lambda moment: moment < last * 60, found)]


def compare(expressions: Sequence[str], zone: str, first: int, last: int) -> int:
    """Compare the moments of expressions with those of Debian's cron; return how many there were."""
    expected = debian(tuple(expressions)).moments(ZoneInfo(zone), first, last)
    for cron, minutes in zip(expressions, expected, strict=True):
        assert ours(cron, zone, first, last) == minutes, (cron, zone, first)
    return sum(map(len, expected))


def random_expression(dice: random.Random) -> str:
    def field(field: Field) -> str:
        low, high = sorted(dice.sample(range(field.least, field.most + 1), 2))
        step = dice.randint(2, max(2, field.most // 3))
        return dice.choice(
            ["*", f"*/{step}", f"{low}", f"{low}-{high}", f"{low},{high}", f"{low}-{high}/{step}"]
        )

    minute = str(dice.randint(0, 59)) if dice.random() < 0.8 else field(MINUTE)
    days = ["*", "*", "*"] if dice.random() < 0.4 else [field(OF_MONTH), field(MONTH), field(WEEKDAY)]
    return " ".join([minute, field(HOUR), *days])


def compare_year(seed: int) -> int:
    """Compare a whole year of five expressions, all of them chosen at random."""
    dice = random.Random(seed)
    zone, year = dice.choice(ZONES), dice.randint(2020, 2040)
    first, last = (round(datetime(one, 1, 1, tzinfo=UTC).timestamp()) // 60 for one in (year, year + 1))
    return compare([random_expression(dice) for _ in range(5)], zone, first, last)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "zone",
    ["Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Antarctica/Casey", "Africa/Casablanca"],
)
def test_moments_near_changes_of_one_year_are_those_of_debian(zone: str):
    years = [minute for minute in changes(ZoneInfo(zone)) if minute < FIRST + 400 * DAY][:2]
    assert years
    for minute in years:
        assert compare(EXPRESSIONS, zone, minute - DAY, minute + DAY)


def test_moments_of_a_whole_year_are_those_of_debian():
    assert compare(
        ["30 2 * * *", "*/20 2 * * 1-5", "0 0 1 */2 *"], "America/Sao_Paulo", FIRST, FIRST + 366 * DAY
    )


@pytest.mark.full
@pytest.mark.parametrize("part", range(8))
def test_moments_near_every_change_of_every_zone_are_those_of_debian(part: int):
    found = every_change()
    assert len(found) > 1000
    for zone, minute in found[part::8]:
        assert compare(EXPRESSIONS, zone, minute - 3 * DAY, minute + 3 * DAY)


@pytest.mark.full
@pytest.mark.parametrize("part", range(8))
def test_moments_of_random_years_are_those_of_debian(part: int):
    assert sum(compare_year(seed) for seed in range(part * 25, part * 25 + 25)) > 10_000


@pytest.mark.parametrize(
    ("zone", "night"),
    [("Europe/Berlin", datetime(2026, 10, 25)), ("Australia/Lord_Howe", datetime(2026, 4, 5))],
)
def test_no_moment_is_before_the_time_after_which_it_was_looked_for(zone: str, night: datetime):
    begin = round(night.replace(tzinfo=ZoneInfo(zone)).timestamp())
    for after in range(begin, begin + 6 * 3600, 600):
        for cron in ("30 2 * * *", "0,45 1 * * *", "*/15 * * * *", "30 1-2 * * *"):
            every = ours(cron, zone, begin // 60, begin // 60 + 2 * DAY)
            assert ours(cron, zone, after // 60 + 1, begin // 60 + 2 * DAY) == [
                minute for minute in every if minute * 60 > after
            ]


def test_a_time_that_a_whole_skipped_day_would_have_had_does_not_run():
    """Samoa had no 30 December 2011; Debian's cron makes up for changes of less than three hours."""
    first = round(datetime(2011, 12, 28, tzinfo=UTC).timestamp()) // 60
    assert compare(EXPRESSIONS, "Pacific/Apia", first, first + 6 * DAY)
    found = ours("30 2 * * *", "Pacific/Apia", first, first + 4 * DAY)
    shown = [datetime.fromtimestamp(minute * 60, ZoneInfo("Pacific/Apia")).day for minute in found]
    assert shown == [28, 29, 31, 1]
