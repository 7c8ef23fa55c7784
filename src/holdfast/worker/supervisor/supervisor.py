"""The supervisor of forked workers: it replaces children that die, stops them, and renews their leases.

One thread and one selector, over the children's pipes, messages from the store, probes, and a descriptor that signals write to.
"""

import logging
import selectors
import signal
from math import inf
from time import monotonic
from typing import Literal

from holdfast.text import counted, listed
from holdfast.worker import signals
from holdfast.worker.observe.http import Http, hindrances, serve_probes
from holdfast.worker.observe.ledger import close_ledgers
from holdfast.worker.observe.metrics import serve_metrics
from holdfast.worker.performing.sandboxes import tidy_unclaimed
from holdfast.worker.process_state import Title
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import TOGETHER, Handlers, Stop, at_hup, name_of, stack_of
from holdfast.worker.startup_check import StartupCheck, obstacle
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.calls import StoreCalls
from holdfast.worker.supervisor.child import Body
from holdfast.worker.supervisor.children import ChildProcess, Children
from holdfast.worker.supervisor.loading import Loading
from holdfast.worker.supervisor.messages import StoreMessage
from holdfast.worker.supervisor.stuck import sentences
from holdfast.worker.supervisor.upkeep import ChildUpkeep

log = logging.getLogger("holdfast")

Stopping = Literal["", "polite", "limited", "now"]
"""Whether and how it stops: after the running jobs, after those that end within `shutdown_timeout`, or now."""


