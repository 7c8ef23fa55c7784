"""Options of function jobs: their names, those that are sent with each put, and backoff between attempts.

A backoff that is data is sent with the job, and the core computes the pause; one that is a function is called by the
worker, so it must be part of the worker's code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, cast, get_args

from holdfast.bounds import DEFAULT_BACKOFF, MAX_PAUSE_MS, Losses, Priority
from holdfast.errors import UsageError
from holdfast.settings import (
    DEFAULT_LOSSES,
    SHORTEST,
    Duration,
    HasJid,
    check_bounded,
    check_each,
    check_list,
    check_seconds,
    unknown_option,
)

Backoff = Callable[[int, BaseException], float]
Kind = Literal["fixed", "exponential"]

_FIRST, _LONGEST, _JITTER = DEFAULT_BACKOFF[1] / 1000, DEFAULT_BACKOFF[2] / 1000, DEFAULT_BACKOFF[3] / 100
_LONGEST_PAUSE: Final = MAX_PAUSE_MS / 1000


class BackoffOptions(TypedDict, total=False):
    """A backoff as data. `kind` is `exponential` (each pause twice the one before) or `fixed`; `first` and
    `longest` pause in seconds (1 and 600); `jitter`, a share from 0 to 1 by which each is spread (0.25)."""

    kind: Kind
    first: float
    longest: float
    jitter: float


BackoffData = BackoffOptions | Kind | float
"""A backoff that can be sent with a job: options, a kind with default options, or a fixed number of seconds."""


def code_backoff(backoff: Backoff | BackoffData | None) -> Backoff | str:
    """Return the argument `backoff=` of a function: itself if it is called for each pause, else as the core writes it ("": none)."""
    if callable(backoff):
        return backoff
    return "" if backoff is None else backoff_words(backoff)


def backoff_words(backoff: object) -> str:
    """Return a backoff that is data as the core writes it, `kind:first:longest:jitter`. Raises UsageError."""
    if callable(backoff):
        raise UsageError("backoff: a function cannot travel with a job; give it as data, or to @client.job")
    kind, first, longest, jitter = _checked(backoff)
    return f"{kind}:{round(first * 1000)}:{round(longest * 1000)}:{round(jitter * 100)}"


def backoff_text(words: str) -> str:
    """Return a backoff as the core writes it for people: `3 s`, or `1 s to 600 s`."""
    kind, first, longest, _ = words.split(":")
    shortest = f"{int(first) / 1000:g} s"
    return shortest if kind == "fixed" else f"{shortest} to {int(longest) / 1000:g} s"


DEFAULT_WORDS: Final = ":".join(map(str, DEFAULT_BACKOFF))


def _checked(backoff: object) -> tuple[Kind, float, float, float]:
    if isinstance(backoff, str):
        return _of_options({"kind": backoff})
    if isinstance(backoff, Mapping):
        return _of_options(cast("Mapping[str, object]", backoff))
    seconds = check_seconds("backoff", backoff, 0.0, _LONGEST_PAUSE)
    return "fixed", seconds, seconds, 0.0


def _of_options(backoff: Mapping[str, object]) -> tuple[Kind, float, float, float]:
    known = tuple(BackoffOptions.__annotations__)
    for name in backoff:
        if name not in known:
            raise unknown_option("backoff", name, known)
    kind = backoff.get("kind", "exponential")
    if kind not in get_args(Kind):
        raise UsageError(f"backoff: kind is {' or '.join(get_args(Kind))}, not {kind!r}")
    first = check_seconds("backoff first", backoff.get("first", _FIRST), 0.0, _LONGEST_PAUSE)
    longest = check_seconds(
        "backoff longest", backoff.get("longest", max(first, _LONGEST)), first, _LONGEST_PAUSE
    )
    jitter = check_seconds("backoff jitter", backoff.get("jitter", _JITTER), 0.0, 1.0)
    return cast("Kind", kind), first, longest, jitter


RESULT_KEEP: Final = 3600.0
_TRAVEL: Final = ("priority", "delay", "tags", "throttles", "expires", "timeout")


class JobOptions(TypedDict, total=False):
    """Options of a function job. `queue` (`default`); `name`, its stored name; `retries` and `backoff` for when it
    fails, that is, raises or exceeds its `timeout` (None: it fails at once); `max_losses` (3), how often it may be lost,
    because its process died or its lease expired (0: it runs at most once); `priority`; `tags` and `throttles`, lists of
    names. In seconds, or as timedelta: `delay`, `expires` (the job is not started later than this after the put),
    `timeout` (the longest run), `result_keep` (3600), and `soft_timeout`, after which PerformTimeout is raised in the
    function, which may catch it. With `strict_results`, a result that is not of the type that the function declares fails
    the job in `<queue>-WrongResult`, without a retry; without it, that is logged once for each function, and the job completes.

    All but `soft_timeout`, `strict_results` and a `backoff` that is a function are sent with each put.
    """

    queue: str
    name: str | None
    retries: int | None
    max_losses: int | None
    backoff: Backoff | BackoffData | None
    priority: int
    delay: Duration
    tags: Sequence[str]
    throttles: Sequence[str]
    expires: Duration | None
    timeout: Duration | None
    soft_timeout: Duration | None
    result_keep: Duration
    strict_results: bool


class PutChanges(TypedDict, total=False):
    """Options of one put: those of `JobOptions`, `depends` (jobs that must be complete first: jids, jobs or handles), a `jid`
    chosen by the caller, and `only_new` to leave an existing job unchanged."""

    queue: str
    priority: int
    delay: Duration
    jid: str
    only_new: bool
    max_losses: int
    tags: Sequence[str]
    throttles: Sequence[str]
    depends: Sequence[str | HasJid]
    backoff: BackoffData
    expires: Duration
    timeout: Duration
    result_keep: Duration


_OF_OTHER_LIBRARIES: Final = {
    "acks_late": "max_losses: a lost job is always tried again, up to max_losses times",
    "actor_name": "name",
    "at_front": "priority",
    "autoretry_for": "retries, and @holdfast.retry(Error, …) below it to retry after some exceptions only",
    "bind": "holdfast.current_job(), called in the function",
    "countdown": "delay",
    "default_retry_delay": "backoff",
    "depends_on": "depends",
    "eta": "put_at(moment, …) in place of put(…)",
    "ignore_result": "result_keep=0",
    "job_id": "jid",
    "job_timeout": "timeout",
    "max_age": "expires",
    "max_retries": "retries",
    "queue_name": "queue",
    "rate_limit": "throttles",
    "result_ttl": "result_keep",
    "retry_backoff": "backoff",
    "soft_time_limit": "soft_timeout",
    "task_id": "jid",
    "throttle": "throttles",
    "time_limit": "timeout",
    "ttl": "expires",
}
"""Options of other libraries, and what to write here."""


def unknown(where: str, option: str, known: Sequence[str]) -> UsageError:
    """Return the error for an option that does not exist, with what to write in its place."""
    advice = _OF_OTHER_LIBRARIES.get(option)
    if advice is None:
        return unknown_option(where, option, tuple(known))
    return UsageError(f"{where} has no option {option!r}; use {advice}")


def option_hint(name: str, call: str) -> str:
    """Return how to give an option that was given as an argument of a put of `call`, "" for what is no option."""
    if name in PutChanges.__annotations__:
        return f"{name} is an option of the put: write {call}.options({name}=…).put(…)"
    if name in JobOptions.__annotations__:
        return f"{name} is an option of the function: give it to @app.job({name}=…)"
    if name in _OF_OTHER_LIBRARIES:
        return f"for the option {name} of other libraries, use {_OF_OTHER_LIBRARIES[name]}"
    return ""


def check_known(options: JobOptions) -> None:
    """Raise UsageError for an option that does not exist."""
    for option in options:
        if option not in JobOptions.__annotations__:
            raise unknown("@app.job", option, tuple(JobOptions.__annotations__))


def travelling(options: JobOptions) -> dict[str, Any]:
    """Return the options that each put sends: those that differ from the defaults, and always the budgets."""
    given: dict[str, object] = {
        name: value for name, value in options.items() if name in _TRAVEL and value is not None
    }
    if "priority" in given:
        check_bounded("priority", given["priority"], Priority)
    for name, least in (("delay", 0.0), ("expires", SHORTEST), ("timeout", SHORTEST)):
        if name in given:
            check_seconds(name, given[name], least)
    for name in ("tags", "throttles"):
        if name in given:
            given[name] = check_each(name, check_list(name, given[name]))
    # Defaults are not sent.
    given = {name: value for name, value in given.items() if value}
    given["retries"] = options.get("retries") or 0
    losses = options.get("max_losses")
    given["max_losses"] = DEFAULT_LOSSES if losses is None else check_bounded("max_losses", losses, Losses)
    backoff = options.get("backoff")
    if backoff is not None and not callable(backoff):
        backoff_words(backoff)
        given["backoff"] = backoff
    keep = options.get("result_keep", RESULT_KEEP)
    if keep != RESULT_KEEP:
        given["result_keep"] = keep
    return given
