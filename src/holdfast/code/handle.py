"""Handles of jobs that were put: wait for one result, or for many at once.

`gather` and `as_completed` are blocking for handles of a Client, and async for those of an AsyncClient.
"""

import functools
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import aclosing
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

import msgspec

from holdfast.code.endings import result_of
from holdfast.code.registry import Registered
from holdfast.code.signature import hints_of
from holdfast.codecs import from_plain
from holdfast.errors import CodecError, HoldfastError, JobNotFound, UsageError
from holdfast.settings import Settings, check_list, check_timeout

R = TypeVar("R")
R1 = TypeVar("R1")
R2 = TypeVar("R2")
R3 = TypeVar("R3")
R4 = TypeVar("R4")
R_co = TypeVar("R_co", covariant=True)


class SyncApp(Protocol):
    """The part of a Client that function jobs use."""

    settings: Settings

    @property
    def queues(self) -> Any: ...
    @property
    def jobs(self) -> Any: ...
    @property
    def recurring(self) -> Any: ...
    def job(self, jid: str, /) -> Any: ...
    def store_time(self) -> float: ...
    def wait_for(self, jid: str, timeout: float | None = None) -> Any: ...
    def _ends_of(self, jids: Sequence[str], timeout: float | None = None) -> Iterator[Any]: ...


class AsyncApp(Protocol):
    """The part of an AsyncClient that function jobs use."""

    settings: Settings

    @property
    def queues(self) -> Any: ...
    @property
    def jobs(self) -> Any: ...
    @property
    def recurring(self) -> Any: ...
    def job(self, jid: str, /) -> Any: ...
    async def store_time(self) -> float: ...
    async def wait_for(self, jid: str, timeout: float | None = None) -> Any: ...
    def _ends_of(self, jids: Sequence[str], timeout: float | None = None) -> AsyncGenerator[Any]: ...


class AnyHandle(Generic[R_co]):
    """The base of the sync and the async handle: the jid, the outcome once it is known, and how to decode the result.


    `returns` is the function, whose annotation says of which type the result is, or that type. `keeps` is false when the
    store keeps no result.
    """

    __slots__ = ("app", "ended", "jid", "keeps", "returns")

    def __init__(self, app: Any, jid: str, returns: Any, keeps: bool = True) -> None:
        self.app = app
        self.returns = returns
        self.jid = jid
        self.keeps = keeps
        self.ended: Any = None

    def learn(self, outcome: Any) -> Any:
        """Keep the outcome of a job that has ended, which cannot change any more. Returns it."""
        if outcome.status in ("done", "failed", "cancelled"):
            self.ended = outcome
        return outcome

    def read(self, outcome: Any) -> R_co:
        """Return the result. Raises JobFailed, JobCancelled, JobNotFound or TimeoutError for other outcomes, CodecError."""
        result = outcome.result_of(self.jid, self.app.settings.flags)
        if result is None and self.keeps:
            # A job that returned None left `null`.
            raise JobNotFound(f"job {self.jid} is complete, and no result of it is kept", "HF_JOB_NOT_FOUND")
        value: R_co = _decoded(self.returns, result)
        return value

    def __repr__(self) -> str:
        name = f"{self.returns.name} " if isinstance(self.returns, Registered) else ""
        return f"<{type(self).__name__} {name}{self.jid}>"


