"""Breaking off the one job of a process whose lease is gone: it may have taken all its time, or been cancelled."""

import signal
import threading
from time import monotonic
from types import FrameType
from typing import Final

from holdfast.code.current import running
from holdfast.work.signals import UNWIND

BREAK_OFF: Final = UNWIND
"""The signal that wakes the main thread from any wait."""

AGAIN: Final = 1.0  # seconds until a job that did not end is interrupted once more


def break_off(number: int, frame: FrameType | None) -> None:
    """Interrupt the job that this thread performs if its lease is known to be lost. Raises KeyboardInterrupt.

    A job has a second to unwind before it is interrupted again; so have we to note how it ended.
    """
    current = running.get()
    why = current.lost() if current is not None else ""
    if current is not None and why and monotonic() >= current.interrupted + AGAIN:
        current.interrupted = monotonic()
        raise KeyboardInterrupt(why)


def wake_main() -> None:
    """Have the main thread look whether its job is to be broken off."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, BREAK_OFF)
