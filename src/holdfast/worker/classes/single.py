"""Workers that run jobs in the process that runs them: one at a time, or many as tasks, in threads, in greenlets."""

import _thread
import importlib
import logging
import os
import signal
import threading
from typing import Any, ClassVar, Final

import msgspec

from holdfast.code.current import RunningJob
from holdfast.worker.classes.base import BaseWorker
from holdfast.worker.in_process import InProcess
from holdfast.worker.performing.chain import own_middleware
from holdfast.worker.performing.surroundings import Surroundings
from holdfast.worker.queues.routing import with_what_it_held
from holdfast.worker.run import body_of, run_serial
from holdfast.worker.settings import Pool
from holdfast.worker.signals import Stop, log_stack
from holdfast.worker.supervisor.child import ChildPlace

log = logging.getLogger("holdfast")

_AS_BEFORE: Final = {signal.SIGUSR1: log_stack, signal.SIGUSR2: log_stack, signal.SIGHUP: log_stack}
"""Signals whose handlers are to be the program's own again when its worker has ended."""


class Childlike(BaseWorker):
    """The `run` of a worker that runs by itself or in a child."""

    _child = 0
    """The process id of the child that it is the worker of."""

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

    def _work_within(self, place: ChildPlace, around: Surroundings) -> bool:
        settings = place.settings
        mixed = own_middleware(self)
        for middleware in mixed:
            # That of the parent was called before: only this is the child's own.
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
            # To a child this signal is nothing but the order to end after the running jobs. The second case is a job in
            # a process of its own, which stops the worker that forked it.
            os.kill(self._child, signal.SIGQUIT)

    def _wake_up(self) -> None:
        """Have a running worker in this process notice that it should end."""
        raise NotImplementedError

    def _work(self) -> None:
        """Work in the process that called `run`."""
        raise NotImplementedError


class _Current:
    """Built-in middleware that notes which job is running."""

    def __init__(self, worker: "SerialWorker") -> None:
        self._worker = worker

    def begin(self, current: RunningJob) -> None:
        self._worker.jid = current.facts.jid

    def end(self, current: RunningJob, outcome: object) -> None:
        self._worker.jid = None


class SerialWorker(Childlike):
    """Runs one job at a time, in the thread that runs it. `jid` is the running job, None while there is none.

    Under a `ForkingWorker` it is what each child does.
    """

    jid: str | None = None
    _stop: Stop | None = None

    def halt_job_processing(self, jid: str) -> None:
        """A running job is not this worker's any more: its code learns that at its next heartbeat."""

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

    def _built_in(self) -> tuple[Any, ...]:
        return (_Current(self),)


class MainWorker(SerialWorker):
    """The same, as the main program: it handles signals, and a job that is not its own any more is interrupted."""

    _interrupted = False

    def run(self) -> None:
        """Work until `stop` or a signal. Raises KeyboardInterrupt when the running job was lost, UsageError."""
        self._interrupted = False
        super().run()
        if self._interrupted:
            raise KeyboardInterrupt

    def halt_job_processing(self, jid: str) -> None:
        """Interrupt the main thread, if this is another one."""
        if threading.current_thread() is not threading.main_thread() and not self._interrupted:
            self._interrupted = True
            # Whatever else may interrupt the job at this moment, no other is taken.
            self.stop()
            _thread.interrupt_main()


class _Many(Childlike):
    """Runs many jobs at once; `run` it in the main thread, or let a `ForkingWorker` do so in children."""

    _worker: InProcess | None = None

    def halt_job_processing(self, jid: str) -> None:
        """A running job is not this worker's any more; its code is ended where that can be done."""

    def _work(self) -> None:
        settings, store = self._prepared()
        worker = self._worker = InProcess(with_what_it_held(settings, store), store)
        if self.shutdown:
            worker.stop()
        worker.run(body_of(self.pool), _AS_BEFORE)

    def _wake_up(self) -> None:
        if self._worker is not None:
            self._worker.stop()


class AsyncioWorker(_Many):
    """Runs jobs as tasks of one event loop, `concurrency` (100) at once."""

    pool: ClassVar[Pool] = "asyncio"


class ThreadWorker(_Many):
    """Runs jobs in threads, `concurrency` (10) at once."""

    pool: ClassVar[Pool] = "thread"


class _Greenlets:
    """Built-in middleware that notes which greenlet runs which job."""

    def __init__(self, greenlets: dict[str, Any]) -> None:
        self._greenlets = greenlets

    def begin(self, current: RunningJob) -> None:
        self._greenlets[current.facts.jid] = importlib.import_module("gevent").getcurrent()

    def end(self, current: RunningJob, outcome: object) -> None:
        self._greenlets.pop(current.facts.jid, None)


class GeventWorker(_Many):
    """Runs jobs in greenlets, `greenlets` (10) at once. `greenlets` has the running ones, by jid.

    The standard library must have been patched: `from gevent import monkey; monkey.patch_all()` comes first in the program.
    """

    pool: ClassVar[Pool] = "gevent"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.greenlets: dict[str, Any] = {}

    def halt_job_processing(self, jid: str) -> None:
        """Kill the greenlet of a job that is not this worker's any more; one that it does not perform is ignored."""
        greenlet = self.greenlets.get(jid)
        if greenlet is not None:
            log.warning("job %s: its lease was lost; its greenlet is killed", jid)
            greenlet.kill(block=False)

    def _built_in(self) -> tuple[Any, ...]:
        return (_Greenlets(self.greenlets),)
