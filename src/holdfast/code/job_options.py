"""Options of function jobs: their names, and those that are sent with each put."""

from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import Any, Final, Literal, cast

from holdfast.code.backoff import Backoff, BackoffData
from holdfast.code.put_options import OPTIONS, AnyPutOptions, CommonOptions, KeptOptions, UniqueOptions
from holdfast.code.unique import Unique
from holdfast.errors import UsageError
from holdfast.settings import DEFAULT_LOSSES, Duration, unknown_option

RESULT_KEEP: Final = 3600.0


class JobOptions(CommonOptions, KeptOptions, UniqueOptions, total=False):
    """Options of a function job. `queue` (`default`); `name`, its stored name; `retries` and `backoff` for when it
    fails, that is, raises or exceeds its `timeout` (None: it fails at once); `max_losses` (3), how often it may be lost,
    because its process died or its lease expired (0: it runs at most once); `priority`; `tags` and `throttles`, lists of
    names. In seconds, or as timedelta: `delay`, `expires` (the job is not started later than this after the put),
    `timeout` (the longest run), `result_keep` (3600), and `soft_timeout`, after which PerformTimeout is raised in the
    function, which may catch it. With `strict_results`, a result that is not of the type that the function declares fails
    the job in `<queue>-WrongResult`, without a retry; without it, that is logged once for each function, and the job completes.

    With `unique` at most one job of the same call exists at a time: True for all arguments, names of some, or a function of them that returns
    a text. `unique_for` is "end" (the default), "start", or seconds; `on_conflict` "keep" (the default: the handle is of the job
    that stands), "raise" (NotUnique), "replace" (a job that has not started gets the new arguments and options) or "cancel" (that job, for the new one).
    `debounce=5` replaces and starts 5 seconds after the last put, at most `debounce_max` after the first.

    With `every`, an interval or a cron expression, each worker that has loaded the function puts it as a recurring job at its start, with the options of
    `CalendarOptions`.

    All but `soft_timeout`, `strict_results`, `unique`, `every` and a `backoff` that is a function are sent with each put.
    """

    queue: str
    name: str | None
    retries: int | None
    backoff: Backoff | BackoffData | None
    soft_timeout: Duration | None
    strict_results: bool
    unique: Unique
    debounce: Duration | None
    every: Duration | str | None
    at: time | None
    zone: str | None
    missed: Literal["once", "skip", "all"] | int | None
    overlap: Literal["allow", "skip", "queue"] | None
    jitter: Duration | None
    start: datetime | float | None
    end: datetime | float | None


class PutChanges(AnyPutOptions, total=False):
    """Options of one put: those of `JobOptions`, `depends` (jobs that must be complete first: jids, jobs or handles), a `jid`
    chosen by the caller, and `only_new` to leave an existing job unchanged."""

    queue: str


_OF_OTHER_LIBRARIES: Final = {
    "acks_late": "max_losses=N: a lost job is tried again up to N times",
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
    """Return how to give an option that was given as an argument of a put of `call`, "" for a name that is not an option."""
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


def _of_debounce(options: JobOptions) -> Mapping[str, Any]:
    """Return the options with those that `debounce` stands for. Raises UsageError for what does not fit."""
    if not options.get("unique"):
        for name in ("debounce", *UniqueOptions.__annotations__):
            if options.get(name) is not None:
                raise UsageError(f"{name} needs unique=True, or the names of arguments")
    debounce = options.get("debounce")
    if debounce is None:
        return cast("Mapping[str, Any]", options)
    if options.get("delay") is not None or options.get("on_conflict") not in (None, "replace"):
        raise UsageError("debounce is a delay with on_conflict='replace': leave both of them out")
    return {**options, "delay": debounce, "on_conflict": "replace"}


def travelling(options: JobOptions) -> dict[str, Any]:
    """Return the options that each put sends: those that differ from the defaults, and always the budgets. Raises UsageError."""
    given: dict[str, Any] = {}
    chosen = _of_debounce(options)
    for name, option in OPTIONS.items():
        value: Any = chosen.get(name)
        if (
            value is None or name == "retries" or callable(value)
        ):  # a backoff that is called stays in the worker
            continue
        checked = option.check(name, value)
        if checked or name == "result_keep":
            given[name] = checked if isinstance(checked, list) else value
    if given.get("result_keep") == RESULT_KEEP:
        del given["result_keep"]
    losses = options.get("max_losses")
    budgets = {
        "retries": options.get("retries") or 0,
        "max_losses": DEFAULT_LOSSES if losses is None else losses,
    }
    return {**given, **budgets}
