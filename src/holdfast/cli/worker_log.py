"""Where the log of a worker command goes, and how much it says."""

import logging
import os

from holdfast.errors import UsageError
from holdfast.logs import FORMAT

log = logging.getLogger("holdfast")


def open_log(log_file: str) -> None:
    """Log to standard error, and also to `log_file` if it has a name. Raises UsageError."""
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if log_file:
        try:
            handlers.append(logging.FileHandler(log_file))
        except OSError as error:
            raise UsageError(f"--logger {log_file}: {error.strerror}") from None
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORMAT))
        log.addHandler(handler)


def set_level(verbose: bool) -> None:
    """Everything there is to be said, if `verbose` or VVERBOSE asks for it; else starts, ends and warnings."""
    log.setLevel(logging.DEBUG if verbose or os.environ.get("VVERBOSE") else logging.INFO)
