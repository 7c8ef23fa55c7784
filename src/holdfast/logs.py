"""The logger of holdfast, and its formatters: text and JSON."""

import fcntl
import json
import logging
import os
import select
import sys
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii as quoted
from types import TracebackType
from typing import Final, NamedTuple, Protocol, TextIO

from holdfast.text import counted, indented

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

    finished: "FinishedJobs | None" = None
    """The lines that are written before any record."""

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
        self.flush()
        try:
            line = self.format(record)
        except Exception:
            self._lost += 1
        else:
            self.write_lines(f"{line}\n", 1)

    def flush(self) -> None:
        """Write the lines of finished jobs."""
        if self.finished is not None:
            self.finished.write()

    def write_lines(self, text: str, count: int) -> None:
        """Write `count` lines."""
        if self._lost:
            text = f"{counted(self._lost, 'line')} of the log could not be written\n{text}"
        try:
            self._write(text.encode(errors="backslashreplace"))
            self._lost = 0
        except Exception:
            self._lost += count

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


Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
"""What `sys.exc_info` returns."""


class _Facts(Protocol):
    """What a line shows of a job."""

    @property
    def jid(self) -> str: ...
    @property
    def klass(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def worker(self) -> str: ...


class FinishedJob(NamedTuple):
    """The line of a finished job: when it was logged (seconds since 1970), of which job, and what it reads."""

    created: float
    job: _Facts
    message: str


JOB: Final = "holdfast_job"
"""The attribute of a record for the facts of the job that logged it."""
ERROR: Final = "holdfast_error"
"""The attribute of a record for an error without an exception: `{"type": …, "message": …}`."""
_OWN_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", JOB, ERROR}


class TextFormatter(logging.Formatter):
    """Format a record as text, with the job that logged it: `… | [INFO] | jid=… queue=… attempt=1 | …`.

    Control characters in messages are replaced, and further lines are indented, so that none looks like a separate one.
    Without `tracebacks` an exception is its type and text, on the line itself.
    """

    def __init__(self, form: str = FORMAT, tracebacks: bool = True) -> None:
        super().__init__(form)
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """Return the line with its traceback."""
        if self._tracebacks:
            return indented(super().format(record))
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        return indented(self.formatMessage(record) + _missing_error(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without its traceback."""
        job = getattr(record, JOB, None)
        if job is not None:
            record.message = _marked(job, record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Raised) -> str:
        """Return the traceback of what `sys.exc_info` returned, whatever the exception contains."""
        return _traceback_of(ei)

    def finished(self, lines: Sequence[FinishedJob]) -> str:
        """Return the lines of finished jobs as `format` does for their records; faster."""
        pid, second, moment, made = os.getpid(), -1, "", list[str]()
        for created, job, message in lines:
            if second != (second := int(created)):
                moment = time.strftime(self.default_time_format, time.localtime(second))
            line = (
                f"{moment},{int((created - second) * 1000):03} | PID {pid} | [INFO] {_marked(job, message)}"
            )
            made.append(line if line.isprintable() else indented(line))
        return "\n".join([*made, ""])


def _marked(job: _Facts, message: str) -> str:
    return f"jid={job.jid} queue={job.queue} attempt={job.attempt} | {message}"


def _missing_error(record: logging.LogRecord) -> str:
    """Return the exception of a record in a few words, "" if its message has them."""
    from holdfast.code.failure import brief  # only where something went wrong

    error = _exception_of(record)
    words = "" if error is None else brief(error)
    return "" if words in record.message else f": {words}"


def _exception_of(record: logging.LogRecord) -> BaseException | None:
    return None if record.exc_info is None else record.exc_info[1]


def _traceback_of(raised: Raised) -> str:
    from holdfast.code.failure import traceback_of

    return "" if raised[1] is None else "".join(traceback_of(raised[1])).rstrip("\n")


_own.setFormatter(TextFormatter())


class JsonFormatter(logging.Formatter):
    """Format a record as one JSON object: time (UTC), level, logger, pid, message; of a job also jid, queue, attempt, klass
    and worker; of an exception `error` with its type, message and stack; the stack as `stack`, and the fields of `extra`.

    Without `tracebacks` there is no stack.
    """

    def __init__(self, tracebacks: bool = True) -> None:
        super().__init__()
        self._tracebacks = tracebacks

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
        error = self._error_of(record)
        if error:
            fields["error"] = error
        if record.stack_info and self._tracebacks:
            fields["stack"] = record.stack_info
        for name in vars(record).keys() - _OWN_FIELDS:
            fields.setdefault(name, vars(record)[name])
        return json.dumps(fields, default=_text, skipkeys=True)

    def _error_of(self, record: logging.LogRecord) -> Mapping[str, str]:
        error = _exception_of(record)
        if error is None:
            return getattr(record, ERROR, {})
        from holdfast.code.failure import name_of, text_of

        found = {"type": name_of(error), "message": text_of(error)}
        if self._tracebacks:
            found["stack"] = record.exc_text or self.formatException(record.exc_info or (None, None, None))
        return found

    def formatException(self, ei: Raised) -> str:
        """Return the traceback of what `sys.exc_info` returned, whatever the exception contains."""
        return _traceback_of(ei)

    def finished(self, lines: Sequence[FinishedJob]) -> str:
        """Return the lines of finished jobs as `format` does for their records; faster."""
        head = f'"level": "INFO", "logger": {quoted(jobs_log.name)}, "pid": {os.getpid()}'
        second, moment, made = -1, "", list[str]()
        for created, job, message in lines:
            if second != (second := int(created)):
                moment = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            made.append(
                f'{{"time": "{moment}.{int((created - second) * 1000):03}+00:00", {head}, "message": {quoted(message)}, '
                f'"jid": {quoted(job.jid)}, "queue": {quoted(job.queue)}, "attempt": {job.attempt}, '
                f'"klass": {quoted(job.klass)}, "worker": {quoted(job.worker)}}}\n'
            )
        return "".join(made)


def _text(thing: object) -> str:
    try:
        return str(thing)
    except Exception:
        return "(its text is not available)"


class FinishedJobs:
    """The lines of finished jobs, which `handlers` write together: those of a round trip by one call each.

    A record of a job costs more than many jobs do. So no record is made while these handlers are the only ones: `is_alone`.
    """

    def __init__(
        self, handlers: Sequence[DescriptorHandler], formatter: TextFormatter | JsonFormatter
    ) -> None:
        self._handlers: list[logging.Handler] = [*handlers]
        self._format = formatter.finished
        self._formatter = formatter
        self._lines: deque[FinishedJob] = deque()
        self._first = handlers[0]
        for handler in handlers:
            handler.setFormatter(formatter)
            # One for all: whoever writes a record by one of them writes these lines by all of them.
            handler.finished, handler.lock = self, self._first.lock
        os.register_at_fork(after_in_child=self._lines.clear)

    def is_alone(self) -> bool:
        """Whether these handlers would be the only ones to get a record of `jobs_log`, and write it as they write its line."""
        if logging.root.handlers != self._handlers or logger.handlers != _ONLY_OWN:
            return False
        if jobs_log.handlers or jobs_log.filters or not (jobs_log.propagate and logger.propagate):
            return False
        for handler in self._handlers:
            if handler.filters or handler.level or handler.formatter is not self._formatter:
                return False
        return True

    def add(self, line: FinishedJob) -> None:
        """Add a line; the next `write`, or the next record, writes it."""
        self._lines.append(line)
        if len(self._lines) >= MOST_LINES:
            self.write()

    def write(self) -> None:
        """Write what was added."""
        if not self._lines:
            return
        self._first.acquire()
        try:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            text = self._format(lines)
            for handler in self._handlers:
                if isinstance(handler, DescriptorHandler):
                    handler.write_lines(text, len(lines))
        finally:
            self._first.release()


_ONLY_OWN: Final[list[logging.Handler]] = [_own]
MOST_LINES: Final = 512
"""Lines of finished jobs that are kept at most."""


def finished_jobs() -> FinishedJobs | None:
    """Return the lines of finished jobs of this process, None where its log is not written by a `DescriptorHandler`."""
    found = [each.finished for each in logging.root.handlers if isinstance(each, DescriptorHandler)]
    return found[0] if found else None
