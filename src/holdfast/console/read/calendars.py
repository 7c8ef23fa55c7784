"""The moments of recurring jobs as people look at them: those to come, in a time zone, and those that are over with what became of their jobs."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec

from holdfast.code.calendar import Calendar, zone_of
from holdfast.commands.recurring import CalendarFacts, RecurringFacts
from holdfast.errors import UsageError
from holdfast.text import duration

_LATEST_MS: Final = 4_102_444_800_000
"""The year 2100: no moment after it is shown."""


class NextMoment(msgspec.Struct, frozen=True):
    """A moment to come: `local` is its time in the zone of the calendar, `viewer` that in the zone of who looks, "" if it is not known.

    `clock` has by how much the clock of the calendar's zone is changed between the moment before (of the first: now) and this one, "" if it is not.
    """

    when_ms: int
    local: str
    viewer: str = ""
    clock: str = ""


def calendar_of(facts: CalendarFacts) -> Calendar:
    """Return the calendar of a recurring job, without its jitter: its moments are those that it names."""
    return Calendar(facts.cron, facts.zone, 0.0, facts.start_ms / 1000, facts.end_ms / 1000)


def coming(facts: RecurringFacts, now_ms: int) -> Iterator[int]:
    """Yield the moments of a recurring job from now on, in epoch milliseconds, without jitter; none after the year 2100."""
    if facts.calendar is not None:
        try:
            calendar = calendar_of(facts.calendar).checked()
        except UsageError:  # another client wrote it, or its zone is unknown to this machine
            return
        yield from (round(moment * 1000) for moment in calendar.moments(now_ms / 1000))
        return
    step = max(facts.interval_ms, 1)
    first = (
        facts.next_ms
        if facts.next_ms >= now_ms
        else facts.next_ms + -(-(now_ms - facts.next_ms) // step) * step
    )
    yield from range(first, _LATEST_MS, step)


def next_moments(
    moments_ms: Iterable[int], now_ms: int, count: int, zone: str, viewer: str = ""
) -> tuple[NextMoment, ...]:
    """Return the first moments as people read them. Raises UsageError for an unknown zone, but not of the viewer."""
    found: list[NextMoment] = []
    before = _in_zone(now_ms, zone).utcoffset()
    for when in islice(moments_ms, count):
        local = _in_zone(when, zone)
        found.append(
            NextMoment(
                when,
                _written(local),
                _written(_in_zone(when, viewer)) if viewer else "",
                _change(before, local.utcoffset()),
            )
        )
        before = local.utcoffset()
    return tuple(found)


def _in_zone(when_ms: int, zone: str) -> datetime:
    return datetime.fromtimestamp(when_ms / 1000, zone_of(zone))


def _written(local: datetime) -> str:
    """Return a time as `Sun 29 Mar 2026, 03:00 UTC+2`."""
    seconds = f":{local.second:02}" if local.second else ""
    return f"{local:%a %d %b %Y, %H:%M}{seconds} UTC{_offset(local.utcoffset())}"


def _offset(offset: timedelta | None) -> str:
    minutes = round((offset or timedelta()).total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    return "" if not minutes else f"{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02}" if rest else "")


def _change(before: timedelta | None, after: timedelta | None) -> str:
    seconds = ((after or timedelta()) - (before or timedelta())).total_seconds()
    return f"clock set {'forward' if seconds > 0 else 'back'} by {duration(abs(seconds))}" if seconds else ""
