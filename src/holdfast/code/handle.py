"""A function job that was put: waiting for what it returns."""

import functools
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from holdfast.code.endings import result_of
from holdfast.code.registry import Registered
from holdfast.code.signature import hints_of
from holdfast.codecs import from_plain
from holdfast.errors import CodecError, JobNotFound
from holdfast.settings import Settings

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class SyncApp(Protocol):
    """What a function job needs of a blocking client."""

    settings: Settings

    @property
    def queues(self) -> Any: ...
    @property
    def jobs(self) -> Any: ...
    @property
    def recurring(self) -> Any: ...
    def store_time(self) -> float: ...
    def wait_for(self, jid: str, timeout: float | None = None) -> Any: ...
    def ends_of(self, jids: Sequence[str], timeout: float | None = None) -> Iterator[Any]: ...


class AsyncApp(Protocol):
    """What a function job needs of an async client."""

    settings: Settings

    @property
    def queues(self) -> Any: ...
    @property
    def jobs(self) -> Any: ...
    @property
    def recurring(self) -> Any: ...
    async def store_time(self) -> float: ...
    async def wait_for(self, jid: str, timeout: float | None = None) -> Any: ...
    def ends_of(self, jids: Sequence[str], timeout: float | None = None) -> AsyncGenerator[Any]: ...


class AnyHandle(Generic[R_co]):
    """What both colours share: the job's name, how it ended once that is known, and how to read what it returned."""

    __slots__ = ("app", "ended", "entry", "jid", "keeps")

    def __init__(self, app: Any, jid: str, entry: Registered, keeps: bool = True) -> None:
        self.app = app
        self.entry = entry
        self.jid = jid
        self.keeps = keeps
        self.ended: Any = None

    def learn(self, outcome: Any) -> Any:
        """Take note of how the job ended, which does not change any more; answers it."""
        if outcome.status in ("done", "failed", "cancelled"):
            self.ended = outcome
        return outcome

    def read(self, outcome: Any) -> R_co:
        """The return value. Raises JobFailed, JobCancelled, JobNotFound, TimeoutError for other ends, CodecError."""
        result = outcome.result_of(self.jid)
        if result is None and self.keeps:
            # A job that returned None left `null`.
            raise JobNotFound(f"job {self.jid} is complete, and no result of it is kept", "HF_JOB_NOT_FOUND")
        value: R_co = _decoded(self.entry, result)
        return value

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.entry.name} {self.jid}>"


class Handle(AnyHandle[R_co]):
    """A job that was put by a blocking client. Once it knows how the job ended, it asks nobody any more."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the return value, for at most `timeout` seconds; None: for ever.

        It is pushed by the store, not polled. Raises JobFailed with the failure's group, message and remote traceback,
        JobCancelled with who cancelled it and when, JobNotFound when the job or its result is not kept any more,
        TimeoutError. With `result_keep=0`, returns None. Core: verbs/await.lua.
        """
        return self.read(self._wait(timeout))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended, well or not; False when `timeout` seconds were too short."""
        return bool(self._wait(timeout).status != "open")

    def _wait(self, timeout: float | None) -> Any:
        return self.ended or self.learn(self.app.wait_for(self.jid, timeout))


class AsyncHandle(AnyHandle[R_co]):
    """A job that was put by an async client; what waits is awaited. `await handle` is `await handle.result()`."""

    __slots__ = ()

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the return value, for at most `timeout` seconds. Raises as `Handle.result` does."""
        return self.read(await self._wait(timeout))

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended, well or not; False when `timeout` seconds were too short."""
        outcome = await self._wait(timeout)
        return bool(outcome.status != "open")

    async def _wait(self, timeout: float | None) -> Any:
        return self.ended or self.learn(await self.app.wait_for(self.jid, timeout))

    def __await__(self) -> Generator[Any, Any, R_co]:
        return self.result().__await__()


def _decoded(entry: Registered, result: bytes | None) -> Any:
    if result is None:
        return None
    try:
        return _result_type(entry)(result)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CodecError(f"the result of {entry.name} is not what it says it returns: {error}") from error


@functools.lru_cache(maxsize=1024)
def _result_type(entry: Registered) -> Callable[[bytes], Any]:
    try:
        wanted = result_of(hints_of(entry.function).get("return", Any))
        return msgspec.json.Decoder(wanted, dec_hook=from_plain).decode
    except Exception:
        # An annotation that cannot be decoded to: the plain JSON value.
        return msgspec.json.Decoder().decode