class Supervisor:
    """Keeps `settings.workers` children running; each runs `body`. `loading` has their code, if this process has not imported it.

    Raises UsageError when a port cannot be opened.
    """

    def __init__(
        self, settings: WorkerSettings, store: StoreChoice, body: Body, loading: Loading | None = None
    ) -> None:
        self._settings = settings
        # What is registered comes with the function to call when it is ready.
        self._selector = selectors.DefaultSelector()
        self._http = Http(self._selector)
        serve_probes(self._http, settings, self._why_not_ready, self._stuck)
        serve_metrics(self._http, settings, lambda: [child.state for child in self._children.children])
        self._wake = Stop()
        names = [settings.worker_name(number) for number in range(settings.workers)]
        client = store.beating_client(names[0])
        self._calls = StoreCalls(client, names, self._on_messages, self._selector)
        self._upkeep = ChildUpkeep(self._calls, settings)
        self._children = Children(
            settings,
            store,
            body,
            self._upkeep,
            self._selector,
            self._wake.wake_fd,
            self._is_last,
            loading,
        )
        self._stopping: Stopping = ""
        self._cause = ""
        self._ordered_at = -TOGETHER
        self._unwind_at = inf
        self._kill_at = inf
        self._paused = False
        self._title = Title(follows=False)
        self._startup = loading or StartupCheck(settings.startup_code(), "the old processes keep running")

    def run(self) -> None:
        """Supervise until stopped, or until every child has drained its queues."""
        with Handlers(dict.fromkeys(signals.ALL, _note), self._wake.wake_fd):
            self._selector.register(self._wake, selectors.EVENT_READ, self._on_signals)
            try:
                self._calls.start_process(self._children.descriptors)
                self._supervise()
            finally:
                self._end()
        # Not sooner: a signal may be written to it as long as its handler stands.
        self._wake.close()

    def _supervise(self) -> None:
        while True:
            if not self._stopping:
                self._children.fill()
            self._show_title()
            if not self._children.running() and (self._stopping or not self._children.missing()):
                return
            for key, _ in self._selector.select(max(0.0, self._due() - monotonic())):
                key.data()
            self._children.reap(replace=not self._stopping)
            if self._startup.result() and not self._stopping:
                self._children.restart()
            self._http.attend(monotonic())
            self._upkeep.attend(self._children.running())
            self._enforce()

    def _due(self) -> float:
        children = self._children.due(fills=not self._stopping)
        times = [self._upkeep.due(), self._http.due(), self._title.due(), children, self._startup.due()]
        return min(*times, self._unwind_at, self._kill_at)

    def _is_last(self, child: ChildProcess, code: int) -> bool:
        """Whether a child that ended with this code, and not in the middle of a job, is not replaced."""
        return self._settings.drain and code == 0 and not child.is_retiring

    def _end(self) -> None:
        """End all children, however the supervisor ends, and release their leases."""
        self._children.end(self._cause)
        self._startup.end()
        self._upkeep.finish()
        tidy_unclaimed(self._settings.sandbox_base())
        self._children.close()
        self._http.close()
        close_ledgers()
        self._selector.close()
        self._title.close()

    def order(self, number: int) -> None:
        """Do what this signal would do, also before `run`. Any thread may call this."""
        self._wake.write(number)

    # Its state.

    def children(self) -> dict[int, int]:
        """Return the numbers of the running children, by their processes."""
        return {child.pid: child.number for child in self._children.running()}

    def _show_title(self) -> None:
        doing = "Stopping" if self._stopping else "Paused -- with" if self._paused else "Working with"
        children = len(self._children.running())
        self._title.show("%s %d children for %s", doing, children, listed(self._settings.queues))

    def _stuck(self) -> list[str]:
        return sentences(self._upkeep.stuck(self._children.running()))

    def _why_not_ready(self) -> list[str]:
        wanted = [child for child in self._children.children if not child.is_finished]
        why = hindrances(
            stopping=bool(self._stopping),
            available=self._upkeep.is_store_available,
            paused=all(child.lease_table.paused for child in wanted),
        )
        at_work = sum(child.is_at_work for child in wanted)
        if at_work < max(1, len(wanted) - 1):
            why.append(f"{at_work} of {counted(len(wanted), 'process', 'processes')} at work")
        if obstacle():
            why.append(obstacle())
        return why

    # Messages and signals.

    def _on_messages(self, found: list[StoreMessage]) -> None:
        self._upkeep.notify(found)

    def _on_signals(self) -> None:
        for number in self._wake.read():
            self._on_signal(number)

    def _on_signal(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop(name_of(number))
        elif number == signal.SIGQUIT:
            self._finish("polite")
        elif number == signal.SIGUSR1:
            log.warning("killing all workers; they are replaced")
            self._children.kill("USR1")
        elif number == signal.SIGUSR2:
            self._pause(True)
            log.warning("pausing until CONT; stack of the parent:\n%s", stack_of(None))
        elif number == signal.SIGCONT:
            self._pause(False)
        elif number == signal.SIGHUP:
            self._restart()

    def _stop(self, cause: str) -> None:
        """Stop within a bounded time. Signals that come together count as one; a later one takes effect at once."""
        now, self._ordered_at, before = monotonic(), monotonic(), self._ordered_at
        if self._cause and now - before < TOGETHER:
            return
        is_first = not self._cause and (not self._stopping or now - before < TOGETHER)
        self._cause = self._cause or cause
        if is_first and self._settings.shutdown_timeout:
            self._unwind_at = now + self._settings.shutdown_timeout
            self._finish("limited")
        else:
            self._unwind()

    def _finish(self, how: Stopping) -> None:
        """Stop after the running jobs."""
        if how == "polite":
            self._ordered_at = monotonic()
        if self._stopping in ("limited", "now", how):
            return
        self._stopping = how
        self._children.signal(signal.SIGQUIT)
        self._wake_children()
        limit = f", within {self._settings.shutdown_timeout:g} s" if how == "limited" else ""
        log.info("stopping after the running jobs%s", limit)

    def _unwind(self) -> None:
        """Stop now: running jobs are stopped and requeued."""
        self._unwind_at = inf
        if self._stopping == "now":
            return
        self._stopping = "now"
        self._children.unwind(self._cause)
        self._wake_children()
        self._kill_at = monotonic() + self._settings.term_timeout
        log.info("stopping now")

    def _wake_children(self) -> None:
        # A halted child handles no signal until it is continued.
        self._children.signal(signal.SIGCONT)
        self._pause(False)

    def _enforce(self) -> None:
        """Do what is due while it stops."""
        now = monotonic()
        if now >= self._unwind_at:
            self._unwind()
        if now >= self._kill_at:
            self._children.kill(self._cause)
            self._kill_at = now + 1.0

    def _pause(self, pause: bool) -> None:
        self._paused = pause
        self._children.pause(pause)

    def _restart(self) -> None:
        if self._settings.sighup_handler is not None:
            at_hup(self._settings.sighup_handler)(signal.SIGHUP, None)
        if not self._stopping:
            log.info("HUP: the children are replaced, one at a time, each after its jobs")
            if not self._startup.start(self._children.descriptors()):
                self._children.restart()


def _note(number: int, frame: object) -> None:
    """The number has been written to the descriptor that the selector waits on."""
