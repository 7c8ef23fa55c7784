"""The calls of a supervisor to the store, made by a process of their own: a supervisor never waits for the store.

Not only a reply may take long. So may a name server, a connection, a TLS handshake, a provider of credentials, or the start of an
embedded store, and most of them cannot be had without waiting. So one more child of the supervisor makes the calls with an
ordinary client, one after the other, and listens to the store's messages. Requests and replies travel through a pair of
sockets, of which the supervisor's end is in its selector. A worker without a parent has a thread in place of that process.
"""

import logging
import os
import pickle
import select
import selectors
import signal
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from holdfast.client.sync import Client
from holdfast.commands.base import Command
from holdfast.errors import ConnectionLost, HoldfastError
from holdfast.release import VERSION
from holdfast.wire.outage import OUTAGES, Hook, ReconnectGate
from holdfast.worker import signals
from holdfast.worker.process_state import set_title
from holdfast.worker.processes import die_with, prepare
from holdfast.worker.signals import start_without_signals
from holdfast.worker.supervisor.messages import StoreMessage, StoreMessages

log = logging.getLogger("holdfast")

R = TypeVar("R")

LIMIT: Final = 15.0
"""Seconds that a call may take, half of a lease; the client itself gives up much sooner, unless the process is halted or stuck."""
PAUSE: Final = 1.0  # seconds between two starts of the process
_SIZE: Final = struct.Struct("<I")

Work = Callable[[Client], Any]
"""A call, or several. It is pickled, so it is a function of a module, or a `partial` of one."""

Done = Callable[[Any], object]
"""Called with what the work returned, or with the HoldfastError that it raised."""


def run(command: Command[R], client: Client) -> R:
    """Run one command."""
    return client.run(command)


def run_all(commands: Sequence[Command[Any]], client: Client) -> list[Any]:
    """Run several in one pipeline; return the result or the HoldfastError of each."""
    return client.run_all(commands)


def log_failure(what: str, result: object) -> None:
    """Log that a call failed whose result does not matter."""
    if isinstance(result, HoldfastError):
        log.debug("%s failed: %s", what, result)


class _Request(NamedTuple):
    work: Work
    done: Done


