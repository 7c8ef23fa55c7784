"""The moments of recurring jobs as people look at them: those to come, in a time zone, and those that are over with what became of their jobs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, pairwise, takewhile
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


class Turn(msgspec.Struct, frozen=True):
    """A moment that is over, and what became of it: the state of its job; `gone`: that is deleted; `left out`: it got none; `unknown`: one of both.

    `local` is the moment in the zone of the calendar. `jid` is "" where there is no job to look at.
    """

    when_ms: int
    local: str
    state: str
    jid: str = ""


def calendar_of(facts: CalendarFacts) -> Calendar:
    """Return the calendar of a recurring job, without its jitter: its moments are those that it names."""
    return Calendar(facts.cron, facts.zone, 0.0, facts.start_ms / 1000, facts.end_ms / 1000)


def coming(facts: RecurringFacts, now_ms: int) -> Iterator[int]:
    """Yield the moments of a recurring job from now on, in epoch milliseconds, without jitter; none after the year 2100.

    The first one may be over already: its job is put when a worker asks the queue.
    """
    due = (facts.calendar.nominal_ms if facts.calendar else 0) or facts.next_ms
    if facts.next_ms and due < now_ms and not facts.paused:
        yield due
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


# What is over.

_MANY: Final = 200
_WIDER: Final = 24


def turns(
    facts: RecurringFacts, states: Mapping[str, str], moments_ms: Mapping[str, int], now_ms: int, most: int
) -> tuple[Turn, ...]:
    """Return the last turns of a recurring job, the oldest first: jobs, and the moments of its calendar or interval that got none.

    `states` has the states of the jobs that it put last, by their jids, and `moments_ms` for which moment each was put, as far as it is known.
    """
    known = sorted((when, jid) for jid, when in moments_ms.items() if when)
    zone = own_zone(facts)
    jitter = facts.calendar.jitter_ms if facts.calendar else 0
    over = _over(facts, min([facts.since_ms, *(when for when, _ in known)]), now_ms, most)
    taken = {when: [one for one, _ in known if when <= one <= when + jitter] for when in over}
    since = _since(facts, [when for when, _ in known], {one for some in taken.values() for one in some})
    empty = [when for when, jobs in taken.items() if when > since and not jobs]
    found = [Turn(when, _written(_in_zone(when, zone)), states[jid], jid) for when, jid in known]
    without = _without(facts, [(when, _number(jid)) for when, jid in known], empty)
    found += [Turn(when, _written(_in_zone(when, zone)), state) for when, state in without]
    return tuple(sorted(found, key=lambda one: one.when_ms)[-most:])


def _since(facts: RecurringFacts, known: Sequence[int], matched: set[int]) -> int:
    """Return since when a recurring job has had these moments: since it was written, or as long as its jobs before that fit them too."""
    since = facts.since_ms
    for when in reversed(known):
        if when < since and when not in matched:
            break
        since = min(since, when)
    return since


def own_zone(facts: RecurringFacts) -> str:
    """Return the zone of a calendar; UTC for an interval, and where this machine does not know it."""
    try:
        return zone_of(facts.calendar.zone).key if facts.calendar else "UTC"
    except UsageError:
        return "UTC"


def _number(jid: str) -> int:
    return int(jid.rpartition("-")[2])


def _without(
    facts: RecurringFacts, known: Sequence[tuple[int, int]], empty: Sequence[int]
) -> list[tuple[int, str]]:
    """Return what became of the moments without a job. `known` has moment and number of each job that is there; of one that is deleted the number is missing."""
    found: list[tuple[int, str]] = []
    for (before, first), (after, last) in pairwise([(0, 0), *known, (_LATEST_MS, facts.count + 1)]):
        missing = last - first - 1
        between = [when for when in empty if before < when < after]
        state = "left out" if missing <= 0 else "gone" if missing >= len(between) else "unknown"
        found += [(when, state) for when in between]
    return found


def _over(facts: RecurringFacts, since_ms: int, now_ms: int, most: int) -> list[int]:
    """Return the last moments that are decided, the oldest first: no job is to come for them any more."""
    until = now_ms if facts.paused or not facts.next_ms else min(facts.next_ms - 1, now_ms)
    step = max(facts.interval_ms, 1)
    if facts.calendar is None:
        last = (
            facts.next_ms - step
            if until < facts.next_ms
            else facts.next_ms + (until - facts.next_ms) // step * step
        )
        return [when for when in range(last - (most - 1) * step, last + 1, step) if when >= since_ms]
    try:
        calendar = calendar_of(facts.calendar).checked()
    except UsageError:  # another client wrote it, or its zone is unknown to this machine
        return []
    return _before(calendar, since_ms, until, step, most)


def _before(calendar: Calendar, since_ms: int, until: int, step: int, most: int) -> list[int]:
    """Return the last moments of a calendar up to one, in a stretch of time that is made longer until there are enough."""
    found: list[int] = []
    for wider in range(_WIDER):
        begin = max(since_ms, until - step * most * 2**wider)
        moments = (round(moment * 1000) for moment in calendar.moments((begin - 1) / 1000))
        found = [*takewhile(lambda when: when <= until, islice(moments, _MANY * most))]
        if len(found) >= most or begin <= since_ms:
            break
    return found[-most:]
