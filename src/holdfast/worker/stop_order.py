"""TERM and INT to a worker without a parent: how long its jobs may take, and what follows."""

import logging
import os
import select
import signal
import threading
from collections.abc import Callable
from math import inf
from time import monotonic
from types import FrameType
from typing import Self

from holdfast.worker.signals import (
    TOGETHER,
    UNWIND,
    Handler,
    Stop,
    Terminated,
    at_hup,
    at_usr2,
    log_stack,
    name_of,
    start_without_signals,
    worker_handlers,
)

log = logging.getLogger("holdfast")


class StopOrder:
    """TERM and INT to a worker without a parent: how long its jobs may take, and what follows.

    They have `shutdown_timeout` seconds to finish, then `term_timeout` to unwind; then `give_back` is called and the process
    ends, even if its jobs do not. `cause` is the name of the first signal, "" before it. A thread watches the clock.
    """

    def __init__(self, shutdown_timeout: float, term_timeout: float, give_back: Callable[[], object]) -> None:
        self.cause = ""
        self._unwinds = self._is_performing = False
        self._shutdown_timeout = shutdown_timeout
        self._term_timeout = term_timeout
        self._give_back = give_back
        self._obeyed_at = -TOGETHER
        self._unwind_at = inf
        self._kill_at = inf
        self._is_logged = False
        self._clock = Stop()
        self._thread = threading.Thread(target=self._run, name="holdfast-stop", daemon=True)

    def __enter__(self) -> Self:
        start_without_signals(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._clock.request()
        self._thread.join()
        self._clock.close()

    @property
    def unwinds(self) -> bool:
        """Whether the running job is to be interrupted. No call is: its reply has the granted jobs."""
        return self._unwinds and self._is_performing

    def begin_job(self) -> None:
        """The code of a job is about to run. Raises Terminated if jobs are to unwind by now."""
        self._is_performing = True
        if self._unwinds:
            raise Terminated

    def end_job(self) -> None:
        """The code of a job has ended."""
        self._is_performing = False

    def obey(self, number: int, finish: Callable[[], object]) -> None:
        """Stop at this signal; `finish` has no more jobs taken. Call it in a handler of the main thread."""
        now = monotonic()
        if now - self._obeyed_at < TOGETHER:
            return
        self._obeyed_at = now
        self._unwind_at = min(self._unwind_at, now if self.cause else now + self._shutdown_timeout)
        self.cause = self.cause or name_of(number)
        finish()
        self._clock.wake()

    def handlers(self, finish: Callable[[], object]) -> dict[signal.Signals, Handler]:
        """What a worker in the main thread does at TERM and INT."""

        def obey(number: int, frame: FrameType | None) -> None:
            self.obey(number, finish)

        return {signal.SIGTERM: obey, signal.SIGINT: obey}

    def _run(self) -> None:
        while not self._clock.requested:
            wait = min(self._unwind_at, self._kill_at) - monotonic()
            poll = select.poll()
            poll.register(self._clock, select.POLLIN)
            poll.poll(None if wait == inf else max(0.0, wait) * 1000)
            self._clock.read()
            now = monotonic()
            if now >= self._unwind_at and not self._unwinds:
                self._unwinds, self._kill_at, self._unwind_at = True, now + self._term_timeout, inf
                log.info("stopping now")
                os.kill(os.getpid(), UNWIND)
            elif self._unwind_at < inf and not self._is_logged:
                self._is_logged = True
                log.info("stopping after the running jobs, within %g s", self._shutdown_timeout)
            if now >= self._kill_at:
                self._kill()

    def _kill(self) -> None:
        if self._is_performing:
            log.warning("the running job did not unwind within %g s; the worker ends now", self._term_timeout)
        else:
            log.warning("no reply from the store within %g s; the worker ends now", self._term_timeout)
        self._give_back()
        logging.shutdown()
        os._exit(0)


def serial_handlers(
    stop: Stop, order: StopOrder, debugger: bool, at_its_hup: Callable[[], object] | None
) -> dict[signal.Signals, Handler]:
    """The same for a worker without a parent: it pauses by itself, and opens a console only if `debugger` asks for it."""
    look = at_usr2(True) if debugger else log_stack

    def pause(number: int, frame: FrameType | None) -> None:
        stop.paused = True
        log.warning("pausing until CONT")
        look(number, frame)

    def go_on(number: int, frame: FrameType | None) -> None:
        stop.paused = False

    return {
        **worker_handlers(stop),
        **order.handlers(stop.request),
        signal.SIGUSR2: pause,
        signal.SIGCONT: go_on,
        signal.SIGHUP: at_hup(at_its_hup),
    }
