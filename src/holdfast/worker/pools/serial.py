"""One slot in the thread of the loop: the pool `serial`, and the children of the pools `process` and `fork`."""

import logging
import select
import signal
from collections.abc import Callable, Coroutine, Mapping
from math import inf
from time import monotonic
from typing import Any, Final

from holdfast.client.sync import Client
from holdfast.errors import Refused, TransportError
from holdfast.models import JobFacts
from holdfast.worker.forking.forked import DANGEROUS, Forking
from holdfast.worker.loop import BlockingSlot
from holdfast.worker.performing.chain import beside_the_loop
from holdfast.worker.performing.outcome import Outcome, gives_back
from holdfast.worker.performing.surroundings import Surroundings, make_performer
from holdfast.worker.pools.blocking import BlockingLoop
from holdfast.worker.process_state import CoroutineRunner
from holdfast.worker.session import ANY_QUEUE, longer
from holdfast.worker.signals import Handler, Handlers, Stop, worker_handlers
from holdfast.worker.supervisor.child import ChildPlace

log = logging.getLogger("holdfast")

LOOK: Final = 0.2  # seconds between two looks at whether the parent is alive, while there is work


class Inline:
    """A crew of one: the loop itself runs each job."""

    def __init__(self) -> None:
        self._runner = CoroutineRunner()

    def start(self, slot: BlockingSlot, work: Callable[[], None]) -> None:
        """Do `work` now."""
        work()

    def give_way(self) -> None:
        """Nothing else runs here."""

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end."""
        return self._runner.run(coroutine)

    lift = staticmethod(beside_the_loop)

    def stop(self, slot: BlockingSlot) -> None:
        """No job runs while the loop does."""

    unwind = stop

    def is_cut_off(self, *own: int) -> bool:
        """Return False: the loop finds it when it looks at its process."""
        return False

    def has_died(self, slot: BlockingSlot) -> bool:
        """Return False: with the thread of the job, the loop ends too."""
        return False

    def close(self) -> None:
        """End the event loop."""
        self._runner.close()


class SerialLoop(BlockingLoop):
    """Takes one job, runs it here, reports its outcome and takes the next in the same call.

    With `forking`, jobs that lost `forked_from` leases run in processes of their own; a child of the pool `process` needs none.
    The parent leaves a job `patience` seconds to end when its time is over.
    """

    gives_up = True

    def __init__(
        self,
        place: ChildPlace,
        client: Client,
        around: Surroundings,
        stop: Stop,
        forking: Forking | None = None,
        forked_from: int = DANGEROUS,
        patience: float = 0.0,
    ) -> None:
        performer = make_performer(
            place.store, place.settings, place.name, client, self._release, self._reason, around
        )
        super().__init__(place, client, performer, Inline(), stop, None, around.title)
        self._job_forking = forking
        self._forked_from = forked_from
        self._patience = patience
        self._order = place.order
        self._look_at = 0.0
        self._is_released = False
        self._poll.register(place.pipe.fileno(), select.POLLIN)

    def run(self) -> None:
        """Work until stopped, until the queues are empty (`drain`), or for `max_jobs` jobs. Raises Terminated."""
        self._title.show("Running %s", self._route.description)
        super().run()

    def stop(self) -> None:
        """Take no more jobs, and end after the running one."""
        self._stopping = True

    @property
    def _is_paused(self) -> bool:
        return self._stop.paused or self._lease_table.paused

    def _limit(self) -> int:
        if self._place.order is None and (now := monotonic()) >= self._look_at:
            self._look_at = now + LOOK
            if self._place.is_orphan():
                self._stopping = True
        if self._stop.requested:
            self._stopping = True
        limit = super()._limit()
        if limit > 0 and self._stop.paused:
            limit = 0
        if not limit and self._is_paused:
            # It tries the queues when the pause ends.
            self._look = True
        return limit

    def _start(self, slot: BlockingSlot, facts: JobFacts) -> None:
        self._stop_listening()
        self._due = inf
        self._is_released = False
        try:
            if self._order is not None:
                self._order.begin_job()
            outcome = self._perform(slot, facts)
        finally:
            if self._order is not None:
                self._order.end_job()
        slot.is_over = True
        slot.lost = self._reason()
        self._end(slot, outcome)

    def _perform(self, slot: BlockingSlot, facts: JobFacts) -> Outcome:
        if self._job_forking is not None and facts.losses >= self._forked_from:
            return self._job_forking.perform(facts, slot.ends, self._release)
        try:
            return self._performer.perform(facts, self._crew.run_coroutine)
        except KeyboardInterrupt:
            if not self._reason():
                raise
            return None  # it was to be interrupted, and had just ended

    def _end(self, slot: BlockingSlot, outcome: Outcome) -> None:
        super()._end(slot, outcome)
        if slot.lost or gives_back(outcome):
            # Before it is reported: the end of the lease must not be taken for a loss.
            self._lease_table.clear(slot.number)

    def _release(self) -> None:
        """Have the lease of the running job renewed no more: it has settled itself."""
        self._is_released = True
        self._lease_table.clear(0)

    def _reason(self) -> str:
        """Return why the lease of the running job is known to be lost; "" if it is not."""
        slot = self.running.get(0)
        if slot is None or self._is_released:
            return ""
        return self._lease_table.reason_of_loss(0, slot.token)

    def _wait_for_more(self, due: float | None) -> None:
        super()._wait_for_more(due)
        if self._settings.drain and due is not None:
            self._early = longer(self._early, due)
            self._pause(self._early)

    def _pause(self, seconds: float) -> None:
        self._wait(monotonic() + seconds)

    def _come_due(self) -> None:
        self._look = True

    def _wake_up_lost(self) -> None:
        self._pause(self._cut_off())
        self._woken = ANY_QUEUE

    def _stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            self._poll.unregister(self._wake_up.fileno())
            self._wake_up.leave()
            # A wake-up that was on its way is passed on. The call takes nothing and changes nothing that is held.
            try:
                self._client.runner.run(self._session.round_trip(0, ANY_QUEUE))
            except (TransportError, Refused) as error:
                log.debug("a wake-up could not be passed on: %s", error)

    def _unwind(self) -> None:
        """Nothing: the running job has been interrupted, and the parent releases its lease."""


def body(place: ChildPlace, around: Surroundings) -> bool:
    """Work in a forked child until stopped. Return whether it is used up."""
    stop = Stop()
    return work(place, around, stop, worker_handlers(stop, place.settings.debugger))


def work(
    place: ChildPlace,
    around: Surroundings,
    stop: Stop,
    handlers: Mapping[signal.Signals, Handler],
    forking: Forking | None = None,
    forked_from: int = DANGEROUS,
    patience: float = 0.0,
) -> bool:
    """Work in this process until `stop`; the rest is for SerialLoop. Return whether it is used up."""
    client = place.store.client(place.name)
    try:
        with Handlers(handlers, stop.wake_fd):
            jobs = SerialLoop(place, client, around, stop, forking, forked_from, patience)
            jobs.run()
            return jobs.is_used_up
    finally:
        client.close()
