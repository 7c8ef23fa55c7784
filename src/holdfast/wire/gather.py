"""Commands of one moment are sent together: puts that share queue and options as one call, all calls in one pipeline."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

from holdfast.code.current import put_collector
from holdfast.commands import Command
from holdfast.commands.base import check_command
from holdfast.commands.jobs import Put, PutMany
from holdfast.commands.options import MAX_WEIGHT, PutWithOptions, PutX
from holdfast.errors import HoldfastError
from holdfast.settings import MAX_BATCH
from holdfast.wire.exchange import exchange_all
from holdfast.wire.plans import Plan
from holdfast.wire.runners import AsyncRunner
from holdfast.wire.shards import Shard
from holdfast.wire.waiting import PerLoop, running_loop

R = TypeVar("R")

_PUTS: Final = (Put, PutWithOptions)
MAX_BYTES: Final = 1 << 20
MAX_CALLS: Final = 512


class _Parcel:
    """Puts that are sent as one call, and the positions of their results."""

    __slots__ = ("head", "jobs", "number", "places", "room", "size")

    def __init__(self, head: Put | PutWithOptions, number: int) -> None:
        self.head = head
        self.number = number
        self.jobs: list[Any] = []
        self.places: list[int] = []
        self.room = MAX_BATCH if type(head) is Put else MAX_WEIGHT
        self.size = 0

    def sealed(self) -> Command[Any]:
        """Return the command that puts them."""
        head = self.head
        if len(self.places) == 1:
            return head
        kind = PutMany if type(head) is Put else PutX
        return kind(
            head.queue, self.jobs, head.priority, head.retries, head.delay_ms, head.mode, head.max_losses
        )


class _Packing:
    """Merges commands into as few calls as possible.

    A job is never sent before its dependencies: `_left_by` has the number of the call of each job, if any has some.
    """

    def __init__(self, with_families: bool) -> None:
        self.calls: list[Command[Any] | _Parcel] = []
        self.places: list[list[int]] = []
        self._parcels: dict[tuple[Any, ...], _Parcel] = {}
        self._left_by: dict[str, int] | None = {} if with_families else None

    def take(self, command: Command[Any], index: int) -> None:
        """Add one command."""
        if type(command) is Put:
            self._put(command, index)
        elif type(command) is PutWithOptions:
            self._put_with_options(command, index)
        else:
            self.calls.append(command)
            self.places.append([index])

    def _put(self, put: Put, index: int) -> None:
        key = (put.queue, put.priority, put.retries, put.delay_ms, put.mode, put.max_losses)
        parcel = self._parcels.get(key)
        size = len(put.data)
        if parcel is None or parcel.room == 0 or parcel.size + size > MAX_BYTES:
            parcel = self._open(key, put)
        parcel.jobs += (put.jid, put.klass, put.data)
        parcel.places.append(index)
        parcel.room -= 1
        parcel.size += size
        if self._left_by is not None:
            self._left_by[put.jid] = parcel.number

    def _put_with_options(self, put: PutWithOptions, index: int) -> None:
        key = (PutWithOptions, put.queue, put.priority, put.retries, put.delay_ms, put.mode, put.max_losses)
        parcel = self._parcels.get(key)
        weight, size = put.job.weight, len(put.data)
        if (
            parcel is None
            or parcel.room < weight
            or parcel.size + size > MAX_BYTES
            or self._has_later_parent(put, parcel)
        ):
            parcel = self._open(key, put)
        parcel.jobs.append(put.job)
        parcel.places.append(index)
        parcel.room -= weight
        parcel.size += size
        if self._left_by is not None:
            self._left_by[put.jid] = parcel.number

    def _open(self, key: tuple[Any, ...], head: Put | PutWithOptions) -> _Parcel:
        parcel = self._parcels[key] = _Parcel(head, len(self.calls))
        self.calls.append(parcel)
        self.places.append(parcel.places)
        return parcel

    def _has_later_parent(self, put: PutWithOptions, parcel: _Parcel) -> bool:
        left_by = self._left_by or {}
        return any(left_by.get(parent, -1) > parcel.number for parent in put.job.options.depends)


def packed(commands: Sequence[Command[Any]]) -> tuple[list[Command[Any]], list[list[int]]]:
    """Merge puts of the same queue and options. Returns the calls and, for each, the positions of its commands."""
    packing = _Packing(
        any(type(command) is PutWithOptions and command.job.options.depends for command in commands)
    )
    for index, command in enumerate(commands):
        packing.take(command, index)
    return [call.sealed() if isinstance(call, _Parcel) else call for call in packing.calls], packing.places


def together(shard: Shard, commands: Sequence[Command[Any]]) -> Plan[list[Any]]:
    """Run commands as few calls in one pipeline. Returns the result or HoldfastError of each, in order."""
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


class _Asked:
    """The commands of one loop that are not sent yet, and the task that sends them."""

    __slots__ = ("commands", "sending")

    def __init__(self) -> None:
        self.commands: list[tuple[Command[Any], asyncio.Future[Any]]] = []
        self.sending: asyncio.Task[None] | None = None


class Gatherer:
    """Collect the commands that are awaited in one iteration of the event loop, and send them together.

    One pipeline is under way at a time; commands that come meanwhile go with the next one.
    """

    def __init__(self, shard: Shard, runner: AsyncRunner, client: Any = None) -> None:
        self._shard = shard
        self._runner = runner
        self._client = client
        # The pending commands of a loop end with it.
        self._asked = PerLoop(_Asked)

    def submit(self, command: Command[R]) -> "asyncio.Future[R]":
        """Send one command soon; the future gets its result or its error. A put collector may keep a put back."""
        loop = running_loop()
        future: asyncio.Future[R] = loop.create_future()
        asked: Any = command
        if type(asked) in _PUTS:
            collector = put_collector.get()
            if collector is not None:
                future.set_result(cast("R", collector.take(self._client, asked)))
                return future
        else:
            check_command(asked)
        here = self._asked.here()
        here.commands.append((command, future))
        if here.sending is None:
            here.sending = loop.create_task(self._send_all(here))
        return future

    async def _send_all(self, here: _Asked) -> None:
        try:
            while here.commands:
                leaving = here.commands[:MAX_CALLS]
                del here.commands[:MAX_CALLS]
                await self._send(leaving)
        finally:
            here.sending = None

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
