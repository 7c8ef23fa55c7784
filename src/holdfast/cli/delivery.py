"""Handing notices to a sink that may be slow or away, without holding up whoever has them."""

import queue
import signal
import threading
from typing import Final

import click

from holdfast.cli.notices import Notice
from holdfast.cli.output import echo_text
from holdfast.cli.sinks import Sink, Undelivered

MOST_WAITING: Final = 1000
PAUSES: Final = (0.5, 2.0)
"""Seconds before the second and the third try of one notice."""
LONGEST_END: Final = 10.0
"""Seconds that are left to what still waits when the program ends."""


class Delivery:
    """A thread that tells one sink, in order. What cannot be delivered is said once, and how much it was at the end of it.

    `broken` is what ended it, if that was no fault of a notice: then the main thread is interrupted.
    """

    def __init__(self, sink: Sink) -> None:
        self.broken: OSError | None = None
        self._sink = sink
        self._waiting: queue.Queue[Notice | None] = queue.Queue(MOST_WAITING)
        self._ends = threading.Event()
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name=f"holdfast notify {sink.name}", daemon=True)
        self._thread.start()

    def give(self, notice: Notice) -> None:
        """Hand over a notice; where a thousand wait already, it is lost."""
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            self._lose("it does not keep up")

    def close(self) -> None:
        """Deliver what waits, for at most ten seconds."""
        self._ends.set()
        try:
            self._waiting.put(None, timeout=LONGEST_END)
        except queue.Full:
            return
        self._thread.join(LONGEST_END)

    def _run(self) -> None:
        try:
            while (notice := self._waiting.get()) is not None:
                self._tell(notice)
        except OSError as error:  # nobody reads the output
            self.broken = error
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _tell(self, notice: Notice) -> None:
        for pause in (*PAUSES, None):
            try:
                self._sink.tell(notice)
            except Undelivered as error:
                if pause is None or error.is_lasting or self._ends.wait(pause):
                    self._lose(str(error))
                    return
            else:
                self._arrived()
                return

    def _lose(self, why: str) -> None:
        self._lost += 1
        if self._lost == 1:
            echo_text(f"{self._sink.name}: a notice is lost: {why}", err=True)

    def _arrived(self) -> None:
        if self._lost:
            click.echo(f"{self._sink.name}: works again; {self._lost} notices were lost", err=True)
            self._lost = 0
