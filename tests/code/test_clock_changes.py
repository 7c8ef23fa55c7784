"""Moments of cron expressions around changes of the clock, against the loop of Debian's cron, minute by minute.

`Debian` is written from cron.c of Debian (3.0pl1): it wakes in each minute, and compares what the clock shows with what it would show if nobody
had changed it.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest

from holdfast.code.calendar import Calendar

DAY = 1440
EPOCH = date(1970, 1, 1)
FIRST, LAST = (round(datetime(year, 1, 1, tzinfo=UTC).timestamp()) // 60 for year in (2020, 2041))

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


class Field(NamedTuple):
    least: int
    most: int
    names: Sequence[str] = ()

    def values(self, written: str) -> set[int]:
        """The numbers that a field names."""
        found: set[int] = set()
        for term in written.split(","):
            span, _, step = term.partition("/")
            low, _, high = span.partition("-")
            begin = self.least if span == "*" else self.number(low)
            end = self.number(high) if high else self.most if span == "*" or step else begin
            found.update(range(begin, end + 1, int(step or 1)))
        return found

    def number(self, word: str) -> int:
        return self.names.index(word) if word in self.names else int(word)


MINUTE, HOUR, OF_MONTH, MONTH = Field(0, 59), Field(0, 23), Field(1, 31), Field(1, 12)
WEEKDAY = Field(0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))


class Debian:
    """What Debian's cron would run of some expressions: of each set of numbers, bit n stands for the expression n."""

    def __init__(self, expressions: Sequence[str]) -> None:
        self.minute, self.hour = [0] * 60, [0] * 24
        self.wild = 0
        self.days: list[tuple[set[int], set[int], set[int], bool]] = []
        self.all = 2 ** len(expressions) - 1
        for place, written in enumerate(expressions):
            minute, hour, of_month, month, weekday = written.split()
            for one in MINUTE.values(minute):
                self.minute[one] |= 1 << place
            for one in HOUR.values(hour):
                self.hour[one] |= 1 << place
            if minute.startswith("*") or hour.startswith("*"):
                self.wild |= 1 << place
            either = not (of_month.startswith("*") or weekday.startswith("*"))
            weekdays = {one % 7 for one in WEEKDAY.values(weekday)}
            self.days.append((OF_MONTH.values(of_month), MONTH.values(month), weekdays, either))
        self.of_day = cache(self._of_day)

    def _of_day(self, number: int) -> int:
        day = EPOCH + timedelta(days=number)
        found = 0
        for place, (of_month, months, weekdays, either) in enumerate(self.days):
            fits = day.day in of_month, day.isoweekday() % 7 in weekdays
            if day.month in months and (any(fits) if either else all(fits)):
                found |= 1 << place
        return found

    def matching(self, shown: int) -> int:
        """The expressions that name what the clock shows, in minutes since 1970."""
        found = self.minute[shown % 60] & self.hour[shown % DAY // 60]
        return found and found & self.of_day(shown // DAY)

    def runs(self, clock: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the minutes in which something runs, and what; `clock` has minutes of UTC and what a clock shows in them."""
        _, virtual = next(clock)
        for minute, running in clock:
            ahead = running - virtual
            if ahead == 1 or not -180 < ahead <= 180:
                virtual, found = running, self.matching(running)
            elif ahead > 0:
                assert ahead > 5, "no zone has such a change"
                missed = range(virtual + 1, running + 1)
                found = self.matching(running) & self.wild
                for shown in missed:
                    found |= self.matching(shown) & ~self.wild
                virtual = running
            else:
                found = self.matching(running) & self.wild
            if found:
                yield minute, found

    def moments(self, zone: ZoneInfo, first: int, last: int) -> list[list[int]]:
        """The minutes of UTC in which each expression runs, from one minute to another."""
        found: list[list[int]] = [[] for _ in self.days]
        for minute, which in self.runs(wall_clock(zone, first - 1, last)):
            for place in range(len(found)):
                if which >> place & 1:
                    found[place].append(minute)
        return found


def offset(zone: ZoneInfo, minute: int) -> int:
    """What a clock shows in a minute of UTC, less that minute."""
    ahead = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    assert ahead is not None
    return round(ahead.total_seconds()) // 60


def wall_clock(zone: ZoneInfo, first: int, last: int) -> Iterator[tuple[int, int]]:
    for begin in range(first, last, 60):
        end = min(begin + 60, last)
        ahead = offset(zone, begin)
        is_same = ahead == offset(zone, end)
        for minute in range(begin, end):
            yield minute, minute + (ahead if is_same else offset(zone, minute))


def changes(zone: ZoneInfo) -> Iterator[int]:
    """The minutes in which the offset of a zone changes, 2020 to 2040."""
    before = offset(zone, FIRST)
    for day in range(FIRST, LAST, DAY):
        if offset(zone, day + DAY) == before:
            continue
        for minute in range(day, day + DAY):
            if offset(zone, minute + 1) != before:
                before = offset(zone, minute + 1)
                yield minute + 1


def every_change(zones: Sequence[str]) -> Mapping[tuple[int, int, int], str]:
    """The changes of zones, each once: the minute, the offsets before and after it, and one zone that has it."""
    found: dict[tuple[int, int, int], str] = {}
    for name in zones:
        zone = ZoneInfo(name)
        for minute in changes(zone):
            found.setdefault((minute, offset(zone, minute - 1), offset(zone, minute)), name)
    return found


def ours(cron: str, zone: str, first: int, last: int) -> list[int]:
    found = Calendar(cron, zone).moments(first * 60 - 1)
    return [round(moment) // 60 for moment in takewhile(lambda moment: moment < last * 60, found)]


def compare(expressions: Sequence[str], zone: str, first: int, last: int) -> int:
    """Compare the moments of expressions with those of Debian's cron; return how many there were."""
    expected = Debian(expressions).moments(ZoneInfo(zone), first, last)
    for cron, minutes in zip(expressions, expected, strict=True):
        assert ours(cron, zone, first, last) == minutes, (cron, zone, first)
    return sum(map(len, expected))


def compare_changes(zones: Sequence[str]) -> int:
    """Compare within three days of each change of some zones; return how many moments there were."""
    debian, count = Debian(EXPRESSIONS), 0
    for (minute, _, _), zone in every_change(zones).items():
        first, last = minute - 3 * DAY, minute + 3 * DAY
        for cron, expected in zip(EXPRESSIONS, debian.moments(ZoneInfo(zone), first, last), strict=True):
            assert ours(cron, zone, first, last) == expected, (cron, zone, minute)
            count += len(expected)
    return count


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
    zone, year = dice.choice(sorted(available_timezones())), dice.randint(2020, 2040)
    first, last = (round(datetime(one, 1, 1, tzinfo=UTC).timestamp()) // 60 for one in (year, year + 1))
    return compare([random_expression(dice) for _ in range(5)], zone, first, last)


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
    zones = sorted(available_timezones())
    assert compare_changes(zones[part::8]) > 10_000


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
