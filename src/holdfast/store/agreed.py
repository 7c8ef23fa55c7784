"""What the starter of a warden and the warden agree on."""

import os
import sys
import time

from holdfast.errors import HoldfastError, StoreUnsupported, StoreUnwell, UsageError

LEVELS = ("memory", "process", "fsync")
"""Durability levels of an embedded store, weakest first."""

STARTED, FAILED, TAKEN = 0, 1, 3
"""Exit codes of the launcher: a warden runs now, it crashed, another warden owns the directory already."""

REFUSALS: dict[int, type[HoldfastError]] = {4: StoreUnsupported, 5: UsageError, 6: StoreUnwell}
"""Exit codes of a launcher that refuses; its error output is the sentence."""


def longer(one: float, other: float) -> float:
    """The longer of two linger times in seconds; 0 is for ever."""
    return 0.0 if 0.0 in (one, other) else max(one, other)


def say(text: str) -> None:
    """A line in the warden's log."""
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {os.getpid()} {text}\n")
    sys.stderr.flush()
