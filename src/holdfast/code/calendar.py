"""Calendars of recurring jobs: the moments that a cron expression names in a time zone.

The store keeps the next moments of a template as its plan; clients and workers compute more of them. Where the clock of a zone
is changed, they are those of Debian's cron: a fixed time that is skipped runs right after the change, if that is of less than three hours;
one that comes twice runs the first time; expressions that begin with `*` in the minutes or the hours run by elapsed time. Several times
that fall on one moment are one.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as dtime
from functools import cache, lru_cache
from hashlib import sha256
from heapq import heappop, heappush
from importlib import import_module
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.errors import UsageError
from holdfast.settings import MAX_DELAY, SHORTEST, check_seconds

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

# Time zones and cron expressions are loaded by the programs that use them: every client imports this module.

MOST_MOMENTS: Final = 1500
LEAST_MOMENTS: Final = 100
LEAST_SECONDS: Final = 25 * 3600.0
"""The least number of moments of a plan, and the least time that it covers; it never has more than MOST_MOMENTS."""
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@every_minute": "* * * * *",
}
_FIELDS: Final = 5
_LAST_YEAR: Final = 2100
_LAST_MOMENT: Final = datetime(_LAST_YEAR, 1, 1, tzinfo=UTC).timestamp()
_OF_A_MACHINE: Final = frozenset({"localtime", "posixrules", "Factory"})
_WITH_LEAP_SECONDS: Final = "right/"
"""Files of zones that are others on other machines, or whose minutes are not those of the store."""
_LONGEST: Final = {"cron": 200, "zone": 100}
"""Bytes that the core keeps of each."""
_EVERY_DAYS: Final = re.compile(r"@every (\d{1,5}) days? at (\d\d):(\d\d)", re.ASCII)
_A_MONDAY: Final = date(1970, 1, 5)
"""From which day days are counted if there is no start."""
_DAY, _MOST_DAYS = 86_400, 3660
_LONG_CHANGE: Final = 3 * 3600
"""Seconds: what a change of the clock skips that is so long does not run after it."""


class Moment(NamedTuple):
    """When a job is put, and the moment of the calendar that it is for, both in epoch milliseconds."""

    due_ms: int
    nominal_ms: int


class Calendar(NamedTuple):
    """A cron expression in a zone. `jitter`: seconds by which a job may be put later; `start` and `end`: epoch seconds, 0 for none."""

    cron: str
    zone: str = "UTC"
    jitter: float = 0.0
    start: float = 0.0
    end: float = 0.0

    def checked(self) -> "Calendar":
        """Return this calendar. Raises UsageError for an expression that is wrong or names no moment, or an unknown zone."""
        found = self._replace(cron=check_cron(self.cron), zone=check_zone(self.zone))
        if found.end and found.end <= found.start:
            raise UsageError("end must be later than start")
        if found.first_after(0.0) is None:
            before = (
                f"before the year {_LAST_YEAR}"
                if not found.end
                else "between start and end"
                if found.start
                else "before the end"
            )
            raise UsageError(f"cron: {self.cron!r:.100} names no moment {before}")
        return found

    def first_after(self, moment: float) -> float | None:
        """Return the first moment after one, in epoch seconds; None if there is none."""
        return next(self.moments(moment), None)

    def moments(self, after: float) -> Iterator[float]:
        """Yield the moments after one, in epoch seconds, without jitter."""
        last = max(after, self.start - 0.001)
        if last >= _LAST_MOMENT:  # also what no datetime can be
            return
        for moment in self._from(zone_of(self.zone), last):
            if self.end and moment > self.end:
                return
            if moment > last:
                last = moment
                yield moment

    def _from(self, zone: "ZoneInfo", begin: float) -> Iterator[float]:
        every = _EVERY_DAYS.fullmatch(self.cron)
        if every is None:
            return _moments_from(self.cron, zone, begin)
        first = datetime.fromtimestamp(self.start, zone).date() if self.start else _A_MONDAY
        return _days_from(int(every[1]), dtime(int(every[2]), int(every[3])), zone, begin, first)

    def plan(self, jid: str, after: float) -> list[Moment]:
        """Return the moments of a plan that begins after one: at least 100 of them and 25 hours, at most 1,500."""
        made: list[Moment] = []
        for moment in self.moments(after):
            if len(made) >= MOST_MOMENTS or (len(made) >= LEAST_MOMENTS and moment > after + LEAST_SECONDS):
                break
            nominal = round(moment * 1000)
            made.append(Moment(nominal + self.late_by(jid, nominal), nominal))
        return made

    def late_by(self, jid: str, nominal_ms: int) -> int:
        """Return by how many milliseconds one job is put later: always the same for one moment of one template."""
        if not self.jitter:
            return 0
        dice = int.from_bytes(sha256(f"{jid} {nominal_ms}".encode()).digest()[:8], "big")
        return int(dice / 2**64 * self.jitter * 1000)

    def shortest_gap(self, after: float, count: int = LEAST_MOMENTS) -> float:
        """Return the shortest time between two of the next moments, in seconds; 0 if there is one at most."""
        found = [moment for moment, _ in zip(self.moments(after), range(count), strict=False)]
        return min((later - one for one, later in pairwise(found)), default=0.0)


def _moments_from(cron: str, zone: "ZoneInfo", begin: float) -> Iterator[float]:
    """Yield the moments of an expression in their order, the first ones perhaps before `begin`; some come twice."""
    from cronsim import CronSim

    is_fixed = not any(field.startswith("*") for field in cron.split()[:2])
    around = [datetime.fromtimestamp(begin + later, zone) for later in (-_LONG_CHANGE, 0, _LONG_CHANGE)]
    wall = around[1].replace(tzinfo=None, fold=0)
    if len({one.utcoffset() for one in around}) > 1:
        wall -= timedelta(seconds=_LONG_CHANGE)  # what the clock showed before comes again
    held: list[float] = []
    # By the clock on the wall, without the zone: where its clock is changed, cronsim loses moments.
    for shown in CronSim(cron, wall):
        if shown.year >= _LAST_YEAR:
            break
        first, second = (shown.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
        for moment in (first,) if first == second else _at_change(zone, first, second, is_fixed):
            heappush(held, moment)
        while held and held[0] <= min(first, second):  # no later one is before that
            yield heappop(held)
    yield from sorted(held)


def _days_from(days: int, at: dtime, zone: "ZoneInfo", begin: float, counted: date) -> Iterator[float]:
    """Yield a time of day at an interval of days, counted from a day; the first one may be before `begin`."""
    passed = (datetime.fromtimestamp(begin, zone).date() - counted).days
    day = counted + timedelta(days=passed // days * days)
    while day.year < _LAST_YEAR:
        shown = datetime.combine(day, at)
        first, second = (shown.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
        yield from (first,) if first == second else _at_change(zone, first, second, True)
        day += timedelta(days=days)


def cron_at(interval: object, at: object) -> str:
    """Return the expression of an interval of whole days that runs at a time of day. Raises UsageError."""
    if not isinstance(at, dtime) or at.tzinfo is not None or at.second or at.microsecond:
        raise UsageError(
            f"at: expected a time of day in whole minutes, such as datetime.time(3, 30), with its zone in zone=, got {at!r:.80}"
        )
    if isinstance(interval, str):
        raise UsageError(
            f"at needs an interval of whole days or weeks, not a cron expression: {interval!r:.80}"
        )
    days, rest = divmod(check_seconds("interval", interval, SHORTEST), _DAY)
    if rest or not days:
        raise UsageError(
            f"at needs an interval of whole days or weeks, such as timedelta(days=1), got {interval!r:.80}"
        )
    return check_cron(f"@every {int(days)} days at {at:%H:%M}")


def _every_days(written: str, cron: str) -> str:
    """Return `@every 2 days at 03:00` as it is stored. Raises UsageError."""
    found = _EVERY_DAYS.fullmatch(written)
    if found is None or not 1 <= int(found[1]) <= _MOST_DAYS or int(found[2]) > 23 or int(found[3]) > 59:
        raise UsageError(
            f"cron: expected such as '@every 2 days at 03:00', of 1 to {_MOST_DAYS} days, or one of {', '.join(_NICKNAMES)}, got {cron!r:.100}"
        )
    if int(found[1]) == 1:
        return f"{int(found[3])} {int(found[2])} * * *"
    return f"@every {int(found[1])} days at {found[2]}:{found[3]}"


def _at_change(zone: "ZoneInfo", first: float, second: float, is_fixed: bool) -> Sequence[float]:
    """Return when a time runs that a change of the clock skips or repeats. `first` and `second`: what it is by the clock before and after."""
    if first < second:
        return (first,) if is_fixed else (first, second)
    if not is_fixed or first - second >= _LONG_CHANGE:
        return ()
    before, after = round(second), round(first)  # the clock is changed between them
    old = datetime.fromtimestamp(before, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return (float(after),)


def check_cron(cron: object) -> str:
    """Return a cron expression of five fields; a nickname such as `@daily` stands for one. Raises UsageError."""
    from cronsim import CronSim, CronSimError

    if not isinstance(cron, str):
        raise UsageError(f"cron: expected an expression such as '0 3 * * *', got {cron!r:.100}")
    if len(cron) > _LONGEST["cron"]:
        raise UsageError(
            f"cron: expected at most {_LONGEST['cron']} characters, got {len(cron)}: {cron!r:.50}…"
        )
    written = " ".join(_NICKNAMES.get(cron.strip().lower(), cron).split())
    if written.lower().startswith("@every "):
        return _every_days(written.lower(), cron)
    if written.startswith("@"):
        raise UsageError(f"cron: expected one of {', '.join(_NICKNAMES)}, got {cron!r:.100}")
    if len(written.split(" ")) != _FIELDS:
        interval = (
            "; an interval is a number of seconds, or a timedelta" if written and " " not in written else ""
        )
        raise UsageError(
            f"cron: expected five fields (minute, hour, day, month, weekday) such as '0 3 * * *', got {cron!r:.100}{interval}"
        )
    try:
        CronSim(written, datetime.now(UTC))
    except CronSimError as error:
        raise UsageError(f"cron: {str(error).lower()} in {cron!r:.100}") from None
    return written


def check_zone(zone: object) -> str:
    """Return the name of a time zone such as `Europe/Berlin`. Raises UsageError, with the nearest name."""
    from zoneinfo import ZoneInfo

    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if not isinstance(zone, str) or not zone:
        raise UsageError(f"zone: expected a name such as 'Europe/Berlin', got {zone!r:.100}")
    if len(zone) > _LONGEST["zone"]:
        raise UsageError(
            f"zone: expected at most {_LONGEST['zone']} characters, got {len(zone)}: {zone!r:.50}…"
        )
    if _zone(zone) is None:
        raise UsageError(f"zone: there is no time zone {zone!r:.100}{_advice(zone)}")
    return zone


def zone_of(name: str) -> "ZoneInfo":
    """Return a time zone by its name. Raises UsageError."""
    found = _zone(name)
    if found is None:
        raise UsageError(f"zone: there is no time zone {name!r:.100}{_advice('')}")
    return found


@lru_cache(1024)
def _zone(name: str) -> "ZoneInfo | None":
    from zoneinfo import ZoneInfo

    if name in _OF_A_MACHINE or name.startswith(_WITH_LEAP_SECONDS):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _advice(name: str) -> str:
    """Return the name that is nearest to one of a zone that there is not, or what is missing on this machine."""
    from zoneinfo import TZPATH, available_timezones

    if _zone("UTC") is None:
        return f"; this machine has no time zones (looked in {', '.join(TZPATH)}): pip install tzdata"
    if not name:
        return ""
    from difflib import get_close_matches  # needed only for errors

    close = get_close_matches(name, available_timezones() - _OF_A_MACHINE, 1, 0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


@cache
def tz_version() -> str:
    """Return the version of the data about time zones that this process uses, such as `2025b`; "" if that is not known.

    Those of the machine come first; without any, Python takes them from the package tzdata.
    """
    from zoneinfo import TZPATH

    for directory in map(Path, TZPATH):
        try:
            with (directory / "tzdata.zi").open(encoding="ascii") as file:
                return file.readline(100).removeprefix("# version ").strip()
        except (OSError, UnicodeError):
            if (directory / "UTC").exists():
                return ""
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except ImportError:
        return ""


def moment_of(what: str, moment: object) -> float:
    """Return a time in epoch seconds; it is given as a datetime with a time zone, or in epoch seconds. Raises UsageError."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise UsageError(f"{what} has no time zone: use datetime(…, tzinfo=…), or datetime.now(UTC) + …")
        moment = moment.timestamp()
    if isinstance(moment, bool) or not isinstance(moment, (int, float)):
        raise UsageError(f"{what} must be a datetime or epoch seconds, not {moment!r:.80}")
    check_seconds(what, moment, -inf, inf)
    if not 0 <= moment <= MAX_DELAY:
        last = datetime.fromtimestamp(MAX_DELAY, UTC)
        raise UsageError(
            f"{what}: expected a moment from 1970 to {last:%Y-%m-%d}, got {moment!r:.40} epoch seconds"
        )
    return float(moment)
