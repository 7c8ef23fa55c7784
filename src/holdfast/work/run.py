"""Running a worker of any pool, from settings to its end."""

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import FrameType
from typing import Final

from holdfast.commands.admin import Info
from holdfast.commands.leases import Pop
from holdfast.errors import StoreUnsupported, TransportError
from holdfast.work.forking.forked import Forking
from holdfast.work.greenlets import check_patched, forking_greenlets
from holdfast.work.observe.board import deafen, listen
from holdfast.work.observe.ledger import close_ledgers
from holdfast.work.observe.metrics import State, serve_metrics
from holdfast.work.parent.child import Body
from holdfast.work.parent.http import HttpThread, hindrances, serve_probes
from holdfast.work.parent.presence import Presence
from holdfast.work.parent.supervisor import Supervisor
from holdfast.work.performing.around import Surroundings
from holdfast.work.performing.housekeeping import BREAK_OFF, break_off, wake_main
from holdfast.work.performing.making import make_performer
from holdfast.work.performing.sandboxes import check_base, tidy_unclaimed
from holdfast.work.pools import aio, fork, serial, thread
from holdfast.work.pools.holding import SerialHolder
from holdfast.work.pools.serial import SerialLoop
from holdfast.work.queues.routing import make_route, with_what_it_held
from holdfast.work.settings import Pool, WorkerSettings, own_of
from holdfast.work.signals import UNWIND, Handler, Handlers, Stop, Terminated
from holdfast.work.startup_check import obstacle
from holdfast.work.stop_order import StopOrder, serial_handlers
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")

BODIES: Final[dict[str, Body]] = {
    "process": serial.body,
    "fork": fork.body,
    "asyncio": aio.body,
    "thread": thread.body,
}
"""What the children of each pool do."""


def run_worker(
    settings: WorkerSettings,
    store: StoreChoice,
    supervisor: Callable[..., Supervisor] = Supervisor,
    body: Body | None = None,
) -> None:
    """Run a worker until it is told to stop. Call it from the main thread of a process without other threads.

    A store that is away is waited for; `supervisor` keeps the children, where there are any, which do `body` instead of
    what those of the pool do. Raises UsageError,
    StoreUnsupported, CoreMismatch.
    """
    settings = settings.checked()
    check_base(settings.sandbox_base(), settings.workers)
    with forking_greenlets() if settings.pool == "gevent" else nullcontext():
        _run_worker(settings, store, supervisor, body)


def _run_worker(
    settings: WorkerSettings,
    store: StoreChoice,
    supervisor: Callable[..., Supervisor],
    body: Body | None,
) -> None:
    _meet(store, settings.worker_name(0))
    if settings.pool == "serial":
        run_serial(settings, store)
    else:
        usual = body_of(settings.pool)
        tidy_unclaimed(settings.sandbox_base())
        supervisor(with_what_it_held(settings, store), store, body or usual).run()


def body_of(pool: Pool) -> Body:
    """What the children of a pool do. Raises UsageError."""
    if pool == "gevent":
        check_patched()
        # It cannot be imported where gevent is not installed.
        from holdfast.work.pools import greenlet

        return greenlet.body
    return BODIES[pool]


def run_serial(settings: WorkerSettings, store: StoreChoice, stop: Stop | None = None) -> None:
    """Perform jobs one by one in this thread; a second one keeps the leases.

    Signals are handled in the main thread only; there also a job that loses its lease is broken off, by a KeyboardInterrupt.
    Anywhere else `stop.request()` ends the worker.
    """
    stop = stop or Stop()
    settings = with_what_it_held(settings, store)
    name = settings.worker_name(0)
    around = Surroundings.of_serial(settings)
    client = store.client(name)
    beats = store.beating_client(name)
    presence = Presence(beats, settings)
    forking = Forking(store, settings, around)
    is_main = threading.current_thread() is threading.main_thread()
    breaks_off = partial(_break_off, forking, is_main)
    holder = SerialHolder(beats, name, presence, breaks_off, own_of(settings).hear_of_loss)
    web = _web_of(settings, stop, presence, holder)
    performer = make_performer(store, settings, name, client, holder.release, holder.lost, around)
    order = StopOrder(settings.shutdown_timeout, settings.term_timeout, lambda: holder.give_back(order.cause))
    handlers = serial_handlers(stop, order, settings.debugger, settings.sighup_handler)
    handlers[BREAK_OFF] = _unwind_or_break_off(order, handlers[UNWIND])
    with web, Handlers(handlers, stop.wake_fd), order:
        listen()
        holder.start()
        try:
            route = make_route(settings, store, name, client.shard)
            SerialLoop(
                client, settings, name, performer, stop, holder, route, around.title, forking, order=order
            ).run()
        except Terminated:
            holder.give_back(order.cause)
        finally:
            holder.close()
            client.close()
            around.close()
            deafen()
            if settings.metrics_port:
                close_ledgers()


def _unwind_or_break_off(order: StopOrder, unwind: Handler) -> Handler:
    """What wakes the main thread: the time to stop has come, or its job has lost its lease."""

    def handle(number: int, frame: FrameType | None) -> None:
        (unwind if order.unwinds else break_off)(number, frame)

    return handle


def _break_off(forking: Forking, is_main: bool) -> None:
    """End the job whose lease was lost, in a process of its own or in the main thread; another thread is not reached."""
    forking.stop()
    if is_main:
        wake_main()


def _web_of(settings: WorkerSettings, stop: Stop, presence: Presence, holder: SerialHolder) -> HttpThread:
    """Who answers probes beside a serial worker."""

    def why_not_ready() -> list[str]:
        paused = stop.paused or not holder.may_take()
        why = hindrances(stopping=stop.requested, heard=presence.is_heard, paused=paused)
        return [*why, obstacle()] if obstacle() else why

    web = HttpThread()
    serve_probes(web.http, settings, why_not_ready)
    serve_metrics(web.http, settings, lambda: [State(True, holder.count())])
    return web


def _meet(store: StoreChoice, name: str) -> None:
    """Find out now what can never work; a store that is merely away is another matter."""
    client = store.beating_client(name)
    try:
        if client.run(Info("make")).denied:
            raise StoreUnsupported(
                "the user of this URL may only read the namespace: a worker needs one that may write"
            )
        # Takes nothing, and is refused to a user who may not take jobs.
        client.run(Pop(name, [], 0))
    except TransportError as error:
        log.error("the store cannot be reached yet: %s", error)
    finally:
        client.close()
