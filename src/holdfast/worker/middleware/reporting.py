"""Middleware that reports: metrics by class, Sentry, and fresh connections to other stores for each job."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from inspect import isawaitable
from time import monotonic
from typing import Any

from holdfast.code.failure import brief
from holdfast.code.middleware import InstanceOrClassMethod, MixinMiddleware, Perform, behind, handled, within
from holdfast.code.steps import Steps
from holdfast.codecs import decode
from holdfast.errors import CodecError, MiddlewareMisconfigured, TransportError, UsageError, missing_extra

log = logging.getLogger("holdfast")

Timer = Callable[[str, float], object]
"""Called with the name of a class, and the seconds for which the code of one of its jobs ran."""
Counter = Callable[[str], object]
"""Called with the name of a class of which one more job was completed."""


class JobMetrics(MixinMiddleware):
    """Calls `timer(klass, seconds)` after each job, however it ended, and `counter(klass)` after each completed one.

    Also completed is a job that moves to its next queue. Whatever these two raise is logged. A worker completes jobs that are
    counted one by one, not together with others.

        class Fetch(JobMetrics(timer=lambda klass, seconds: HISTOGRAM.labels(klass).observe(seconds)), SupportsMiddleware): ...
    """

    _sinks: tuple[Timer | None, Counter | None] = (None, None)

    def __init__(self, timer: Timer | None = None, counter: Counter | None = None) -> None:
        self._sinks = (timer, counter)

    @InstanceOrClassMethod
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next."""
        perform = behind(JobMetrics, self, call_next)
        timer, counter = self._sinks
        if counter is not None:

            def count(completed: Any) -> None:
                _report(counter, completed.klass_name)

            job.after_complete(count)
        return perform(job) if timer is None else within(_timed(timer, job), perform, job)


@contextmanager
def _timed(timer: Timer, job: Any) -> Generator[None]:
    begun = monotonic()
    try:
        yield
    finally:
        _report(timer, job.klass_name, monotonic() - begun)


def _report(sink: Callable[..., object], *words: object) -> None:
    try:
        sink(*words)
    except Exception:
        log.exception("a metric of %s could not be reported", words[0])


class RedisReconnect(MixinMiddleware):
    """Closes the idle connections of the given clients before each job, so that each job begins with fresh ones.

    The clients are those that the job's code uses: of redis-py, or `holdfast.Client`; blocking ones, for a loop with many
    jobs has no moment at which none uses them. Raises UsageError for what has no connections.
    """

    _clients: tuple[Any, ...] = ()

    def __init__(self, *clients: Any) -> None:
        for client in clients:
            if not callable(_closing(client)):
                raise UsageError(f"RedisReconnect: {client!r:.80} has no connections to close")
        self._clients = clients

    @InstanceOrClassMethod
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next. Raises UsageError for the clients of an event loop."""
        for client in self._clients:
            closed = _closing(client)()
            if isawaitable(closed):
                getattr(closed, "close", lambda: None)()
                raise UsageError(f"RedisReconnect takes blocking clients, not {client!r:.80}")
        return behind(RedisReconnect, self, call_next)(job)


def _closing(client: Any) -> Any:
    pool = getattr(client, "connection_pool", None)
    return getattr(client, "close", None) if pool is None else getattr(pool, "disconnect", None)


class Sentry(MixinMiddleware):
    """Reports what a job raises to Sentry, and raises it on, whether that could be reported or not.

    The report has tags `jid`, `klass` and `queue`, and a context `job` with worker, priority, tags, data and history. The
    program calls `sentry_sdk.init(…)`; the package comes with the extra `sentry`, and without it jobs fail in
    `<queue>-MiddlewareMisconfigured`.

        class Fetch(Sentry, RetryExceptions, SupportsMiddleware): ...

    In front of RetryExceptions it reports what is not retried any more, behind it every try.
    """

    @InstanceOrClassMethod
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next. Raises MiddlewareMisconfigured without the package."""
        sdk = _sdk()
        return handled(behind(Sentry, self, call_next), job, lambda error: _reported(sdk, job, error))


def _sdk() -> Any:
    try:
        import sentry_sdk
    except ImportError as error:
        raise MiddlewareMisconfigured(missing_extra("the middleware Sentry", "sentry", error)) from None
    return sentry_sdk


def _reported(sdk: Any, job: Any, error: Exception) -> Steps[bool]:
    history = yield from _history(job, error)
    try:
        context = _context(job, history)
        with sdk.new_scope() as scope:
            for name in ("jid", "klass", "queue"):
                scope.set_tag(name, context[name])
            scope.set_context("job", context)
            sdk.capture_exception(error)
    except Exception:
        # This must not be raised in place of what the job raised.
        log.exception("what job %s raised could not be reported", getattr(job, "jid", "?"))
    return False


def _history(job: Any, error: Exception) -> Steps[list[dict[str, Any]]]:
    """Load the history of the job, which a popped one does not have; [] if the store is unavailable."""
    if isinstance(error, TransportError):
        return []  # it would be waited for once more
    try:
        yield job.load()
        return [{name: _shown(value) for name, value in entry.items()} for entry in job.queue_history]
    except Exception as problem:
        log.warning("the history of job %s is not reported: %s", getattr(job, "jid", "?"), brief(problem))
        return []


def _context(job: Any, history: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "jid": job.jid,
        "klass": job.klass_name,
        "queue": job.facts.queue,
        "worker": job.worker_name,
        "priority": job.priority,
        "tags": list(job.tags),
        "data": _data_of(job),
        "history": history,
    }


def _data_of(job: Any) -> Any:
    try:
        return decode(job.data)
    except CodecError as error:
        return str(error)  # the exception must be reported all the same


def _shown(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
