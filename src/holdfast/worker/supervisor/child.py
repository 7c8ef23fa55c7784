"""A child of a supervisor, as it sees itself: its place, and what its process does from the fork to the end."""

import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, NoReturn

from holdfast.errors import StartFailed
from holdfast.worker import signals
from holdfast.worker.descendants import end_descendants
from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.observe.board import listen
from holdfast.worker.performing.surroundings import Surroundings
from holdfast.worker.processes import send_rest
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import UNWIND, Handler, Terminated, end_process, ignore, log_stack
from holdfast.worker.stop_order import StopOrder
from holdfast.worker.store_choice import StoreChoice

log = logging.getLogger("holdfast")


class ChildPlace(NamedTuple):
    """What a child is given: its name and number, its lease table, its end of the pipe to the parent, and its settings.

    `order`: how TERM and INT are obeyed where there is no parent.
    """

    name: str
    number: int
    lease_table: LeaseTable
    pipe: socket.socket
    parent: int
    settings: WorkerSettings
    store: StoreChoice
    order: StopOrder | None = None

    def is_orphan(self) -> bool:
        """Whether the parent is dead."""
        return os.getppid() != self.parent

    def poke(self) -> None:
        """Have the parent read the lease table."""
        try:
            self.pipe.send(b"\0")
        except OSError:
            pass  # a full pipe is readable too, and a dead parent reads nothing

    def has_ended(self) -> bool:
        """Read the pipe. Return whether the parent is gone."""
        try:
            return self.pipe.recv(4096) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


Body = Callable[[ChildPlace, Surroundings], bool]
"""Works until stopped, with the surroundings of its jobs. Returns whether the process is used up, and should be replaced."""

_UNTIL_AT_WORK: Final[dict[signal.Signals, Handler | signal.Handlers]] = {
    **dict.fromkeys((signal.SIGTERM, signal.SIGQUIT, UNWIND), end_process),
    signal.SIGINT: ignore,
    **dict.fromkeys((signal.SIGUSR1, signal.SIGUSR2), log_stack),
    signal.SIGHUP: signal.SIG_IGN,
}
"""The signal handlers of a child before its body sets its own; by default most signals would kill it, one with a core dump."""

USED_UP: Final = 75
"""The exit status of a process that is used up."""


def become(
    place: ChildPlace,
    body: Body,
    inherited: Iterable[int],
    load: Callable[[ChildPlace], ChildPlace] | None = None,
) -> NoReturn:
    """Be a child: forget the parent's handlers and descriptors, load the code with `load`, run `body`, and end."""
    code = 1
    try:
        _forget_parent(place, inherited)
        if load is not None:
            place = load(place)
        code = _run(place, body)
    except Terminated:
        code = 0
    except StartFailed as error:
        log.error("worker %s cannot load its code: %s", place.name, error)
    except BaseException:
        log.exception("worker %s failed", place.name)
    finally:
        # Nothing of the parent's may run here: no exit handlers, no buffers of its that are not flushed.
        try:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _forget_parent(place: ChildPlace, inherited: Iterable[int]) -> None:
    signals.reset()
    for number, handler in _UNTIL_AT_WORK.items():
        signal.signal(number, handler)
    listen()
    importlib.invalidate_caches()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
    for descriptor in inherited:
        os.close(descriptor)
    place.pipe.setblocking(False)


def _run(place: ChildPlace, body: Body) -> int:
    """Run the body, and clear up. Returns the exit status."""
    around = Surroundings.of_child(place.settings, place.number)
    try:
        return USED_UP if body(place, around) else 0
    finally:
        # It ends already: one more order would only cut off what is still to be done.
        for number in _UNTIL_AT_WORK:
            signal.signal(number, signal.SIG_IGN)
        around.close()
        end_descendants()
        send_rest()
