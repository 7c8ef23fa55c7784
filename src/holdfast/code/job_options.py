"""Options of function jobs: what exists, and which of them travel with each job."""

from collections.abc import Sequence
from typing import Any, Final, TypedDict

from holdfast.code.backoff import Backoff, BackoffData, backoff_words
from holdfast.settings import (
    DEFAULT_LOSSES,
    MAX_LOSSES,
    MAX_PRIORITY,
    check_each,
    check_list,
    check_seconds,
    check_whole,
    unknown_option,
)

RESULT_KEEP: Final = 3600.0
_SHORTEST: Final = 0.001
_TRAVEL: Final = ("priority", "delay", "tags", "throttles", "expires", "timeout")


class JobOptions(TypedDict, total=False):
    """Options of a function job. `queue` (`default`); `name`, its stored name; `retries` and `backoff` for when it
    fails, that is, raises or exceeds its `timeout` (None: it fails at once); `max_losses` (3), how often it may be lost,
    because its process died or its lease expired (0: it runs at most once); `priority`; `tags` and `throttles`, lists of names. In seconds: `delay`,
    `expires` (not started later than so long after the put), `timeout` (the longest run), `result_keep` (3600), and
    `soft_timeout`, after which PerformTimeout is raised in the function, which may catch it and end in its own way.

    All but `soft_timeout` and a `backoff` that is a function travel with the job, from the put on.
    """

    queue: str
    name: str | None
    retries: int | None
    max_losses: int | None
    backoff: Backoff | BackoffData | None
    priority: int
    delay: float
    tags: Sequence[str]
    throttles: Sequence[str]
    expires: float | None
    timeout: float | None
    soft_timeout: float | None
    result_keep: float


class PutChanges(TypedDict, total=False):
    """What may differ for one put: options as of `JobOptions`, `depends` (jids of jobs that must be complete before), a
    `jid` of the caller's choice, `only_new` to leave an existing job alone."""

    queue: str
    priority: int
    delay: float
    jid: str
    only_new: bool
    max_losses: int
    tags: Sequence[str]
    throttles: Sequence[str]
    depends: Sequence[str]
    backoff: BackoffData
    expires: float
    timeout: float
    result_keep: float


def check_known(options: JobOptions) -> None:
    """Raise UsageError for an option that does not exist."""
    for option in options:
        if option not in JobOptions.__annotations__:
            raise unknown_option("job", option, tuple(JobOptions.__annotations__))


def travelling(options: JobOptions) -> dict[str, Any]:
    """The options that each put sends: those that differ from the defaults, and always the budgets."""
    given: dict[str, Any] = {
        name: value for name, value in options.items() if name in _TRAVEL and value is not None
    }
    if "priority" in given:
        check_whole("priority", given["priority"], -MAX_PRIORITY, MAX_PRIORITY)
    for name, least in (("delay", 0.0), ("expires", _SHORTEST), ("timeout", _SHORTEST)):
        if name in given:
            check_seconds(name, given[name], least)
    for name in ("tags", "throttles"):
        if name in given:
            given[name] = check_each(name, check_list(name, given[name]))
    # Nothing need be sent of what holds anyway.
    given = {name: value for name, value in given.items() if value}
    given["retries"] = options.get("retries") or 0
    losses = options.get("max_losses")
    given["max_losses"] = (
        DEFAULT_LOSSES if losses is None else check_whole("max_losses", losses, 0, MAX_LOSSES)
    )
    backoff = options.get("backoff")
    if backoff is not None and not callable(backoff):
        backoff_words(backoff)
        given["backoff"] = backoff
    keep = options.get("result_keep", RESULT_KEEP)
    if keep != RESULT_KEEP:
        given["result_keep"] = keep
    return given
