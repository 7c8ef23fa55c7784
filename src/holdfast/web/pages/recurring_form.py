"""The form of a recurring job: when it puts jobs, by an interval or a cron expression, and the next moments of what is typed."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Final, Literal

import msgspec

from holdfast.client.put_options import NOTHING
from holdfast.client.recur_options import make_recur
from holdfast.code.calendar import check_zone, zone_of
from holdfast.commands.recurring import RecurringFacts
from holdfast.console.read.calendars import NextMoment, next_moments, own_zone
from holdfast.errors import UsageError
from holdfast.settings import DEFAULT_BACKLOG, Settings
from holdfast.text import duration, one_line
from holdfast.web.views import Body

_SHOWN: Final = 5
"""Moments in the preview of a form."""
_OLDER: Final = ("Brazil/", "Canada/", "Chile/", "Etc/", "Mexico/", "US/")


@cache
def zone_names() -> tuple[str, ...]:
    """Return the names of time zones that a form proposes: those of cities, and UTC; any other name may be typed."""
    from zoneinfo import available_timezones  # reads the file system, at the first form

    cities = (name for name in available_timezones() if "/" in name and not name.startswith(_OLDER))
    return ("UTC", *sorted(cities))


class Timing(Body, frozen=True, kw_only=True):
    """When a recurring job puts jobs: every `interval` seconds, the first `offset` seconds from now, or at the moments of the expression `cron`.

    `overlap` is allow, skip (no job while the last one has not ended) or queue (one waits for its end). Of an interval, up to `backlog` missed jobs are put
    later, 0 for all. Of an expression: its time zone, `missed` (once, skip, all, or a number: which of the missed moments get a job), `jitter` in seconds,
    and `start` and `end`: epoch seconds, or ISO 8601, in the zone of the calendar where the text names none. `by` is what a form with the fields of both means.
    """

    by: Literal["", "interval", "cron"] = ""
    interval: float | None = None
    offset: float = 0.0
    backlog: int = DEFAULT_BACKLOG
    cron: str = ""
    zone: str = ""
    missed: str | int = ""
    overlap: str = ""
    jitter: float = 0.0
    start: str | float = ""
    end: str | float = ""


def timing_options(body: Timing) -> dict[str, object]:
    """Return the options of `recur` that say when. What a form has for the other kind is left out. Raises UsageError."""
    by = body.by or ("cron" if body.cron.strip() else "interval")
    options: dict[str, object] = {"overlap": body.overlap or None}
    if by == "interval" or not body.by:
        options |= {"interval": body.interval, "offset": body.offset or None}
    if by == "interval":
        options["backlog"] = body.backlog
    if by == "cron" or not body.by:
        zone = body.zone.strip()
        options |= {
            "zone": zone or None,
            "missed": int(body.missed) if str(body.missed).isdecimal() else body.missed or None,
            "jitter": body.jitter or None,
            "start": _moment("start", body.start, zone),
            "end": _moment("end", body.end, zone),
        }
    return options | ({"cron": body.cron} if by == "cron" else {})


def _moment(what: str, given: str | float, zone: str) -> float | None:
    """Return a time in epoch seconds, None for "". Raises UsageError."""
    if not isinstance(given, str):
        return given
    if not given.strip():
        return None
    own = zone_of(check_zone(zone or "UTC"))
    try:
        found = datetime.fromisoformat(given.strip())
        return (found if found.tzinfo else found.replace(tzinfo=own)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"{what}: expected a time such as 2027-03-01T08:00, got {given!r:.80}") from None


class Preview(msgspec.Struct, frozen=True):
    """The next moments of a recurring job as it is typed in a form, or what is wrong with it (`error`).

    `zone` is that of the calendar, `viewer` that of who looks, "" if it is the same or not known. Jobs are put up to `jitter` seconds later.
    """

    moments: tuple[NextMoment, ...] = ()
    zone: str = "UTC"
    viewer: str = ""
    jitter: float = 0.0
    error: str = ""


class PreviewRecurring(Timing, frozen=True, kw_only=True):
    """When a recurring job would put jobs; `changes`: that of `jid`, which exists. `viewer` is the time zone of who looks."""

    jid: str = ""
    changes: bool = False
    viewer: str = ""


OF_CALENDARS: Final = ("cron", "zone", "missed", "overlap", "jitter", "start", "end")
"""The fields of a form that are about a calendar; `overlap` is about intervals too."""


def present_calendar(facts: RecurringFacts) -> dict[str, object]:
    """Return what a recurring job has of the fields of a calendar, as a form has them: times in its zone."""
    own = facts.calendar
    if own is None:
        return {"overlap": facts.overlap}
    zone = zone_of(own_zone(facts))
    start, end = (
        datetime.fromtimestamp(when / 1000, zone).strftime("%Y-%m-%dT%H:%M:%S").removesuffix(":00")
        if when
        else ""
        for when in (own.start_ms, own.end_ms)
    )
    return {
        "cron": own.cron,
        "zone": own.zone,
        "missed": own.missed,
        "overlap": own.overlap,
        "jitter": own.jitter_ms / 1000,
        "start": start,
        "end": end,
    }


def calendar_of_form(facts: RecurringFacts) -> PreviewRecurring:
    """Return the form of a recurring job as it is now."""
    if facts.calendar is None:
        return PreviewRecurring(interval=facts.interval_ms / 1000, by="interval")
    return msgspec.convert({"by": "cron", **present_calendar(facts)}, PreviewRecurring, strict=False)


def calendar_changes(facts: RecurringFacts, given: Mapping[str, object]) -> dict[str, object]:
    """Return the options of `update` for those fields of a calendar that differ from the present ones; None stays. Raises UsageError."""
    present = present_calendar(facts)
    changed = {
        name: value
        for name, value in given.items()
        if value is not None and str(value) != str(present.get(name, ""))
    }
    zone = str(given.get("zone") or present.get("zone") or "UTC")
    for name in ("start", "end"):
        if name in changed:
            value = changed[name]
            changed[name] = _moment(name, value if isinstance(value, (str, float, int)) else "", zone) or 0.0
    if str(changed.get("missed", "")).isdecimal():
        changed["missed"] = int(str(changed["missed"]))
    return changed


def preview_of(
    body: PreviewRecurring, settings: Settings, now_ms: int, facts: RecurringFacts | None = None
) -> Preview:
    """Return the next moments of what is typed, or the first thing that is wrong with it. `facts` is the recurring job that is changed."""
    try:
        return _preview(body, settings, now_ms, facts)
    except UsageError as error:
        return Preview(error=one_line(str(error)))


def _preview(
    body: PreviewRecurring, settings: Settings, now_ms: int, facts: RecurringFacts | None
) -> Preview:
    made = make_recur(settings, "queue", "klass", NOTHING, timing_options(body), now_ms / 1000)
    viewer = _known(body.viewer)
    if made.calendar is not None:
        zone = made.calendar.zone
        moments: Iterable[int] = [nominal for _, nominal in made.plan[:_SHOWN]]
        viewer = "" if viewer == zone else viewer
        jitter = made.calendar.jitter_ms / 1000
        return Preview(next_moments(moments, now_ms, _SHOWN, zone, viewer), zone, viewer, jitter)
    first = now_ms + made.offset_ms
    if facts is not None and facts.calendar is None:
        first = max(facts.next_ms + made.interval_ms - facts.interval_ms, now_ms)
    moments = (first + number * made.interval_ms for number in range(_SHOWN))
    viewer = "" if viewer == "UTC" else viewer
    return Preview(next_moments(moments, now_ms, _SHOWN, "UTC", viewer), "UTC", viewer)


def _known(zone: str) -> str:
    """Return the time zone that a browser named, "" for one that this machine does not know."""
    try:
        zone_of(zone)
    except UsageError:
        return ""
    return zone


def sentence_of(preview: Preview) -> str:
    """Return a preview as one line of text."""
    some = "; ".join(one.local for one in preview.moments)
    return f"The next moments: {some}." + (
        f" Jobs are put up to {duration(preview.jitter)} later." if preview.jitter else ""
    )
