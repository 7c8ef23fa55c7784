"""A process that forks for one that has threads: started before them, it copies no lock that one of them holds.

    owner    runs jobs in many slots; for a job that must run alone it sends one end of a socket pair to the server
    server   forks a keeper for each end that it gets
    keeper   reads the job, forks the process that performs it, waits for it and sends back how it ended

The owner orders the keeper through the socket: a byte has the job unwind, the end of the stream kills it with all that it
started. So nothing of a job outlives the process that holds its lease.
"""

import _socket
import logging
import os
import pickle
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from math import inf
from time import monotonic
from typing import Final, NoReturn

from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Release
from holdfast.models import JobFacts
from holdfast.worker import signals
from holdfast.worker.forking.forked import ForkedJob, Forking
from holdfast.worker.forking.solitary import SIZE, read_outcome, write_outcome
from holdfast.worker.performing.outcome import Outcome, log_release
from holdfast.worker.performing.surroundings import Surroundings
from holdfast.worker.processes import die_with
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import Terminated, ignore
from holdfast.worker.store_choice import StoreChoice

log = logging.getLogger("holdfast")

PATIENCE: Final = 10.0
"""Seconds that owner and keeper wait for each other where nothing of the job's is waited for."""

UNWOUND: Final = b"\0"
"""What a keeper sends when a job was stopped."""


class ForkServer:
    """The server of this process, which forks for jobs of the worker; it closes the descriptors `inherited`.

    Make one before anything starts a thread.
    """

    def __init__(
        self, store: StoreChoice, settings: WorkerSettings, around: Surroundings, *inherited: int
    ) -> None:
        self._forking = forking = Forking(store, settings, around)
        self._socket, theirs = _socket.socketpair()
        parent = os.getpid()
        # A signal between the fork and the handlers of the new process would be taken for one to this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
        try:
            if os.fork() == 0:
                for descriptor in (self._socket.fileno(), *inherited):
                    os.close(descriptor)
                _serve(theirs, forking, around, parent)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def start(self, facts: JobFacts, ends: float = inf) -> "ServedJob | ForkedJob":
        """Begin to perform a job alone, which may take until `ends`, on the monotonic clock."""
        ours, theirs = socket.socketpair()
        with theirs:
            ends_of_pair = theirs.fileno().to_bytes(4, sys.byteorder)
            try:
                self._socket.sendmsg([b"j"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends_of_pair)])
            except OSError as error:
                ours.close()
                log.warning(
                    "job %s is forked from a process with threads, because the fork server is gone (%s)",
                    facts.jid,
                    error,
                )
                return self._forking.start(facts, ends)
        return ServedJob(ours, facts, ends)

    def close(self) -> None:
        """Let the server end."""
        with suppress(OSError):  # a job closed it
            self._socket.close()


class ServedJob:
    """A job that runs alone, forked by a server. `stop` and `unwind` may be called by any thread."""

    def __init__(self, keeper: socket.socket, facts: JobFacts, ends: float) -> None:
        self.has_settled = False
        self._keeper = keeper
        self._facts = facts
        self._ends = ends
        self._is_stopped = False
        self._unwinds = False

    def wait(self) -> Outcome:
        """Wait until the job has ended, and return what became of it. Raises Terminated when it was unwound."""
        words = None
        with self._keeper, suppress(OSError):
            self._keeper.settimeout(PATIENCE)
            send(self._keeper, pickle.dumps((self._facts, self._ends)))
            words = self._receive()
        if words:
            if words == UNWOUND:
                raise Terminated
            return read_outcome(words, self._facts)
        if self._is_stopped:
            return None
        if self._unwinds:
            raise Terminated
        log_release(self._facts.jid, "lost", "", self._facts)
        return Release([Lease(self._facts.jid, self._facts.token, self._facts.worker)], "lost")

    def stop(self) -> None:
        """Kill the job's process and all that it started; no outcome of the job is reported."""
        self._is_stopped = True
        with suppress(OSError):
            self._keeper.shutdown(socket.SHUT_RDWR)

    def unwind(self) -> None:
        """Stop the job and end its process; then `wait` raises Terminated."""
        self._unwinds = True
        with suppress(OSError):
            self._keeper.send(b"u")

    def _receive(self) -> bytes:
        """What the keeper sends last; nothing if it ended without that."""
        while True:
            # The keeper ends a run that takes too long; this is for one that hangs.
            self._keeper.settimeout(
                None if self._ends == inf else max(0.0, self._ends - monotonic()) + PATIENCE
            )
            words = receive(self._keeper)
            if words is None:
                return b""
            if words:
                return words
            self.has_settled = True


def _serve(requests: _socket.socket, forking: Forking, around: Surroundings, parent: int) -> NoReturn:
    try:
        signals.reset()
        for number in signals.ALL:
            signal.signal(number, ignore)
        # Keepers are not waited for.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        die_with(parent)
        around.title.renew()
        around.title.show("Forking what is performed alone")
        while keeper := accept(requests):
            if os.fork() == 0:
                requests.close()
                _keep(keeper, forking)
            keeper.close()
    except BaseException:
        log.exception("the fork server of worker process %d failed", parent)
    finally:
        os._exit(0)


def accept(requests: _socket.socket) -> _socket.socket | None:
    """The next end of a socket pair; None when the owner is gone."""
    message, ancillary, _, _ = requests.recvmsg(1, _socket.CMSG_SPACE(4))
    if not message:
        return None
    descriptor = int.from_bytes(ancillary[0][2][:4], sys.byteorder)
    os.set_inheritable(descriptor, False)
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, descriptor)


def _keep(owner: _socket.socket, forking: Forking) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        owner.settimeout(PATIENCE)
        job = receive(owner)
        if job:
            facts, ends = pickle.loads(job)
            forking.inherited = (owner.fileno(),)
            forked = forking.start(facts, ends, partial(send, owner, b""))
            try:
                words = write_outcome(forked.wait(owner))
            except Terminated:
                words = UNWOUND
            send(owner, words)
    except OSError:
        pass  # the owner is gone, and with it the lease
    except BaseException:
        log.exception("a job could not be run in a separate process")
    finally:
        os._exit(0)


def send(connection: _socket.socket, words: bytes) -> None:
    connection.sendall(SIZE.pack(len(words)) + words)


def receive(connection: _socket.socket) -> bytes | None:
    """The next words; None when the other side is gone."""
    size = _received_exactly(connection, SIZE.size)
    return _received_exactly(connection, SIZE.unpack(size)[0]) if size else None


def _received_exactly(connection: _socket.socket, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        more = connection.recv(min(size - len(found), 1 << 16))
        if not more:
            return None
        found += more
    return bytes(found)
