"""Outcomes that the code of a job can return: `return Retry(after=30)`. Anything else is its result."""

import typing
from typing import Any, Final

import msgspec

from holdfast.settings import Duration


class Terminated(BaseException):
    """Raised in the code of a job whose process must end now, so that `finally` blocks run. The job has no outcome."""


class Retry(msgspec.Struct, frozen=True):
    """Retry the job, which costs a retry. Without retries left the job fails.

    `after` is in seconds or a timedelta; None: the backoff of the job, at once if it has none.
    """

    after: Duration | None = None
    group: str = ""
    message: str = ""


class Failed(msgspec.Struct, frozen=True):
    """Fail the job, in a failure group."""

    group: str
    message: str = ""


class Moved(msgspec.Struct, frozen=True):
    """Complete the job here, and put it into `queue`, after `delay` seconds."""

    queue: str
    delay: Duration = 0.0


class Skip(Exception):
    """Complete the job, and skip the steps of its flow that would take its result: `raise Skip("no orders today")`, or return it.

    `reason` is shown with the steps that are skipped. Steps with `on_failure="run"` get it as the failure of an outcome.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = str(reason)


OUTCOMES: Final = frozenset((Retry, Failed, Moved, Skip))


def result_of(hint: Any) -> object:
    """Return the type of the result: the annotation of a return value without these outcomes, of a call or a group that of its result."""
    if hint in OUTCOMES:
        return Any
    ends_as = getattr(typing.get_origin(hint), "ends_as", None)
    if ends_as is not None:
        return ends_as(typing.get_args(hint)[0])
    kinds = typing.get_args(hint)
    left = tuple([kind for kind in kinds if kind not in OUTCOMES])
    # Only the members of a union are removed; the arguments of other types stay.
    return typing.Union[left] if left and len(left) < len(kinds) else hint  # noqa: UP007
