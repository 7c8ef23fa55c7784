"""Workers as programs start them: `ForkingWorker(queues, client, interval=1).run()`.

They are holdfast's own: the store wakes them, so they do not poll it, and run only code that lies under the
working directory, `paths`, `imports` or `allow`. `interval` is 60 seconds unless given.
"""

from typing import Any, ClassVar

from holdfast import workers

INTERVAL = 60.0


class BaseWorker(workers.BaseWorker):
    """What the workers share."""

    usual_interval: ClassVar[float] = INTERVAL
    waits_for_code: ClassVar[bool] = False
    works_in_sandbox: ClassVar[bool] = True


class SerialWorker(BaseWorker, workers.SerialWorker):
    """Performs one job at a time, in the thread that runs it."""


class MainWorker(BaseWorker, workers.MainWorker):
    """The same, in the main thread, where signals are heard."""


class ForkingWorker(BaseWorker, workers.ForkingWorker):
    """Performs jobs in child processes, one a core unless `workers` says how many; call `run` in the main thread."""

    usual_klass: ClassVar[Any] = SerialWorker


__all__ = ["BaseWorker", "ForkingWorker", "MainWorker", "SerialWorker"]
