"""The one logger of holdfast, and how lines are written: to read, or as JSON."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.printable import indented

FORMAT: Final = "%(asctime)s | PID %(process)d | [%(levelname)s] %(message)s"


class WhenAsked(logging.StreamHandler[Any]):
    """Writes to standard error for programs that asked for our log and set up no logging of their own.

    Asking is `holdfast.logger.setLevel("INFO")`. A program with handlers of its own sees each line there, and once.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or nothing."""
        if logger.level and logger.handlers == [self] and not logging.root.handlers:
            self.setStream(sys.stderr)  # as it is now: programs replace it
            super().emit(record)


logger: Final = logging.getLogger("holdfast")
"""It says nothing until the program sets its level or configures logging."""
_own: Final = WhenAsked()
logger.addHandler(_own)

jobs_log: Final = logging.getLogger("holdfast.jobs")
"""One line at the start and one at the end of each job of a worker, for who asks for so many."""

JOB: Final = "holdfast_job"
"""The attribute by which a record tells which job wrote it: its facts."""
_OWN_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", JOB}


class TextFormatter(logging.Formatter):
    """One line to read; those of a job name it: `… | [INFO] | jid=… queue=… attempt=1 | …`.

    What jobs and others put into a message steers no terminal, and its further lines are indented: none passes for ours.
    """

    def __init__(self, form: str = FORMAT) -> None:
        super().__init__(form)

    def format(self, record: logging.LogRecord) -> str:
        """The line with its traceback."""
        return indented(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line without its traceback."""
        job = getattr(record, JOB, None)
        if job is not None:
            record.message = f"jid={job.jid} queue={job.queue} attempt={job.attempts} | {record.message}"
        return super().formatMessage(record)


_own.setFormatter(TextFormatter())


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, pid, message, of a job also jid, queue, attempt, klass and worker;
    the traceback as `error`, and whatever was logged as `extra`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The object, in ASCII."""
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        job = getattr(record, JOB, None)
        if job is not None:
            said |= {"jid": job.jid, "queue": job.queue, "attempt": job.attempts, "klass": job.klass}
            said["worker"] = job.worker
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            said["stack"] = record.stack_info
        for name in vars(record).keys() - _OWN_FIELDS:
            said.setdefault(name, vars(record)[name])
        return json.dumps(said, default=_text, skipkeys=True)


def _text(thing: object) -> str:
    try:
        return str(thing)
    except Exception:
        return "(its text cannot be made)"
