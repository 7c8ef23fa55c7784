"""Run a worker of any pool, from its settings to its end."""

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType
from typing import Final

from holdfast.commands.admin import Info
from holdfast.commands.leases import Pop
from holdfast.errors import StoreUnsupported, TransportError
from holdfast.wire.outage import UNAVAILABLE
from holdfast.worker.forking.forked import Forking
from holdfast.worker.greenlets import check_patched, forking_greenlets
from holdfast.worker.in_process import InProcess
from holdfast.worker.observe.board import listen, stop_listening
from holdfast.worker.observe.http import HttpThread, hindrances, serve_probes
from holdfast.worker.observe.ledger import close_ledgers
from holdfast.worker.observe.metrics import State, serve_metrics
from holdfast.worker.performing.outcome import forget_wrong_results
from holdfast.worker.performing.sandboxes import check_base, tidy_unclaimed
from holdfast.worker.pools import aio, fork, serial, thread
from holdfast.worker.process_state import BREAK_OFF, break_off, wake_main
from holdfast.worker.queues.routing import note_new_queues, with_what_it_held
from holdfast.worker.settings import Pool, WorkerSettings, own_of
from holdfast.worker.signals import UNWIND, Handler, Stop
from holdfast.worker.startup_check import forget_obstacle, obstacle
from holdfast.worker.stop_order import StopOrder, serial_handlers
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.child import Body
from holdfast.worker.supervisor.loading import Loading
from holdfast.worker.supervisor.supervisor import Supervisor

log = logging.getLogger("holdfast")

BODIES: Final[dict[str, Body]] = {
    "process": serial.body,
    "fork": fork.body,
    "asyncio": aio.body,
    "thread": thread.body,
}
"""What the children of each pool run."""


def run_worker(
    settings: WorkerSettings,
    store: StoreChoice,
    supervisor: Callable[..., Supervisor] = Supervisor,
    body: Body | None = None,
    loading: Loading | None = None,
) -> None:
    """Run a worker until it is stopped. Call it from the main thread of a process without other threads.

    It waits for a store that is unavailable. `supervisor` makes the supervisor of its children, if it has any, which run
    `body` in place of that of the pool; `loading` has their code, if this process has not imported it. Raises UsageError, StoreUnsupported, CoreMismatch.
    """
    settings = settings.checked()
    forget_obstacle()
    forget_wrong_results()
    check_base(settings.sandbox_base(), settings.workers)
    with forking_greenlets() if settings.pool == "gevent" else nullcontext():
        _run_worker(settings, store, supervisor, body, loading)


def _run_worker(
    settings: WorkerSettings,
    store: StoreChoice,
    supervisor: Callable[..., Supervisor],
    body: Body | None,
    loading: Loading | None,
) -> None:
    _meet(store, settings)
    if settings.pool == "serial":
        run_serial(settings, store)
    else:
        of_pool = body_of(settings.pool)
        tidy_unclaimed(settings.sandbox_base())
        parts = () if loading is None else (loading,)
        supervisor(with_what_it_held(settings, store), store, body or of_pool, *parts).run()


def body_of(pool: Pool) -> Body:
    """Return what the children of a pool run. Raises UsageError."""
    if pool == "gevent":
        check_patched()
        # It cannot be imported where gevent is not installed.
        from holdfast.worker.pools import greenlet

        return greenlet.body
    return BODIES[pool]


def run_serial(settings: WorkerSettings, store: StoreChoice, stop: Stop | None = None) -> None:
    """Run jobs one by one in this thread; a second one renews the leases.

    Signals are handled in the main thread only; there also a job that loses its lease is interrupted, by a KeyboardInterrupt.
    Anywhere else `stop.request()` ends the worker.
    """
    stop = stop or Stop()
    settings = with_what_it_held(settings, store)
    is_main = threading.current_thread() is threading.main_thread()

    def on_lost(jid: str, is_new: bool) -> None:
        if is_new:
            own_of(settings).report_loss(jid)
        # The job in a process of its own, or in the main thread; another thread cannot be interrupted.
        forking.stop()
        if is_main:
            wake_main()

    worker = InProcess(settings, store, on_lost)
    order, forking = worker.order, Forking(store, settings, worker.around)
    handlers = serial_handlers(stop, order, settings.debugger, settings.sighup_handler)
    handlers[BREAK_OFF] = _unwind_or_break_off(order, handlers[UNWIND])
    try:
        with _web_of(settings, stop, worker):
            listen()
            worker.run(
                lambda place, around: serial.work(place, around, stop, {}, forking), handlers, stop.wake_fd
            )
    finally:
        stop_listening()
        if settings.metrics_port:
            close_ledgers()


def _unwind_or_break_off(order: StopOrder, unwind: Handler) -> Handler:
    """Return the handler that wakes the main thread: it is time to stop, or its job has lost its lease."""

    def handle(number: int, frame: FrameType | None) -> None:
        (unwind if order.unwinds else break_off)(number, frame)

    return handle


def _web_of(settings: WorkerSettings, stop: Stop, worker: InProcess) -> HttpThread:
    """Return the server of probes and metrics of a serial worker."""

    def why_not_ready() -> list[str]:
        paused = stop.paused or worker.lease_table.paused
        why = hindrances(stopping=stop.requested, available=worker.is_store_available, paused=paused)
        return [*why, obstacle()] if obstacle() else why

    web = HttpThread()
    serve_probes(web.http, settings, why_not_ready)
    serve_metrics(web.http, settings, lambda: [State(True, len(worker.lease_table.read_all()))])
    return web


def _meet(store: StoreChoice, settings: WorkerSettings) -> None:
    """Raise an error now for what can never work; an unavailable store and queues that look like typos are only logged."""
    name = settings.worker_name(0)
    client = store.beating_client(name)
    try:
        if client.run(Info("make")).denied:
            raise StoreUnsupported(
                "the user of this URL may only read the namespace: a worker needs one that may write"
            )
        # Takes nothing, and is refused to a user who may not take jobs.
        client.run(Pop(name, [], 0))
        note_new_queues(client, settings)
    except TransportError as error:
        log.error(UNAVAILABLE, error)
    finally:
        client.close()
