"""The logger of holdfast, and its formatters: text and JSON."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

from holdfast.printable import indented

FORMAT: Final = "%(asctime)s | PID %(process)d | [%(levelname)s] %(message)s"


class WhenAsked(logging.StreamHandler[TextIO]):
    """Write to standard error if the program has set a level, and has no handlers of its own.

    The level is set by `holdfast.logger.setLevel("INFO")`. A program with its own handlers gets each line there, and once.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, if the program has set a level and has no handlers."""
        if logger.level and logger.handlers == [self] and not logging.root.handlers:
            self.setStream(sys.stderr)  # looked up each time: programs replace it
            super().emit(record)


logger: Final = logging.getLogger("holdfast")
"""It is silent until the program sets its level or configures logging."""
_own: Final = WhenAsked()
logger.addHandler(_own)

jobs_log: Final = logging.getLogger("holdfast.jobs")
"""One line at the end of each job of a worker."""
starts_log: Final = logging.getLogger("holdfast.jobs.start")
"""One line at the start of each job of a worker."""

JOB: Final = "holdfast_job"
"""The attribute of a record for the facts of the job that logged it."""
_OWN_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", JOB}


class TextFormatter(logging.Formatter):
    """Format a record as text, with the job that logged it: `… | [INFO] | jid=… queue=… attempt=1 | …`.

    Control characters in messages are replaced, and further lines are indented, so that none looks like a separate one.
    """

    def __init__(self, form: str = FORMAT) -> None:
        super().__init__(form)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line with its traceback."""
        return indented(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without its traceback."""
        job = getattr(record, JOB, None)
        if job is not None:
            record.message = f"jid={job.jid} queue={job.queue} attempt={job.attempt} | {record.message}"
        return super().formatMessage(record)


_own.setFormatter(TextFormatter())


class JsonFormatter(logging.Formatter):
    """Format a record as one JSON object: time (UTC), level, logger, pid, message; of a job also jid, queue, attempt, klass
    and worker; the traceback as `error`, the stack as `stack`, and the fields of `extra`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the object, in ASCII."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        job = getattr(record, JOB, None)
        if job is not None:
            fields |= {"jid": job.jid, "queue": job.queue, "attempt": job.attempt, "klass": job.klass}
            fields["worker"] = job.worker
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = record.stack_info
        for name in vars(record).keys() - _OWN_FIELDS:
            fields.setdefault(name, vars(record)[name])
        return json.dumps(fields, default=_text, skipkeys=True)


def _text(thing: object) -> str:
    try:
        return str(thing)
    except Exception:
        return "(its text cannot be made)"
