"""Where the log of a worker command goes, and how much it says."""

import logging
import os

from holdfast.errors import UsageError
from holdfast.logs import JsonFormatter, TextFormatter, jobs_log, logger


def open_log(log_file: str, log_format: str) -> None:
    """Log to standard error, and also to `log_file` if it has a name: what holdfast says, and what jobs do.

    Raises UsageError.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if log_file:
        try:
            # It holds what jobs say: a new one is for this user alone.
            os.close(os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
            handlers.append(logging.FileHandler(log_file, encoding="utf-8", errors="backslashreplace"))
        except OSError as error:
            raise UsageError(f"--logger {log_file}: {error.strerror}") from None
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
        logging.root.addHandler(handler)


def set_level(verbose: bool) -> None:
    """How much is said: starts, ends and warnings, and what jobs log from INFO on; the start and the end of every job
    too, if VERBOSE is set; everything, if `verbose` or VVERBOSE asks for it.
    """
    level = logging.DEBUG if verbose or os.environ.get("VVERBOSE") else logging.INFO
    logger.setLevel(level)
    logging.root.setLevel(level)
    often = level == logging.DEBUG or bool(os.environ.get("VERBOSE"))
    jobs_log.setLevel(level if often else logging.WARNING)
    # It says at DEBUG which selector it uses, each time a loop begins.
    logging.getLogger("asyncio").setLevel(logging.INFO)
