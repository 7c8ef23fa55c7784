"""How a job may wish to end, by what its code returns: `return Retry(after=30)`. Anything else is its result."""

import typing
from typing import Any, Final

import msgspec


class Terminated(BaseException):
    """Raised in the code of a job whose process must end now, so that blocks unwind. Nothing is recorded of the job."""


class Retry(msgspec.Struct, frozen=True):
    """The wish to be tried again; it costs a retry. Without retries left the job fails.

    `after` is in seconds; None: by the job's own backoff, at once if it has none.
    """

    after: float | None = None
    group: str = ""
    message: str = ""


class Failed(msgspec.Struct, frozen=True):
    """The wish to fail for good, in a failure group."""

    group: str
    message: str = ""


class Moved(msgspec.Struct, frozen=True):
    """The wish to be complete here and go on in `queue`, after `delay` seconds."""

    queue: str
    delay: float = 0.0


WISHES: Final = frozenset((Retry, Failed, Moved))


def result_of(hint: Any) -> Any:
    """What is left of the annotation of a return value without the wishes: the type of the result."""
    if hint in WISHES:
        return Any
    kinds = typing.get_args(hint)
    left = tuple([kind for kind in kinds if kind not in WISHES])
    # Only a union holds them as they are; of other types the arguments stay as they were.
    return typing.Union[left] if left and len(left) < len(kinds) else hint  # noqa: UP007
