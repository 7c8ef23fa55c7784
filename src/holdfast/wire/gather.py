"""Commands of one moment are sent together: puts that share queue and options as one call, all calls in one pipeline."""

import asyncio
from collections.abc import Sequence
from sys import getrefcount
from typing import Any, Final, TypeVar, cast

from holdfast.code.current import RunningJob, put_collector, running
from holdfast.code.unawaited import warn_unawaited
from holdfast.commands import Command, Reply
from holdfast.commands.base import check_command
from holdfast.commands.jobs import Put, PutMany
from holdfast.commands.options import MAX_WEIGHT, PutWithOptions, PutX
from holdfast.errors import HoldfastError
from holdfast.settings import MAX_BATCH
from holdfast.wire.exchange import exchange_all
from holdfast.wire.plans import AsyncRunner, Plan
from holdfast.wire.shards import Shard
from holdfast.wire.waiting import PerLoop, running_loop

R = TypeVar("R")

_PUTS: Final = (Put, PutWithOptions)
MAX_BYTES: Final = 1 << 20
MAX_CALLS: Final = 512


class _Batch:
    """Puts that are sent as one call, and the positions of their results."""

    __slots__ = ("head", "jobs", "number", "places", "room", "size")

    def __init__(self, head: Put | PutWithOptions, number: int) -> None:
        self.head = head
        self.number = number
        self.jobs: list[Any] = []
        self.places: list[int] = []
        self.room = MAX_BATCH if type(head) is Put else MAX_WEIGHT
        self.size = 0

    def command(self) -> Command[object]:
        """Return the command that puts them."""
        head = self.head
        if len(self.places) == 1:
            return head
        kind = PutMany if type(head) is Put else PutX
        return kind(
            head.queue, self.jobs, head.priority, head.retries, head.delay_ms, head.mode, head.max_losses
        )


class _Packer:
    """Merges commands into as few calls as possible.

    A job is never sent before its dependencies: `_left_by` has the number of the call of each job, if any has some.
    """

    def __init__(self, with_dependencies: bool) -> None:
        self.calls: list[Command[object] | _Batch] = []
        self.places: list[list[int]] = []
        self._batches: dict[tuple[object, ...], _Batch] = {}
        self._left_by: dict[str, int] | None = {} if with_dependencies else None

    def take(self, command: Command[object], index: int) -> None:
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
        batch = self._batches.get(key)
        size = len(put.data)
        if batch is None or batch.room == 0 or batch.size + size > MAX_BYTES:
            batch = self._open(key, put)
        batch.jobs += (put.jid, put.klass, put.data)
        batch.places.append(index)
        batch.room -= 1
        batch.size += size
        if self._left_by is not None:
            self._left_by[put.jid] = batch.number

    def _put_with_options(self, put: PutWithOptions, index: int) -> None:
        key = (PutWithOptions, put.queue, put.priority, put.retries, put.delay_ms, put.mode, put.max_losses)
        batch = self._batches.get(key)
        weight, size = put.job.weight, len(put.data)
        if (
            batch is None
            or batch.room < weight
            or batch.size + size > MAX_BYTES
            or self._has_later_parent(put, batch)
        ):
            batch = self._open(key, put)
        batch.jobs.append(put.job)
        batch.places.append(index)
        batch.room -= weight
        batch.size += size
        if self._left_by is not None:
            self._left_by[put.jid] = batch.number

    def _open(self, key: tuple[object, ...], head: Put | PutWithOptions) -> _Batch:
        batch = self._batches[key] = _Batch(head, len(self.calls))
        self.calls.append(batch)
        self.places.append(batch.places)
        return batch

    def _has_later_parent(self, put: PutWithOptions, batch: _Batch) -> bool:
        left_by = self._left_by or {}
        return any(left_by.get(parent, -1) > batch.number for parent in put.job.options.depends)


