"""What surrounds the jobs of one process: its title, its directories, its spans, and `after_fork` of its middleware.

A title is set at most ten times a second, however short the jobs are; what was withheld is shown as soon as it may be,
so that a job which runs long is never hidden behind a short one before it.
"""

import logging
import sys
from datetime import datetime
from importlib.util import find_spec
from math import inf
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import Any, Final, Protocol, Self

from holdfast.code.current import Running
from holdfast.code.tracing import attributes_of, is_traced, start_span
from holdfast.core.library import VERSION
from holdfast.logs import jobs_log
from holdfast.work.observe.ledger import GOOD, Counting, ledger_of, result_of
from holdfast.work.performing.logs import JobLines, OnlyJob, mark_records
from holdfast.work.performing.outcome import Ending
from holdfast.work.performing.sandboxed import Home, LentSandboxes, OneJob
from holdfast.work.queues.reserving import listed
from holdfast.work.settings import ONE_SLOT, WorkerSettings, own_of
from holdfast.work.signals import start_without_signals

log = logging.getLogger("holdfast")

PAUSE: Final = 0.1
"""Seconds between two titles."""
_LONGEST: Final = 500

Status = tuple[Any, ...]
"""A format and what goes into it, as logging takes them: most are never written out."""


def _no_title() -> str:
    return ""


def _ignore(title: str) -> None:
    """There is no title here that could be set."""


try:
    from setproctitle import getproctitle as _get
    from setproctitle import setproctitle as _set
except ImportError:  # pragma: no cover: a system for which there is no such package
    _get, _set = _no_title, _ignore


def get_title() -> str:
    """The title of this process, as `ps` shows it; "" where that cannot be had."""
    return _get()


def set_title(message: str) -> None:
    """Let `ps` show `message` for this process, as one line; does nothing where that does not work."""
    _set("".join(char if char.isprintable() else "?" for char in message))


class Title:
    """The title of one process: `say` is cheap enough for every job.

    What is withheld is shown by a short-lived thread, or if `follows` is False by whoever asks `due` and `catch_up`.
    """

    def __init__(self, follows: bool = True) -> None:
        self._before = get_title()
        self._follows = follows
        self._wanted: Status = ()
        self._shown: Status = ()
        self._next = 0.0
        self._later: Timer | None = None
        # CommandProperty for each job, where asking the thread itself would cost more than the job.
        self._is_followed = False

    def say(self, status: str, *parts: Any) -> None:
        """Show `status % parts`, now or soon."""
        wanted = self._wanted = (status, *parts)
        if monotonic() >= self._next:
            self.catch_up()
        elif self._follows and not self._is_followed and wanted != self._shown:
            self._is_followed = True
            self._later = Timer(max(0.0, self._next - monotonic()), self._follow)
            self._later.daemon, self._later.name = True, "holdfast-title"
            start_without_signals(self._later)

    def rest(self, description: str, paused: bool = False) -> None:
        """Show and log that there is nothing to do for the queues of `description`, or that nothing may be done for now."""
        if paused:
            log.debug("the worker for %s is paused and sleeps", description)
        else:
            log.debug("there are no jobs for %s; the worker sleeps until it is woken", description)
        self.say("Paused -- %s" if paused else "Waiting for %s", description)

    def renew(self) -> None:
        """This is a new process: nothing was shown of it yet, and its parent's thread is not here."""
        self._next = 0.0
        self._later = None
        self._is_followed = False

    def due(self) -> float:
        """When to call `catch_up`, on the monotonic clock; inf while nothing is withheld."""
        return inf if self._wanted == self._shown else self._next

    def catch_up(self) -> None:
        """Show what was said last."""
        while (wanted := self._wanted) != self._shown:
            self._next = monotonic() + PAUSE
            set_title(_written(wanted))
            # Two threads may be here: whoever comes out last has seen that the last word is shown.
            self._shown = wanted

    def _follow(self) -> None:
        # First: what is said from now on has a thread of its own.
        self._is_followed = False
        self.catch_up()

    def close(self) -> None:
        """Give the process back the title that it had."""
        if self._later is not None:
            self._later.cancel()
            if self._later.is_alive():
                self._later.join()
        set_title(self._before)


def _written(status: Status) -> str:
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    # The status gives way, if it is too long, and not the moment.
    return f"holdfast-{VERSION}: {(status[0] % status[1:])[:_LONGEST]} at {now}"


