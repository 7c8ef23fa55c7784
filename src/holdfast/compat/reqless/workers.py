"""Workers as programs start them: `ForkingWorker(queues, client, interval=1).run()`.

They are holdfast's own: they wait for the store's bell instead of asking it, and run only code that lies under the
working directory, `paths`, `imports` or `allow`.
"""

import os
import signal
from collections.abc import Iterable
from typing import Any, Final, Protocol

from holdfast.client.sync import Client
from holdfast.settings import check_list, unknown_option
from holdfast.work.importing import import_modules, make_importable
from holdfast.work.run import run_serial, run_worker
from holdfast.work.settings import Pool, WorkerSettings
from holdfast.work.signals import Stop
from holdfast.work.store_choice import StoreChoice

INTERVAL: Final = 60.0
_OPTIONS: Final = ("workers", "name", "paths", "imports", "allow", "auto_complete", "workdir")


class Resolves(Protocol):
    """Anything that says which queues to look into."""

    def resolve(self) -> list[str]: ...


class BaseWorker:
    """What the workers share. `queues` are names, queues, or a resolver, which is asked when the worker starts.

    `interval` is the longest time in seconds without a look; the store wakes a worker sooner. `resume` changes nothing:
    what a dead worker held is handed out again by itself. More is told by name: `workers` (processes), `name`, `paths`,
    `imports` and `allow` (what code may run), `auto_complete`. Raises UsageError.
    """

    pool: Pool = "serial"

    def __init__(
        self,
        queues: Iterable[Any] | Resolves,
        client: Client,
        interval: float | None = None,
        resume: Any = None,
        **options: Any,
    ) -> None:
        for option in options:
            if option not in _OPTIONS:
                raise unknown_option(type(self).__name__, option, _OPTIONS)
        self.client = client
        self.interval = INTERVAL if interval is None else interval
        self._queues = queues
        self._options = options
        self._stop: Stop | None = None

    @property
    def queues(self) -> list[Any]:
        """The queues of this worker, as they are just now."""
        return [self.client.queues[name] for name in self._names()]

    def run(self) -> None:
        """Work until told to stop."""
        settings, store = self.settings, self.store
        make_importable(settings)
        import_modules(settings)
        self._work(settings, store)

    def stop(self) -> None:
        """Take no more jobs, and end after the one under way; from any thread or signal handler."""
        if self._stop is not None:
            self._stop.request()

    def _work(self, settings: WorkerSettings, store: StoreChoice) -> None:
        self._stop = Stop()
        run_serial(settings, store, self._stop)

    def _names(self) -> list[str]:
        given: Any = self._queues
        found = given.resolve() if hasattr(given, "resolve") else check_list("queues", given)
        return [getattr(queue, "name", queue) for queue in found]

    @property
    def store(self) -> StoreChoice:
        """Which store this worker is for."""
        return StoreChoice.of(self.client)

    @property
    def settings(self) -> WorkerSettings:
        """What this worker is told, as it is just now, also for the helpers of `holdfast.testing`. Raises UsageError."""
        options = dict(self._options)
        root = options.pop("workdir", None) or "."
        for name in ("paths", "imports", "allow"):
            options[name] = tuple(map(str, options.get(name) or ()))
        options.setdefault("name", self.client.worker_name)
        return WorkerSettings(
            tuple(self._names()), self.pool, interval=self.interval, root=root, **options
        ).checked()


class SerialWorker(BaseWorker):
    """Performs one job at a time, in the thread that runs it."""


class MainWorker(SerialWorker):
    """The same, in the main thread, where signals are heard."""


class ForkingWorker(BaseWorker):
    """Performs jobs in child processes, one a core unless `workers` says how many; call `run` in the main thread."""

    pool: Pool = "process"

    def stop(self, sig: int = signal.SIGQUIT) -> None:
        """Tell the worker, which runs in this process, to stop: after the jobs under way, or now with SIGTERM."""
        os.kill(os.getpid(), sig)

    def _work(self, settings: WorkerSettings, store: StoreChoice) -> None:
        run_worker(settings, store)


__all__ = ["BaseWorker", "ForkingWorker", "MainWorker", "SerialWorker"]
