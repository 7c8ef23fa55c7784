"""How times are shown to people."""

from datetime import UTC, datetime

from holdfast.cli.output import duration
from holdfast.client.reasons import span


def ago(when_ms: int, now_ms: int) -> str:
    """Return how long ago something was, or when it will be: `3 min 20 s ago`, `in 4 h`; "" for no time."""
    if not when_ms:
        return ""
    seconds = round((now_ms - when_ms) / 1000)
    return f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"


def brief(when_ms: int, now_ms: int) -> str:
    """Return the same for a list, in one unit: `3 min ago`, `in 4 h`."""
    if not when_ms:
        return ""
    return f"{span(now_ms - when_ms)} ago" if now_ms >= when_ms else f"in {span(when_ms - now_ms)}"


def age(when_ms: int, now_ms: int) -> str:
    """Return how long ago something was, without the word: `3 min`."""
    return span(max(now_ms - when_ms, 0)) if when_ms else ""


def moment(when_ms: int, now_ms: int = 0) -> str:
    """Return a time as `2026-11-23 19:31:46 UTC`, with how long ago that was if it is known what time it is."""
    if not when_ms:
        return ""
    try:
        shown = datetime.fromtimestamp(when_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # the time of another program
        return str(when_ms)
    return f"{shown} ({ago(when_ms, now_ms)})" if now_ms else shown
