"""Telling Sentry what jobs raise."""

import logging
from datetime import datetime
from typing import Any

from holdfast.code.failure import brief
from holdfast.code.middleware import Either, Perform, Wearable, behind, handled
from holdfast.code.steps import Steps
from holdfast.codecs import decode
from holdfast.errors import CodecError, MiddlewareMisconfigured, TransportError

log = logging.getLogger("holdfast")


class Sentry(Wearable):
    """Reports what a job raises to Sentry, and raises it on, whether that could be reported or not.

    The report has tags `jid`, `klass` and `queue`, and a context `job` with worker, priority, tags, data and history. The
    program calls `sentry_sdk.init(…)`; the package comes with the extra `sentry`, and without it jobs fail in
    `<queue>-MiddlewareMisconfigured`.

        class Fetch(Sentry, RetryExceptions, SupportsMiddleware): ...

    In front of RetryExceptions it reports what is not retried any more, behind it every try.
    """

    @Either
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next. Raises MiddlewareMisconfigured without the package."""
        sdk = _sdk()
        return handled(behind(Sentry, self, call_next), job, lambda error: _reported(sdk, job, error))


def _sdk() -> Any:
    try:
        import sentry_sdk
    except ImportError:
        raise MiddlewareMisconfigured(
            "the middleware Sentry needs the package sentry-sdk: pip install 'holdfast[sentry]'"
        ) from None
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
        # Nobody must learn of this in the place of what the job raised.
        log.exception("what job %s raised could not be reported", getattr(job, "jid", "?"))
    return False


def _history(job: Any, error: Exception) -> Steps[list[dict[str, Any]]]:
    """What happened to the job, which a popped one came without; nothing if the store cannot say."""
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
