"""Calls of one moment leave as one: puts that share queue and options as one call, everything in one pipeline."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

from holdfast.commands import Command
from holdfast.commands.jobs import Put, PutMany
from holdfast.errors import HoldfastError
from holdfast.settings import MAX_BATCH
from holdfast.wire.exchange import exchange_all
from holdfast.wire.plans import Plan
from holdfast.wire.runners import AsyncRunner
from holdfast.wire.shards import Shard

R = TypeVar("R")

MAX_BYTES: Final = 1 << 20
MAX_CALLS: Final = 512


class _Parcel:
    """The puts that leave as one call, and where their answers go."""

    __slots__ = ("jobs", "places", "room", "size")

    def __init__(self) -> None:
        self.jobs: list[str | bytes] = []
        self.places: list[int] = []
        self.room = MAX_BATCH
        self.size = 0


def packed(commands: Sequence[Command[Any]]) -> tuple[list[Command[Any]], list[list[int]]]:
    """Merge puts of the same queue and options; answer the calls and, for each, whose commands it carries."""
    calls: list[Any] = []
    places: list[list[int]] = []
    open_parcels: dict[tuple[Any, ...], _Parcel] = {}
    for index, command in enumerate(commands):
        if type(command) is not Put:
            calls.append(command)
            places.append([index])
            continue
        key = (command.queue, command.priority, command.retries, command.delay_ms, command.mode)
        parcel = open_parcels.get(key)
        if parcel is None or parcel.room == 0 or parcel.size + len(command.data) > MAX_BYTES:
            parcel = open_parcels[key] = _Parcel()
            calls.append((command, parcel))
            places.append(parcel.places)
        parcel.jobs += (command.jid, command.klass, command.data)
        parcel.places.append(index)
        parcel.room -= 1
        parcel.size += len(command.data)
    return [_sealed(call) for call in calls], places


def _sealed(call: Any) -> Command[Any]:
    if type(call) is not tuple:
        return cast("Command[Any]", call)
    put, parcel = cast("tuple[Put, _Parcel]", call)
    if len(parcel.places) == 1:
        return put
    return PutMany(put.queue, parcel.jobs, put.priority, put.retries, put.delay_ms, put.mode)


def together(shard: Shard, commands: Sequence[Command[Any]]) -> Plan[list[Any]]:
    """Run commands as few calls of one pipeline; each gets its own answer or HoldfastError, in order."""
    calls, places = packed(commands)
    answers = yield from exchange_all(shard, calls)
    spread: list[Any] = [None] * len(commands)
    for answer, owners in zip(answers, places, strict=True):
        if len(owners) == 1:
            spread[owners[0]] = answer
        elif isinstance(answer, HoldfastError):
            for index in owners:
                spread[index] = answer
        else:
            for index, own in zip(owners, answer, strict=True):
                spread[index] = own
    return spread


class Gatherer:
    """Collects the commands awaited in one loop turn. One parcel is under way at a time; what is asked for
    meanwhile leaves with the next, which packs the better the busier the loop is."""

    def __init__(self, shard: Shard, runner: AsyncRunner) -> None:
        self._shard = shard
        self._runner = runner
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: list[tuple[Command[Any], asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None

    def submit(self, command: Command[R]) -> "asyncio.Future[R]":
        """Ask for one command; the future gets its answer or its error."""
        loop = self._loop
        if loop is None or not loop.is_running() or loop is not asyncio.get_running_loop():
            loop = self._moved()
        future: asyncio.Future[R] = loop.create_future()
        self._asked.append((command, future))
        if self._task is None:
            self._task = loop.create_task(self._send_all())
        return future

    def _moved(self) -> asyncio.AbstractEventLoop:
        # What another loop had asked for died with it.
        self._loop, self._asked, self._task = asyncio.get_running_loop(), [], None
        return self._loop

    async def _send_all(self) -> None:
        asked = self._asked
        try:
            while asked:
                leaving = asked[:MAX_CALLS]
                del asked[:MAX_CALLS]
                await self._send(leaving)
        finally:
            if self._asked is asked:
                self._task = None

    async def _send(self, leaving: list[tuple[Command[Any], asyncio.Future[Any]]]) -> None:
        try:
            plan = together(self._shard, [command for command, _ in leaving])
            answers = await self._runner.run(plan)
        except BaseException as error:
            for _, future in leaving:
                if not future.done():
                    future.set_exception(error) if isinstance(error, Exception) else future.cancel()
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), answer in zip(leaving, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, HoldfastError):
                future.set_exception(answer)
            else:
                future.set_result(answer)
