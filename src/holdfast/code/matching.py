"""Telling which exceptions are meant: by their class, or by a function that looks at one."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.errors import UsageError

Matcher = type[Exception] | Callable[[Exception], object]
"""An exception class, which means its subclasses too, or a function that says whether it means this exception."""


def check_matchers(what: str, matchers: Iterable[object]) -> tuple[Any, ...]:
    """Return `matchers` if there are any and each can mean an exception. Raises UsageError."""
    given = tuple(matchers)
    if not given:
        raise UsageError(f"{what}: name at least one exception")
    for matcher in given:
        is_wrong_class = inspect.isclass(matcher) and not issubclass(matcher, Exception)
        if not callable(matcher) or is_wrong_class:
            raise UsageError(f"{what}: {matcher!r:.80} is neither an exception class nor a function of one")
    return given


def matches(matcher: Any, error: Exception) -> bool:
    """Say whether `matcher` means this exception."""
    return isinstance(error, matcher) if inspect.isclass(matcher) else bool(matcher(error))


def means(matcher: Any, kind: type[BaseException]) -> bool:
    """Say whether `matcher` means all exceptions of a class; a function is not known to."""
    return inspect.isclass(matcher) and issubclass(kind, matcher)
