"""The parent of forked workers: N children, replaced when they die, told to stop, their leases kept.

One thread and one selector, over the children's pipes, the store's news, probes, and a descriptor that signals write to.
"""

import logging
import selectors
import signal
from math import inf
from time import monotonic
from typing import Literal

from holdfast.work import signals
from holdfast.work.observe.ledger import close_ledgers
from holdfast.work.observe.metrics import serve_metrics
from holdfast.work.parent.child import Body, ChildProcess
from holdfast.work.parent.children import Children
from holdfast.work.parent.http import Http, hindrances, serve_probes
from holdfast.work.parent.presence import StoreMessages
from holdfast.work.parent.renewal import LeaseRenewal, sentences
from holdfast.work.performing.around import Title
from holdfast.work.performing.sandboxes import tidy_unclaimed
from holdfast.work.queues.reserving import listed
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import TOGETHER, Handlers, Stop, at_hup, name_of, stack_of
from holdfast.work.startup_check import StartupCheck, obstacle
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")

Going = Literal["", "polite", "limited", "now"]
"""Whether and how it stops: after the running jobs, after those that end within `shutdown_timeout`, or now."""


class Supervisor:
    """Keeps `settings.workers` children running; each runs `body`.

    Raises UsageError when a port it shall answer on cannot be had.
    """

    def __init__(self, settings: WorkerSettings, store: StoreChoice, body: Body) -> None:
        self._settings = settings
        # What is registered comes with the function to call when it is ready.
        self._selector = selectors.DefaultSelector()
        self._http = Http(self._selector)
        serve_probes(self._http, settings, self._why_not_ready, self._stuck)
        serve_metrics(self._http, settings, lambda: [child.state for child in self._family.children])
        self._wake = Stop()
        client = store.beating_client(settings.worker_name(0))
        self._guard = LeaseRenewal(client, settings)
        self._family = Children(
            settings, store, body, self._guard, self._selector, self._wake.wake_fd, self._is_last
        )
        self._news = StoreMessages(client, [child.name for child in self._family.children])
        self._going: Going = ""
        self._cause = ""
        self._told_at = -TOGETHER
        self._unwind_at = inf
        self._kill_at = inf
        self._paused = False
        self._title = Title(follows=False)
        self._startup = StartupCheck(settings.startup_code(), "the old processes keep running")

    def run(self) -> None:
        """Supervise until told to stop, or until every child has drained its queues."""
        with Handlers(dict.fromkeys(signals.ALL, _note), self._wake.wake_fd):
            self._selector.register(self._wake, selectors.EVENT_READ, self._hear_signals)
            try:
                self._supervise()
            finally:
                self._end()
        # Not sooner: a signal may be written to it as long as its handler stands.
        self._wake.close()

    def _supervise(self) -> None:
        while True:
            self._listen()
            if not self._going:
                self._family.fill()
            self._say_title()
            if not self._family.living() and (self._going or not self._family.missing()):
                return
            for key, _ in self._selector.select(max(0.0, self._due() - monotonic())):
                key.data()
            self._family.bury(replace=not self._going)
            if self._startup.result():
                self._begin_restart()
            self._http.attend(monotonic())
            self._guard.attend(self._family.living())
            self._press()

    def _due(self) -> float:
        family = self._family.due(fills=not self._going)
        times = [self._guard.due(), self._http.due(), self._title.due(), family, self._startup.due()]
        if not self._news.is_open:
            times.append(self._news.at)
        return min(*times, self._unwind_at, self._kill_at)

    def _is_last(self, child: ChildProcess, code: int) -> bool:
        """Whether a child that ended with this code, and not in the middle of a job, is not replaced."""
        return self._settings.drain and code == 0 and not child.is_retiring

    def _end(self) -> None:
        """Leave no child behind, however the supervisor ends, and give their leases back."""
        self._startup.end()
        self._family.end(self._cause)
        self._guard.finish()
        tidy_unclaimed(self._settings.sandbox_base())
        self._family.close()
        if self._news.is_open:
            self._selector.unregister(self._news)
        self._news.close()
        self._http.close()
        close_ledgers()
        self._selector.close()
        self._title.close()

    def tell(self, number: int) -> None:
        """Do what this signal would do, also before `run`. Any thread may say so."""
        self._wake.tell(number)

    # Saying how it is.

    def children(self) -> dict[int, int]:
        """The numbers of its living children, by their processes."""
        return {child.pid: child.number for child in self._family.living()}

    def _say_title(self) -> None:
        doing = "Stopping" if self._going else "Paused -- with" if self._paused else "Working with"
        children = len(self._family.living())
        self._title.say("%s %d children for %s", doing, children, listed(self._settings.queues))

    def _stuck(self) -> list[str]:
        return sentences(self._guard.stuck(self._family.living()))

    def _why_not_ready(self) -> list[str]:
        wanted = [child for child in self._family.children if not child.is_finished]
        why = hindrances(
            stopping=bool(self._going),
            heard=self._guard.is_heard,
            paused=all(child.lease_table.paused for child in wanted),
        )
        at_work = sum(child.is_at_work for child in wanted)
        if at_work < max(1, len(wanted) - 1):
            why.append(f"{at_work} of {len(wanted)} processes are at work")
        if obstacle():
            why.append(obstacle())
        return why

    # Being told.

    def _listen(self) -> None:
        if not self._news.is_open and monotonic() >= self._news.at and self._news.open() >= 0:
            self._selector.register(self._news, selectors.EVENT_READ, self._hear_news)

    def _hear_news(self) -> None:
        # Before it may be closed; an open one is told to the selector again.
        self._selector.unregister(self._news)
        heard = self._news.hear()
        if self._news.is_open:
            self._selector.register(self._news, selectors.EVENT_READ, self._hear_news)
        if heard or not self._news.is_open:
            self._guard.hear(heard)

    def _hear_signals(self) -> None:
        for number in self._wake.heard():
            self._on_signal(number)

    def _on_signal(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop(name_of(number))
        elif number == signal.SIGQUIT:
            self._finish("polite")
        elif number == signal.SIGUSR1:
            log.warning("killing all workers; they are replaced")
            self._family.kill("USR1")
        elif number == signal.SIGUSR2:
            self._pause(True)
            log.warning("pausing, until CONT; the parent is here:\n%s", stack_of(None))
        elif number == signal.SIGCONT:
            self._pause(False)
        elif number == signal.SIGHUP:
            self._restart()

    def _stop(self, cause: str) -> None:
        """Stop within a bounded time. Signals that come together count as one; a later one takes effect at once."""
        now, self._told_at, before = monotonic(), monotonic(), self._told_at
        if self._cause and now - before < TOGETHER:
            return
        is_first = not self._cause and (not self._going or now - before < TOGETHER)
        self._cause = self._cause or cause
        if is_first and self._settings.shutdown_timeout:
            self._unwind_at = now + self._settings.shutdown_timeout
            self._finish("limited")
        else:
            self._unwind()

    def _finish(self, how: Going) -> None:
        """Stop after the running jobs."""
        if how == "polite":
            self._told_at = monotonic()
        if self._going in ("limited", "now", how):
            return
        self._going = how
        self._family.signal(signal.SIGQUIT)
        self._wake_children()
        limit = f", within {self._settings.shutdown_timeout:g} s" if how == "limited" else ""
        log.info("stopping after the running jobs%s", limit)

    def _unwind(self) -> None:
        """Stop now: running jobs are stopped and requeued."""
        self._unwind_at = inf
        if self._going == "now":
            return
        self._going = "now"
        self._family.unwind(self._cause)
        self._wake_children()
        self._kill_at = monotonic() + self._settings.term_timeout
        log.info("stopping now")

    def _wake_children(self) -> None:
        # A halted child hears nothing until it goes on.
        self._family.signal(signal.SIGCONT)
        self._pause(False)

    def _press(self) -> None:
        """Do what is due while it stops."""
        now = monotonic()
        if now >= self._unwind_at:
            self._unwind()
        if now >= self._kill_at:
            self._family.kill(self._cause)
            self._kill_at = now + 1.0

    def _pause(self, pause: bool) -> None:
        self._paused = pause
        self._family.pause(pause)

    def _restart(self) -> None:
        at_hup(self._settings.sighup_handler)(signal.SIGHUP, None)
        if not self._going and not self._startup.start():
            self._begin_restart()

    def _begin_restart(self) -> None:
        if not self._going:
            log.info("restarting all workers, one at a time, each after its jobs")
            self._family.restart()


def _note(number: int, frame: object) -> None:
    """The number has been written to the descriptor that the selector waits on."""
