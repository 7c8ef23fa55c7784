"""Wait for many jobs at once: `gather` and `as_completed`.

They block if their handles come from a `Client`, and are awaited if they come from an `AsyncClient`.
"""

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import Any, Literal, TypeVar, overload

from holdfast.client.descriptors import ends_of
from holdfast.client.put_handles import AnyHandle, AsyncHandle, Handle
from holdfast.client.unserved import without_workers
from holdfast.code.steps import await_steps, run_steps
from holdfast.commands.jobs import Outcome
from holdfast.errors import HoldfastError, UsageError
from holdfast.settings import check_list, check_timeout

R = TypeVar("R")
H = TypeVar("H", bound=AnyHandle[object])
R1 = TypeVar("R1")
R2 = TypeVar("R2")
R3 = TypeVar("R3")
R4 = TypeVar("R4")


@overload
def gather(  # type: ignore[overload-overlap]
    h1: Handle[R1],
    h2: Handle[R2],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> tuple[R1, R2]: ...
@overload
def gather(  # type: ignore[overload-overlap]
    h1: Handle[R1],
    h2: Handle[R2],
    h3: Handle[R3],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> tuple[R1, R2, R3]: ...
@overload
def gather(  # type: ignore[overload-overlap]
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
def gather(  # type: ignore[overload-overlap]
    h1: AsyncHandle[R1],
    h2: AsyncHandle[R2],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> Coroutine[object, object, tuple[R1, R2]]: ...
@overload
def gather(  # type: ignore[overload-overlap]
    h1: AsyncHandle[R1],
    h2: AsyncHandle[R2],
    h3: AsyncHandle[R3],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> Coroutine[object, object, tuple[R1, R2, R3]]: ...
@overload
def gather(  # type: ignore[overload-overlap]
    h1: AsyncHandle[R1],
    h2: AsyncHandle[R2],
    h3: AsyncHandle[R3],
    h4: AsyncHandle[R4],
    /,
    *,
    timeout: float | None = None,
    return_exceptions: Literal[False] = False,
) -> Coroutine[object, object, tuple[R1, R2, R3, R4]]: ...
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
) -> Coroutine[object, object, list[R]]: ...
@overload
def gather(
    *handles: AsyncHandle[R], timeout: float | None = None, return_exceptions: bool
) -> Coroutine[object, object, list[R | HoldfastError]]: ...
def gather(*handles: AnyHandle[R], timeout: float | None = None, return_exceptions: bool = False) -> object:
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
            _result(handle)
    return Values([_value(handle, return_exceptions) for handle in handles])


@overload
def as_completed(handles: Iterable[Handle[R]], timeout: float | None = None) -> Iterator[Handle[R]]: ...
@overload
def as_completed(
    handles: Iterable[AsyncHandle[R]], timeout: float | None = None
) -> AsyncIterator[AsyncHandle[R]]: ...
def as_completed(handles: Iterable[AnyHandle[R]], timeout: float | None = None) -> object:
    """Iterate over the handles, each when its job has ended: its `result()` then returns or raises at once.

    For handles of an async client, use `async for`. Raises TimeoutError if not all have ended within `timeout` seconds,
    UsageError for handles of different clients. Core: verbs/await.lua.
    """
    timeout = check_timeout(timeout)
    given = list(check_list("handles", handles))
    return _ends_async(given, timeout) if _is_async(given) else Ends(_ends(given, timeout))


class Values(list[R]):
    """The result of `gather` in blocking code. It may be awaited, because without handles it is unknown whether to."""

    def __await__(self) -> Generator[None, None, "Values[R]"]:
        yield from ()
        return self


class Ends(Iterator[H]):
    """The result of `as_completed` in blocking code. Without handles it may be used with `async for` too."""

    def __init__(self, ends: Iterator[H]) -> None:
        self._ends = ends

    def __next__(self) -> H:
        return next(self._ends)

    def __aiter__(self) -> AsyncIterator[H]:
        return self._all()

    async def _all(self) -> AsyncIterator[H]:
        for handle in self._ends:
            yield handle


def _is_async(handles: Sequence[Any]) -> bool:
    for handle in handles:
        if not isinstance(handle, AnyHandle):
            several = isinstance(handle, list | tuple)
            hint = "; pass the handles of a list one by one: gather(*handles)" if several else ""
            raise UsageError(f"expected a handle as returned by put, not {handle!r:.80}{hint}")
    kinds = {isinstance(handle, AsyncHandle) for handle in handles}
    if len(kinds) > 1 or any(handle.app != handles[0].app for handle in handles):
        raise UsageError("all handles must come from one client")
    return kinds == {True}


def _ends(handles: Sequence[H], timeout: float | None) -> Iterator[H]:
    known, open_ = _sorted(handles)
    yield from known
    if open_:
        for jid, outcome in ends_of(handles[0].app, list(open_), timeout):
            yield from _learn(open_.pop(jid), outcome)
    if open_:
        raise _late(open_, handles, run_steps(without_workers(handles[0].app)))


async def _ends_async(handles: Sequence[H], timeout: float | None) -> AsyncGenerator[H]:
    known, open_ = _sorted(handles)
    for handle in known:
        yield handle
    if open_:
        async with aclosing(ends_of(handles[0].app, list(open_), timeout)) as ends:
            async for jid, outcome in ends:
                for handle in _learn(open_.pop(jid), outcome):
                    yield handle
    if open_:
        raise _late(open_, handles, await await_steps(without_workers(handles[0].app)))


async def _gather_async(
    handles: Sequence[AnyHandle[R]], timeout: float | None, return_exceptions: bool
) -> list[R | HoldfastError]:
    async with aclosing(_ends_async(handles, timeout)) as ends:
        async for handle in ends:
            if not return_exceptions:
                _result(handle)
    return [_value(handle, return_exceptions) for handle in handles]


def _sorted(handles: Sequence[H]) -> tuple[list[H], dict[str, list[H]]]:
    """Return the handles whose outcome is known, and the others by jid."""
    open_: dict[str, list[H]] = {}
    for handle in handles:
        if handle.ended is None:
            open_.setdefault(handle.jid, []).append(handle)
    return [handle for handle in handles if handle.ended is not None], open_


def _learn(handles: list[H], outcome: Outcome) -> list[H]:
    for handle in handles:
        handle.ended = outcome
    return handles


def _late(
    open_: Mapping[str, Sequence[AnyHandle[object]]], handles: Sequence[object], hint: str
) -> TimeoutError:
    one = next(iter(open_))
    flags = open_[one][0].app.settings.flags
    return TimeoutError(
        f"{len(open_)} of {len(handles)} jobs have not ended in time, such as {one}{hint}; "
        f"`holdfast jobs why{flags} {one}` shows why"
    )


def _result(handle: AnyHandle[R]) -> R:
    assert handle.ended is not None  # all have ended
    return handle.read(handle.ended)


def _value(handle: AnyHandle[R], return_exceptions: bool) -> R | HoldfastError:
    try:
        return _result(handle)
    except HoldfastError as error:
        if return_exceptions:
            return error
        raise
