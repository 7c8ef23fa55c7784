"""Children with many seats, a greenlet each: the `gevent` pool. A child keeps its leases by one more greenlet.

The loop runs in the main greenlet. A job that lost its lease is killed where it waits; one that hogs the process is not
reached, as nothing else is then.
"""

import importlib
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.work.forking.forked import Forking
from holdfast.work.forking.server import ForkServer
from holdfast.work.greenlets import prepare_child, thrown
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Around
from holdfast.work.pools.crew import BlockingSeat
from holdfast.work.pools.driving import Driver
from holdfast.work.pools.working import work_blocking
from holdfast.work.signals import UNWIND, Handlers, Stop, Terminated, worker_handlers

gevent: Any = importlib.import_module("gevent")


class Killed(Terminated, gevent.GreenletExit):  # type: ignore[misc]
    """Raised in the greenlet of a job that must not go on. Nothing is recorded."""


def body(place: Place, around: Around) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    forking = ForkServer(Forking(place.store, place.settings, around), around, [place.pipe.fileno()])
    prepare_child()
    stop = Stop()
    handlers = worker_handlers(stop)
    handlers[UNWIND] = thrown(handlers[UNWIND])
    if place.order is not None:
        handlers |= place.order.handlers(stop.request)
    try:
        with Handlers(handlers, stop.wake_fd):
            return work_blocking(place, around, Greenlets(), stop, forking)
    finally:
        stop.close()


class Greenlets:
    """A crew of greenlets, one for each job. `greenlets` has those under way by their jids."""

    def __init__(self) -> None:
        self.greenlets: dict[str, Any] = {}
        self._driver = Driver()

    def start(self, seat: BlockingSeat, work: Callable[[], None]) -> None:
        """Have a greenlet do `work`."""

        def perform() -> None:
            try:
                work()
            finally:
                if self.greenlets.get(seat.jid) is seat.hand:
                    del self.greenlets[seat.jid]

        seat.hand = self.greenlets[seat.jid] = gevent.spawn(perform)

    def give_way(self) -> None:
        """Let every greenlet go on once that can: short jobs have ended then."""
        gevent.sleep(0)

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine in a thread beside, on the event loop of all."""
        return self._driver.run(coroutine)

    def stop(self, seat: BlockingSeat) -> None:
        """Kill the greenlet of a seat."""
        seat.hand.kill(Killed, block=False)
        if seat.hand.ready():
            # It had not begun: nobody but us can say that it is over.
            seat.is_over = True
            self.greenlets.pop(seat.jid, None)

    unwind = stop

    def close(self) -> None:
        """End what is beside the greenlets; those that go on are left where they are."""
        self._driver.close()
