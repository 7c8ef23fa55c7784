"""How long to wait before a job that raised is tried again.

A backoff that is data travels with the job, and the core does the sum; one that is a function stays with the
code, so only the workers of that code can do it.
"""

from collections.abc import Callable, Mapping
from random import uniform
from typing import Final, Literal, TypedDict, cast, get_args

from holdfast.errors import UsageError
from holdfast.settings import check_seconds, unknown_option

Backoff = Callable[[int, BaseException], float]
Kind = Literal["fixed", "exponential"]

FIRST: Final = 1.0
LONGEST: Final = 600.0
JITTER: Final = 0.25
MONTH: Final = 31 * 86_400.0


class BackoffOptions(TypedDict, total=False):
    """A backoff as data. `kind` is `exponential` (each pause twice the one before) or `fixed`; `first` and
    `longest` pause in seconds (1 and 600); `jitter`, a share from 0 to 1 by which each is spread (0.25)."""

    kind: Kind
    first: float
    longest: float
    jitter: float


BackoffData = BackoffOptions | Kind | float
"""What can travel with a job: options, a kind with the usual ones, or a fixed number of seconds."""


def exponential(
    first: float = FIRST, factor: float = 2.0, longest: float = LONGEST, jitter: float = JITTER
) -> Backoff:
    """Make a backoff of `first`, `first * factor`, … seconds, at most `longest`, each spread by ± `jitter`."""

    def delay(attempt: int, error: BaseException) -> float:
        # 64 doublings are beyond any cap, and keep the power from overflowing.
        wait = first * factor ** min(attempt - 1, 64)
        return min(longest, wait * uniform(1 - jitter, 1 + jitter))

    return delay


def make_backoff(wish: Backoff | BackoffData | None) -> Backoff:
    """Turn what `backoff=` was given into a function: None is the default."""
    if wish is None:
        return exponential()
    if callable(wish):
        return wish
    kind, first, longest, jitter = _checked(wish)
    return exponential(first, 2.0 if kind == "exponential" else 1.0, longest, jitter)


def backoff_words(wish: object) -> str:
    """A backoff that is data, in the core's words `kind:first:longest:jitter`. Raises UsageError."""
    if callable(wish):
        raise UsageError("backoff: a function cannot travel with a job; say it in data, or at @client.job")
    kind, first, longest, jitter = _checked(wish)
    return f"{kind}:{round(first * 1000)}:{round(longest * 1000)}:{round(jitter * 100)}"


def _checked(wish: object) -> tuple[Kind, float, float, float]:
    if isinstance(wish, str):
        return _of_options({"kind": wish})
    if isinstance(wish, Mapping):
        return _of_options(cast("Mapping[str, object]", wish))
    seconds = check_seconds("backoff", wish, 0.0, MONTH)
    return "fixed", seconds, seconds, 0.0


def _of_options(wish: Mapping[str, object]) -> tuple[Kind, float, float, float]:
    known = tuple(BackoffOptions.__annotations__)
    for name in wish:
        if name not in known:
            raise unknown_option("backoff", name, known)
    kind = wish.get("kind", "exponential")
    if kind not in get_args(Kind):
        raise UsageError(f"backoff: kind is {' or '.join(get_args(Kind))}, not {kind!r}")
    first = check_seconds("backoff first", wish.get("first", FIRST), 0.0, MONTH)
    longest = check_seconds("backoff longest", wish.get("longest", max(first, LONGEST)), first, MONTH)
    jitter = check_seconds("backoff jitter", wish.get("jitter", JITTER), 0.0, 1.0)
    return cast("Kind", kind), first, longest, jitter
