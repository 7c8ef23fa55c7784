"""The parent of forked workers: N children, replaced when they die, told to stop, their leases kept.

One thread and one selector, over the children's pipes and a descriptor that signals write to; children are
forked from here and nowhere else, so a replacement is never forked while another thread holds a lock.
"""

import logging
import os
import selectors
import signal
import socket
from functools import partial
from random import uniform
from time import monotonic
from typing import Literal

from holdfast.work import signals
from holdfast.work.child import Body, Place, become
from holdfast.work.guard import Guard
from holdfast.work.http import Http
from holdfast.work.news import News
from holdfast.work.probes import hindrances, serve_probes
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import Handlers, Stop, at_hup, stack_of
from holdfast.work.slots import Rolling, Slot
from holdfast.work.store_choice import StoreChoice
from holdfast.work.titles import Title

log = logging.getLogger("holdfast")

Going = Literal["", "polite", "now"]


class Supervisor:
    """Keeps `settings.workers` children at work; each runs `body`. `beats`: the parent keeps their leases."""

    def __init__(self, settings: WorkerSettings, store: StoreChoice, body: Body, beats: bool) -> None:
        self._settings = settings
        self._store = store
        self._body = body
        self._slots = [self._make_slot(number) for number in range(settings.workers)]
        # What is registered comes with the function to call when it is ready.
        self._selector = selectors.DefaultSelector()
        client = store.beating_client(settings.worker_name(0))
        self._guard = Guard(client, settings, beats)
        self._news = News(client, [slot.name for slot in self._slots])
        self._http = Http(self._selector)
        serve_probes(self._http, settings.health_port, self._why_not_ready)
        self._wake = Stop()
        self._rolling = Rolling()
        self._going: Going = ""
        self._paused = False
        self._kill_at = 0.0
        self._title = Title(follows=False)

    def run(self) -> None:
        """Supervise until told to stop, or until every child has drained its queues."""
        with Handlers(dict.fromkeys(signals.ALL, _note), self._wake.wake_fd):
            self._selector.register(self._wake, selectors.EVENT_READ, self._hear_signals)
            try:
                self._supervise()
            finally:
                self._end_all()
                if self._news.is_open:
                    self._selector.unregister(self._news)
                self._news.close()
                self._http.close()
                self._selector.close()
                self._title.close()
        # Not sooner: a signal may be written to it as long as its handler stands.
        self._wake.close()

    def _supervise(self) -> None:
        while True:
            self._listen()
            if not self._going:
                self._fill(monotonic())
            self._say_title()
            if not self._living() and (self._going or all(slot.is_finished for slot in self._slots)):
                return
            for key, _ in self._selector.select(max(0.0, self._due() - monotonic())):
                key.data()
            for slot in self._living():
                self._reap(slot)
            self._http.attend(monotonic())
            self._guard.attend(self._living())
            if self._going == "now" and monotonic() >= self._kill_at:
                self._signal_all(signal.SIGKILL)
                self._kill_at = monotonic() + 1.0

    def _due(self) -> float:
        times = [self._guard.due(), self._http.due(), self._title.due()]
        if self._going == "now":
            times.append(self._kill_at)
        if not self._news.is_open:
            times.append(self._news.at)
        if not self._going:
            times.append(self._rolling.due())
            times += [slot.fork_at for slot in self._slots if slot.awaits_child]
        return min(times)

    def _living(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.pid]

    def _say_title(self) -> None:
        doing = "Stopping" if self._going else "Paused -- with" if self._paused else "Working with"
        self._title.say("%s %d children for %s", doing, len(self._living()), ", ".join(self._settings.queues))

    def _why_not_ready(self) -> list[str]:
        wanted = [slot for slot in self._slots if not slot.is_finished]
        why = hindrances(
            stopping=bool(self._going),
            heard=self._guard.is_heard,
            paused=all(slot.slate.paused for slot in wanted),
        )
        at_work = sum(slot.is_at_work for slot in wanted)
        if at_work < max(1, len(wanted) - 1):
            why.append(f"{at_work} of {len(wanted)} processes are at work")
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
            # One that is cut off is news too: the store may be away.
            self._guard.hurry()

    def _hear_child(self, slot: Slot, pipe: socket.socket) -> None:
        try:
            heard = pipe.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if heard:
            self._guard.learn(slot)
        else:
            # The child is ending; that it has ended is told by its signal.
            self._selector.unregister(pipe)
            pipe.close()
            slot.pipe = None

    def _hear_signals(self) -> None:
        for number in self._wake.heard():
            self._on_signal(number)

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
            self._restart()

    def _restart(self) -> None:
        at_hup(self._settings.sighup_handler)(signal.SIGHUP, None)
        if not self._going:
            log.info("restarting all workers, one at a time, each after its jobs")
            self._rolling.begin()

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
        self._paused = pause
        for slot in self._slots:
            slot.slate.paused = pause
            slot.poke()

    def _signal_all(self, number: signal.Signals) -> None:
        for slot in self._living():
            slot.signal(number)

    # Children.

    def _make_slot(self, number: int) -> Slot:
        delay = uniform(0.0, self._settings.max_startup_interval)
        return Slot(
            self._settings.worker_name(number), number, self._settings.concurrency, monotonic() + delay
        )

    def _fill(self, now: float) -> None:
        """Fork where a child is missing, and ask the next one to go in a rolling restart."""
        for slot in self._slots:
            if slot.awaits_child and slot.fork_at <= now:
                self._fork(slot)
        old = self._rolling.step(self._slots)
        if old is not None:
            log.info("worker %s (process %d) makes room after its jobs", old.name, old.pid)
            old.retire()

    def _fork(self, slot: Slot) -> None:
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            self._cannot_fork(slot, error)
            return
        ours.setblocking(False)
        place = Place(slot.name, slot.number, slot.slate, theirs, os.getpid(), self._settings, self._store)
        with theirs:
            # A signal between the fork and the child's own handlers would be taken for one to the parent.
            signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
            try:
                pid = os.fork()
                if pid == 0:
                    become(place, self._body, [ours.fileno(), *self._descriptors()])
            except OSError as error:
                ours.close()
                self._cannot_fork(slot, error)
                return
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        slot.settle(pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, partial(self._hear_child, slot, ours))
        log.info("worker %s started as process %d", slot.name, pid)

    def _cannot_fork(self, slot: Slot, error: OSError) -> None:
        log.error("worker %s cannot be started, trying again in %.1f s: %s", slot.name, slot.put_off(), error)

    def _descriptors(self) -> list[int]:
        """What of the parent's a child must close; an end of a pipe kept open would hide the parent's death."""
        registered = [key.fd for key in self._selector.get_map().values()]
        selector = getattr(self._selector, "fileno", None)
        return [*registered, self._wake.wake_fd, *([selector()] if selector else [])]

    def _reap(self, slot: Slot) -> None:
        try:
            pid, status = os.waitpid(slot.pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            pid, status = slot.pid, 0  # somebody else has buried it
        if not pid:
            return
        if os.WIFSTOPPED(status):
            log.warning(
                "worker %s (process %d) was halted by a signal; until CONT it does nothing", slot.name, pid
            )
            return
        code, stopped = os.waitstatus_to_exitcode(status), self._bury(slot)
        slot.is_finished = self._is_finished(slot, code)
        if self._going or slot.is_finished:
            log.info("worker %s (process %d) has ended", slot.name, pid)
        else:
            how, was_meant, pause = slot.replace(code, stopped)
            level = logging.INFO if was_meant else logging.WARNING
            log.log(level, "worker %s (process %d) %s; it is replaced in %.1f s", slot.name, pid, how, pause)

    def _bury(self, slot: Slot) -> bool:
        """The child of this place is dead: see to what it owes. Answers whether it was killed for its job."""
        stopped = self._guard.owe(slot)
        if slot.pipe is not None:
            self._selector.unregister(slot.pipe)
        slot.leave()
        return stopped

    def _is_finished(self, slot: Slot, code: int) -> bool:
        """Whether nobody comes after a child that ended with this code."""
        return self._settings.drain and code == 0 and not slot.is_retiring

    def _end_all(self) -> None:
        """Leave no child behind, however the supervisor ends, and give their leases back."""
        self._signal_all(signal.SIGKILL)
        for slot in self._living():
            try:
                os.waitpid(slot.pid, 0)
            except ChildProcessError:
                pass  # somebody else has buried it
            self._bury(slot)
        self._guard.finish()
        for slot in self._slots:
            slot.slate.close()


def _note(number: int, frame: object) -> None:
    """The number has been written to the descriptor that the selector waits on."""
