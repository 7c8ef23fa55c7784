"""The log of a worker: each line that a job writes tells which job, in text and in JSON; the last go with its failure.

Records are marked where they are made, so that every handler sees the mark: of this command, of the program, of a queue
between threads. Threads that a job starts are known where a process performs one job at a time; where it performs many,
a line is a job's if its thread was given the context (`contextvars.copy_context().run`, as `asyncio.to_thread` does).
"""

import logging
from collections import deque
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final

from holdfast.code.current import Running, running
from holdfast.code.failure import text_of
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.leases import Done
from holdfast.commands.outcomes import Advance, Fail, Retry
from holdfast.logs import JOB, jobs_log, starts_log
from holdfast.printable import printable
from holdfast.work.performing.outcome import Ending

log = logging.getLogger("holdfast")

MOST_LINES: Final = 20
LONGEST: Final = 400  # characters of a line that is kept with a failure


class Records:
    """Makes the log's records, and marks those of jobs. `only` is the job under way in a process that has one at a time."""

    def __init__(self) -> None:
        self._make = logging.getLogRecordFactory()
        self.only: Running | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        current = running.get() or self.only
        if current is not None:
            setattr(record, JOB, current.facts)
            if record.name.partition(".")[0] != log.name:
                _keep(current, record)
        return record


def mark_records() -> Records:
    """Have the records of this process marked from now on; the same thing each time."""
    # Who configures logging by a dictionary switches off whatever it does not name.
    log.disabled = jobs_log.disabled = starts_log.disabled = False
    before: object = logging.getLogRecordFactory()
    if isinstance(before, Records):
        return before
    made = Records()
    logging.setLogRecordFactory(made)
    return made


def _keep(current: Running, record: logging.LogRecord) -> None:
    try:
        text = record.getMessage()
    except Exception:
        text = text_of(record.msg)  # logging itself complains of what does not fit
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    line = f"{moment} {record.levelname} {record.name}: {text}"
    if current.lines is None:
        current.lines = deque(maxlen=MOST_LINES)
    current.lines.append(printable(line[:LONGEST], keep=""))


class OnlyJob:
    """A companion for processes that perform one job at a time: what their threads log is the job's."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def begin(self, current: Running) -> None:
        self._records.only = current

    def end(self, current: Running, ending: Ending) -> None:
        self._records.only = None


class JobLines:
    """A companion that logs the start and the end of each job, with the seconds between them."""

    def begin(self, current: Running) -> None:
        current.begun = monotonic()
        facts = current.facts
        starts_log.info("job %s (%s) of queue %s begins", facts.jid, facts.klass, facts.queue)

    def end(self, current: Running, ending: Ending) -> None:
        facts, took = current.facts, monotonic() - current.begun
        jobs_log.info("job %s (%s) took %.3f seconds and %s", facts.jid, facts.klass, took, _said_of(ending))


def _said_of(ending: Ending) -> str:
    if isinstance(ending, Done):
        return "is complete"
    if isinstance(ending, Fail):
        return f"failed in {ending.group}"
    if isinstance(ending, Retry):
        return "is to be tried again"
    if isinstance(ending, (Advance, CompleteX)):
        target = ending.next_queue
        return f"goes on to {target}" if target else "is complete"
    return "needs nothing more from its worker"
