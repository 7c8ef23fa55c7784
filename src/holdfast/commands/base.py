"""What a command is: a frozen value that writes itself as words and reads its reply.

A command has no socket and no colour. `words()` leaves out the line and request number of a numbered call:
the exchange inserts them at `line_at`, because only it knows which line is free.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from holdfast.errors import Refused, refusal

Word = str | bytes | int
Reply = Any

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Command(Protocol[R_co]):
    """One call of one verb.

    `line_at` is where line and request number go among the words, -1 when the call carries none. `adds`:
    the verb adds work, so a full store refuses it at once. `reads`: it changes nothing. `settles`: it ends
    leases, so a job that is not found by a repeat was settled by the first try and forgotten since.
    """

    @property
    def verb(self) -> str: ...
    @property
    def line_at(self) -> int: ...
    @property
    def adds(self) -> bool: ...
    @property
    def reads(self) -> bool: ...
    @property
    def settles(self) -> bool: ...
    @property
    def numbered(self) -> bool:
        """Whether a line and a request number travel with this call."""
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


class Then(Generic[T, R_co]):
    """A command whose answer is turned into something else, such as facts into a handle."""

    __slots__ = ("_command", "_turn", "adds", "line_at", "numbered", "reads", "settles", "verb")

    def __init__(self, command: Command[T], turn: Callable[[T], R_co]) -> None:
        self._command = command
        self._turn = turn
        self.verb = command.verb
        self.line_at = command.line_at
        self.adds = command.adds
        self.reads = command.reads
        self.settles = command.settles
        self.numbered = command.numbered

    def words(self) -> Sequence[Word]:
        """The words of the command within."""
        return self._command.words()

    def read(self, reply: Reply) -> R_co:
        """The turned answer of the command within."""
        return self._turn(self._command.read(reply))
