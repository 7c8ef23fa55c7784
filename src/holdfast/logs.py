"""The logger of holdfast, and its formatters: text and JSON."""

import fcntl
import json
import logging
import os
import select
import sys
import weakref
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


class DescriptorHandler(logging.Handler):
    """Write to a duplicate of `descriptor`, which stays open whatever becomes of standard error. It raises nothing.

    Lines that cannot be written are counted; the next one that can is preceded by their number.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._original = descriptor
        self._descriptor = _far_duplicate(descriptor)
        self._opened = os.fstat(self._descriptor)
        self._lost = 0
        # Not by `close`, which `logging.shutdown` calls before the last lines of a process.
        self._closing = weakref.finalize(self, os.close, self._descriptor)
        self._closing.atexit = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            line = self.format(record)
            if self._lost:
                line = f"{self._lost} lines of the log could not be written\n{line}"
            self._write(f"{line}\n".encode(errors="backslashreplace"))
            self._lost = 0
        except Exception:
            self._lost += 1

    def _is_same(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._opened)
        except OSError:
            return False

    def _write(self, line: bytes) -> None:
        # A job may have closed it, and opened something else under its number.
        if not self._is_same(self._descriptor):
            if not self._is_same(self._original):
                raise OSError("the descriptors of the log are other files now")
            self._closing.detach()
            self._descriptor = _far_duplicate(self._original)
        while line:
            try:
                line = line[os.write(self._descriptor, line) :]
            except BlockingIOError:
                if not select.select([], [self._descriptor], [], LONGEST_WRITE)[1]:
                    raise


_FAR: Final = 900  # beyond what jobs close that close the first few hundred, within what most systems allow


def _far_duplicate(descriptor: int) -> int:
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FAR)
    except OSError:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)


LONGEST_WRITE: Final = (
    1.0  # seconds for which a line waits for a reader who set standard error to non-blocking
)

jobs_log: Final = logging.getLogger("holdfast.jobs")
"""One line at the end of each job of a worker."""
starts_log: Final = logging.getLogger("holdfast.jobs.start")
"""One line at the start of each job of a worker."""


def _never_raise(own: logging.Logger) -> None:
    """Have a logger raise nothing, whatever its handlers do: a job must not fail for a line of the log."""
    handle = own.handle

    def handle_safely(record: logging.LogRecord) -> None:
        try:
            handle(record)
        except Exception:
            pass  # there is no other place to report it

    setattr(own, "handle", handle_safely)  # noqa: B010


for _logger in (logger, jobs_log, starts_log):
    _never_raise(_logger)

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
