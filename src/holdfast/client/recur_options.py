"""Options of recurring jobs, which are checked before anything is sent."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from datetime import time as dtime
from time import time
from typing import Any, Final, Literal, TypedDict

from holdfast.bounds import Backlog
from holdfast.client.put_options import (
    NOTHING,
    checked_values,
    extra_options,
    name_of,
    with_class_defaults,
)
from holdfast.code.backoff import BackoffData
from holdfast.code.calendar import Calendar, Moment, cron_at, moment_of, tz_version
from holdfast.code.put_options import OPTIONS, KeptOptions
from holdfast.codecs import encode_data
from holdfast.commands.options import ExtraOptions
from holdfast.commands.recurring import CalendarFacts, DeclaredFacts, Recur, RecurUpdate
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.settings import (
    DEFAULT_RETRIES,
    MAX_DELAY,
    SHORTEST,
    Duration,
    Settings,
    check_bounded,
    check_milliseconds,
    check_name,
    check_queue,
    check_whole,
    unknown_option,
)

MAX_JID: Final = 180


class CalendarOptions(TypedDict, total=False):
    """Options of a recurring job that follows a cron expression, in the time zone `zone` (a name such as `Europe/Berlin`; default UTC).

    `at=time(3)` in place of an expression puts the job at that time of day, with an interval of whole days or weeks; they are counted from the day of `start`,
    without it from a Monday.
    `missed`: which of the moments that no worker was there for get a job: "once" (the last one, the default), "skip", "all", or how many.
    `overlap="skip"` leaves a moment out while the last job has not ended, `overlap="queue"` puts one that waits for its end; both work with an
    interval too. `jitter`: seconds by which a job may be put later. `start` and `end`: datetimes
    with a zone, or epoch seconds, between which the moments lie."""

    at: dtime | None
    zone: str | None
    missed: Literal["once", "skip", "all"] | int | None
    overlap: Literal["allow", "skip", "queue"] | None
    jitter: Duration | None
    start: datetime | float | None
    end: datetime | float | None


class RecurMore(KeptOptions, CalendarOptions, total=False):
    """More options of a template and its jobs, as in `PutOptions`; `expires` counts from each put. With
    `keeps_time`, an existing template keeps when its next job is due, and a new interval counts from the last job.

    In place of an interval, `cron` is an expression of five fields, or a name such as `@daily`, with the options of `CalendarOptions`."""

    backoff: BackoffData | None
    keeps_time: bool
    cron: str | None


class Changes(CalendarOptions, total=False):
    """Options that `update` changes; what is left out stays. `interval` is in seconds. `cron` and the options of `CalendarOptions` are those of a
    template that follows a calendar; one with an interval follows a calendar from then on if it gets a `cron`."""

    cron: str

    priority: int
    retries: int
    interval: float
    data: object
    klass: object
    backlog: int
    queue: object
    throttles: Sequence[str]


_CALENDAR: Final = ("cron", *CalendarOptions.__annotations__)
_OVERLAPS: Final = ("allow", "skip", "queue")
_OWN: Final = ("interval", "offset", "backlog", "keeps_time", *_CALENDAR)
_OPTIONS: Final = (*_OWN, *(name for name, option in OPTIONS.items() if option.recurring))
_OF_PUTS: Final = tuple(
    name for name, option in OPTIONS.items() if not option.recurring and name != "only_new"
)
_CHANGES: Final = tuple(Changes.__annotations__)
OF_PLANS: Final = frozenset(("cron", "at", "zone", "jitter", "start", "end"))
"""What the moments of a calendar depend on: a change of one needs a plan."""
_SLACK: Final = 3600.0
"""Seconds by which the clock of a client may be ahead: the store leaves out what is over."""


def make_recur(
    settings: Settings,
    queue: str,
    klass: object,
    data: object,
    given: Mapping[str, object],
    now: float = 0.0,
) -> Recur:
    """Return the command of one template. None counts as not given. The plan of a calendar begins at `now`, in epoch seconds.

    Raises UsageError naming the option that is wrong.
    """
    options = dict(with_class_defaults(klass, data, given, _OF_PUTS))
    declared = options.pop("declared", None) if isinstance(given.get("declared"), DeclaredFacts) else None
    for option in options:
        if option not in _OPTIONS:
            raise unknown_option("recur", option, _OPTIONS)
    jid = _jid(options.get("jid"))
    calendar, plan, interval = timing(jid, options, now or time())
    values = checked_values(options)
    extra = extra_options(values, jid)
    return Recur(
        queue,
        name_of(klass),
        interval,
        b"{}" if data is NOTHING else encode_data(data, settings.max_data),
        jid,
        check_milliseconds("offset", options.get("offset") or 0, -MAX_DELAY),
        values.get("priority", 0),
        values.get("retries", DEFAULT_RETRIES),
        check_bounded("backlog", options.get("backlog") or 0, Backlog),
        extra or ExtraOptions(),
        bool(options.get("keeps_time")),
        values.get("max_losses"),
        calendar,
        plan,
        _overlap(options["overlap"]) if options.get("overlap") and not calendar else "",
        declared,
    )


def timing(
    jid: str, given: Mapping[str, object], now: float
) -> tuple[CalendarFacts | None, Sequence[Moment], int]:
    """Return the calendar of a template and its first plan, if it follows one, and its interval in ms. Raises UsageError."""
    options: Mapping[str, Any] = _of_days(given)
    if options.get("cron") is None:
        return None, (), _interval(options)
    for name in ("interval", "offset", "backlog"):
        if options.get(name):
            raise UsageError(f"{name} cannot be given with cron=")
    calendar = _calendar(options)
    gap = calendar.shortest_gap(now)
    if gap and calendar.jitter >= gap:
        raise UsageError(
            f"jitter: expected less than the {gap:g} s between two moments, got {calendar.jitter:g} s"
        )
    plan = calendar.plan(jid, now)
    if not plan:
        raise UsageError(f"cron: {calendar.cron!r} names no moment before the end")
    facts = CalendarFacts(
        calendar.cron,
        calendar.zone,
        tz_version(),
        _missed(options.get("missed")),
        _overlap(options.get("overlap")),
        round(calendar.jitter * 1000),
        round(calendar.start * 1000),
        round(calendar.end * 1000),
    )
    return facts, plan, max(1, round(gap * 1000)) if gap else round(MAX_DELAY * 1000)


def _calendar(options: Mapping[str, Any]) -> Calendar:
    start, end = (_moment(name, options.get(name)) for name in ("start", "end"))
    jitter = check_milliseconds("jitter", options.get("jitter") or 0) / 1000
    zone = options.get("zone")
    return Calendar(options["cron"], "UTC" if zone is None else zone, jitter, start, end).checked()


def _of_days(options: Mapping[str, object]) -> Mapping[str, object]:
    """Return the options with the expression that an interval of days with `at` stands for. Raises UsageError."""
    if options.get("at") is None:
        return options
    if options.get("cron") is not None:
        raise UsageError("at needs an interval of whole days or weeks, and no cron=")
    cron = cron_at(options.get("interval"), options["at"])
    return {**options, "cron": cron, "interval": None, "at": None}


def _interval(options: Mapping[str, object]) -> int:
    """Return the interval of a template without a calendar, in ms. Raises UsageError."""
    for name in _CALENDAR:
        if options.get(name) is not None and name != "overlap":
            raise UsageError(f"{name} needs cron=: an interval has no calendar")
    if options.get("interval") is None:
        raise UsageError("recur requires an interval in seconds: recur(klass, data, 60); or cron='0 3 * * *'")
    return check_milliseconds("interval", options["interval"], SHORTEST)


def _moment(name: str, value: object) -> float:
    return 0.0 if value is None else moment_of(name, value)


def _missed(value: object) -> str:
    if value is None or value in ("once", "skip", "all"):
        return str(value or "once")
    if isinstance(value, str):
        raise UsageError(f"missed: expected 'once', 'skip', 'all' or a number, got {value!r:.80}")
    return str(check_whole("missed", value, 1, 1000))


def _overlap(value: object) -> str:
    if value is None or value in _OVERLAPS:
        return str(value or "allow")
    raise UsageError(f"overlap: expected 'allow', 'skip' or 'queue', got {value!r:.80}")


def make_update(
    settings: Settings, jid: str, changes: Mapping[str, object], present: CalendarFacts | None = None
) -> RecurUpdate:
    """Return the command that changes a template, whose `present` calendar has what is left out. Raises UsageError naming the option that is wrong."""
    checked: dict[str, Any] = {}
    for change, value in changes.items():
        if change not in _CHANGES:
            raise unknown_option("update", change, _CHANGES)
        if change not in OF_PLANS:
            field, check = _CHECKS[change]
            checked[field] = check(value, settings)
    if not OF_PLANS.isdisjoint(changes):
        calendar, checked["plan"], gap = timing(jid, _merged(present, changes), time() - _SLACK)
        checked |= {"calendar": calendar, "interval_ms": gap, "missed": None, "overlap": None}
    return RecurUpdate(jid, **checked)


def _merged(present: CalendarFacts | None, changes: Mapping[str, object]) -> Mapping[str, object]:
    """Return the options of a calendar with some changes."""
    own: dict[str, object] = {}
    if present is not None:
        names = ("zone", "overlap") if changes.get("at") else ("cron", "zone", "overlap")
        own = {name: getattr(present, name) for name in names}
        own["missed"] = int(present.missed) if present.missed.isdigit() else present.missed
        own["jitter"] = present.jitter_ms / 1000
        own |= {name: getattr(present, f"{name}_ms") / 1000 or None for name in ("start", "end")}
    return {**own, **{name: value for name, value in changes.items() if name in (*_CALENDAR, "interval")}}


def _jid(given: object) -> str:
    jid = mint_jid() if given is None else check_name("jid", given)
    if len(jid.encode()) > MAX_JID:
        raise UsageError(
            f"the jid of a recurring job has at most {MAX_JID} bytes, because its jobs append a number"
        )
    return jid


_CHECKS: Final[Mapping[str, tuple[str, Callable[[Any, Settings], object]]]] = {
    "priority": ("priority", lambda value, _: OPTIONS["priority"].check("priority", value)),
    "retries": ("retries", lambda value, _: OPTIONS["retries"].check("retries", value)),
    "interval": ("interval_ms", lambda value, _: check_milliseconds("interval", value, SHORTEST)),
    "data": ("data", lambda value, settings: encode_data(value, settings.max_data)),
    "klass": ("klass", lambda value, _: name_of(value)),
    "backlog": ("backlog", lambda value, _: check_bounded("backlog", value, Backlog)),
    "queue": ("queue", lambda value, _: check_queue("queue", value)),
    "throttles": ("throttles", lambda value, _: OPTIONS["throttles"].check("throttles", value)),
    "missed": ("missed", lambda value, _: _missed(value)),
    "overlap": ("overlap", lambda value, _: _overlap(value)),
}
"""For each option of `update`: the field of RecurUpdate, and the check of its value."""
