"""A process that has grown too large ends after its jobs, and its parent replaces it."""

import logging
import os
import resource
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from holdfast.code.middleware import Either, Perform, Wearable, behind, within
from holdfast.settings import MAX_WHOLE, check_whole

log = logging.getLogger("holdfast")

_STATM: Final = Path("/proc/self/statm")


class MemoryUsageMonitor(Wearable):
    """Has the worker end gracefully when its process uses more than `max_memory` KB after a job, also after a failed one.

    The jobs under way are finished; under a parent the process is replaced at once, with the pool `serial` something else
    must start it again. In a program that is no worker it only logs. Raises UsageError.
    """

    max_memory: int = MAX_WHOLE

    def __init__(self, max_memory: int) -> None:
        self.max_memory = check_whole("max_memory", max_memory, 1, MAX_WHOLE)

    @Either
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next, and look then."""
        return within(_watched(self.max_memory, job), behind(MemoryUsageMonitor, self, call_next), job)


def memory_used() -> int:
    """The resident memory of this process in KB; where the system does not tell, the most it ever was."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize() // 1024
    except (OSError, IndexError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most // 1024 if sys.platform == "darwin" else most


@contextmanager
def _watched(max_memory: int, job: Any) -> Generator[None]:
    try:
        yield
    finally:
        used = memory_used()
        if used > max_memory:
            log.warning(
                "after job %s this process uses %d KB, more than %d: it ends", job.jid, used, max_memory
            )
            end_gracefully()


def end_gracefully() -> None:
    """Have the worker of this process end after its jobs; a program that is no worker goes on."""
    # What a worker does at QUIT. Whoever has not said what to do then would be killed by it.
    if signal.getsignal(signal.SIGQUIT) not in (signal.SIG_DFL, signal.SIG_IGN, None):
        os.kill(os.getpid(), signal.SIGQUIT)
