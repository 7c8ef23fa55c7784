"""Requests with the header `Idempotency-Key`: a repeat returns what the first one did, and does nothing twice.

The store recognises a repeat for a minute, by a request id that is made of the key, whichever gateway it comes through. A job that
is put without a jid gets one that is made of the key too, so its put is recognised for as long as the job is kept, and another put
under the key is refused. Calls that end a lease need no request id: the store knows them by the token.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from holdfast.client.aio import AsyncClient
from holdfast.commands import Command
from holdfast.commands.jobs import Mode, Put
from holdfast.commands.options import PutWithOptions
from holdfast.commands.recurring import Recur
from holdfast.errors import HoldfastError, JobExists
from holdfast.web.gateway.problems import Problem
from holdfast.wire.exchange import exchange
from holdfast.wire.shards import RequestSequence

R = TypeVar("R")
HEADER: Final = "Idempotency-Key"
_LONGEST: Final = 200
_MOST_SEEN: Final = 20_000


def checked_key(text: str | None) -> str:
    """Return the key of a request, "" for None, which is none. Raises Problem."""
    if text is None:
        return ""
    if not text or len(text) > _LONGEST or not text.isascii() or not text.isprintable():
        raise Problem(400, "bad-request", f"{HEADER}: expected 1 to {_LONGEST} printable characters.")
    return text


class Seen:
    """The puts under keys that this process has seen last: the digest of each by its jid."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def get(self, jid: str) -> str | None:
        """Return the digest of the put with a jid, None if it was not seen."""
        return self._words.get(jid)

    def note(self, words: Mapping[str, str]) -> None:
        """Add some puts."""
        if len(self._words) > _MOST_SEEN:
            self._words.clear()
        self._words.update(words)


def reused() -> Problem:
    """Return the refusal of a request under the key of another one."""
    sentence = f"A different request was sent with this {HEADER}. Nothing was done: repeat the same request, or use a new key."
    return Problem(422, "key-reused", sentence)


def _mode(given: Mode) -> Mode:
    """Return the mode of a put whose jid is made of a key: a job of that jid has to be the same one."""
    return "only" if given == "new" else given


class Repeatable:
    """Sends the commands of one request of a user with a key. `has_jid`: of each, whether the request gave its jid."""

    def __init__(
        self,
        client: AsyncClient,
        base: tuple[str, ...],
        commands: Sequence[Command[Any]],
        has_jid: Sequence[bool],
    ) -> None:
        self._client, self._base = client, base
        self.commands = [
            one if given else self._named(one, at)
            for at, (one, given) in enumerate(zip(commands, has_jid, strict=True))
        ]
        """The commands; those whose jids would have been generated have jids that are made of the key."""
        self._words = [self._digest(str(at), *one.words()) for at, one in enumerate(self.commands)]
        self._words_of = {
            self._digest("jid", str(at)): self._words[at] for at, given in enumerate(has_jid) if not given
        }
        """The digests of the puts whose jids are made of the key, by these jids."""
        self._seen = Seen()

    def check(self, seen: "Seen") -> None:
        """Raise Problem if another put was done here under the key, with or without a job of its jid."""
        self._seen = seen
        before = [seen.get(jid) for jid in self._words_of]
        if any(one not in (None, word) for one, word in zip(before, self._words_of.values(), strict=True)):
            raise reused()

    async def recognised(self, result: Awaitable[Any]) -> Any:
        """Return the result of a single command. Raises Problem for a put other than the one that made the job of its jid."""
        try:
            found = await result
        except JobExists:
            if not self._words_of:
                raise
            [jid] = self._words_of
            if self._seen.get(jid) is None:
                raise reused() from None
            return jid  # the same put; the data of its job were changed since
        self.note([found])
        return found

    def note(self, found: Sequence[Any]) -> None:
        """Remember puts that were done, so that others under the key are refused."""
        if not any(isinstance(one, HoldfastError) for one in found):
            self._seen.note(self._words_of)

    def _named(self, command: Command[Any], at: int) -> Command[Any]:
        given: Any = command
        if type(given) is Recur:
            return cast("Command[Any]", replace(given, jid=self._digest("jid", str(at))))
        if type(given) is Put:  # a job of that jid has to be the same one
            return cast(
                "Command[Any]", replace(given, jid=self._digest("jid", str(at)), mode=_mode(given.mode))
            )
        if type(given) is PutWithOptions:
            job = replace(given.job, jid=self._digest("jid", str(at)))
            return cast("Command[Any]", replace(given, job=job, mode=_mode(given.mode)))
        return command

    def run(self, command: Command[R], at: int = 0) -> "asyncio.Future[R]":
        """Send a command under the request id of the one at a place; the mode of a pop may differ from that."""
        sequence = RequestSequence()
        sequence.name = self._words[at]
        return asyncio.ensure_future(self._client.runner.run(exchange(self._client.shard, command, sequence)))

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Send these commands in place of those, in their order; return the result or the HoldfastError of each."""
        found: list[Any] = []
        for at, command in enumerate(commands):
            try:
                found.append(await self.run(command, at))
            except HoldfastError as error:
                found.append(error)
        return found

    def _digest(self, *parts: str | bytes | int) -> str:
        made = sha256()
        for part in (*self._base, *parts):
            text = part if isinstance(part, bytes) else str(part).encode()
            made.update(b"%d:%b" % (len(text), text))
        return made.hexdigest()[:32]
