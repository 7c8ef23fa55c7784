"""A loader: a process that loads the code of a worker, and then forks children for the supervisor.

A child becomes a child of the supervisor because the process between it and the loader ends at once: while a child is forked
the supervisor is a "subreaper", which Linux makes the parent of orphans.
"""

import _socket
import logging
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from errno import ETIMEDOUT
from math import inf
from time import monotonic
from typing import Final, NamedTuple, NoReturn

import msgspec

from holdfast.errors import HoldfastError, StartFailed
from holdfast.wire.waiting import sleep
from holdfast.worker import signals
from holdfast.worker.forking.server import accept, receive, send
from holdfast.worker.greenlets import forking_greenlets
from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.process_state import Title
from holdfast.worker.processes import adopting_orphans, die_with, prepare, run_exit_handlers
from holdfast.worker.settings import Pool, WorkerSettings
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.child import Body, ChildPlace, become

log = logging.getLogger("holdfast")

FORKING: Final = 5.0  # seconds that a loader has to fork
LEAVING: Final = 1.0  # seconds that it has for its exit handlers
GLANCE: Final = 0.005  # seconds between two looks at whether it has ended

Load = Callable[[], tuple[WorkerSettings, StoreChoice]]
"""Loads the code in this process. Returns the settings and the store, which depend on it. Raises StartFailed, UsageError."""


class Loaded(NamedTuple):
    """What loading the code led to: the settings, without middleware, the store, and the environment."""

    settings: WorkerSettings
    store: StoreChoice
    environment: dict[str, str]


class Loader:
    """A process that loads the code, and then forks children. It closes the descriptors `inherited`."""

    def __init__(
        self,
        load: Load,
        body_of: Callable[[Pool], Body],
        lease_tables: list[LeaseTable],
        inherited: Iterable[int],
    ) -> None:
        prepare()
        self._status: int | None = None
        self._kill_at = inf
        self._socket, theirs = _socket.socketpair()
        parent = os.getpid()
        sys.stdout.flush()
        # A signal between the fork and the handlers of the new process would be taken for one to this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _be_loader(theirs, load, body_of, lease_tables, parent, {self._socket.fileno(), *inherited})
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def fileno(self) -> int:
        """Its descriptor; -1 when it is closed."""
        return self._socket.fileno()

    def loaded(self, seconds: float = 0.0) -> Loaded | None:
        """Return what it has loaded; None if it has not, within some seconds. Raises what loading raised."""
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        if not poll.poll(seconds * 1000):
            if not self.has_ended():
                return None
            if not poll.poll(0):  # it may have sent something just before it ended
                raise StartFailed(f"the process that loads the code {self.how_ended()}")
        words = self._receive()
        if words is None:
            self.wait()
            raise StartFailed(f"the process that loads the code {self.how_ended()}")
        found: Loaded | BaseException = pickle.loads(words)
        if isinstance(found, BaseException):
            raise found
        return found

    def fork(self, place: ChildPlace) -> int | None:
        """Return the process of a new child; None if this one does not respond. Raises OSError."""
        bare = msgspec.structs.replace(place.settings, middleware=())
        request = pickle.dumps((place.name, place.number, place.parent, bare, place.store))
        with adopting_orphans():
            try:
                self._socket.settimeout(FORKING)
                pipe = place.pipe.fileno().to_bytes(4, sys.byteorder)
                self._socket.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, pipe)])
                send(self._socket, request)
                words = receive(self._socket)
            except OSError:
                words = None
        found = int.from_bytes(words, signed=True) if words else 0
        if found < 0:
            raise OSError(-found, os.strerror(-found))
        return found or None

    def has_ended(self, kill: bool = False) -> bool:
        """Whether its process has ended. With `kill` it is killed when it has had its time to end."""
        if self._status is None:
            if kill and monotonic() >= self._kill_at:
                self._signal_kill()
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self._status = os.waitstatus_to_exitcode(status) if pid else None
                return bool(pid)
            self._status = 0  # something else has taken its status
        return True

    def how_ended(self) -> str:
        """How its process ended, in words."""
        return signals.how_ended(self._status or 0)

    def close(self) -> None:
        """Have it end."""
        self._socket.close()
        self._kill_at = monotonic() + LEAVING

    def kill(self) -> None:
        """End it now."""
        self._socket.close()
        self._signal_kill()
        self.wait()

    def wait(self) -> None:
        """Wait until it has ended; it is killed when it has had its time to do so."""
        self._kill_at = min(self._kill_at, monotonic() + LEAVING)
        while not self.has_ended(kill=True):
            sleep(GLANCE)

    def _signal_kill(self) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _receive(self) -> bytes | None:
        try:
            self._socket.settimeout(FORKING)
            return receive(self._socket)
        except OSError:
            return None