class Handle(AnyHandle[R_co]):
    """A job that was put by a Client. Once the outcome is known, no more calls are sent."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result of the function, for at most `timeout` seconds; None: for ever.

        The store publishes the end of the job; nothing is polled. Raises JobFailed with group, message and remote
        traceback, JobCancelled with who cancelled it and when, JobNotFound if the job or its result is not kept any
        more, TimeoutError. With `result_keep=0`, returns None. Core: verbs/await.lua.
        """
        return self.read(self._wait(timeout))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended, whatever its outcome. Returns False after `timeout` seconds."""
        return bool(self._wait(timeout).status != "open")

    @property
    def job(self) -> Any:
        """The `Job` as it is now. Raises JobNotFound. Core: verbs/inspect.lua."""
        return self.app.job(self.jid)

    @property
    def state(self) -> str:
        """The state of the job now, as in `Job.state`; of a job that was deleted `complete` or `cancelled` while the store
        still knows its outcome, then `gone`. Core: verbs/inspect.lua, verbs/await.lua."""
        try:
            return str(self.job.state)
        except JobNotFound:
            return _last_state(self._wait(0))

    @property
    def progress(self) -> float | None:
        """The progress that the job last reported, from 0 to 1; None: none. Raises JobNotFound. Core: verbs/inspect.lua."""
        fraction: float | None = self.job.progress_fraction
        return fraction

    def cancel(self) -> bool:
        """Cancel the job; return whether it was there and not complete. Raises DependencyRefused. Core: verbs/cancel.lua."""
        return bool(self.app.jobs.cancel(self.jid)[0])

    def _wait(self, timeout: float | None) -> Any:
        return self.ended or self.learn(self.app.wait_for(self.jid, timeout))


class AsyncHandle(AnyHandle[R_co]):
    """A job that was put by an AsyncClient. `await handle` is `await handle.result()`."""

    __slots__ = ()

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result of the function, for at most `timeout` seconds. Raises as `Handle.result` does."""
        return self.read(await self._wait(timeout))

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended, whatever its outcome. Returns False after `timeout` seconds."""
        outcome = await self._wait(timeout)
        return bool(outcome.status != "open")

    @property
    async def job(self) -> Any:
        """The `AsyncJob` as it is now: `await handle.job`. Raises JobNotFound. Core: verbs/inspect.lua."""
        return await self.app.job(self.jid)

    @property
    async def state(self) -> str:
        """The state of the job now, as `Handle.state`: `await handle.state`."""
        try:
            return str((await self.job).state)
        except JobNotFound:
            return _last_state(await self._wait(0))

    @property
    async def progress(self) -> float | None:
        """The progress that the job last reported, as `Handle.progress`: `await handle.progress`."""
        fraction: float | None = (await self.job).progress_fraction
        return fraction

    async def cancel(self) -> bool:
        """Cancel the job, as `Handle.cancel`."""
        return bool((await self.app.jobs.cancel(self.jid))[0])

    async def _wait(self, timeout: float | None) -> Any:
        return self.ended or self.learn(await self.app.wait_for(self.jid, timeout))

    def __await__(self) -> Generator[Any, Any, R_co]:
        return self.result().__await__()


def _last_state(outcome: Any) -> str:
    """The state of a job whose record is gone, from its outcome."""
    return "complete" if outcome.status == "done" else str(outcome.status)


def _decoded(returns: Any, result: bytes | None) -> Any:
    if result is None:
        return None
    try:
        return _decoder(returns)(result)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        name = returns.name if isinstance(returns, Registered) else "the job"
        raise CodecError(f"the result of {name} is not of the type that it declares: {error}") from error


@functools.lru_cache(maxsize=1024)
def _decoder(returns: Any) -> Callable[[bytes], Any]:
    try:
        wanted = returns
        if isinstance(returns, Registered):
            wanted = result_of(hints_of(returns.function).get("return", Any))
        return msgspec.json.Decoder(wanted, dec_hook=from_plain).decode
    except Exception:
        # The annotation is no type that JSON can be decoded to: return the plain JSON value.
        return msgspec.json.Decoder().decode


@overload
def gather(
    h1: Handle[R1],
    h2: Handle[R2],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> tuple[R1, R2]: ...
@overload
def gather(
    h1: Handle[R1],
    h2: Handle[R2],
    h3: Handle[R3],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> tuple[R1, R2, R3]: ...
@overload
def gather(
    h1: Handle[R1],
    h2: Handle[R2],
    h3: Handle[R3],
    h4: Handle[R4],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> tuple[R1, R2, R3, R4]: ...
@overload
def gather(
    h1: AsyncHandle[R1],
    h2: AsyncHandle[R2],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> Coroutine[Any, Any, tuple[R1, R2]]: ...
@overload
def gather(
    h1: AsyncHandle[R1],
    h2: AsyncHandle[R2],
    h3: AsyncHandle[R3],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> Coroutine[Any, Any, tuple[R1, R2, R3]]: ...
@overload
def gather(
    h1: AsyncHandle[R1],
    h2: AsyncHandle[R2],
    h3: AsyncHandle[R3],
    h4: AsyncHandle[R4],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> Coroutine[Any, Any, tuple[R1, R2, R3, R4]]: ...
@overload
def gather(
    *handles: Handle[R], timeout: float | None = None, return_exceptions: Literal[False] = False
) -> list[R]: ...
@overload
def gather(
    *handles: Handle[R], timeout: float | None = None, return_exceptions: bool
) -> list[R | HoldfastError]: ...
@overload
def gather(
    *handles: AsyncHandle[R], timeout: float | None = None, return_exceptions: Literal[False] = False
) -> Coroutine[Any, Any, list[R]]: ...
@overload
def gather(
    *handles: AsyncHandle[R], timeout: float | None = None, return_exceptions: bool
) -> Coroutine[Any, Any, list[R | HoldfastError]]: ...
def gather(
    *handles: Any, timeout: float | None = None, return_exceptions: bool = False
) -> list[Any] | Coroutine[Any, Any, list[Any]]:
    """Wait for all jobs, for at most `timeout` seconds. Returns a list of their results, in the order of `handles`.

    To type checkers, the results of up to four handles are a tuple, as with `asyncio.gather`. When a job has failed, its
    JobFailed is raised at once, and the others continue; with `return_exceptions=True`, the list has the errors instead.
    With handles of an async client, await the result. Raises JobFailed, JobCancelled, JobNotFound, TimeoutError,
    UsageError for handles of different clients. Core: verbs/await.lua.
    """
    timeout = check_timeout(timeout)
    if _is_async(handles):
        return _gather_async(handles, timeout, return_exceptions)
    for handle in _ends(handles, timeout):
        if not return_exceptions:
            handle.read(handle.ended)
    return Values([_value(handle, return_exceptions) for handle in handles])


@overload
def as_completed(handles: Iterable[Handle[R]], timeout: float | None = None) -> Iterator[Handle[R]]: ...
@overload
def as_completed(
    handles: Iterable[AsyncHandle[R]], timeout: float | None = None
) -> AsyncIterator[AsyncHandle[R]]: ...
def as_completed(handles: Iterable[Any], timeout: float | None = None) -> Any:
    """Iterate over the handles, each when its job has ended: its `result()` then returns or raises at once.

    For handles of an async client, use `async for`. Raises TimeoutError if not all have ended within `timeout` seconds,
    UsageError for handles of different clients. Core: verbs/await.lua.
    """
    timeout = check_timeout(timeout)
    given = list(check_list("handles", handles))
    return _ends_async(given, timeout) if _is_async(given) else Ends(_ends(given, timeout))


class Values(list[Any]):
    """The result of `gather` in blocking code. It may be awaited, because without handles it is unknown whether to."""

    def __await__(self) -> Generator[Any, Any, list[Any]]:
        yield from ()
        return self


class Ends(Iterator[Any]):
    """The result of `as_completed` in blocking code. Without handles it may be used with `async for` too."""

    def __init__(self, ends: Iterator[Any]) -> None:
        self._ends = ends

    def __next__(self) -> Any:
        return next(self._ends)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._all()

    async def _all(self) -> AsyncIterator[Any]:
        for handle in self._ends:
            yield handle


def _is_async(handles: Sequence[Any]) -> bool:
    for handle in handles:
        if not isinstance(handle, AnyHandle):
            several = isinstance(handle, list | tuple)
            hint = "; handles of a list are named one by one: gather(*handles)" if several else ""
            raise UsageError(f"expected a handle, as put returns it, not {handle!r:.80}{hint}")
    colours = {isinstance(handle, AsyncHandle) for handle in handles}
    if len(colours) > 1 or any(handle.app != handles[0].app for handle in handles):
        raise UsageError("all handles must come from one client")
    return colours == {True}


def _ends(handles: Sequence[Any], timeout: float | None) -> Iterator[Any]:
    known, open_ = _sorted(handles)
    yield from known
    if open_:
        for jid, outcome in handles[0].app._ends_of(list(open_), timeout):
            yield from _learn(open_.pop(jid), outcome)
    _check_all(open_, handles)


async def _ends_async(handles: Sequence[Any], timeout: float | None) -> AsyncGenerator[Any]:
    known, open_ = _sorted(handles)
    for handle in known:
        yield handle
    if open_:
        async with aclosing(handles[0].app._ends_of(list(open_), timeout)) as ends:
            async for jid, outcome in ends:
                for handle in _learn(open_.pop(jid), outcome):
                    yield handle
    _check_all(open_, handles)


async def _gather_async(handles: Sequence[Any], timeout: float | None, return_exceptions: bool) -> list[Any]:
    async with aclosing(_ends_async(handles, timeout)) as ends:
        async for handle in ends:
            if not return_exceptions:
                handle.read(handle.ended)
    return [_value(handle, return_exceptions) for handle in handles]


def _sorted(handles: Sequence[Any]) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return the handles whose outcome is known, and the others by jid."""
    open_: dict[str, list[Any]] = {}
    for handle in handles:
        if handle.ended is None:
            open_.setdefault(handle.jid, []).append(handle)
    return [handle for handle in handles if handle.ended is not None], open_


def _learn(handles: list[Any], outcome: Any) -> list[Any]:
    for handle in handles:
        handle.ended = outcome
    return handles


def _check_all(open_: dict[str, list[Any]], handles: Sequence[Any]) -> None:
    if open_:
        one = next(iter(open_))
        flags = open_[one][0].app.settings.flags
        raise TimeoutError(
            f"{len(open_)} of {len(handles)} jobs have not ended in time, among them {one}; "
            f"`holdfast jobs why{flags} {one}` shows why"
        )


def _value(handle: Any, return_exceptions: bool) -> Any:
    try:
        return handle.read(handle.ended)
    except HoldfastError as error:
        if return_exceptions:
            return error
        raise
