"""Sources of queues: those that have work, looked up each time or from time to time."""

import logging
import os
import threading
from collections.abc import Iterable, Iterator
from math import inf
from time import monotonic
from typing import Any, Final

from holdfast.client.handles import Queue
from holdfast.client.sync import Client
from holdfast.settings import check_list, check_seconds

log = logging.getLogger("holdfast")

WITH_WORK: Final = ("waiting", "recurring", "depends", "stalled", "scheduled")
"""The states of jobs for which a queue is tried; running and throttled jobs need no worker."""


class _Direct:
    def __init__(self, client: Client) -> None:
        self._client = client

    def __iter__(self) -> Iterator[Queue]:
        for counts in self._client.queues.counts:
            if any(counts[state] for state in WITH_WORK):
                yield self._client.queues[counts["name"]]


def direct(client: Client) -> Iterable[Queue]:
    """The queues with any job that is waiting, recurring, depends, stalled or scheduled; looked up each time."""
    return _Direct(client)


class Background:
    """Keeps what a source yields, and loads it again every `delay` seconds; errors are logged.

    After `start`, a thread loads it; a process that is forked later starts its own thread when it iterates. Without `start`, an
    iteration loads it if the result is older than `delay`: the parent of workers must have no threads. Raises UsageError.
    """

    def __init__(self, source: Iterable[Any], delay: float) -> None:
        self._source = check_list("source", source)
        self._delay = check_seconds("delay", delay, 0.01, 86_400.0)
        self._found: list[Any] = []
        self._failed = False
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._pid = 0
        self._due = 0.0

    def start(self) -> threading.Thread:
        """Load at once, and start the thread that loads again every `delay` seconds. Return the thread."""
        self.stop()
        self._pid = os.getpid()
        self._stopped = threading.Event()
        self._load()
        self._thread = threading.Thread(target=self._run, args=(self._stopped,), name="queues", daemon=True)
        self._thread.start()
        return self._thread

    def stop(self) -> None:
        """End the thread, and load no more; the last result stays."""
        self._due = inf
        thread, self._thread = self._thread, None
        if thread is not None and self._pid == os.getpid():
            self._stopped.set()
            thread.join()

    def __iter__(self) -> Iterator[Any]:
        if self._thread is not None:
            if self._pid != os.getpid():
                self.start()
        elif monotonic() >= self._due:
            self._due = monotonic() + self._delay
            self._load()
        return iter(list(self._found))

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._delay):
            self._load()

    def _load(self) -> None:
        try:
            self._found = list(self._source)
        except Exception as error:
            if not self._failed:
                log.exception(
                    "the queues cannot be looked up, trying again every %g s: %s", self._delay, error
                )
            self._failed = True
        else:
            self._failed = False
