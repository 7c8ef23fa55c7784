"""What children of all pools with blocking slots have in common: their client, their loop, a crew, and a listener to the parent."""

import logging
import select
import threading

from holdfast.work.forking.server import ForkServer
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Around
from holdfast.work.performing.making import make_performer
from holdfast.work.pools.blocking import BlockingLoop
from holdfast.work.pools.crew import Crew
from holdfast.work.queues.routing import make_route
from holdfast.work.signals import Stop, start_without_signals

log = logging.getLogger("holdfast")


def work_blocking(place: Place, around: Around, crew: Crew, stop: Stop, forking: ForkServer) -> bool:
    """Work in a forked child, with that crew, until told to stop. Answers whether the process is used up."""
    client = place.store.client(place.name)
    performer = make_performer(place.store, place.settings, place.name, client, around=around)
    route = make_route(place.settings, place.store, place.name, client.shard)
    jobs = BlockingLoop(place, client, performer, crew, stop, route, forking, place.poke, around.title)
    listening = PipeThread(place, jobs)
    listening.start()
    try:
        jobs.run()
    finally:
        forking.close()
        listening.close()
        client.close()
    return jobs.is_used_up


class PipeThread:
    """Listens to the parent beside the loop, which may wait long for the store. Under gevent it is a greenlet."""

    def __init__(self, place: Place, jobs: BlockingLoop) -> None:
        self._place = place
        self._jobs = jobs
        self._wake = Stop()
        self._thread = threading.Thread(target=self._run, name="holdfast-pipe", daemon=True)

    def start(self) -> None:
        """Begin."""
        start_without_signals(self._thread)

    def close(self) -> None:
        """End the thread and wait for it."""
        self._wake.request()
        self._thread.join()
        self._wake.close()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wake.fileno(), select.POLLIN)
        poll.register(self._place.pipe.fileno(), select.POLLIN)
        while poll.poll() and not self._wake.requested:
            if self._place.hears_of_end():
                self._jobs.stop()
                return
            self._jobs.look()
