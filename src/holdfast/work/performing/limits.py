"""Breaking off the one job of a process whose lease is gone: it may have taken all its time, or been cancelled."""

import signal
import threading
from types import FrameType
from typing import Final

from holdfast.code.current import running
from holdfast.work.signals import UNWIND

BREAK_OFF: Final = UNWIND
"""The signal that wakes the main thread from any wait."""


def break_off(number: int, frame: FrameType | None) -> None:
    """Interrupt the job that this thread performs if its lease is known to be lost. Raises KeyboardInterrupt."""
    current = running.get()
    why = current.lost() if current is not None else ""
    if why:
        raise KeyboardInterrupt(why)


def wake_main() -> None:
    """Have the main thread look whether its job is to be broken off."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, BREAK_OFF)
