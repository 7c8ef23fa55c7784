"""Children with many seats on an event loop each: the `asyncio` pool. A child keeps its leases by a task."""

import asyncio
import signal
import threading

from holdfast.work.forking.forked import Forking
from holdfast.work.parent.child import Place
from holdfast.work.parent.news import listen
from holdfast.work.performing.around import Around
from holdfast.work.performing.making import make_performer
from holdfast.work.pools.beating import BeatingTask
from holdfast.work.pools.loop import AsyncLoop
from holdfast.work.queues.routing import make_route
from holdfast.work.signals import at_usr2, log_stack


def body(place: Place, around: Around) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    return asyncio.run(_work(place, around))


async def _work(place: Place, around: Around) -> bool:
    client = place.store.async_client(place.name)
    beats = place.store.beating_async_client(place.name)
    beating = BeatingTask(beats)
    performer = make_performer(place.store, place.settings, place.name, around=around)
    jobs = AsyncLoop(
        client,
        place.settings,
        place.name,
        performer,
        place.slate,
        make_route(place.settings, place.store, place.name, client.shard),
        Forking(place.store, place.settings, around),
        beating.learn,
        around.title,
    )
    _listen_to_others(place, jobs)
    keeping = asyncio.create_task(beating.run(jobs))
    # Without its keeper a worker would lose every lease unseen: better end, and be replaced.
    keeping.add_done_callback(lambda task: jobs.abort())

    def on_news() -> None:
        beating.hurry()
        place.poke()

    hearing = asyncio.create_task(listen(beats, place.name, on_news))
    try:
        await jobs.run()
    finally:
        keeping.cancel()
        hearing.cancel()
        await asyncio.wait([keeping, hearing])
        if not keeping.cancelled():
            keeping.result()
        await beats.close()
        await client.close()
    return jobs.is_used_up


def _listen_to_others(place: Place, jobs: AsyncLoop) -> None:
    """Stop when signalled, or when the parent is gone; look again when it says so."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is threading.main_thread():
        loop.add_signal_handler(signal.SIGTERM, jobs.abort)
        loop.add_signal_handler(signal.SIGINT, jobs.abort)
        loop.add_signal_handler(signal.SIGQUIT, jobs.stop)
        signal.signal(signal.SIGUSR1, log_stack)
        signal.signal(signal.SIGUSR2, at_usr2(place.settings.debugger))

    def hear() -> None:
        if place.hears_of_end():
            loop.remove_reader(place.pipe)
            jobs.stop()
        else:
            jobs.wake()

    loop.add_reader(place.pipe, hear)
