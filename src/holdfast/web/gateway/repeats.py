"""Requests with the header `Idempotency-Key`: a repeat returns what the first one did, and does nothing twice.

The store recognises a repeat for a minute, by a request id that is made of the key, whichever gateway it comes through. A job that
is put without a jid gets one that is made of the key too, so its put is recognised for as long as the job is kept. Calls that end
a lease need no request id: the store knows them by the token.
"""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from holdfast.client.aio import AsyncClient
from holdfast.commands import Command
from holdfast.commands.jobs import Put
from holdfast.commands.options import PutWithOptions
from holdfast.commands.recurring import Recur
from holdfast.errors import HoldfastError
from holdfast.web.gateway.problems import Problem
from holdfast.wire.exchange import exchange
from holdfast.wire.shards import RequestSequence

R = TypeVar("R")
HEADER: Final = "Idempotency-Key"
_LONGEST: Final = 200


def checked_key(text: str | None) -> str:
    """Return the key of a request, "" for None, which is none. Raises Problem."""
    if text is None:
        return ""
    if not text or len(text) > _LONGEST or not text.isascii() or not text.isprintable():
        raise Problem(400, "bad-request", f"{HEADER}: expected 1 to {_LONGEST} printable characters.")
    return text


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

    def _named(self, command: Command[Any], at: int) -> Command[Any]:
        given: Any = command
        if type(given) is Put or type(given) is Recur:
            return cast("Command[Any]", replace(given, jid=self._digest("jid", str(at))))
        if type(given) is PutWithOptions:
            job = replace(given.job, jid=self._digest("jid", str(at)))
            return cast("Command[Any]", replace(given, job=job))
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
