"""What a process still has to send when it ends: its exit handlers never run, so whoever keeps things back is told."""

import logging
import sys
from collections.abc import Callable
from typing import Any, Final

log = logging.getLogger("holdfast")

PATIENCE: Final = 1.0
"""Seconds that each of them has: a process that was told to end now has few."""


def send_rest() -> None:
    """Let OpenTelemetry and Sentry, where they are loaded, send what they keep back. Raises nothing."""
    _try("OpenTelemetry", _flush_spans)
    _try("Sentry", _flush_reports)


def _flush_spans() -> None:
    api: Any = sys.modules.get("opentelemetry.trace")
    flush = getattr(api.get_tracer_provider(), "force_flush", None) if api is not None else None
    if flush is not None:
        flush(round(PATIENCE * 1000))


def _flush_reports() -> None:
    sdk: Any = sys.modules.get("sentry_sdk")
    if sdk is not None:
        sdk.flush(PATIENCE)


def _try(name: str, flush: Callable[[], None]) -> None:
    try:
        flush()
    except Exception:
        log.exception("%s could not send its buffered data", name)
