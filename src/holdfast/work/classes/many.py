"""Workers that perform many jobs at once in the process that runs them: as tasks, in threads, in greenlets."""

import importlib
import logging
import os
import select
import signal
import socket
import threading
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar, Final

from holdfast.client.sync import Client
from holdfast.code.current import Running
from holdfast.wire.waiting import sleep
from holdfast.work.classes.serial import Childlike
from holdfast.work.parent.child import Place
from holdfast.work.parent.lease_table import LeaseTable
from holdfast.work.parent.losses import PendingReleases
from holdfast.work.parent.presence import StoreMessages
from holdfast.work.parent.renewal import LeaseRenewal
from holdfast.work.performing.around import Surroundings
from holdfast.work.pools.holding import TROUBLED
from holdfast.work.queues.routing import with_what_it_held
from holdfast.work.run import body_of
from holdfast.work.settings import Pool, WorkerSettings
from holdfast.work.signals import Handlers, Stop, Terminated, log_stack
from holdfast.work.stop_order import StopOrder

log = logging.getLogger("holdfast")

_AS_BEFORE: Final = {signal.SIGUSR1: log_stack, signal.SIGUSR2: log_stack, signal.SIGHUP: log_stack}
"""Signals whose handlers are to be the program's own again when its worker has ended."""


class _Keeper:
    """Does in a thread what a parent does for its children: renews the leases, and reports that the worker is alive."""

    def __init__(
        self, client: Client, settings: WorkerSettings, lease_table: LeaseTable, pipe: socket.socket
    ) -> None:
        self.name, self.pid, self.lease_table = settings.worker_name(0), os.getpid(), lease_table
        self._guard = LeaseRenewal(client, settings, can_kill=False)
        self._news = StoreMessages(client, [self.name])
        self._pipe = pipe
        self._ended = Stop()
        self._thread = threading.Thread(target=self._run, name="holdfast-keeper", daemon=True)

    def poke(self) -> None:
        """Make the worker read its lease table."""
        try:
            self._pipe.send(b"\0")
        except OSError:
            pass  # it is ending

    def kill(self) -> None:
        """A process of a program is not killed."""

    def __enter__(self) -> None:
        self._news.open()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.request()
        self._thread.join()
        self._news.close()
        self._guard.finish()
        self._ended.close()

    def _run(self) -> None:
        while not self._ended.requested:
            try:
                self._attend()
            except Exception:
                # A keeper that ended would lose the leases without notice.
                log.exception("renewing leases failed; trying again")
                sleep(TROUBLED)

    def _attend(self) -> None:
        if not self._news.is_open and monotonic() >= self._news.at:
            self._news.open()
        poll = select.poll()
        for descriptor in (
            self._ended.fileno(),
            self._pipe.fileno(),
            self._news.fileno() if self._news.is_open else -1,
        ):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        due = self._guard.due() if self._news.is_open else min(self._guard.due(), self._news.at)
        ready = [descriptor for descriptor, _ in poll.poll(max(0.0, due - monotonic()) * 1000)]
        if self._pipe.fileno() in ready:
            try:
                if self._pipe.recv(4096):
                    self._guard.learn(self)
            except OSError:
                return  # the worker was stopped, and has closed it
        if self._news.is_open and self._news.fileno() in ready:
            self._guard.hear(self._news.hear())
        if not self._ended.requested:
            self._guard.attend([self])


class _Many(Childlike):
    """Performs many jobs at once; `run` it in the main thread, or let a `ForkingWorker` do so in children."""

    _ours: socket.socket | None = None

    def halt_job_processing(self, jid: str) -> None:
        """A job under way is not this worker's any more; its code is ended where that can be done."""

    def _work(self) -> None:
        settings, store = self._prepared()
        settings = with_what_it_held(settings, store)
        name, lease_table = settings.worker_name(0), LeaseTable(settings.concurrency)
        around = Surroundings.of_serial(settings)

        def give_back() -> None:
            releases = PendingReleases(store.beating_client(name), settings.queues)
            releases.add(name, lease_table, "preempted", order.cause)
            releases.finish()

        order = StopOrder(settings.shutdown_timeout, settings.term_timeout, give_back)
        self._ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        try:
            with (
                theirs,
                _Keeper(store.beating_client(name), settings, lease_table, self._ours),
                Handlers(_AS_BEFORE),
            ):
                if self.shutdown:
                    self._wake_up()
                place = Place(name, 0, lease_table, theirs, os.getppid(), settings, store, order)
                with order:
                    body_of(self.pool)(place, around)
        except Terminated:
            pass  # as ordered
        finally:
            give_back()
            self._wake_up()
            around.close()
            lease_table.close()

    def _wake_up(self) -> None:
        # To the body it is as if its parent had gone: it ends after the jobs under way.
        ours, self._ours = self._ours, None
        if ours is not None:
            # The keeper's thread may wait on it, and an open wait would put off the end that the body must see.
            with suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            ours.close()


class AsyncioWorker(_Many):
    """Performs jobs as tasks of one event loop, `concurrency` (100) at once."""

    pool: ClassVar[Pool] = "asyncio"


class ThreadWorker(_Many):
    """Performs jobs in threads, `concurrency` (10) at once."""

    pool: ClassVar[Pool] = "thread"


class _Greenlets:
    """A companion that notes which greenlet performs which job."""

    def __init__(self, greenlets: dict[str, Any]) -> None:
        self._greenlets = greenlets

    def begin(self, current: Running) -> None:
        self._greenlets[current.facts.jid] = importlib.import_module("gevent").getcurrent()

    def end(self, current: Running, ending: object) -> None:
        self._greenlets.pop(current.facts.jid, None)


class GeventWorker(_Many):
    """Performs jobs in greenlets, `greenlets` (10) at once. `greenlets` has those under way, by jid.

    The standard library must have been patched: `from gevent import monkey; monkey.patch_all()` comes first in the program.
    """

    pool: ClassVar[Pool] = "gevent"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.greenlets: dict[str, Any] = {}

    def halt_job_processing(self, jid: str) -> None:
        """Kill the greenlet of a job that is not this worker's any more; one that it does not perform is ignored."""
        greenlet = self.greenlets.get(jid)
        if greenlet is not None:
            log.warning("job %s is not this worker's any more; its greenlet is killed", jid)
            greenlet.kill(block=False)

    def _companions(self) -> tuple[Any, ...]:
        return (_Greenlets(self.greenlets),)
