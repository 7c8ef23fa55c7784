"""Exceptions that give a job back for another try, which costs it a retry."""

import logging
from collections.abc import Callable
from random import uniform
from typing import Any

from holdfast.code.failure import brief, failure_of
from holdfast.code.matching import Matcher, check_matchers, matches
from holdfast.code.middleware import Either, Perform, Wearable, behind, handled, is_open
from holdfast.code.steps import Steps
from holdfast.settings import MAX_DELAY, check_seconds

log = logging.getLogger("holdfast")

Strategy = Callable[[int, Exception], float]
"""Seconds to wait before the next try, from the number of the one that failed (1 for the first) and its exception."""

_NO_DELAY = 0.0


def exponential(delay: float, factor: float | None = None, fuzz_factor: float = 0.0) -> Strategy:
    """Make a strategy that waits `delay`, `delay * factor`, `delay * factor ** 2` … seconds; `factor` is `delay` unless given.

    Each is spread by a random factor from `1 - fuzz_factor` to `1 + fuzz_factor`. Raises UsageError.
    """
    check_seconds("delay", delay)
    step = check_seconds("factor", delay if factor is None else factor)
    check_seconds("fuzz_factor", fuzz_factor, 0.0, 1.0)

    def strategy(attempt: int, error: Exception) -> float:
        # So many steps are beyond any cap, and keep the power from overflowing.
        wait = delay * step ** min(attempt - 1, 20)
        return min(MAX_DELAY, wait * uniform(1 - fuzz_factor, 1 + fuzz_factor))

    return strategy


class RetryExceptions(Wearable):
    """Tries a job again when it raises what `retry_on` named, as long as it has retries left; then the job fails with that.

        class Fetch(RetryExceptions, SupportsMiddleware): ...
        Fetch.retry_on(ConnectionError, delay=exponential(2))

    As an object it takes what `retry_on` takes: `RetryExceptions(ConnectionError, delay=5)`.
    """

    _retried: tuple[tuple[Any, float | Strategy], ...] = ()

    def __init__(self, *errors: Matcher, delay: float | Strategy = _NO_DELAY) -> None:
        if errors:
            self.retry_on(*errors, delay=delay)

    @Either
    def retry_on(self: Any, *errors: Matcher, delay: float | Strategy = _NO_DELAY) -> None:
        """Retry these exceptions too, after `delay` seconds, a number or a strategy. What was named last counts first.

        Raises UsageError.
        """
        if not callable(delay):
            check_seconds("delay", delay)
        rules = [(matcher, delay) for matcher in check_matchers("retry_on", errors)]
        self._retried = (*rules, *self._retried)

    @classmethod
    def on_retry(cls, error: Exception, job: Any) -> Any:
        """Called when a job was given back for `error`; yours may be `async def` where its job is. Does nothing."""

    @Either
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next."""
        perform = behind(RetryExceptions, self, call_next)
        return handled(perform, job, lambda error: _retry(self, job, error))


def _retry(worn: Any, job: Any, error: Exception) -> Steps[bool]:
    delays = [delay for matcher, delay in worn._retried if matches(matcher, error)]
    if not delays or job.retries_left <= 0 or not is_open(job, error):
        return False
    group, message = failure_of(error, job.queue_name, lambda: job)
    log.warning("job %s raised %s, and is retried", job.jid, brief(error))
    yield job.retry(_seconds(delays[0], job, error), group, message)
    yield worn.on_retry(error, job)
    return True


def _seconds(delay: float | Strategy, job: Any, error: Exception) -> float:
    if not callable(delay):
        return delay
    try:
        return check_seconds("delay", delay(job.original_retries - job.retries_left + 1, error))
    except Exception:
        # It is the user's code; that it is wrong must not cost the job its retry.
        log.exception("the delay of a retry of job %s cannot be used; it is retried at once", job.jid)
        return _NO_DELAY
