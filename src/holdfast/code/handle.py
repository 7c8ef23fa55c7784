"""A function job that was put: waiting for what it returns."""

import functools
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from holdfast.code.registry import Registered
from holdfast.code.signature import hints_of
from holdfast.codecs import from_plain
from holdfast.errors import CodecError
from holdfast.settings import Settings

R = TypeVar("R")


class SyncApp(Protocol):
    """What a function job needs of a blocking client."""

    settings: Settings

    @property
    def queues(self) -> Any: ...
    def result_of(self, jid: str, timeout: float | None = None) -> bytes | None: ...


class AsyncApp(Protocol):
    """What a function job needs of an async client."""

    settings: Settings

    @property
    def queues(self) -> Any: ...
    async def result_of(self, jid: str, timeout: float | None = None) -> bytes | None: ...


class Handle(Generic[R]):
    """A job that was put."""

    __slots__ = ("_app", "_entry", "jid")

    def __init__(self, app: SyncApp, jid: str, entry: Registered) -> None:
        self._app = app
        self._entry = entry
        self.jid = jid

    def result(self, timeout: float | None = None) -> R:
        """Wait for the return value, for at most `timeout` seconds.

        It is pushed by the store, not polled. Raises JobFailed with the failure's group and message, JobNotFound when
        the job or its result is not kept any more, TimeoutError.
        """
        value: R = _decoded(self._entry, self._app.result_of(self.jid, timeout))
        return value

    def __repr__(self) -> str:
        return f"<Handle {self._entry.name} {self.jid}>"


class AsyncHandle(Generic[R]):
    """A job that was put; what waits is awaited."""

    __slots__ = ("_app", "_entry", "jid")

    def __init__(self, app: AsyncApp, jid: str, entry: Registered) -> None:
        self._app = app
        self._entry = entry
        self.jid = jid

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the return value, for at most `timeout` seconds. Raises as `Handle.result` does."""
        value: R = _decoded(self._entry, await self._app.result_of(self.jid, timeout))
        return value

    def __repr__(self) -> str:
        return f"<AsyncHandle {self._entry.name} {self.jid}>"


def _decoded(entry: Registered, result: bytes | None) -> Any:
    if result is None:
        return None
    try:
        return _result_type(entry)(result)
    except msgspec.MsgspecError as error:
        raise CodecError(f"the result of {entry.name} is not what it says it returns: {error}") from error


@functools.lru_cache(maxsize=1024)
def _result_type(entry: Registered) -> Callable[[bytes], Any]:
    try:
        return msgspec.json.Decoder(hints_of(entry.function).get("return", Any), dec_hook=from_plain).decode
    except Exception:
        # An annotation that cannot be decoded to: the plain JSON value.
        return msgspec.json.Decoder().decode
