"""Middleware that requeues a job after certain exceptions, at the cost of a retry or free."""

import logging
from collections.abc import Callable, Mapping
from random import uniform
from typing import Any, Final, NamedTuple, cast

from holdfast.code.failure import brief, failure_of, raised_by
from holdfast.code.middleware import InstanceOrClassMethod, MixinMiddleware, Perform, behind, handled, is_open
from holdfast.code.retrying import Matcher, check_matchers, matches, means
from holdfast.code.steps import Steps
from holdfast.errors import CodecError, UsageError
from holdfast.settings import MAX_DELAY, MAX_WHOLE, check_seconds, check_whole

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
        # More steps are beyond any cap, and the power would overflow.
        wait = delay * step ** min(attempt - 1, 20)
        return min(MAX_DELAY, wait * uniform(1 - fuzz_factor, 1 + fuzz_factor))

    return strategy


class RetryExceptions(MixinMiddleware):
    """Tries a job again when it raises what `retry_on` named, as long as it has retries left; then the job fails with that.

        class Fetch(RetryExceptions, SupportsMiddleware): ...
        Fetch.retry_on(ConnectionError, delay=exponential(2))

    As an object it takes what `retry_on` takes: `RetryExceptions(ConnectionError, delay=5)`.
    """

    _retried: tuple[tuple[Any, float | Strategy], ...] = ()

    def __init__(self, *errors: Matcher, delay: float | Strategy = _NO_DELAY) -> None:
        if errors:
            self.retry_on(*errors, delay=delay)

    @InstanceOrClassMethod
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

    @InstanceOrClassMethod
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next."""
        perform = behind(RetryExceptions, self, call_next)
        return handled(perform, job, lambda error: _retry(self, job, error))


def _retry(middleware: Any, job: Any, error: Exception) -> Steps[bool]:
    delays = [delay for matcher, delay in middleware._retried if matches(matcher, error)]
    if not delays or job.retries_left <= 0 or not is_open(job, error):
        return False
    group, message = failure_of(error, job.queue_name, lambda: job)
    log.warning("job %s raised %s, and is retried", job.jid, brief(error), exc_info=raised_by(error))
    yield job.retry(_seconds(delays[0], job, error), group, message)
    yield middleware.on_retry(error, job)
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


COUNTS: Final = "requeues_by_exception"
"""Where in its data a job counts how often it was requeued for what."""


class _Rule(NamedTuple):
    matcher: Any
    shortest: float
    longest: float
    max_attempts: int

    @property
    def name(self) -> str:
        return str(getattr(self.matcher, "__name__", self.matcher))


class RequeueExceptions(MixinMiddleware):
    """Puts a job back into its queue when it raises what `requeue_on` named, up to `max_attempts` times; then the exception counts.

        class Fetch(RequeueExceptions, SupportsMiddleware): ...
        Fetch.requeue_on(RateLimited, delay_range=(5, 60), max_attempts=10)

    How often, is counted in the job's data, which must be a mapping: `{"requeues_by_exception": {"RateLimited": 2}}`.
    As an object it takes what `requeue_on` takes.
    """

    _requeued: tuple[_Rule, ...] = ()

    def __init__(self, *errors: Matcher, delay_range: tuple[float, float], max_attempts: int) -> None:
        self.requeue_on(*errors, delay_range=delay_range, max_attempts=max_attempts)

    @InstanceOrClassMethod
    def requeue_on(self: Any, *errors: Matcher, delay_range: tuple[float, float], max_attempts: int) -> None:
        """Requeue these exceptions too, up to `max_attempts` times, each after a random number of seconds in `delay_range`.

        One that was named before is requeued in the new way. What was named last counts first. Raises UsageError.
        """
        shortest, longest = _checked_range(delay_range)
        check_whole("max_attempts", max_attempts, 1, MAX_WHOLE)
        given = check_matchers("requeue_on", errors)
        rules = [_Rule(matcher, shortest, longest, max_attempts) for matcher in given]
        self._requeued = (*rules, *(rule for rule in self._requeued if rule.matcher not in given))

    @InstanceOrClassMethod
    def is_requeueable(self: Any, error: type[BaseException] | Exception) -> bool:
        """Whether an exception, or every one of a class, is requeued."""
        if isinstance(error, type):
            return any(means(rule.matcher, error) for rule in self._requeued)
        return any(matches(rule.matcher, error) for rule in self._requeued)

    @classmethod
    def on_requeue(cls, error: Exception, job: Any) -> Any:
        """Called when a job was requeued for `error`; yours may be `async def` where its job is. Does nothing."""

    @InstanceOrClassMethod
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next."""
        perform = behind(RequeueExceptions, self, call_next)
        return handled(perform, job, lambda error: self.requeue(job, error))

    @InstanceOrClassMethod
    def requeue(self: Any, job: Any, error: Exception) -> Steps[bool]:
        """The steps that requeue `job` for `error`, if it is one of those and was not raised too often."""
        rules = [rule for rule in self._requeued if matches(rule.matcher, error)]
        counts = _counts(job) if rules and is_open(job, error) else None
        if counts is None:
            return False
        count = counts.get(rules[0].name, 0)
        if count >= rules[0].max_attempts:
            return False
        # A worker that has lost the job must not take it from another one.
        yield job.heartbeat()
        job[COUNTS] = {**counts, rules[0].name: count + 1}
        log.warning("job %s raised %s, and is requeued", job.jid, brief(error), exc_info=raised_by(error))
        yield job.move(job.queue_name, delay=uniform(rules[0].shortest, rules[0].longest))
        yield self.on_requeue(error, job)
        return True


def _checked_range(given: object) -> tuple[float, float]:
    pair = tuple(cast("Any", given)) if isinstance(given, (tuple, list)) else ()
    if len(pair) != 2:
        raise UsageError(f"delay_range is a pair of seconds (shortest, longest), not {given!r:.80}")
    shortest, longest = (check_seconds("delay_range", seconds) for seconds in pair)
    if shortest > longest:
        raise UsageError(f"delay_range is empty: {shortest:g} is more than {longest:g}")
    return shortest, longest


def _counts(job: Any) -> Mapping[str, int] | None:
    """How often the job was requeued for what; None if its data has no room for that."""
    try:
        counts = job[COUNTS]
    except KeyError:
        return {}
    except (UsageError, CodecError) as problem:
        log.warning("job %s cannot be requeued: %s", job.jid, problem)
        return None
    if isinstance(counts, Mapping) and all(type(count) is int for count in cast("Any", counts).values()):
        return cast("Mapping[str, int]", counts)
    log.warning("job %s cannot be requeued: %s in its data is no table of counts", job.jid, COUNTS)
    return None
