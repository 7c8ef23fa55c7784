"""Children with one seat each, the `process` pool: the parent keeps the leases, the child only works."""

from time import monotonic
from typing import Final

from holdfast.models import JobFacts
from holdfast.work.forking.forked import Forking
from holdfast.work.keeper import run_end
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Around
from holdfast.work.performing.making import make_performer
from holdfast.work.pools.serial import SerialLoop
from holdfast.work.queues.routing import make_route
from holdfast.work.signals import Handlers, Stop, worker_handlers

LOOK: Final = 0.2  # seconds between two looks at whether the parent lives, while there is work


class SlateHolder:
    """Writes what the child holds where its parent reads it."""

    def __init__(self, place: Place, stop: Stop, patience: float = 0.0) -> None:
        self._place = place
        self._slate = place.slate
        self._stop = stop
        self._patience = patience
        self._look_at = 0.0

    def begin(self, line: str) -> None:
        self._slate.begin(line)

    def ask(self, number: int) -> None:
        self._slate.ask(number)

    def hold(self, facts: JobFacts, since: float) -> None:
        ends = run_end(facts, since) + self._patience
        if self._slate.hold(0, facts.jid, facts.token, facts.lease_ms, since, ends):
            self._place.poke()

    def release(self) -> None:
        self._slate.clear(0)

    def lost(self) -> str:
        return ""

    def may_take(self) -> bool:
        now = monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK
            if self._place.is_orphan():
                self._stop.request()
        return not self._slate.paused

    def fileno(self) -> int:
        return self._place.pipe.fileno()

    def heard(self) -> None:
        if self._place.hears_of_end():
            self._stop.request()


def body(place: Place, around: Around) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    stop = Stop()
    return work(place, around, stop, SlateHolder(place, stop))


def work(
    place: Place, around: Around, stop: Stop, holder: SlateHolder, forking: Forking | None = None
) -> bool:
    """Work in this process until `stop`, or with `forking` in one for each job. Answers whether it is used up."""
    client = place.store.client(place.name)
    performer = make_performer(
        place.store, place.settings, place.name, client, holder.release, holder.lost, around
    )
    with Handlers(worker_handlers(stop, place.settings.debugger), stop.wake_fd):
        route = make_route(place.settings, place.store, place.name, client.shard)
        jobs = SerialLoop(
            client, place.settings, place.name, performer, stop, holder, route, around.title, forking, 0
        )
        jobs.run()
    return jobs.is_used_up
