"""What a command is: a frozen value that writes itself as words and reads its reply.

A command has no socket and no colour. `words()` leaves out the line and request number of a numbered call:
the exchange inserts them at `line_at`, because only it knows which line is free.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar, cast

import msgspec

from holdfast.errors import Refused, refusal

Word = str | bytes | int
Reply = Any

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
T = TypeVar("T")


class Command(Protocol[R_co]):
    """One call of one verb.

    `line_at` is where line and request number go among the words, -1 when the call carries none. `adds`:
    the verb adds something, so a full store refuses it at once. `reads`: it changes nothing. `settles`: it ends
    leases, so a job that is not found by a repeat was settled by the first try and forgotten since.
    """

    verb: ClassVar[str]
    line_at: ClassVar[int]
    adds: ClassVar[bool]
    reads: ClassVar[bool]
    settles: ClassVar[bool]

    @property
    def numbered(self) -> bool:
        """Whether a line and a request number travel with this call."""
        ...

    @property
    def again(self) -> str:
        """Whether the caller may say this again when nobody knows whether it happened: part of a sentence."""
        ...

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

    @property
    def again(self) -> str:
        """Whether the caller may say this again: what only looks, or needs no number, may."""
        if self.reads:
            return "it only looks, so asking again is safe"
        if self.line_at < 0:
            return "saying it again is safe"
        return "look before you say it again"


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


def then(command: Command[T], turn: Callable[[T], R]) -> Command[R]:
    """A command whose answer is turned into something else, such as facts into a handle."""
    return cast("Command[R]", _Then(command, turn))


class _Then:
    """Not declared a Command, because its flags are those of one other command, not of a class."""

    __slots__ = (
        "_turn",
        "_within",
        "adds",
        "line_at",
        "numbered",
        "reads",
        "settles",
        "verb",
        "words",
    )

    def __init__(self, within: Command[Any], turn: Callable[[Any], Any]) -> None:
        self._within = within
        self._turn = turn
        self.verb = within.verb
        self.line_at = within.line_at
        self.adds = within.adds
        self.reads = within.reads
        self.settles = within.settles
        self.numbered = within.numbered
        self.words = within.words

    @property
    def again(self) -> str:
        return self._within.again

    def read(self, reply: Reply) -> Any:
        return self._turn(self._within.read(reply))
