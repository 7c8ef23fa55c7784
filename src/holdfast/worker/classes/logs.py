"""Where the log of a worker goes that a program runs: to its logger, or to a stream."""

import logging
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from holdfast.errors import UsageError
from holdfast.logs import TextFormatter

log = logging.getLogger("holdfast")

LOG_OPTIONS: Final = ("logger", "output", "log_level", "log_formatter", "verbose", "very_verbose")
PLAIN: Final = "%(asctime)s: %(message)s"
WITH_PROCESS: Final = "%(asctime)s: [%(process)d] %(message)s"


class _Handing(logging.Handler):
    """Hands every record to a logger of the program, which decides what becomes of it."""

    def __init__(self, target: logging.Logger) -> None:
        super().__init__()
        self._target = target

    def emit(self, record: logging.LogRecord) -> None:
        if self._target.isEnabledFor(record.levelno):
            self._target.handle(record)


class _Calling(logging.Formatter):
    """Formats by a function of severity, time, program and message, as older programs do."""

    def __init__(self, function: Callable[[str, float, str, str], str]) -> None:
        super().__init__()
        self._function = function

    def format(self, record: logging.LogRecord) -> str:
        return self._function(record.levelname, record.created, record.name, record.getMessage())


def level_of(options: Mapping[str, Any]) -> int:
    """Return the level in these options: that of a logger, `log_level`, or WARNING. Raises UsageError."""
    if options.get("very_verbose"):
        return logging.DEBUG
    if options.get("verbose"):
        return logging.INFO
    given = options.get("log_level")
    if given is None:
        logger = options.get("logger")
        return logger.getEffectiveLevel() if logger is not None else logging.WARNING
    level = logging.getLevelNamesMapping().get(given.upper()) if isinstance(given, str) else given
    if not isinstance(level, int):
        raise UsageError(f"log_level is a level of logging or its name, not {given!r:.80}")
    return level


@contextmanager
def configured_logging(options: Mapping[str, Any]) -> Generator[None]:
    """Have workers log to the target in the options for the time of a `with` block; without any, nothing changes."""
    if not any(options.get(name) is not None for name in LOG_OPTIONS):
        yield
        return
    handler, before = _handler(options), log.level
    log.addHandler(handler)
    log.setLevel(level_of(options))
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def _handler(options: Mapping[str, Any]) -> logging.Handler:
    logger = options.get("logger")
    if logger is not None:
        if not isinstance(logger, logging.Logger):
            raise UsageError(f"logger is a logging.Logger, not {logger!r:.80}")
        return _Handing(logger)
    handler = logging.StreamHandler(options.get("output") or sys.stdout)
    formatter = options.get("log_formatter")
    if formatter is None:
        formatter = TextFormatter(WITH_PROCESS if options.get("very_verbose") else PLAIN)
    elif not isinstance(formatter, logging.Formatter):
        formatter = _Calling(formatter)
    handler.setFormatter(formatter)
    return handler
