"""How many connections a server has, how long each may take, and how many lines of the log one kind of trouble may fill."""

import asyncio
import logging
import resource
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.logs import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

BACKLOG: Final = 64
"""Connections that are accepted in one turn of the event loop."""
HEADER_SECONDS: Final = 10.0
BODY_SECONDS: Final = 60.0
WRITE_SECONDS: Final = 60.0
"""How long a client has to read what was written."""
_OTHERS: Final = 128 + BACKLOG
"""Descriptors that are left for the store, files, and connections that were accepted but not counted yet."""
_MOST: Final = 10_000
_WANTED: Final = 65_536
_LINES, _MINUTE = 20, 60.0
_MOST_KINDS: Final = 1000


def most_connections() -> int:
    """Raise the soft limit of descriptors of this process to the hard one, and return how many connections fit below it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    limit = _WANTED if soft == resource.RLIM_INFINITY else soft
    return min(_MOST, max(limit - _OTHERS, limit // 2))


class Connections:
    """The connections of one server. At the limit, the connection that has waited longest for its request is closed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[str, dict[Connection, None]] = {"header": {}, "body": {}}

    def protocol(self, **given: Any) -> "Connection":
        """Return the protocol of a new connection, for uvicorn."""
        made = Connection(**given)
        made.others = self
        return made

    def admits(self, new: "Connection") -> bool:
        """Return whether a connection may stay; another one may be closed for it."""
        if len(new.connections) <= self._most:
            return True
        oldest = next((one for of in self._waiting.values() for one in of if one is not new), None)
        dropped = new if oldest is None else oldest
        logger.warning("the limit of %d open connections is reached; one was closed", self._most)
        dropped.connections.discard(dropped)
        dropped.transport.abort()
        return dropped is not new

    def note(self, one: "Connection", waits_for: str) -> None:
        """Note what a connection waits for: the header or the body of a request, or neither."""
        for of in self._waiting.values():
            of.pop(one, None)
        if waits_for:
            self._waiting[waits_for][one] = None


class Connection(H11Protocol):
    """A connection of uvicorn with deadlines: for the header and the body of a request, and for reading the response."""

    others: Connections
    _request: tuple[str, object] = ("", None)
    _read_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.others.admits(self):
            self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._read_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self.others.note(self, "")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()
        self._watch_writing()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        self._watch_writing()

    def _look(self) -> None:
        """Begin a new deadline when the part of the request to wait for changes."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete:
            waits_for = "header"
        else:
            waits_for = "body" if cycle.more_body else ""
        if self._request == (waits_for, cycle):
            return
        self._request = (waits_for, cycle)
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        self.others.note(self, waits_for)
        if waits_for:
            seconds = HEADER_SECONDS if waits_for == "header" else BODY_SECONDS
            self._read_timer = self._later(seconds, self._give_up)

    def _give_up(self) -> None:
        self.transport.close()  # what was written is still sent
        self._watch_writing()

    def _watch_writing(self) -> None:
        if self._write_timer is None and self.transport.get_write_buffer_size():
            left = self.transport.get_write_buffer_size()
            self._write_timer = self._later(WRITE_SECONDS, self._check_written, left)

    def _check_written(self, before: int) -> None:
        self._write_timer = None
        if self.transport.get_write_buffer_size() < before:
            self._watch_writing()  # it reads
        else:
            self.transport.abort()

    def _later(self, seconds: float, call: "Callable[..., None]", *args: object) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, call, *args)


class Thinned(logging.Filter):
    """Lets twenty lines of a kind through a minute; the next one after that has the number of those that were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str, object], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, str(record.msg)[:200], record.exc_info and record.exc_info[0])
        now = monotonic()
        begun, count = self._seen.get(kind, (now, 0))
        if now - begun >= _MINUTE:
            if count > _LINES:
                record.msg = f"{record.getMessage()} ({count - _LINES} similar lines omitted)"
                record.args = ()
            begun, count = now, 0
        if len(self._seen) > _MOST_KINDS:
            self._seen.clear()
        self._seen[kind] = (begun, count + 1)
        return count < _LINES
