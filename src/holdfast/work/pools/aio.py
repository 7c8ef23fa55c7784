"""Children with many slots on an event loop each: the `asyncio` pool."""

import asyncio
import signal
import threading
from functools import partial

from holdfast.work.forking.forked import Forking
from holdfast.work.forking.server import ForkServer
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Around
from holdfast.work.performing.making import make_performer
from holdfast.work.pools.loop import AsyncLoop
from holdfast.work.queues.routing import make_route
from holdfast.work.signals import UNWIND, at_usr2, log_stack


def body(place: Place, around: Around) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    forking = ForkServer(Forking(place.store, place.settings, around), around, [place.pipe.fileno()])
    return asyncio.run(_work(place, around, forking))


async def _work(place: Place, around: Around, forking: ForkServer) -> bool:
    client = place.store.async_client(place.name)
    performer = make_performer(place.store, place.settings, place.name, around=around)
    jobs = AsyncLoop(
        client,
        place.settings,
        place.name,
        performer,
        place.slate,
        make_route(place.settings, place.store, place.name, client.shard),
        forking,
        place.poke,
        around.title,
    )
    _listen_to_others(place, jobs)
    try:
        await jobs.run()
    finally:
        forking.close()
        await client.close()
    return jobs.is_used_up


def _hear_signal(place: Place, jobs: AsyncLoop, number: signal.Signals) -> None:
    if number != signal.SIGQUIT and place.order is not None:
        place.order.obey(number, jobs.stop)
    elif number != signal.SIGINT:
        jobs.stop()


def _listen_to_others(place: Place, jobs: AsyncLoop) -> None:
    """Stop when signalled, or when the parent is gone; look again when it says so."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, partial(_hear_signal, place, jobs, number))
        loop.add_signal_handler(UNWIND, jobs.abort)
        signal.signal(signal.SIGUSR1, log_stack)
        signal.signal(signal.SIGUSR2, at_usr2(place.settings.debugger))

    def hear() -> None:
        if place.hears_of_end():
            loop.remove_reader(place.pipe)
            jobs.stop()
        else:
            jobs.look()

    loop.add_reader(place.pipe, hear)
