"""Options of recurring jobs, which are checked before anything is sent."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

from holdfast.bounds import Backlog
from holdfast.client.put_options import (
    NOTHING,
    checked_values,
    extra_options,
    name_of,
    with_class_defaults,
)
from holdfast.code.backoff import BackoffData
from holdfast.code.put_options import OPTIONS, KeptOptions
from holdfast.codecs import encode_data
from holdfast.commands.options import ExtraOptions
from holdfast.commands.recurring import Recur, RecurUpdate
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.settings import (
    DEFAULT_RETRIES,
    MAX_DELAY,
    SHORTEST,
    Settings,
    check_bounded,
    check_milliseconds,
    check_name,
    check_queue,
    unknown_option,
)

MAX_JID: Final = 180


class RecurMore(KeptOptions, total=False):
    """More options of a template and its jobs, as in `PutOptions`; `expires` counts from each put. With
    `keeps_time`, an existing template keeps when its next job is due, and a new interval counts from the last job."""

    backoff: BackoffData | None
    keeps_time: bool


class Changes(TypedDict, total=False):
    """Options that `update` changes; what is left out stays. `interval` is in seconds."""

    priority: int
    retries: int
    interval: float
    data: object
    klass: object
    backlog: int
    queue: object
    throttles: Sequence[str]


_OWN: Final = ("interval", "offset", "backlog", "keeps_time")
_OPTIONS: Final = (*_OWN, *(name for name, option in OPTIONS.items() if option.recurring))
_OF_PUTS: Final = tuple(
    name for name, option in OPTIONS.items() if not option.recurring and name != "only_new"
)
_CHANGES: Final = tuple(Changes.__annotations__)


def make_recur(
    settings: Settings, queue: str, klass: object, data: object, given: Mapping[str, object]
) -> Recur:
    """Return the command of one template. None counts as not given. Raises UsageError naming the option that is wrong."""
    options = with_class_defaults(klass, data, given, _OF_PUTS)
    for option in options:
        if option not in _OPTIONS:
            raise unknown_option("recur", option, _OPTIONS)
    if options.get("interval") is None:
        raise UsageError("recur requires an interval in seconds: recur(klass, data, 60)")
    interval = check_milliseconds("interval", options["interval"], SHORTEST)
    jid = _jid(options.get("jid"))
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
    )


def make_update(settings: Settings, jid: str, changes: Mapping[str, object]) -> RecurUpdate:
    """Return the command that changes a template. Raises UsageError naming the option that is wrong."""
    checked: dict[str, Any] = {}
    for change, value in changes.items():
        if change not in _CHANGES:
            raise unknown_option("update", change, _CHANGES)
        field, check = _CHECKS[change]
        checked[field] = check(value, settings)
    return RecurUpdate(jid, **checked)


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
}
"""For each option of `update`: the field of RecurUpdate, and the check of its value."""
