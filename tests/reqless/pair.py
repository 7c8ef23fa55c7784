"""Two doors in two databases of one server, asked the same in one round trip."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hiredis
from two_doors import MARK, PLACE, Connection, Refused

Words = Sequence[object]


@dataclass
class Answer:
    """What one door answered to a call and to the looks that followed it, and what the call published."""

    reply: Any
    looks: list[Any]
    messages: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    later: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What the looks published, which is nothing."""


class Pair:
    """`reference` and `ours` are texts of scripts, in databases 0 and 1."""

    def __init__(self, path: Path, reference: str, ours: str) -> None:
        self._talk, self._listen = Connection(path), Connection(path)
        self._shas = [self._talk.ask("SCRIPT", "LOAD", text) for text in (reference, ours)]
        self._listen.ask("PSUBSCRIBE", "*")
        self._marks = 0

    def flush(self) -> None:
        self._talk.ask("FLUSHALL")

    def ask(self, call: Words, looks: Sequence[Words]) -> tuple[Answer, Answer]:
        """The answers of the reference and of ours; words are what stands behind the number of keys."""
        packed: list[bytes] = []
        mark = self._marks
        for database, sha in enumerate(self._shas):
            packed.append(hiredis.pack_command(("SELECT", database)))
            packed.append(hiredis.pack_command(("EVALSHA", sha, 0, *map(str, call))))
            packed.append(self._mark())
            packed += [hiredis.pack_command(("EVALSHA", sha, 0, *map(str, look))) for look in looks]
            packed.append(self._mark())
        self._talk.send_packed(b"".join(packed))
        found = [self._answer(len(looks)) for _ in self._shas]
        for answer in found:
            answer.messages, answer.later = self._until(mark + 1), self._until(mark + 2)
            mark += 2
        return found[0], found[1]

    def _mark(self) -> bytes:
        self._marks += 1
        return hiredis.pack_command(("PUBLISH", MARK, self._marks))

    def _answer(self, looks: int) -> Answer:
        read = self._talk.read
        read()
        reply = _plain(read())
        read()
        found = [_plain(read()) for _ in range(looks)]
        read()
        return Answer(reply, found)

    def _until(self, mark: int) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        while True:
            _, _, channel, text = self._listen.read()
            if channel != MARK:
                found.append((channel, text))
            elif text == str(mark):
                return found

    def close(self) -> None:
        self._talk.close()
        self._listen.close()


def _plain(reply: Any) -> Any:
    return Refused(PLACE.sub("", str(reply))) if isinstance(reply, hiredis.ReplyError) else reply