def packed(commands: Sequence[Command[object]]) -> tuple[list[Command[object]], list[list[int]]]:
    """Merge puts of the same queue and options. Returns the calls and, for each, the positions of its commands."""
    packer = _Packer(
        any(type(command) is PutWithOptions and command.job.options.depends for command in commands)
    )
    for index, command in enumerate(commands):
        packer.take(command, index)
    return [call.command() if isinstance(call, _Batch) else call for call in packer.calls], packer.places


def together(shard: Shard, commands: Sequence[Command[object]]) -> Plan[list[Reply]]:
    """Run commands as few calls in one pipeline. Returns the result or HoldfastError of each, in order."""
    calls, places = packed(commands)
    results = yield from exchange_all(shard, calls)
    spread: list[Reply] = [None] * len(commands)
    for result, owners in zip(results, places, strict=True):
        if len(owners) == 1:
            spread[owners[0]] = result
        elif isinstance(result, HoldfastError):
            for index in owners:
                spread[index] = result
        else:
            for index, own in zip(owners, result, strict=True):
                spread[index] = own
    return spread


_Waiting = tuple[Command[object], "asyncio.Future[Any]", str, RunningJob | None]
"""A command, the future for its result, the method that returned the future, and the job that called it."""

_ALONE: Final = max(getrefcount(waiting[0]) for waiting in [(object(),)])
"""The number of references to a future that only its tuple holds: such a future can never be awaited."""


def _warn_of_unawaited(batch: list[_Waiting]) -> None:
    """Warn of futures that can no longer be awaited. It runs in a context of its own, that of the task that sends."""
    for waiting in batch:
        if getrefcount(waiting[1]) > _ALONE or waiting[1].done():
            continue
        if not getattr(waiting[1], "_callbacks", None):
            running.set(waiting[3])
            warn_unawaited(waiting[2])


class _Pending:
    """The commands of one loop that are not sent yet, and the task that sends them."""

    __slots__ = ("commands", "sending")

    def __init__(self) -> None:
        self.commands: list[_Waiting] = []
        self.sending: asyncio.Task[None] | None = None


class Gatherer:
    """Collect the commands that are awaited in one iteration of the event loop, and send them together.

    One pipeline is under way at a time; commands that come meanwhile go with the next one.
    """

    def __init__(self, shard: Shard, runner: AsyncRunner, client: object = None) -> None:
        self._shard = shard
        self._runner = runner
        self._client = client
        # The pending commands of a loop end with it.
        self._pending = PerLoop(_Pending)

    def submit(self, command: Command[R], method: str = "AsyncClient.run") -> "asyncio.Future[R]":
        """Send one command soon; the future gets its result or its error. A put collector may keep a put back.

        `method` is named in the warning if the future is dropped before it is awaited.
        """
        loop = running_loop()
        future: asyncio.Future[R] = loop.create_future()
        sent: object = command
        if type(sent) in _PUTS:
            collector = put_collector.get()
            if collector is not None:
                future.set_result(cast("R", collector.take(self._client, sent)))
                return future
        else:
            check_command(sent)
        here = self._pending.here()
        here.commands.append((command, future, method, running.get()))
        if here.sending is None:
            here.sending = loop.create_task(self._send_all(here))
        return future

    async def _send_all(self, here: _Pending) -> None:
        try:
            while here.commands:
                batch = here.commands[:MAX_CALLS]
                del here.commands[:MAX_CALLS]
                await self._send(batch)
        finally:
            here.sending = None

    async def _send(self, batch: list[_Waiting]) -> None:
        _warn_of_unawaited(batch)
        try:
            plan = together(self._shard, [waiting[0] for waiting in batch])
            results = await self._runner.run(plan)
        except BaseException as error:
            for _, future, _, _ in batch:
                if not future.done():
                    future.set_exception(error) if isinstance(error, Exception) else future.cancel()
            if not isinstance(error, Exception):
                raise
            return
        for (_, future, _, _), result in zip(batch, results, strict=True):
            if future.done():
                continue
            if isinstance(result, HoldfastError):
                future.set_exception(result)
            else:
                future.set_result(result)
