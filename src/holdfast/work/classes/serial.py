"""Workers that perform one job at a time in the process that runs them: in any thread, or as its main program."""

import _thread
import threading
from typing import Any

from holdfast.code.current import Running
from holdfast.work.classes.childlike import Childlike
from holdfast.work.run import run_serial
from holdfast.work.signals import Stop


class _Current:
    """A companion that notes which job is under way."""

    def __init__(self, worker: "SerialWorker") -> None:
        self._worker = worker

    def begin(self, current: Running) -> None:
        self._worker.jid = current.facts.jid

    def end(self, current: Running, ending: object) -> None:
        self._worker.jid = None


class SerialWorker(Childlike):
    """Performs one job at a time, in the thread that runs it. `jid` is the job under way, None while there is none.

    Under a `ForkingWorker` it is what each child does.
    """

    jid: str | None = None
    _stop: Stop | None = None

    def halt_job_processing(self, jid: str) -> None:
        """A job under way is not this worker's any more: its code learns that at its next heartbeat."""

    def _work(self) -> None:
        settings, store = self._prepared()
        stop = self._stop = Stop()
        if self.shutdown:
            stop.request()
        try:
            run_serial(settings, store, stop)
        finally:
            self._stop = None
            stop.close()

    def _wake_up(self) -> None:
        stop = self._stop
        if stop is not None:
            stop.request()

    def _companions(self) -> tuple[Any, ...]:
        return (_Current(self),)


class MainWorker(SerialWorker):
    """The same, as the main program: it hears signals, and a job that is not its any more is interrupted."""

    _interrupted = False

    def run(self) -> None:
        """Work until `stop` or a signal. Raises KeyboardInterrupt when the job under way was lost, UsageError."""
        self._interrupted = False
        super().run()
        if self._interrupted:
            raise KeyboardInterrupt

    def halt_job_processing(self, jid: str) -> None:
        """Interrupt the main thread, if this is another one."""
        if threading.current_thread() is not threading.main_thread() and not self._interrupted:
            self._interrupted = True
            # Whatever else may break the job off at this moment, no other is taken.
            self.stop()
            _thread.interrupt_main()
