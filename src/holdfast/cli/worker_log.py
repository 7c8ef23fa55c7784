"""Where the log of a worker command is written, and its level."""

import logging
import os
import sys

from holdfast.errors import UsageError
from holdfast.logs import (
    DescriptorHandler,
    FinishedJobs,
    JsonFormatter,
    TextFormatter,
    jobs_log,
    logger,
    starts_log,
)


def open_log(log_file: str, log_format: str, tracebacks: bool = True) -> None:
    """Log to standard error, and also to `log_file` if one is named: the lines of holdfast and of jobs.

    Raises UsageError.
    """
    formatter = JsonFormatter(tracebacks) if log_format == "json" else TextFormatter(tracebacks=tracebacks)
    handlers = [_standard_error()]
    if log_file:
        try:
            # It holds what jobs log: a new file is for this user alone.
            opened = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            handlers.append(DescriptorHandler(opened))
            os.close(opened)
        except OSError as error:
            raise UsageError(f"--logger {log_file}: {error.strerror}") from None
    for handler in handlers:
        handler.setFormatter(formatter)
        logging.root.addHandler(handler)
    if own := [each for each in handlers if isinstance(each, DescriptorHandler)]:
        FinishedJobs(own, formatter)


def _standard_error() -> logging.Handler:
    try:
        return DescriptorHandler(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return logging.StreamHandler()  # a program replaced it


def set_level(verbose: bool, quiet: bool = False) -> None:
    """Set the level of the log: WARNING if `quiet`, DEBUG if `verbose` or VVERBOSE is set, else INFO.

    At INFO, the end of each job is logged, with VERBOSE its start too. The flags come before the variables. Raises
    UsageError.
    """
    if verbose and quiet:
        raise UsageError("--verbose and --quiet cannot be used together")
    level = logging.INFO
    if quiet:
        level = logging.WARNING
    elif verbose or os.environ.get("VVERBOSE"):
        level = logging.DEBUG
    for log in (logger, logging.root, jobs_log):
        log.setLevel(level)
    starts = level == logging.DEBUG or (level == logging.INFO and os.environ.get("VERBOSE"))
    starts_log.setLevel(level if starts else logging.WARNING)
    # It logs at DEBUG which selector it uses, each time a loop begins.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))
