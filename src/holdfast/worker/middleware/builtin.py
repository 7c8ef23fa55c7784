"""The middleware that every worker has: titles, spans, log lines, and the sandbox of each job.

It is called before the code of a job is looked for and after its outcome is known; the middleware of users surrounds the code.

Log records are marked with their job where they are made, so that every handler sees the mark. The threads of a job are known
where a process runs one job at a time; where it runs many, a record is a job's if its thread was given the context
(`contextvars.copy_context().run`, as `asyncio.to_thread` does).
"""

import logging
import sys
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from threading import Lock
from time import monotonic, time
from typing import Any, Final, Protocol

from holdfast.code.current import RunningJob, running
from holdfast.code.failure import text_of
from holdfast.code.tracing import attributes_of, is_traced, start_span
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.flows import EndWithFlow
from holdfast.commands.leases import Done
from holdfast.commands.outcomes import Advance
from holdfast.errors import UsageError
from holdfast.logs import JOB, FinishedJob, finished_jobs, jobs_log, starts_log
from holdfast.text import printable
from holdfast.worker.observe.ledger import SUCCESSFUL_OUTCOMES, Counting, ledger_of, result_of
from holdfast.worker.performing.outcome import Outcome
from holdfast.worker.performing.sandboxes import Home, Lent, Sandboxes
from holdfast.worker.process_state import LOOK, Title
from holdfast.worker.settings import ONE_SLOT, WorkerSettings, own_of

log = logging.getLogger("holdfast")


class BuiltIn(Protocol):
    """Built-in middleware. Both methods are called in the thread or task of the job, and what they raise is logged."""

    def begin(self, current: RunningJob) -> None:
        """Prepare a job whose code was not looked for yet."""
        ...

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        """Clean up after a job. `outcome` is None where nothing is left to report, or where it was interrupted."""
        ...


BuiltIns = tuple[BuiltIn, ...]


def with_general(settings: WorkerSettings, name: str, own: BuiltIns = ()) -> BuiltIns:
    """Return all built-in middleware of the process `name`, outermost first; `own` is that of its kind of process."""
    ledger = ledger_of(name)
    counting: BuiltIns = () if ledger is None else (Counting(ledger),)
    traces: BuiltIns = (Spans(),) if find_spec("opentelemetry") else ()
    lines: BuiltIns = (JobLines(),) if jobs_log.isEnabledFor(logging.INFO) else ()
    return (*counting, *traces, *own, *lines, *own_of(settings).built_in)


def for_process(settings: WorkerSettings, title: Title, home: Home, word: str) -> BuiltIns:
    """Return the built-in middleware of a process that runs one job at a time, or many; `word` begins its titles."""
    records = mark_records()
    if settings.pool in ONE_SLOT:
        has_parent = settings.pool != "serial"
        own: BuiltIns = (OnlyJob(records),) if has_parent else ()
        return JobTitle(title, word), *own, OwnSandbox(home, enters=has_parent)
    return CountTitle(title), LentSandboxes(home, WORDS.get(settings.pool, "task"))


def for_forked_job(title: Title, home: Home) -> BuiltIns:
    """Return the built-in middleware of a process that was forked for one job out of many."""
    return JobTitle(title, "Processing"), OnlyJob(mark_records()), OwnSandbox(home, enters=False)


class JobTitle:
    """Shows which job a process runs, where it is one at a time."""

    def __init__(self, title: Title, word: str) -> None:
        self._show = title.show
        self._status = f"{word} %s (%s / %s / %s)"

    def begin(self, current: RunningJob) -> None:
        facts = current.facts
        self._show(self._status, facts.klass, facts.jid, facts.queue, facts.state)

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        """Nothing: what the process does next has a title of its own."""


class CountTitle:
    """Shows how many jobs a process runs at once."""

    def __init__(self, title: Title) -> None:
        self._show = title.show
        self._count = 0

    def begin(self, current: RunningJob) -> None:
        self._count += 1
        self._show_count()

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        self._count -= 1
        self._show_count()

    def _show_count(self) -> None:
        self._show("Processing %d job" if self._count == 1 else "Processing %d jobs", self._count)


class Spans:
    """Makes a span for each job, wherever OpenTelemetry is loaded by the time it begins."""

    def __init__(self) -> None:
        self._open: dict[RunningJob, tuple[Any, Any]] = {}

    def begin(self, current: RunningJob) -> None:
        if "opentelemetry.trace" not in sys.modules or not is_traced():
            return
        facts = current.facts
        attributes = {
            **attributes_of(facts.queue, facts.klass, facts.jid, "process"),
            "messaging.client.id": facts.worker,
            "holdfast.attempt": facts.attempt,
        }
        span = start_span(str(facts.options.get("trace", "")), f"perform {facts.klass}", attributes)
        api: Any = sys.modules["opentelemetry.context"]
        trace: Any = sys.modules["opentelemetry.trace"]
        self._open[current] = span, api.attach(trace.set_span_in_context(span))

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        span, token = self._open.pop(current, (None, None))
        if span is None:
            return
        result = result_of(current, outcome)
        span.set_attribute("holdfast.outcome", result.outcome)
        if result.outcome not in SUCCESSFUL_OUTCOMES:
            trace: Any = sys.modules["opentelemetry.trace"]
            span.set_status(trace.StatusCode.ERROR, result.group or result.outcome)
            if result.group:
                span.set_attribute("error.type", result.group)
            if result.message:
                span.add_event("exception", {"exception.message": result.message})
        span.end()
        sys.modules["opentelemetry.context"].detach(token)


MOST_LINES: Final = 20
LONGEST: Final = 400  # characters of a line that is kept with a failure