class StoreCalls:
    """Makes calls to the store, one after the other, without waiting for them.

    `start_process` or `start_thread` comes first. Then its owner calls `attend` at `due()`, and `receive` when `fileno()` is ready
    for `events()`; in `selector`, if there is one, it is registered with that function. `on_messages` is called with messages to
    one of `workers`, and with none where some may have been missed.
    """

    def __init__(
        self,
        client: Client,
        workers: Sequence[str] = (),
        on_messages: Callable[[list[StoreMessage]], object] = list[StoreMessage],
        selector: selectors.BaseSelector | None = None,
    ) -> None:
        self.shard = client.shard
        self._client = client
        self._workers = workers
        self._on_messages = on_messages
        self._selector = selector
        self._watched = 0
        self._start: Callable[[], None] = lambda: None
        self._waiting: deque[_Request] = deque()
        self._under_way: _Request | None = None
        self._until = inf
        self._start_at = 0.0
        self._pipe: socket.socket | None = None
        self._out = b""
        self._in = bytearray()
        self._pid = 0
        self._thread: threading.Thread | None = None
        self._dead: list[int] = []

    def start_process(self, inherited: Callable[[], Iterable[int]]) -> None:
        """Make the calls in a process, forked now and whenever it has died; it closes the descriptors that are `inherited`."""
        prepare()
        self._start = lambda: self._fork(inherited)
        self._restart()

    def start_thread(self) -> None:
        """Make the calls in a thread."""
        self._start = self._begin_thread
        self._restart()

    def call(self, work: Work, done: Done) -> None:
        """Have `work` done after what was asked for before. `done` is called from `receive` or `attend`."""
        self._waiting.append(_Request(work, done))
        self._send_next()

    def fileno(self) -> int:
        """The descriptor to wait on, -1 while there is none."""
        return -1 if self._pipe is None else self._pipe.fileno()

    def events(self) -> int:
        """What to wait for, in the words of `selectors` and `select.poll`, which agree: to read, perhaps also to write."""
        return select.POLLIN | select.POLLOUT if self._out else select.POLLIN

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return self._start_at if self._pipe is None else self._until

    def attend(self) -> None:
        """Replace a process that has died, or that takes too long for a call."""
        self._reap()
        now = monotonic()
        if self._pipe is not None and now >= self._until and self._pid:
            log.warning("process %d, which calls the store, is stuck; it is replaced", self._pid)
            self._lose()
        if self._pipe is None and now >= self._start_at:
            self._restart()

    def receive(self) -> None:
        """Take what has come, and send what there is to send."""
        self._flush()
        if self._pipe is None:
            return
        try:
            received = self._pipe.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        self._in += received
        while (frame := _cut(self._in)) is not None:
            self._take(*pickle.loads(frame))
        if not received:
            if self._pid:
                log.warning("process %d, which calls the store, has ended; it is replaced", self._pid)
            self._lose()

    def wait(self, end: float) -> None:
        """Wait until every call has its result, but not longer than until `end`."""
        while (self._under_way or self._waiting) and monotonic() < end:
            self.attend()
            poll = select.poll()
            if self._pipe is not None:
                poll.register(self._pipe, self.events())
            left = min(end, self.due()) - monotonic()
            if poll.poll(max(0.0, left) * 1000):
                self.receive()

    def close(self) -> None:
        """Make no more calls; the process ends, and so does the thread, which is not waited for in the middle of a call."""
        self._start_at = self._until = inf
        self._close_pipe()
        if self._thread is not None and self._under_way is None:
            self._thread.join(PAUSE)
        if self._pid:
            _kill(self._pid)
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0

    def _take(self, kind: str, value: Any) -> None:
        if kind == "messages":
            self._on_messages(value)
            return
        request, self._under_way, self._until = self._under_way, None, inf
        if request is not None:
            request.done(value)
        self._send_next()

    def _send_next(self) -> None:
        if self._under_way is None and self._pipe is not None and self._waiting:
            self._under_way, self._until = self._waiting.popleft(), monotonic() + LIMIT
            self._out = _frame(self._under_way.work)
            self._flush()

    def _flush(self) -> None:
        if self._out and self._pipe is not None:
            with suppress(OSError):  # it is full, or it has ended, which `receive` finds
                self._out = self._out[self._pipe.send(self._out) :]
        self._watch()

    def _watch(self) -> None:
        """Register in the selector what there is to wait for."""
        if self._selector is None or self._pipe is None or self._watched == self.events():
            return
        if self._watched:
            self._selector.modify(self._pipe, self.events(), self.receive)
        else:
            self._selector.register(self._pipe, self.events(), self.receive)
        self._watched = self.events()

    def _close_pipe(self) -> None:
        if self._pipe is None:
            return
        if self._selector is not None and self._watched:
            self._selector.unregister(self._pipe)
        pipe, self._pipe, self._watched = self._pipe, None, 0
        with suppress(OSError):  # a job closed it, where the calls are made in a thread
            pipe.close()

    def _lose(self) -> None:
        """Note that the process has died, or is to be killed: its call has failed, and messages may have been missed."""
        self._close_pipe()
        if self._pid:
            _kill(self._pid)
            self._dead.append(self._pid)
            self._pid = 0
        self._out, self._in, self._until = b"", bytearray(), inf
        request, self._under_way = self._under_way, None
        if request is not None:
            request.done(ConnectionLost("the process that calls the store was lost"))
        self._on_messages([])

    def _reap(self) -> None:
        for pid in self._dead[:]:
            try:
                ended, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                ended = pid
            if ended:
                self._dead.remove(pid)

    def _restart(self) -> None:
        self._start_at = monotonic() + PAUSE
        try:
            self._start()
        except OSError as error:
            log.error("the process that calls the store cannot be started, trying again: %s", error)
        self._watch()
        self._send_next()

    def _fork(self, inherited: Callable[[], Iterable[int]]) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        parent = os.getpid()
        with theirs:
            signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
            try:
                pid = os.fork()
                if pid == 0:
                    _become(self._client, theirs, self._workers, parent, [ours.fileno(), *inherited()])
            except OSError:
                ours.close()
                raise
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        self._pipe, self._pid = ours, pid

    def _begin_thread(self) -> None:
        self._pipe, theirs = socket.socketpair()
        self._pipe.setblocking(False)
        serving = (self._client, theirs, self._workers)
        self._thread = threading.Thread(
            target=_serve_in_thread, args=serving, name="holdfast-store", daemon=True
        )
        start_without_signals(self._thread)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