def _be_loader(
    requests: _socket.socket,
    load: Load,
    body_of: Callable[[Pool], Body],
    lease_tables: list[LeaseTable],
    parent: int,
    inherited: Iterable[int],
) -> NoReturn:
    status = 1
    try:
        for descriptor in inherited:
            os.close(descriptor)
        signals.reset()
        for number in signals.ALL:
            signal.signal(number, signals.ignore)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        die_with(parent)
        title = Title(follows=False)
        title.show("Loading code")
        settings = _load(requests, load)
        if settings is not None:
            title.renew()
            title.show("Forking children")
            prepare()
            with forking_greenlets() if settings.pool == "gevent" else nullcontext():
                _serve(requests, settings, body_of, lease_tables)
        status = 0
    except OSError as error:
        log.debug("the supervisor of process %d is gone: %s", os.getpid(), error)
    except BaseException:
        log.exception("process %d, which forks children with the code that it loaded, failed", os.getpid())
    finally:
        try:
            run_exit_handlers()
        finally:
            os._exit(status)


def _load(requests: _socket.socket, load: Load) -> WorkerSettings | None:
    """Load the code, and send what that led to. Returns the settings; None if it failed."""
    try:
        settings, store = load()
        bare = msgspec.structs.replace(settings, middleware=())
        words = pickle.dumps(Loaded(bare, store, dict(os.environ)))
    except BaseException as error:
        send(requests, _pickled(error))
        return None
    send(requests, words)
    return settings


def _serve(
    requests: _socket.socket,
    settings: WorkerSettings,
    body_of: Callable[[Pool], Body],
    lease_tables: list[LeaseTable],
) -> None:
    """Fork children until the supervisor ends this."""
    while pipe := accept(requests):
        words = receive(requests)
        if not words:
            return
        name, number, parent, general, store = pickle.loads(words)
        place = ChildPlace(
            name,
            number,
            lease_tables[number],
            socket.socket(fileno=pipe.detach()),
            parent,
            with_middleware(general, settings),
            store,
        )
        with place.pipe:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
            try:
                found = _fork_orphan(place, body_of(settings.pool), requests)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        send(requests, found.to_bytes(8, signed=True))


def _fork_orphan(place: ChildPlace, body: Body, requests: _socket.socket) -> int:
    """Fork a process whose parent ends at once. Returns its number, or minus that of an error."""
    try:
        sys.stdout.flush()
        read, write = os.pipe()
    except OSError as error:
        return -(error.errno or ETIMEDOUT)
    try:
        between = os.fork()
        if between == 0:
            _be_between(place, body, [requests.fileno(), read], write)
        os.close(write)
        write = -1
        os.waitpid(between, 0)
        return int.from_bytes(os.read(read, 8), signed=True) or -ETIMEDOUT
    except OSError as error:
        return -(error.errno or ETIMEDOUT)
    finally:
        os.close(read)
        if write >= 0:
            os.close(write)


def _be_between(place: ChildPlace, body: Body, inherited: list[int], write: int) -> NoReturn:
    """Be the process between loader and child: fork the child, and write its number."""
    with suppress(BaseException):
        try:
            found = os.fork()
        except OSError as error:
            found = -(error.errno or ETIMEDOUT)
        if found == 0:
            os.close(write)
            # The supervisor pokes it when it knows its number, and by then is its parent.
            place.pipe.settimeout(FORKING)
            if place.pipe.recv(1):
                become(place, body, inherited)
        else:
            os.write(write, found.to_bytes(8, signed=True))
    os._exit(0)


def with_middleware(settings: WorkerSettings, loaded: WorkerSettings) -> WorkerSettings:
    return msgspec.structs.replace(settings, middleware=loaded.middleware)


def _pickled(error: BaseException) -> bytes:
    """The error, or its text if it cannot be sent."""
    if isinstance(error, Exception):
        with suppress(Exception):
            words = pickle.dumps(error)
            pickle.loads(words)
            return words
    text = str(error) if isinstance(error, HoldfastError) else "".join(traceback.format_exception(error))
    return pickle.dumps(StartFailed(text))
