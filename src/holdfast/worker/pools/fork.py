"""The `fork` pool: children that fork a process for each job, and middleware around that fork."""

import gc
import logging
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, Final

from holdfast.code.failure import brief, failure_of
from holdfast.models import JobFacts
from holdfast.worker.forking.forked import Forking
from holdfast.worker.performing.chain import IN_PARENT, around_fork
from holdfast.worker.performing.outcome import Outcome, raised, word_of
from holdfast.worker.performing.surroundings import HeldJob, Surroundings, nothing
from holdfast.worker.pools.serial import work
from holdfast.worker.signals import Stop, worker_handlers
from holdfast.worker.supervisor.child import ChildPlace

log = logging.getLogger("holdfast")


class SurroundedForking(Forking):
    """Forks a process for each job, with what the middleware of the worker does in the parent around that."""

    def perform(
        self, facts: JobFacts, ends: float = inf, on_settled: Callable[[], None] = nothing
    ) -> Outcome:
        """Perform a job and wait for its end. What the middleware raises becomes its outcome."""
        middleware = [each for each in self._settings.middleware if hasattr(each, IN_PARENT)]
        if not middleware:
            return super().perform(facts, ends, on_settled)
        ended: list[Outcome] = []

        def fork() -> str:
            ended.append(super(SurroundedForking, self).perform(facts, ends, on_settled))
            return word_of(ended[-1])

        def job() -> Any:
            return HeldJob.held(facts, self._store.client(facts.worker), nothing)

        try:
            around_fork(middleware, job, fork)
        except Exception as error:
            log.warning("job %s: %s raised %s", facts.jid, IN_PARENT, brief(error))
            # What settled itself, or is to be tried again because its process died, stays as it is.
            if not ended or word_of(ended[-1]):
                return raised(facts, None, error, formatted=failure_of(error, facts.queue, job))
        return ended[-1] if ended else None


PATIENCE: Final = 2.0
"""Seconds that the parent leaves a child to end a job whose time is over, before it ends the child for that."""


def body(place: ChildPlace, around: Surroundings) -> bool:
    """Work in a forked child until stopped. Return whether it is used up."""
    stop = Stop()
    # What stands now stays as it is: the processes of jobs share its pages, which their collectors leave alone.
    gc.freeze()
    forking = SurroundedForking(
        place.store, place.settings, around, partial(place.lease_table.note_process, 0)
    )
    return work(place, around, stop, worker_handlers(stop, place.settings.debugger), forking, 0, PATIENCE)
