"""Backoffs: how long a job waits between attempts.

A backoff that is data is sent with the job, and the core computes the pause; one that is a function is called by the
worker, so it must be part of the worker's code.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypedDict, cast, get_args

from holdfast.bounds import DEFAULT_BACKOFF, MAX_PAUSE_MS
from holdfast.errors import UsageError
from holdfast.settings import check_seconds, unknown_option

Backoff = Callable[[int, BaseException], float]
Kind = Literal["fixed", "exponential"]

_FIRST, _LONGEST, _JITTER = DEFAULT_BACKOFF[1] / 1000, DEFAULT_BACKOFF[2] / 1000, DEFAULT_BACKOFF[3] / 100
_MAX_PAUSE: Final = MAX_PAUSE_MS / 1000
DEFAULT_WORDS: Final = ":".join(map(str, DEFAULT_BACKOFF))
"""The default, as the core writes it."""


class BackoffOptions(TypedDict, total=False):
    """A backoff as data. `kind` is `exponential` (each pause twice the one before) or `fixed`; `first` and
    `longest` pause in seconds; `jitter`, a share from 0 to 1 by which each is spread. Defaults: DEFAULT_BACKOFF in bounds.py."""

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
        raise UsageError(
            "backoff: a function cannot be stored with a job; give it to @client.job, or give numbers"
        )
    kind, first, longest, jitter = _checked(backoff)
    return f"{kind}:{round(first * 1000)}:{round(longest * 1000)}:{round(jitter * 100)}"


def backoff_data(words: str) -> BackoffOptions | None:
    """Return a backoff that the core writes as an option of a put; None for other text."""
    parts = words.split(":")
    if len(parts) != 4:
        return None
    first, longest, jitter = map(float, parts[1:])
    kind = cast("Kind", parts[0])
    return {"kind": kind, "first": first / 1000, "longest": longest / 1000, "jitter": jitter / 100}


def backoff_text(words: str) -> str:
    """Return a backoff that the core writes for people: `3 s`, or `1 s to 600 s`."""
    kind, first, longest, _ = words.split(":")
    shortest = f"{int(first) / 1000:g} s"
    return shortest if kind == "fixed" else f"{shortest} to {int(longest) / 1000:g} s"


def _checked(backoff: object) -> tuple[Kind, float, float, float]:
    if isinstance(backoff, str):
        return _of_options({"kind": backoff})
    if isinstance(backoff, Mapping):
        return _of_options(cast("Mapping[str, object]", backoff))
    seconds = check_seconds("backoff", backoff, 0.0, _MAX_PAUSE)
    return "fixed", seconds, seconds, 0.0


def _of_options(backoff: Mapping[str, object]) -> tuple[Kind, float, float, float]:
    known = tuple(BackoffOptions.__annotations__)
    for name in backoff:
        if name not in known:
            raise unknown_option("backoff", name, known)
    kind = backoff.get("kind", "exponential")
    if kind not in get_args(Kind):
        raise UsageError(f"backoff: kind is {' or '.join(get_args(Kind))}, not {kind!r}")
    first = check_seconds("backoff first", backoff.get("first", _FIRST), 0.0, _MAX_PAUSE)
    longest = check_seconds(
        "backoff longest", backoff.get("longest", max(first, _LONGEST)), first, _MAX_PAUSE
    )
    jitter = check_seconds("backoff jitter", backoff.get("jitter", _JITTER), 0.0, 1.0)
    return cast("Kind", kind), first, longest, jitter
