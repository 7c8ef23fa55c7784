"""What surrounds the jobs of one process: its title, its directories, and what its middleware does after a fork."""

import logging
import os
from pathlib import Path
from typing import Any, Final, Self

from holdfast.work.own import own_of
from holdfast.work.performing.companions import Companions
from holdfast.work.performing.logs import OnlyJob, mark_records
from holdfast.work.performing.sandboxed import BesideSandbox, InSandbox, LentSandboxes
from holdfast.work.performing.sandboxes import Base, Sandbox, Sandboxes, claimed
from holdfast.work.performing.titles import CountingTitle, OneTitle, Title
from holdfast.work.settings import FOLDER, ONE_SEAT, WorkerSettings

log = logging.getLogger("holdfast")

WORDS: Final = {"gevent": "greenlet", "thread": "thread"}
"""What the directory of one job of many is called: `greenlet-0`; elsewhere `task-0`."""


class Around:
    """Made by each process that performs jobs, after its fork; `close` when it has performed its last.

    `companions` go along with its jobs; `title` is its own.
    """

    def __init__(
        self, settings: WorkerSettings, title: Title, sandbox: Sandbox, companions: Companions
    ) -> None:
        self.title = title
        self.companions = companions
        self._settings = settings
        self._sandbox = sandbox

    @classmethod
    def of_child(cls, settings: WorkerSettings, slot: int) -> Self:
        """For child number `slot` of a worker, whose sandbox becomes its working directory. Raises UsageError."""
        title = _begun(settings)
        sandbox = claimed(Path.cwd() / FOLDER / f"sandbox-{slot}")
        sandbox.enter()
        records = mark_records()
        if settings.pool in ONE_SEAT:
            companions: Companions = (OneTitle(title, "Processing"), OnlyJob(records), InSandbox(sandbox))
        else:
            lent = Sandboxes(sandbox.path, WORDS.get(settings.pool, "task"))
            companions = (CountingTitle(title), LentSandboxes(sandbox, lent))
        around = cls(settings, title, sandbox, companions)
        around.forked()
        return around

    @classmethod
    def of_serial(cls, settings: WorkerSettings) -> Self:
        """For a worker without children, which stays in its directory. Raises UsageError."""
        title = _begun(settings)
        sandbox = claimed(Path(own_of(settings).sandbox or FOLDER).absolute(), Base)
        mark_records()
        if settings.pool in ONE_SEAT:
            companions: Companions = (OneTitle(title, "Single processing"), BesideSandbox(sandbox))
        else:
            lent = Sandboxes(sandbox.path, WORDS.get(settings.pool, "task"))
            companions = (CountingTitle(title), LentSandboxes(None, lent))
        return cls(settings, title, sandbox, companions)

    def alone(self) -> Self:
        """In a process that was forked to perform one job: what is kept around that."""
        companions = self.companions
        if self._settings.pool not in ONE_SEAT:
            lent = Sandboxes(self._sandbox.path, f"alone-{os.getpid()}")
            companions = (
                OneTitle(self.title, "Processing"),
                OnlyJob(mark_records()),
                LentSandboxes(self._sandbox, lent),
            )
        around = type(self)(self._settings, self.title, self._sandbox, companions)
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
        try:
            self._sandbox.tidy()
        except OSError as error:
            log.warning("the sandbox %s cannot be emptied: %s", self._sandbox.path, error)
        self._sandbox.leave()
        self.title.close()


def _begun(settings: WorkerSettings) -> Title:
    title = Title()
    title.say("Starting %s", ", ".join(settings.queues))
    return title
