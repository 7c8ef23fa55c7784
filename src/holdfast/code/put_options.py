"""The options of a put: one table. Clients, recurring jobs, the shell, the web, the gateway and exports go through it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypedDict, get_args

from holdfast.bounds import Losses, ParentJids, Priority, Retries, TagNames, ThrottleNames, limits, most
from holdfast.code.backoff import BackoffData, backoff_words
from holdfast.errors import UsageError
from holdfast.settings import (
    SHORTEST,
    Duration,
    HasJid,
    check_jids,
    check_milliseconds,
    check_name,
    check_names,
    check_switch,
    check_whole,
)

Kind = Literal["switch", "whole", "seconds", "names", "jids", "text", "backoff"]
Conflict = Literal["keep", "raise", "replace", "cancel"]


class Option(NamedTuple):
    """What holds for an option beside its type.

    `field` is that of the command which it becomes, or of its `ExtraOptions`. `check` returns the value of that field for what
    was given under a name, and raises UsageError. `doc` is the help of its flag in the shell, `label` its name on pages. `stored` is
    its name among the options of a stored job ("": those do not have it). `recurring`: a template has it.
    """

    field: str
    kind: Kind
    check: Callable[[str, Any], Any]
    label: str
    doc: str
    stored: str = ""
    recurring: bool = True

    @property
    def is_list(self) -> bool:
        """Whether several values may be given."""
        return self.kind in ("names", "jids")


def _within(kind: Any) -> Callable[[str, object], int]:
    low, high = limits(kind)
    return lambda name, value: check_whole(name, value, low, high)


def _each(kind: Any) -> Callable[[str, object], list[str]]:
    longest = most(kind)
    return lambda name, value: check_names(name, value, longest)


def _jids(name: str, value: object) -> list[str]:
    return check_jids(name, value, ParentJids)


def _length(name: str, value: object) -> int:
    return check_milliseconds(name, value, SHORTEST)


def _words(_: str, value: object) -> str:
    return backoff_words(value)


def _unique_for(name: str, value: object) -> str:
    if value in ("end", "start"):
        return str(value)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise UsageError(f"{name}: expected 'end', 'start' or seconds, got {value!r:.80}") from None
    return str(check_milliseconds(name, value, SHORTEST))


def _conflict(name: str, value: object) -> str:
    if value not in get_args(Conflict):
        raise UsageError(f"{name}: expected one of {', '.join(get_args(Conflict))}, got {value!r:.80}")
    return str(value)


class CommonOptions(TypedDict, total=False):
    """Options of puts and of functions that are arguments of `put`."""

    priority: Annotated[
        int | None,
        Option("priority", "whole", _within(Priority), "Priority", "Priority, higher first [default: 0]."),
    ]
    delay: Annotated[
        Duration | None,
        Option(
            "delay_ms",
            "seconds",
            check_milliseconds,
            "Delay",
            "Seconds until the job is due [default: 0].",
            recurring=False,
        ),
    ]
    tags: Annotated[
        Iterable[str] | None,
        Option("tags", "names", _each(TagNames), "Tags", "Tag of the job."),
    ]
    throttles: Annotated[
        Iterable[str] | None,
        Option("throttles", "names", _each(ThrottleNames), "Throttles", "Throttle of the job."),
    ]


class KeptOptions(TypedDict, total=False):
    """Options that are kept with a job or a template, beside its backoff."""

    max_losses: Annotated[
        int | None,
        Option(
            "max_losses",
            "whole",
            _within(Losses),
            "Losses allowed",
            "Number of lost runs that are repeated [default: 3; for a class, its retries].",
        ),
    ]
    expires: Annotated[
        Duration | None,
        Option(
            "expires_ms",
            "seconds",
            _length,
            "Expires",
            "Seconds after which the job fails if it has not started.",
            "expires",
        ),
    ]
    timeout: Annotated[
        Duration | None,
        Option("limit_ms", "seconds", _length, "Time limit", "Longest duration of a run.", "limit"),
    ]
    result_keep: Annotated[
        Duration | None,
        Option(
            "keep_ms",
            "seconds",
            check_milliseconds,
            "Result kept",
            "Seconds for which the result is kept [default: 3600].",
            "keep",
        ),
    ]


class MoreOptions(KeptOptions, total=False):
    """Options of a put that older clients do not have: `only_new` leaves an existing job alone; `backoff` is how long to
    wait between attempts: seconds, `"exponential"`, or a dict (`kind`, `first`, `longest`, `jitter`).

    In seconds, or as timedelta: `expires` (the job must start within this time of the put), `timeout` (the longest run), `result_keep`.
    `max_losses` (0 to 254): how many attempts may be lost, because the process died or the lease expired; it
    gives the job budgets of its own, in which `retries` pay for failures only. Without it a lost attempt costs a retry.
    """

    only_new: Annotated[
        bool,
        Option(
            "mode",
            "switch",
            check_switch,
            "Only if new",
            "Leave an existing job with this jid unchanged.",
            recurring=False,
        ),
    ]
    backoff: Annotated[
        BackoffData | None,
        Option(
            "backoff",
            "backoff",
            _words,
            "Backoff",
            "Pause before a repeated run: seconds, fixed, exponential, or JSON options.",
            "backoff",
        ),
    ]


class UniqueOptions(TypedDict, total=False):
    """What becomes of a put whose unique key another job holds."""

    unique_for: Annotated[
        Literal["end", "start"] | Duration | None,
        Option(
            "unique_for",
            "text",
            _unique_for,
            "Unique for",
            "How long the job holds its key: until its end, its start, or for some seconds [default: end].",
        ),
    ]
    on_conflict: Annotated[
        Conflict | None,
        Option(
            "on_conflict",
            "text",
            _conflict,
            "On conflict",
            "What becomes of the job that holds the key: keep it, raise, replace it, or cancel it [default: keep].",
            recurring=False,
        ),
    ]
    debounce_max: Annotated[
        Duration | None,
        Option(
            "debounce_max_ms",
            "seconds",
            _length,
            "Latest start",
            "Start the job at most that many seconds after its first put, however often it is replaced.",
            recurring=False,
        ),
    ]


class AnyPutOptions(MoreOptions, CommonOptions, UniqueOptions, total=False):
    """Options of any put but its retries, which a function job declares."""

    jid: Annotated[
        str | None,
        Option(
            "jid",
            "text",
            check_name,
            "Jid",
            "Jid of the job; an existing job with it is replaced [default: a new one].",
        ),
    ]
    unique_key: Annotated[
        str | None,
        Option(
            "unique_key",
            "text",
            check_name,
            "Unique key",
            "Unique key: at most one job of its kind with this key exists at a time [default: none].",
        ),
    ]
    depends: Annotated[
        Iterable[str | HasJid] | None,
        Option(
            "depends",
            "jids",
            _jids,
            "Depends on",
            "Job that must be complete first.",
            recurring=False,
        ),
    ]


class PutOptions(AnyPutOptions, total=False):
    """Options of a put: `priority` (-4095 to 4095, higher first), `delay` in seconds, `retries` (0 to 1000),
    `jid` of the caller's choice, and those of `MoreOptions`.

    `tags` (up to 64) and `throttles` (16) are lists of names, `depends` (450) of jids, jobs or handles. Where seconds are
    meant, a timedelta may be given. None counts as not given.
    """

    retries: Annotated[
        int | None,
        Option(
            "retries",
            "whole",
            _within(Retries),
            "Retries",
            "Number of failed runs that are repeated [default: 0; for a class: 5].",
        ),
    ]


OPTIONS: Final[Mapping[str, Option]] = {
    name: kind.__metadata__[0] for name, kind in PutOptions.__annotations__.items()
}
"""All options of a put by name."""


def kept_options(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a stored job under the names of a put: times in seconds, `expires` as a moment; None: it has none."""
    return {
        name: _read(option, stored.get(option.stored)) for name, option in OPTIONS.items() if option.stored
    }


def _read(option: Option, value: Any) -> Any:
    return int(value) / 1000 if value is not None and option.field.endswith("_ms") else value
