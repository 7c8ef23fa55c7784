"""What Debian's cron would run, minute by minute: a reference for calendars.

It is written from cron.c of Debian (3.0pl1). That program wakes in each minute, and compares what the clock shows with what it would show if
nobody had changed it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

DAY = 1440
EPOCH = date(1970, 1, 1)
FIRST, LAST = (round(datetime(year, 1, 1, tzinfo=UTC).timestamp()) // 60 for year in (2020, 2041))
"""The minutes between which changes of clocks are looked for."""


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


@cache
def debian(expressions: tuple[str, ...]) -> Debian:
    return Debian(expressions)


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


def changes(
    zone: ZoneInfo, first: int = FIRST, last: int = LAST, spans: Sequence[int] = (4 * DAY, 60, 1)
) -> Iterator[int]:
    """The minutes in which the offset of a zone changes: of spans that begin and end with another offset, each is looked into."""
    for begin in range(first, last, spans[0]):
        end = min(begin + spans[0], last)
        if offset(zone, begin) == offset(zone, end):
            continue
        if spans[1:]:
            yield from changes(zone, begin, end, spans[1:])
        else:
            yield end
