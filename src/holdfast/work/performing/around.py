"""What surrounds the jobs of one process: its title, its directories, and what its middleware does after a fork."""

import logging
from pathlib import Path
from typing import Any, Final, Self

from holdfast.work.own import own_of
from holdfast.work.performing.companions import Companions
from holdfast.work.performing.logs import OnlyJob, mark_records
from holdfast.work.performing.sandboxed import Home, LentSandboxes, OneJob
from holdfast.work.performing.titles import CountingTitle, OneTitle, Title
from holdfast.work.queues.reserving import listed
from holdfast.work.settings import ONE_SEAT, WorkerSettings

log = logging.getLogger("holdfast")

WORDS: Final = {"gevent": "greenlet", "thread": "thread"}
"""What the directory of one job of many is called: `greenlet-0`; elsewhere `task-0`."""


class Around:
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
        if self._settings.pool not in ONE_SEAT:
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
    if settings.pool in ONE_SEAT:
        has_parent = settings.pool != "serial"
        own: Companions = (OnlyJob(records),) if has_parent else ()
        return OneTitle(title, word), *own, OneJob(home, enters=has_parent)
    return CountingTitle(title), LentSandboxes(home, WORDS.get(settings.pool, "task"))
