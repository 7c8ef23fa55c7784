"""What `ps` shows of a process: what it is doing just now.

A title is set at most ten times a second, however short the jobs are; what was withheld is shown as soon as it may be,
so that a job which runs long is never hidden behind a short one before it.
"""

import logging
from datetime import datetime
from math import inf
from threading import Timer
from time import monotonic
from typing import Any, Final

from holdfast.code.current import Running
from holdfast.core.library import VERSION
from holdfast.work.performing.outcome import Ending
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
        # Asked for each job, where asking the thread itself would cost more than the job.
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
