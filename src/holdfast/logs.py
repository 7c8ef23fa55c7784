"""The one logger of holdfast."""

import logging
import sys
from typing import Any, Final

FORMAT: Final = "%(asctime)s | PID %(process)d | [%(levelname)s] %(message)s"


class WhenAsked(logging.StreamHandler[Any]):
    """Writes to standard error for programs that asked for our log and set up no logging of their own.

    Asking is `holdfast.logger.setLevel("INFO")`. A program with handlers of its own sees each line there, and once.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or nothing."""
        if logger.level and logger.handlers == [self] and not logging.root.handlers:
            self.setStream(sys.stderr)  # as it is now: programs replace it
            super().emit(record)


logger: Final = logging.getLogger("holdfast")
"""It says nothing until the program sets its level or configures logging."""
_own: Final = WhenAsked()
_own.setFormatter(logging.Formatter(FORMAT))
logger.addHandler(_own)
