"""How long jobs take, and how many were completed, by class."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from holdfast.code.middleware import Either, Perform, Wearable, behind, within

log = logging.getLogger("holdfast")

Timer = Callable[[str, float], object]
"""Told the name of a class, and the seconds for which the code of one of its jobs ran."""
Counter = Callable[[str], object]
"""Told the name of a class of which one more job was completed."""


class JobMetrics(Wearable):
    """Tells `timer(klass, seconds)` how long the code of each job ran, however it ended, and `counter(klass)` of each completed one.

    Also completed is what goes on to its next queue. Whatever these two raise is logged. A worker completes jobs that are
    counted one by one, not together with others.

        class Fetch(JobMetrics(timer=lambda klass, seconds: HISTOGRAM.labels(klass).observe(seconds)), SupportsMiddleware): ...
    """

    _told: tuple[Timer | None, Counter | None] = (None, None)

    def __init__(self, timer: Timer | None = None, counter: Counter | None = None) -> None:
        self._told = (timer, counter)

    @Either
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next."""
        perform = behind(JobMetrics, self, call_next)
        timer, counter = self._told
        if counter is not None:

            def count(completed: Any) -> None:
                _tell(counter, completed.klass_name)

            job.after_complete(count)
        return perform(job) if timer is None else within(_timed(timer, job), perform, job)


@contextmanager
def _timed(timer: Timer, job: Any) -> Generator[None]:
    begun = monotonic()
    try:
        yield
    finally:
        _tell(timer, job.klass_name, monotonic() - begun)


def _tell(sink: Callable[..., object], *words: object) -> None:
    try:
        sink(*words)
    except Exception:
        log.exception("a metric of %s could not be reported", words[0])
