"""The parent of forked workers: N children, replaced when they die, told to stop, their leases kept.

One thread and one selector, over the children's pipes and a descriptor that signals write to; children are
forked from here and nowhere else, so a replacement is never forked while another thread holds a lock.
"""

import logging
import os
import selectors
import signal
import socket
from time import monotonic
from typing import Final, Literal

from holdfast.work import signals
from holdfast.work.child import USED_UP, Body, Place, become
from holdfast.work.guard import Guard
from holdfast.work.news import News
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import Handlers, Stop, stack_of
from holdfast.work.slate import Slate
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")

SHORT_LIFE: Final = 1.0
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0

Going = Literal["", "polite", "now"]


class Slot:
    """The place of one child: its name and slate outlive it."""

    def __init__(self, name: str, seats: int) -> None:
        self.name = name
        self.slate = Slate(seats)
        self.pid = 0
        self.pipe: socket.socket | None = None
        self.born = 0.0
        self.crashes = 0
        self.fork_at = 0.0
        self.is_finished = False

    def poke(self) -> None:
        """Make the child look at its slate."""
        if self.pipe is not None:
            try:
                self.pipe.send(b"\0")
            except OSError:
                pass  # it is ending, or has enough to read


class Supervisor:
    """Keeps `settings.workers` children at work; each runs `body`. `beats`: the parent keeps their leases."""

    def __init__(self, settings: WorkerSettings, store: StoreChoice, body: Body, beats: bool) -> None:
        self._settings = settings
        self._store = store
        self._body = body
        self._slots = [Slot(settings.worker_name(n), settings.concurrency) for n in range(settings.workers)]
        client = store.beating_client(settings.worker_name(0))
        self._guard = Guard(client, settings, beats)
        self._news = News(client, [slot.name for slot in self._slots]) if beats else None
        self._selector = selectors.DefaultSelector()
        self._wake = Stop()
        self._going: Going = ""
        self._kill_at = 0.0

    def run(self) -> None:
        """Supervise until told to stop, or until every child has drained its queues."""
        with Handlers(dict.fromkeys(signals.ALL, _note), self._wake.wake_fd):
            self._selector.register(self._wake, selectors.EVENT_READ)
            try:
                self._supervise()
            finally:
                self._end_all()
                if self._news is not None:
                    self._news.close()
                self._selector.close()
        # Not sooner: a signal may be written to it as long as its handler stands.
        self._wake.close()

    def _supervise(self) -> None:
        while True:
            now = monotonic()
            if self._news is not None and not self._news.is_open and now >= self._news.at:
                self._listen(self._news)
            if not self._going:
                for slot in self._slots:
                    if not slot.pid and not slot.is_finished and slot.fork_at <= now:
                        self._fork(slot)
            living = self._living()
            if not living and (self._going or all(slot.is_finished for slot in self._slots)):
                return
            for key, _ in self._selector.select(max(0.0, self._due() - monotonic())):
                if isinstance(key.data, News):
                    self._hear_news(key.data, key.fd)
                else:
                    self._hear(key.data)
            for slot in living:
                self._reap(slot)
            self._guard.attend(self._living())
            if self._going == "now" and monotonic() >= self._kill_at:
                self._signal_all(signal.SIGKILL)
                self._kill_at = monotonic() + 1.0

    def _due(self) -> float:
        times = [self._guard.due()]
        if self._going == "now":
            times.append(self._kill_at)
        if self._news is not None and not self._news.is_open:
            times.append(self._news.at)
        if not self._going:
            times += [slot.fork_at for slot in self._slots if not slot.pid and not slot.is_finished]
        return min(times)

    def _living(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.pid]

    def _listen(self, news: News) -> None:
        descriptor = news.open()
        if descriptor >= 0:
            self._selector.register(descriptor, selectors.EVENT_READ, news)

    def _hear_news(self, news: News, descriptor: int) -> None:
        # Before it may be closed; an open one is told to the selector again.
        self._selector.unregister(descriptor)
        if news.hear():
            self._guard.hurry()
        if news.is_open:
            self._selector.register(descriptor, selectors.EVENT_READ, news)

    def _hear(self, slot: Slot | None) -> None:
        if slot is None:
            for number in self._wake.heard():
                self._on_signal(number)
        elif slot.pipe is not None:
            try:
                heard = slot.pipe.recv(4096)
            except BlockingIOError:
                return
            except OSError:
                heard = b""
            if heard:
                self._guard.learn(slot)
            else:
                # The child is ending; that it has ended is told by its signal.
                self._selector.unregister(slot.pipe)
                slot.pipe.close()
                slot.pipe = None

    # Children.

    def _fork(self, slot: Slot) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        place = Place(slot.name, slot.slate, theirs, os.getpid(), self._settings, self._store)
        # A signal between the fork and the child's own handlers would be taken for one to the parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
        pid = os.fork()
        if pid == 0:
            become(place, self._body, [ours.fileno(), *self._descriptors()])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        theirs.close()
        slot.pid, slot.pipe, slot.born = pid, ours, monotonic()
        self._selector.register(ours, selectors.EVENT_READ, slot)
        log.info("worker %s started as process %d", slot.name, pid)

    def _descriptors(self) -> list[int]:
        """What of the parent's a child must close; an end of a pipe kept open would hide the parent's death."""
        pipes = [slot.pipe.fileno() for slot in self._slots if slot.pipe is not None]
        selector = getattr(self._selector, "fileno", None)
        news = [self._news.fileno()] if self._news is not None and self._news.is_open else []
        return [*pipes, *news, self._wake.fileno(), self._wake.wake_fd, *([selector()] if selector else [])]

    def _reap(self, slot: Slot) -> None:
        pid, status = os.waitpid(slot.pid, os.WNOHANG)
        if not pid:
            return
        code = os.waitstatus_to_exitcode(status)
        stopped = self._guard.owe(slot)
        if slot.pipe is not None:
            self._selector.unregister(slot.pipe)
            slot.pipe.close()
        slot.pid, slot.pipe = 0, None
        if self._settings.drain and code == 0:
            slot.is_finished = True
        if self._going or slot.is_finished:
            log.info("worker %s (process %d) has ended", slot.name, pid)
        else:
            self._replace_later(slot, pid, code, stopped)

    def _replace_later(self, slot: Slot, pid: int, code: int, stopped: bool) -> None:
        now = monotonic()
        crashed = code not in (0, USED_UP) and not stopped and now - slot.born < SHORT_LIFE
        slot.crashes = slot.crashes + 1 if crashed else 0
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * float(1 << min(slot.crashes, 10))) if crashed else 0.0
        slot.fork_at = now + pause
        if code == USED_UP:
            how = "has performed as many jobs as it may"
        elif stopped:
            how = "was stopped with its job"
        elif code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"ended with status {code}"
        level = logging.INFO if code in (0, USED_UP) or stopped else logging.WARNING
        log.log(level, "worker %s (process %d) %s; it is replaced in %.1f s", slot.name, pid, how, pause)

    def _signal_all(self, number: signal.Signals) -> None:
        for slot in self._living():
            os.kill(slot.pid, number)

    # Being told.

    def _on_signal(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._go("now")
        elif number == signal.SIGQUIT:
            self._go("polite")
        elif number == signal.SIGUSR1:
            log.warning("killing all workers; they are replaced")
            self._signal_all(signal.SIGKILL)
        elif number == signal.SIGUSR2:
            self._pause(True)
            log.warning("pausing, until CONT; the parent is here:\n%s", stack_of(None))
        elif number == signal.SIGCONT:
            self._pause(False)
        elif number == signal.SIGHUP:
            log.warning("the parent is here:\n%s", stack_of(None))

    def _go(self, how: Going) -> None:
        if self._going == "now" or self._going == how:
            return
        self._going = how
        self._signal_all(signal.SIGQUIT if how == "polite" else signal.SIGTERM)
        # A halted child hears nothing until it goes on.
        self._signal_all(signal.SIGCONT)
        self._pause(False)
        self._kill_at = monotonic() + self._settings.term_timeout
        log.info("stopping %s", "after the jobs under way" if how == "polite" else "now")

    def _pause(self, pause: bool) -> None:
        for slot in self._slots:
            slot.slate.paused = pause
            slot.poke()

    def _end_all(self) -> None:
        """Leave no child behind, however the supervisor ends, and give their leases back."""
        self._signal_all(signal.SIGKILL)
        for slot in self._living():
            os.waitpid(slot.pid, 0)
            self._guard.owe(slot)
            slot.pid = 0
            if slot.pipe is not None:
                slot.pipe.close()
        self._guard.finish()
        for slot in self._slots:
            slot.slate.close()


def _note(number: int, frame: object) -> None:
    """The number has been written to the descriptor that the selector waits on."""
