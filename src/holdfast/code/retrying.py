"""`@holdfast.retry(…)`: retry a job after exceptions of these classes."""

import functools
import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, cast

from holdfast.code.current import running_job
from holdfast.code.failure import brief, raised_by
from holdfast.code.middleware import is_open
from holdfast.code.registry import RETRIED
from holdfast.errors import UsageError
from holdfast.models.job import BUDGETED

Matcher = type[Exception] | Callable[[Exception], object]
"""An exception class, which matches its subclasses too, or a function that returns whether an exception matches."""


def check_matchers(what: str, matchers: Iterable[object]) -> tuple[Any, ...]:
    """Return `matchers` if there is at least one and each is an exception class or a function. Raises UsageError."""
    given = tuple(matchers)
    if not given:
        raise UsageError(f"{what}: name at least one exception")
    for matcher in given:
        is_wrong_class = inspect.isclass(matcher) and not issubclass(matcher, Exception)
        if not callable(matcher) or is_wrong_class:
            raise UsageError(f"{what}: {matcher!r:.80} is neither an exception class nor a function of one")
    return given


def matches(matcher: Any, error: Exception) -> bool:
    """Return whether `matcher` matches this exception."""
    return isinstance(error, matcher) if inspect.isclass(matcher) else bool(matcher(error))


def means(matcher: object, kind: type[BaseException]) -> bool:
    """Return whether `matcher` matches all exceptions of class `kind`; False for a function, because that is unknown."""
    return inspect.isclass(matcher) and issubclass(kind, matcher)


P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("holdfast")


def retry(*errors: type[Exception]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Try a job again when its method raises one of `errors` (or a subclass): `job.retry()` is called, the error logged.

    Write it below `@staticmethod`, on plain and `async def` methods, or below `@client.job`; several may be stacked. For a
    function job it names the exceptions that are retried, and the option `retries` how often: any other exception fails it, and
    so does one of these when no retries are left.
    In a method, other errors are raised again. So is an error after the job was settled or lost its lease. Raises
    UsageError if `errors` are not exception classes.
    """
    for error in check_matchers("retry", errors):
        if not inspect.isclass(error):
            raise UsageError(f"retry: {error!r:.80} is no exception class; write @retry(SomeError)")

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        if not callable(method):
            raise UsageError("retry: put it under @staticmethod or @classmethod, next to the method")
        asynchronous = inspect.iscoroutinefunction(method)
        retrying: object = (_retrying_async if asynchronous else _retrying)(method, errors)
        setattr(retrying, RETRIED, (*errors, *getattr(method, RETRIED, ())))
        return cast("Callable[P, R]", retrying)

    return decorate


def _retrying(method: Callable[..., object], errors: tuple[type[Exception], ...]) -> Callable[..., object]:
    @functools.wraps(method)
    def perform(*args: object, **kwargs: object) -> object:
        try:
            return method(*args, **kwargs)
        except errors as error:
            job = _to_retry(args, error)
            if job is None:
                raise
            result = job.retry()
            # A plain method of a job whose client is async: the caller awaits the result.
            return result if inspect.isawaitable(result) else None

    return perform


def _retrying_async(method: Callable[..., Any], errors: tuple[type[Exception], ...]) -> Callable[..., object]:
    @functools.wraps(method)
    async def perform(*args: object, **kwargs: object) -> object:
        try:
            return await method(*args, **kwargs)
        except errors as error:
            job = _to_retry(args, error)
            if job is None:
                raise
            await job.retry()
            return None

    return perform


def _to_retry(args: tuple[object, ...], error: Exception) -> Any:
    """Return the job to retry: the last argument of a method, or the running job; None if the error is to be raised again."""
    job = args[-1] if args and hasattr(args[-1], "retry") else running_job()
    if job is None or not is_open(job, error) or _is_last_run(job):
        return None
    log.warning(
        "job %s raised %s, and is retried", getattr(job, "jid", "?"), brief(error), exc_info=raised_by(error)
    )
    return job


def _is_last_run(job: Any) -> bool:
    """Whether a function job has no retries left: then it fails by this error, as without the decorator."""
    facts = getattr(job, "facts", None)
    return facts is not None and bool(facts.flags & BUDGETED) and facts.remaining <= 0
