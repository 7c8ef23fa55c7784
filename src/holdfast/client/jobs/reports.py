"""Methods that only report: a job never fails for them, and waits only briefly."""

import functools
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from holdfast.client.descriptors import AsyncHandle, CommandMethod, sent, with_name
from holdfast.code.current import running
from holdfast.commands import Command
from holdfast.commands.base import hurried
from holdfast.errors import StoreFull, StoreUnsupported, TransportError

P = ParamSpec("P")
H = TypeVar("H")
log = logging.getLogger("holdfast")

_NOT_WRITTEN: Final = (StoreFull, StoreUnsupported, TransportError)

REST: Final = 5.0
"""Seconds for which reports are dropped untried after one that the store did not answer."""


class _Dropped:
    """The reports of jobs of this process that were dropped since the last one that was written."""

    count = 0
    rests_until = 0.0


class ReportMethod(CommandMethod[P, bool]):
    """A method that records what a job reports, and returns whether it was recorded.

    In a running job it returns False where the store is full, unavailable, or refuses reports to this user; that is counted, and
    logged once. Elsewhere it raises StoreFull, TransportError, StoreUnsupported.
    """

    def __init__(self, make: Callable[Concatenate[H, P], Command[bool]]) -> None:
        super().__init__(make)

        @functools.wraps(make)
        def call(handle: Any, /, *args: P.args, **kwargs: P.kwargs) -> object:
            command: Command[bool] = make(handle, *args, **kwargs)
            is_awaited = isinstance(handle, AsyncHandle)
            if running.get() is None and getattr(handle, "run_of", None) is None:
                return sent(handle, command) if is_awaited else handle._client.run(command)
            return _report_async(handle, command) if is_awaited else _report(handle, command)

        self.method = with_name(call)
        self.method.make = make


def _report(handle: Any, command: Command[bool]) -> bool:
    if _rests():
        return False
    try:
        return _written(handle._client.run(hurried(command)))
    except _NOT_WRITTEN as error:
        return _drop(handle.jid, error)


async def _report_async(handle: Any, command: Command[bool]) -> bool:
    if _rests():
        return False
    try:
        reported: Awaitable[bool] = handle._client.run(hurried(command))
        return _written(await reported)
    except _NOT_WRITTEN as error:
        return _drop(handle.jid, error)


def _rests() -> bool:
    rests = monotonic() < _Dropped.rests_until
    _Dropped.count += rests
    return rests


def _written(result: bool) -> bool:
    count, _Dropped.count = _Dropped.count, 0
    if count:
        log.info("what jobs report is written again; %d reports were dropped", count)
    return result


def _drop(jid: str, error: Exception) -> bool:
    if isinstance(error, TransportError):
        _Dropped.rests_until = monotonic() + REST
    _Dropped.count += 1
    if _Dropped.count == 1:
        from holdfast.code.failure import brief  # a program that only puts does without

        log.warning(
            "what job %s reported could not be written; such reports are dropped until they can: %s",
            jid,
            brief(error),
        )
    return False
