"""Workers that perform many jobs at once in the process that runs them: as tasks, in threads, in greenlets."""

import importlib
import logging
import os
import signal
import socket
import threading
from time import monotonic
from typing import Any, ClassVar, Final

from holdfast.code.current import Running
from holdfast.work.classes.childlike import Childlike
from holdfast.work.parent.child import Place
from holdfast.work.parent.presence import Presence, Sign
from holdfast.work.parent.slate import Slate
from holdfast.work.performing.around import Around
from holdfast.work.queues.routing import with_what_it_held
from holdfast.work.run import body_of
from holdfast.work.settings import Pool
from holdfast.work.signals import Handlers, log_stack

log = logging.getLogger("holdfast")

_AS_BEFORE: Final = {signal.SIGUSR1: log_stack, signal.SIGUSR2: log_stack, signal.SIGHUP: log_stack}
"""Signals whose handlers are to be the program's own again when its worker has ended."""


class _Signs:
    """Says from a thread that a worker without a parent lives."""

    def __init__(self, presence: Presence, name: str, slate: Slate) -> None:
        self._presence = presence
        self._sign = (name, os.getpid())
        self._slate = slate
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-signs", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._presence.end()

    def _run(self) -> None:
        while not self._ended.wait(max(0.0, self._presence.due() - monotonic())):
            told = self._presence.say([Sign(*self._sign, len(self._slate.read_all()))])
            self._slate.quiet = told.get(self._sign[0], self._slate.quiet)


class _Many(Childlike):
    """Performs many jobs at once; `run` it in the main thread, or let a `ForkingWorker` do so in children."""

    _ours: socket.socket | None = None

    def halt_job_processing(self, jid: str) -> None:
        """A job under way is not this worker's any more; its code is ended where that can be done."""

    def _work(self) -> None:
        settings, store = self._prepared()
        settings = with_what_it_held(settings, store)
        name, slate = settings.worker_name(0), Slate(settings.concurrency)
        presence = Presence(store.beating_client(name), settings)
        around = Around.of_serial(settings)
        self._ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        try:
            with theirs, _Signs(presence, name, slate), Handlers(_AS_BEFORE):
                if self.shutdown:
                    self._wake_up()
                place = Place(name, 0, slate, theirs, os.getppid(), settings, store)
                body_of(self.pool)[0](place, around)
        finally:
            self._wake_up()
            around.close()
            slate.close()

    def _wake_up(self) -> None:
        # To the body it is as if its parent had gone: it ends after the jobs under way.
        ours, self._ours = self._ours, None
        if ours is not None:
            ours.close()


class AsyncioWorker(_Many):
    """Performs jobs as tasks of one event loop, `concurrency` (100) at once."""

    pool: ClassVar[Pool] = "asyncio"


class ThreadWorker(_Many):
    """Performs jobs in threads, `concurrency` (10) at once."""

    pool: ClassVar[Pool] = "thread"


class _Greenlets:
    """A companion that notes which greenlet performs which job."""

    def __init__(self, greenlets: dict[str, Any]) -> None:
        self._greenlets = greenlets

    def begin(self, current: Running) -> None:
        self._greenlets[current.facts.jid] = importlib.import_module("gevent").getcurrent()

    def end(self, current: Running, ending: object) -> None:
        self._greenlets.pop(current.facts.jid, None)


class GeventWorker(_Many):
    """Performs jobs in greenlets, `greenlets` (10) at once. `greenlets` has those under way, by jid.

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
            log.warning("job %s is not this worker's any more; its greenlet is killed", jid)
            greenlet.kill(block=False)

    def _companions(self) -> tuple[Any, ...]:
        return (_Greenlets(self.greenlets),)
