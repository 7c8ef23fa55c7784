"""A forked child of the supervisor: where it starts, and how it ends without running anything of its parent's."""

import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, NoReturn

from holdfast.work import signals
from holdfast.work.observe.board import listen
from holdfast.work.observe.parting import send_rest
from holdfast.work.parent.slate import Slate
from holdfast.work.performing.around import Around
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import UNWIND, Handler, Terminated, end_process, ignore, log_stack
from holdfast.work.stop_order import StopOrder
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")


class Place(NamedTuple):
    """What a child is given: its name and number, its lease table, its end of the pipe to the parent, and its work.

    `order`: how TERM and INT are obeyed where there is no parent, which would order it.
    """

    name: str
    number: int
    slate: Slate
    pipe: socket.socket
    parent: int
    settings: WorkerSettings
    store: StoreChoice
    order: StopOrder | None = None

    def is_orphan(self) -> bool:
        """Whether the parent is dead."""
        return os.getppid() != self.parent

    def poke(self) -> None:
        """Make the parent look at the slate."""
        try:
            self.pipe.send(b"\0")
        except OSError:
            pass  # a full pipe pokes too, and a dead parent cannot be poked

    def hears_of_end(self) -> bool:
        """Read the pipe. Answers whether the parent is gone."""
        try:
            return self.pipe.recv(4096) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


Body = Callable[[Place, Around], bool]
"""Works until told to stop, with what the process keeps around its jobs. Answers whether the process is used up, and another one should go on in its place."""

_UNTIL_AT_WORK: Final[dict[signal.Signals, Handler | signal.Handlers]] = {
    **dict.fromkeys((signal.SIGTERM, signal.SIGQUIT, UNWIND), end_process),
    signal.SIGINT: ignore,
    **dict.fromkeys((signal.SIGUSR1, signal.SIGUSR2), log_stack),
    signal.SIGHUP: signal.SIG_IGN,
}
"""What signals do to a child before its body says what they do; by default most would kill it, one with a core dump."""

USED_UP: Final = 75
"""The exit status of a process that is used up."""


def become(place: Place, body: Body, inherited: Iterable[int]) -> NoReturn:
    """Be a child: forget the parent's handlers and descriptors, run `body`, and end."""
    code = 1
    try:
        signals.reset()
        for number, handler in _UNTIL_AT_WORK.items():
            signal.signal(number, handler)
        listen()
        importlib.invalidate_caches()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        for descriptor in inherited:
            os.close(descriptor)
        place.pipe.setblocking(False)
        around = Around.of_child(place.settings, place.number)
        try:
            code = USED_UP if body(place, around) else 0
        finally:
            # It ends already: one more order would only cut off what is still to be done.
            for number in _UNTIL_AT_WORK:
                signal.signal(number, signal.SIG_IGN)
            around.close()
            send_rest()
    except Terminated:
        code = 0
    except BaseException:
        log.exception("worker %s ends", place.name)
    finally:
        # Nothing of the parent's may run here: no exit handlers, no buffers of its that are not flushed.
        try:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
