"""Worker classes that programs run: `ForkingWorker(queues, client, interval=1).run()`.

They are holdfast's workers: the store wakes them, so they do not poll, and they run only code in the working directory,
or allowed by `paths`, `imports` or `allow`. `interval` is 60 seconds by default.
"""

from typing import Any, ClassVar

from holdfast import workers

INTERVAL = 60.0


class BaseWorker(workers.BaseWorker):
    """The base of the workers."""

    usual_interval: ClassVar[float] = INTERVAL
    waits_for_code: ClassVar[bool] = False
    works_in_sandbox: ClassVar[bool] = True


class SerialWorker(BaseWorker, workers.SerialWorker):
    """Performs one job at a time, in the thread that runs it."""


class MainWorker(BaseWorker, workers.MainWorker):
    """Performs one job at a time, in the main thread, with signal handlers."""


class ForkingWorker(BaseWorker, workers.ForkingWorker):
    """Performs jobs in `workers` child processes, by default one for each CPU core; call `run` in the main thread."""

    usual_klass: ClassVar[Any] = SerialWorker


__all__ = ["BaseWorker", "ForkingWorker", "MainWorker", "SerialWorker"]