class Records:
    """Makes log records, and marks those of jobs. `only` is the running job of a process that has one at a time."""

    def __init__(self) -> None:
        self._make = logging.getLogRecordFactory()
        self.is_plain = self._make is logging.LogRecord
        self.only: RunningJob | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        current = running.get() or self.only
        if current is not None:
            setattr(record, JOB, current.facts)
            if record.name.partition(".")[0] != log.name:
                with suppress(Exception):  # a job must not fail for what it logs
                    _keep(current, record)
        return record


def mark_records() -> Records:
    """Have the log records of this process marked from now on. Return the same object each time."""
    # Who configures logging by a dictionary switches off whatever it does not name.
    log.disabled = jobs_log.disabled = starts_log.disabled = False
    before: object = logging.getLogRecordFactory()
    if isinstance(before, Records):
        return before
    made = Records()
    logging.setLogRecordFactory(made)
    return made


def _keep(current: RunningJob, record: logging.LogRecord) -> None:
    try:
        text = record.getMessage()
    except Exception:
        text = text_of(record.msg)  # logging itself reports what does not fit
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    line = f"{moment} {record.levelname} {record.name}: {text}"
    if current.lines is None:
        current.lines = deque(maxlen=MOST_LINES)
    current.lines.append(printable(line[:LONGEST], keep=""))


class OnlyJob:
    """Marks what the threads of a process log as its job's, where it runs one job at a time."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def begin(self, current: RunningJob) -> None:
        self._records.only = current

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        self._records.only = None


class JobLines:
    """Logs the start and the end of each job, with the seconds between them. Failed attempts have lines of their own."""

    def __init__(self) -> None:
        self._finished = finished_jobs()
        self._logs_starts = starts_log.isEnabledFor(logging.INFO)

    def begin(self, current: RunningJob) -> None:
        current.begun = monotonic()
        if self._logs_starts:
            facts = current.facts
            starts_log.info("job %s (%s) of queue %s started", facts.jid, facts.klass, facts.queue)

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        end = "is complete" if type(outcome) is Done else _end_of(current, outcome)
        if not end:
            return
        facts = current.facts
        message = f"job {facts.jid} ({facts.klass}) took {monotonic() - current.begun:.3f} seconds and {end}"
        if self._finished is not None and self._finished.is_alone() and _makes_plain_records():
            self._finished.add(FinishedJob(time(), facts, message))
        else:
            jobs_log.info("%s", message)


def _makes_plain_records() -> bool:
    factory: Any = logging.getLogRecordFactory()
    return factory is logging.LogRecord or (type(factory) is Records and factory.is_plain)


def _end_of(current: RunningJob, outcome: Outcome) -> str:
    """Return how a job ended, "" where another line has that: it failed, its lease was lost, or it did not run."""
    if isinstance(outcome, (Advance, CompleteX)) and outcome.next_queue:
        return f"moves to queue {outcome.next_queue}"
    if isinstance(outcome, EndWithFlow):
        return f"ends as flow {outcome.flow} does"
    return (
        _ENDS.get(result_of(current, outcome).outcome, "")
        if outcome is None or isinstance(outcome, CompleteX)
        else ""
    )


_ENDS: Final = {
    "completed": "is complete",
    "moved": "was moved by its code",
    "cancelled": "was cancelled by its code",
    "retried": "is tried again, as its code asked",
}


WORDS: Final = {"gevent": "greenlet", "thread": "thread"}
"""The prefix of the directories of jobs that run side by side: `greenlet-0`; elsewhere `task-0`."""


class OwnSandbox:
    """Gives each job the sandbox of its process, which runs one at a time. `enters`: class jobs run in it."""

    def __init__(self, home: Home, enters: bool) -> None:
        self._home = home
        self._enters = enters

    def begin(self, current: RunningJob) -> None:
        self._home.come_back()
        current.sandbox = self._take
        if self._enters:
            current.enter_sandbox = self._enter

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        if not self._home.works_in_sandbox:
            self._home.come_back()
        self._home.tidy()

    def _take(self) -> str:
        sandbox = self._home.sandbox()
        sandbox.open()
        return sandbox.path

    def _enter(self) -> None:
        try:
            sandbox = self._home.sandbox()
            sandbox.tidy()
            sandbox.enter()
        except (OSError, UsageError) as error:
            self._home.miss(error)


class LentSandboxes:
    """Gives jobs that run side by side a directory each, made when a job asks for it.

    A change of the working directory by such a job affects the other jobs; it is reset soon after no job runs.
    """

    def __init__(self, home: Home, word: str) -> None:
        self._home = home
        self._word = word
        self._sandboxes: Sandboxes | None = None
        self._lent: dict[RunningJob, Lent] = {}
        # Threads share this: the sandbox of the process may not be emptied while a job has a directory in it.
        self._lock = Lock()
        self._count = 0
        self._look_at = 0.0

    def begin(self, current: RunningJob) -> None:
        current.sandbox = partial(self._take, current)
        with self._lock:
            if not self._count and (now := monotonic()) >= self._look_at:
                self._look_at = now + LOOK
                self._home.come_back()
            self._count += 1

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        lent = self._lent.pop(current, None)
        try:
            if lent is not None:
                lent.end()
        finally:
            with self._lock:
                self._count -= 1

    def _take(self, current: RunningJob) -> str:
        if current not in self._lent:
            self._lent[current] = self._made().take()
        return self._lent[current].path

    def _made(self) -> Sandboxes:
        with self._lock:
            if self._sandboxes is None:
                self._sandboxes = Sandboxes(self._home.sandbox(), self._word)
            return self._sandboxes