# The other side.


class _UnreportedGate(ReconnectGate):
    """The supervisor logs and counts outages, from the results that it gets."""

    __slots__ = ()

    def report_outage(self) -> bool:
        return False


def _become(
    client: Client, pipe: socket.socket, workers: Sequence[str], parent: int, inherited: Iterable[int]
) -> NoReturn:
    """Be the process that makes the calls; only its parent ends it, whatever reaches the whole group."""
    try:
        signals.reset()
        for number in {*signals.ALL} - {signal.SIGCONT, signal.SIGCHLD}:
            signal.signal(number, signal.SIG_IGN)
        die_with(parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        for descriptor in inherited:
            os.close(descriptor)
        set_title(f"holdfast-{VERSION}: Calling the store for process {parent}")
        OUTAGES.callback = Hook().callback
        client.shard.gate = _UnreportedGate()
        _serve(client, pipe, workers)
    except ConnectionError:
        pass  # its parent has ended
    except BaseException:
        log.exception("the process that calls the store failed")
    finally:
        os._exit(0)


def _serve_in_thread(client: Client, pipe: socket.socket, workers: Sequence[str]) -> None:
    try:
        _serve(client, pipe, workers)
    except OSError:
        pass  # the owner has ended
    finally:
        pipe.close()


def _serve(client: Client, pipe: socket.socket, workers: Sequence[str]) -> None:
    """Make the calls that come through `pipe`, and pass messages to `workers` on, until its other end is closed."""
    messages = StoreMessages(client, workers)
    try:
        while True:
            if workers and not messages.is_open and monotonic() >= messages.at and messages.open() >= 0:
                # What came with the confirmation has been read already: the descriptor does not show it.
                pipe.sendall(_frame(("messages", messages.read())))
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            if messages.is_open:
                poll.register(messages, select.POLLIN)
            wait = messages.at - monotonic() if workers and not messages.is_open else inf
            ready = [
                descriptor for descriptor, _ in poll.poll(None if wait == inf else max(0.0, wait) * 1000)
            ]
            if messages.is_open and messages.fileno() in ready:
                found = messages.read()
                if found or not messages.is_open:
                    pipe.sendall(_frame(("messages", found)))
            if pipe.fileno() in ready:
                work = _read(pipe)
                if work is None:
                    return
                pipe.sendall(_frame(("result", _result(work, client))))
    finally:
        messages.close()
        client.link.close()


def _result(work: bytes, client: Client) -> object:
    try:
        return pickle.loads(work)(client)
    except HoldfastError as error:
        return error
    except Exception as error:
        # Without it the leases would be lost without notice.
        log.exception("a call to the store failed; it is tried again")
        return HoldfastError(f"{type(error).__name__}: {error}")


def _frame(value: object) -> bytes:
    data = pickle.dumps(value)
    return _SIZE.pack(len(data)) + data


def _cut(received: bytearray) -> bytes | None:
    """Cut the first whole frame off. Return what is in it, None if there is none."""
    if len(received) < _SIZE.size:
        return None
    [size] = _SIZE.unpack_from(received)
    end = _SIZE.size + int(size)
    if len(received) < end:
        return None
    data = bytes(received[_SIZE.size : end])
    del received[:end]
    return data


def _read(pipe: socket.socket) -> bytes | None:
    """Read one frame. Return what is in it, None if the other end is closed."""
    received = bytearray()
    while (frame := _cut(received)) is None:
        # Its owner sends one frame, and then waits for the result.
        try:
            some = pipe.recv(1 << 16)
        except ConnectionError:
            some = b""
        if not some:
            return None
        received += some
    return frame
