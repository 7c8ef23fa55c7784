"""Workers that perform one job at a time in the process that runs them: in any thread, or as a child."""

import _thread
import os
import signal
import threading
from typing import Any

import msgspec

from holdfast.code.current import Running
from holdfast.work.classes.base import BaseWorker
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Surroundings
from holdfast.work.performing.chain import own_middleware
from holdfast.work.run import body_of, run_serial
from holdfast.work.signals import Stop


class Childlike(BaseWorker):
    """What `run` is for a worker that can be either."""

    _child = 0
    """The number of the process that it is the worker of, where that is a child."""

    def run(self) -> None:
        """Work until `stop`, or a signal where this is the main thread. Raises UsageError, StoreUnsupported."""
        if self._within is not None:
            self._child = os.getpid()
            self.before_run()
            self._used_up = self._work_within(*self._within)
        else:
            with self._logging():
                self.before_run()
                self._work()

    def _work_within(self, place: Place, around: Surroundings) -> bool:
        settings = place.settings
        mixed = own_middleware(self)
        for middleware in mixed:
            # Those of the parent were told before: only these are the child's own.
            getattr(middleware, "after_fork", lambda: None)()
        settings = msgspec.structs.replace(
            settings,
            own=self._own(),
            held=() if self._generates else settings.held,
            middleware=(*mixed, *settings.middleware),
        )
        return body_of(settings.pool)(place._replace(settings=settings), around)

    def _leave(self) -> None:
        if self._within is None:
            self._wake_up()
        elif self._child in (os.getpid(), os.getppid()):
            # To a child this signal is nothing but the order to end after the jobs under way. The second case is a
            # job in a process of its own, which stops the worker that forked it.
            os.kill(self._child, signal.SIGQUIT)

    def _wake_up(self) -> None:
        """Have what `run` does in the process that called it, if it runs, see that it should end."""
        raise NotImplementedError

    def _work(self) -> None:
        """Work in the process that called `run`."""
        raise NotImplementedError


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