class OneTitle:
    """A companion that says which job a process performs, where it is one at a time."""

    def __init__(self, title: Title, word: str) -> None:
        self._say = title.say
        self._status = f"{word} %s (%s / %s / %s)"

    def begin(self, current: Running) -> None:
        facts = current.facts
        self._say(self._status, facts.klass, facts.jid, facts.queue, facts.state)

    def end(self, current: Running, ending: Ending) -> None:
        """What the process does next says itself."""


class CountingTitle:
    """A companion that says how many jobs a process performs at once."""

    def __init__(self, title: Title) -> None:
        self._say = title.say
        self._count = 0

    def begin(self, current: Running) -> None:
        self._count += 1
        self._say("Processing %d jobs", self._count)

    def end(self, current: Running, ending: Ending) -> None:
        self._count -= 1
        self._say("Processing %d jobs", self._count)


class Spans:
    """A companion that spans each job, wherever OpenTelemetry is loaded by the time it begins."""

    def __init__(self) -> None:
        self._open: dict[Running, tuple[Any, Any]] = {}

    def begin(self, current: Running) -> None:
        if not is_traced():
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

    def end(self, current: Running, ending: Ending) -> None:
        span, token = self._open.pop(current, (None, None))
        if span is None:
            return
        result = result_of(current, ending)
        span.set_attribute("holdfast.outcome", result.outcome)
        if result.outcome not in GOOD:
            trace: Any = sys.modules["opentelemetry.trace"]
            span.set_status(trace.StatusCode.ERROR, result.group or result.outcome)
            if result.group:
                span.set_attribute("error.type", result.group)
            if result.message:
                span.add_event("exception", {"exception.message": result.message})
        span.end()
        sys.modules["opentelemetry.context"].detach(token)


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


WORDS: Final = {"gevent": "greenlet", "thread": "thread"}
"""What the directory of one job of many is called: `greenlet-0`; elsewhere `task-0`."""


class Surroundings:
    """Made by each process that performs jobs, after its fork; `close` when it has performed its last.

    `companions` go along with its jobs; `title` is its own.
    """

    def __init__(self, settings: WorkerSettings, title: Title, home: Home, companions: Companions) -> None:
        self.title = title
        self.companions = companions
        self._settings = settings
        self._home = home

    @classmethod
    def of_child(cls, settings: WorkerSettings, slot: int) -> Self:
        """For child number `slot` of a worker. Raises UsageError."""
        title = _begun(settings)
        home = Home(settings.sandbox_of(slot), settings.works_in_sandboxes)
        around = cls(settings, title, home, _companions(settings, title, home, "Processing"))
        around.forked()
        return around

    @classmethod
    def of_serial(cls, settings: WorkerSettings) -> Self:
        """For a worker without children, which stays in its directory. Raises UsageError."""
        title = _begun(settings)
        path = own_of(settings).sandbox
        if path:
            Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
        home = Home(Path(path).absolute() if path else settings.sandbox_of(0), works_in_sandbox=False)
        return cls(settings, title, home, _companions(settings, title, home, "Single processing"))

    def alone(self) -> Self:
        """In a process that was forked to perform one job: what is kept around that."""
        home, companions = self._home, self.companions
        if self._settings.pool not in ONE_SLOT:
            home = home.other()
            companions = (
                OneTitle(self.title, "Processing"),
                OnlyJob(mark_records()),
                OneJob(home, enters=False),
            )
        around = type(self)(self._settings, self.title, home, companions)
        around.forked()
        return around

    def forked(self) -> None:
        """This process was just forked: tell its middleware. What that raises is logged."""
        self.title.renew()
        for middleware in self._settings.middleware:
            hook: Any = getattr(middleware, "after_fork", None)
            try:
                if hook is not None:
                    hook()
            except Exception:
                log.exception("after_fork of %s failed", type(middleware).__name__)

    def close(self) -> None:
        """Leave nothing behind."""
        self._home.close()
        self.title.close()


def _begun(settings: WorkerSettings) -> Title:
    title = Title()
    title.say("Starting %s", listed(settings.queues))
    return title


def _companions(settings: WorkerSettings, title: Title, home: Home, word: str) -> Companions:
    records = mark_records()
    if settings.pool in ONE_SLOT:
        has_parent = settings.pool != "serial"
        own: Companions = (OnlyJob(records),) if has_parent else ()
        return OneTitle(title, word), *own, OneJob(home, enters=has_parent)
    return CountingTitle(title), LentSandboxes(home, WORDS.get(settings.pool, "task"))
