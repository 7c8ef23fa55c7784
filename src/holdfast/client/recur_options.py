"""Options of recurring jobs: what exists, and what their values may be, checked before anything is sent."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

from holdfast.client.put_options import (
    NOTHING,
    check_losses,
    check_priority,
    check_retries,
    make_wish,
    name_of,
    with_class_defaults,
)
from holdfast.code.job_options import BackoffData
from holdfast.codecs import encode_data
from holdfast.commands.options import MAX_THROTTLES, ExtraOptions
from holdfast.commands.recurring import Recur, RecurUpdate
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.settings import (
    MAX_DELAY,
    MAX_RETRIES,
    Settings,
    check_milliseconds,
    check_name,
    check_names,
    check_queue,
    check_whole,
    unknown_option,
)

MAX_BACKLOG: Final = 1_000_000
MAX_JID: Final = 180
SHORTEST: Final = 0.001


class RecurMore(TypedDict, total=False):
    """What else may be wished for the jobs of a template, as in `PutOptions`; `expires` counts from each put. With
    `keeps_time`, a template that is there already keeps when its next job is due, a new interval counted from the last."""

    keeps_time: bool
    max_losses: int | None
    backoff: BackoffData | None
    expires: float | None
    timeout: float | None
    result_keep: float | None


class Changes(TypedDict, total=False):
    """What `update` may change; what is left out stays. `interval` is in seconds."""

    priority: int
    retries: int
    interval: float
    data: object
    klass: object
    backlog: int
    queue: object
    throttles: Sequence[str]


_WISHES: Final = ("tags", "throttles", "backoff", "expires", "timeout", "result_keep")
_OPTIONS: Final = (
    "interval",
    "offset",
    "priority",
    "retries",
    "max_losses",
    "backlog",
    "jid",
    "keeps_time",
    *_WISHES,
)
_OF_PUTS: Final = ("delay", "depends")
_CHANGES: Final = tuple(Changes.__annotations__)


def make_recur(
    settings: Settings, queue: str, klass: object, data: object, given: Mapping[str, Any]
) -> Recur:
    """The command for one template. None is as if it were not given. Raises UsageError naming what cannot be."""
    options = with_class_defaults(klass, data, given, _OF_PUTS)
    for option in options:
        if option not in _OPTIONS:
            raise unknown_option("recur", option, _OPTIONS)
    if options.get("interval") is None:
        raise UsageError("recur needs an interval, in seconds: recur(klass, data, 60)")
    interval = check_milliseconds("interval", options["interval"], SHORTEST)
    jid = _jid(options.get("jid"))
    wish = make_wish({name: options[name] for name in _WISHES if options.get(name)}, jid, 0)
    return Recur(
        queue,
        name_of(klass),
        interval,
        b"{}" if data is NOTHING else encode_data(data, settings.max_data),
        jid,
        check_milliseconds("offset", options.get("offset") or 0, -MAX_DELAY),
        check_priority(options.get("priority") or 0),
        check_retries(options),
        _backlog(options.get("backlog") or 0),
        wish or ExtraOptions(),
        bool(options.get("keeps_time")),
        check_losses(options),
    )


def make_update(settings: Settings, jid: str, changes: Mapping[str, Any]) -> RecurUpdate:
    """The command for changes of a template. Raises UsageError naming the one that cannot be."""
    checked: dict[str, Any] = {}
    for change, value in changes.items():
        if change not in _CHANGES:
            raise unknown_option("update", change, _CHANGES)
        if change == "interval":
            checked["interval_ms"] = check_milliseconds("interval", value, SHORTEST)
        elif change == "data":
            checked["data"] = encode_data(value, settings.max_data)
        else:
            checked[change] = _CHECKS[change](value)
    return RecurUpdate(jid, **checked)


def _jid(given: object) -> str:
    jid = mint_jid() if given is None else check_name("jid", given)
    if len(jid.encode()) > MAX_JID:
        raise UsageError(
            f"the jid of a recurring job has at most {MAX_JID} bytes, because its jobs add a number"
        )
    return jid


def _retries(retries: object) -> int:
    return check_whole("retries", retries, 0, MAX_RETRIES)


def _backlog(backlog: object) -> int:
    return check_whole("backlog", backlog, 0, MAX_BACKLOG)


def _queue(queue: object) -> str:
    return check_queue("queue", queue)


def _throttles(given: object) -> list[str]:
    return check_names("throttles", given, MAX_THROTTLES)


_CHECKS: Final[Mapping[str, Any]] = {
    "priority": check_priority,
    "retries": _retries,
    "backlog": _backlog,
    "klass": name_of,
    "queue": _queue,
    "throttles": _throttles,
}
