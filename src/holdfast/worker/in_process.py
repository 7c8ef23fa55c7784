"""A worker without a parent: it runs jobs in the process that called it, beside a thread that renews their leases."""

import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from math import inf
from time import monotonic
from typing import Final

from holdfast.client.sync import Client
from holdfast.wire.waiting import sleep
from holdfast.worker.leases.keeper import SHORT_LEASE
from holdfast.worker.leases.releases import LAST_CALLS_TIMEOUT_S, PendingReleases
from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.performing.surroundings import Surroundings
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import Handler, Handlers, Stop, Terminated, start_without_signals
from holdfast.worker.stop_order import StopOrder
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.calls import StoreCalls
from holdfast.worker.supervisor.child import Body, ChildPlace
from holdfast.worker.supervisor.messages import StoreMessage
from holdfast.worker.supervisor.upkeep import ChildUpkeep

log = logging.getLogger("holdfast")

REMIND: Final = 0.25  # seconds until a lost lease that is still held is reported once more
BRIEFLY: Final = 1.0  # seconds for which a serial worker that is about to end tries to release its lease
TROUBLED: Final = 1.0  # seconds that the thread waits after something that should not happen

OnLost = Callable[[str, bool], None]
"""Called with the jid of a job whose lease is lost, and whether that is new."""


class RenewalThread:
    """Does for one process what a supervisor does for its children: renews the leases, reports that the worker is alive.

    `on_lost` is called in the thread when a lease is lost, and again as long as it is held.
    """

    def __init__(
        self, client: Client, place: ChildPlace, pipe: socket.socket, on_lost: OnLost | None = None
    ) -> None:
        self.name, self.pid, self.lease_table = place.name, os.getpid(), place.lease_table
        self._calls = StoreCalls(client, [place.name], self._on_messages)
        self.upkeep = ChildUpkeep(self._calls, place.settings, can_kill=False)
        self._pipe = pipe
        self._on_lost = on_lost
        self._lost: set[tuple[str, int]] = set()
        self._remind_at = inf
        self._shortest = SHORT_LEASE if place.settings.pool == "serial" else 0.0
        self._ended = Stop()
        self._thread = threading.Thread(target=self._run, name="holdfast-keeper", daemon=True)

    def poke(self) -> None:
        """Have the worker read its lease table."""
        with suppress(OSError):  # it is ending
            self._pipe.send(b"\0")

    def kill(self) -> None:
        """Do nothing: a process of a program is not killed."""

    def __enter__(self) -> None:
        self._calls.start_thread()
        start_without_signals(self._thread)

    def __exit__(self, *_: object) -> None:
        self._ended.request()
        self._thread.join()
        self.upkeep.finish()
        self._ended.close()

    def _run(self) -> None:
        while not self._ended.requested:
            try:
                self._attend()
            except Exception:
                # If the thread ended, the leases would be lost without notice.
                log.exception("renewing leases failed; trying again")
                sleep(TROUBLED)

    def _attend(self) -> None:
        upkeep = self.upkeep
        ready = self._readable(max(0.0, min(upkeep.due(), self._remind_at) - monotonic()))
        if self._pipe.fileno() in ready:
            with suppress(OSError):  # the worker was stopped, and has closed it
                if self._pipe.recv(4096):
                    upkeep.learn(self)
        if self._calls.fileno() in ready:
            self._calls.receive()
        if not self._ended.requested:
            upkeep.attend([self])
        self._check_leases()

    def _on_messages(self, found: list[StoreMessage]) -> None:
        self.upkeep.notify(found)

    def _readable(self, seconds: float) -> list[int]:
        poll = select.poll()
        for descriptor in (self._ended.fileno(), self._pipe.fileno()):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        if self._calls.fileno() >= 0:
            poll.register(self._calls.fileno(), self._calls.events())
        return [descriptor for descriptor, _ in poll.poll(seconds * 1000)]

    def _check_leases(self) -> None:
        self._remind_at = inf
        for one in self.lease_table.read_all():
            if one.lease < self._shortest:
                self._shortest = one.lease
                log.warning(
                    "leases last %g s, less than %g: a job that blocks the interpreter may lose its lease; "
                    "raise the queue's heartbeat or the job's timeout, or use --pool process",
                    one.lease,
                    SHORT_LEASE,
                )
            if self._on_lost is not None and self.lease_table.reason_of_loss(one.number, one.token):
                is_new = (one.jid, one.token) not in self._lost
                self._lost = {(one.jid, one.token)}
                # Once is not enough: the main thread may not have begun the job yet, and then has nothing to interrupt.
                self._remind_at = monotonic() + REMIND
                self._on_lost(one.jid, is_new)


class InProcess:
    """A worker in the process that calls `run`: its lease table, its order to stop, and the thread that renews its leases."""

    def __init__(self, settings: WorkerSettings, store: StoreChoice, on_lost: OnLost | None = None) -> None:
        self.name = name = settings.worker_name(0)
        self.around = Surroundings.of_serial(settings)
        self.lease_table = LeaseTable(settings.concurrency)
        self.order = StopOrder(settings.shutdown_timeout, settings.term_timeout, self._release)
        self._store = store
        self._settings = settings
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)
        self.place = ChildPlace(
            name, 0, self.lease_table, self._theirs, os.getppid(), settings, store, self.order
        )
        self._thread = RenewalThread(store.beating_client(name), self.place, self._ours, on_lost)
        self._is_stopped = False

    @property
    def is_store_available(self) -> bool:
        """Whether the store has answered the last report."""
        return self._thread.upkeep.is_store_available

    def run(self, body: Body, handlers: Mapping[signal.Signals, Handler], wake_fd: int = -1) -> None:
        """Run `body` until it ends, or until TERM and INT are obeyed. What is held then is released."""
        # The time that a serial worker has to stop includes the release; that of the others is the time of their jobs.
        whole = self.order if self._settings.pool == "serial" else nullcontext()
        jobs = nullcontext() if self._settings.pool == "serial" else self.order
        with suppress(Terminated), ExitStack() as stack:
            stack.callback(self.lease_table.close)
            stack.callback(_close, self._theirs)
            stack.enter_context(Handlers(handlers, wake_fd))
            stack.enter_context(whole)
            stack.callback(self.around.close)
            stack.callback(self.stop)
            stack.callback(self._release)
            stack.enter_context(self._thread)
            stack.enter_context(jobs)
            body(self.place, self.around)

    def stop(self) -> None:
        """End after the running jobs; from any thread."""
        # To the body it is as if its parent had gone.
        if not self._is_stopped:
            self._is_stopped = True
            # The thread may wait on it, and an open wait would put off the end that the body must see.
            with suppress(OSError):
                self._ours.shutdown(socket.SHUT_RDWR)
            _close(self._ours)

    def _release(self) -> None:
        for one in self.lease_table.read_all():
            if self.lease_table.reason_of_loss(one.number, one.token):
                self.lease_table.clear(one.number)
        client, is_serial = self._store.beating_client(self.name), self._settings.pool == "serial"
        if is_serial and client.shard.gate.failing:
            # It does not wait for the store to ask what a call was granted that was cut off: that lease ends by itself.
            self.lease_table.ask(0)
        calls = StoreCalls(client)
        releases = PendingReleases(calls, self._settings.queues)
        releases.add(self.name, self.lease_table, "preempted", self.order.cause)
        if releases.due() < inf:
            calls.start_thread()
            releases.finish(monotonic() + (BRIEFLY if is_serial else LAST_CALLS_TIMEOUT_S))
            calls.close()


def _close(end: socket.socket) -> None:
    with suppress(OSError):  # a job closed it
        end.close()
