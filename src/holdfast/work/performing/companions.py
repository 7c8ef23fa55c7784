"""What goes along with each job that a process performs: its title, its directory, its log lines, its measures."""

import logging
from importlib.util import find_spec
from typing import Protocol

from holdfast.code.current import Running
from holdfast.logs import jobs_log
from holdfast.work.observe.counting import Counting
from holdfast.work.observe.ledger import ledger_of
from holdfast.work.observe.spans import Spans
from holdfast.work.own import own_of
from holdfast.work.performing.logs import JobLines
from holdfast.work.performing.outcome import Ending
from holdfast.work.settings import WorkerSettings


class Companion(Protocol):
    """Goes along with jobs. Both calls come in the thread or task that performs the job, and must not raise."""

    def begin(self, current: Running) -> None:
        """A job is about to be performed; its code was not looked for yet."""
        ...

    def end(self, current: Running, ending: Ending) -> None:
        """It was performed. `ending` is None where nothing is left to say, or where it was broken off."""
        ...


Companions = tuple[Companion, ...]


def companions_of(settings: WorkerSettings, name: str, around: Companions = ()) -> Companions:
    """The companions that the jobs of the process `name` are given, outermost first; `around` are those of its process."""
    ledger = ledger_of(name)
    counting: Companions = () if ledger is None else (Counting(ledger),)
    traces: Companions = (Spans(),) if find_spec("opentelemetry") else ()
    lines: Companions = (JobLines(),) if jobs_log.isEnabledFor(logging.INFO) else ()
    return (*counting, *traces, *around, *lines, *own_of(settings).companions)
