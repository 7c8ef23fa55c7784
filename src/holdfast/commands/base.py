"""What a command is: a frozen value that writes itself as words and reads its reply.

A command has no socket and no colour. `words()` leaves out the line and request number of a numbered call:
the exchange inserts them at `line_at`, because only it knows which line is free.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from holdfast.errors import Refused, refusal

Word = str | bytes | int
Reply = Any

R_co = TypeVar("R_co", covariant=True)


class Command(Protocol[R_co]):
    """One call of one verb.

    `line_at` is where line and request number go among the words, -1 when the call carries none. `adds`:
    the verb adds work, so a full store refuses it at once. `reads`: it changes nothing.
    """

    verb: ClassVar[str]
    line_at: ClassVar[int]
    adds: ClassVar[bool]
    reads: ClassVar[bool]

    def words(self) -> Sequence[Word]:
        """The arguments after the root, in the core's order."""
        ...

    def read(self, reply: Reply) -> R_co:
        """Turn the core's reply into the caller's answer. Raises Refused for a refused job."""
        ...


class Spoken(msgspec.Struct, frozen=True, gc=False):
    """The usual flags of a command; each verb overrides what differs."""

    line_at: ClassVar[int] = -1
    adds: ClassVar[bool] = False
    reads: ClassVar[bool] = False
    settles: ClassVar[bool] = False

    @property
    def numbered(self) -> bool:
        """Whether a line and a request number travel with this call."""
        return self.line_at >= 0


def named(reply: Sequence[Any], start: int = 1) -> dict[int, Refused | None]:
    """Read the (index, code) pairs from `start` on: None for `again`, which is a success repeated."""
    answers: dict[int, Refused | None] = {}
    for at in range(start, len(reply), 2):
        answers[int(reply[at])] = said(reply[at + 1])
    return answers


def said(code: Any) -> Refused | None:
    """One code of a batch: None for `again`, else the refusal it names."""
    return None if code == b"again" else refusal(code)


def refuse(code: Any) -> None:
    """Raise what `code` says, unless it is `again`."""
    refused = said(code)
    if refused is not None:
        raise refused


def milliseconds(seconds: float | None) -> int:
    """Seconds as whole milliseconds; None is 0, which the core reads as its default."""
    return round(seconds * 1000) if seconds else 0
