"""The turns of a recurring job: in words, those to come, and those that were missed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from holdfast.commands.recurring import RecurringFacts
from holdfast.console.read.queries import HOUR_MS
from holdfast.text import every

_DAY_MS: Final = 24 * HOUR_MS
_STEP_MS: Final = 600_000
"""What is due within such a step of the day ahead is one point of the drawing."""


def missed_of(facts: RecurringFacts, now_ms: int) -> int:
    """Return how many turns of a recurring job are over without a job: its queue was asked by no worker since."""
    return 0 if facts.paused else facts.missed_by(now_ms)


def upcoming(known: Sequence[RecurringFacts], now_ms: int) -> tuple[int, ...]:
    """Return the times of the next 24 hours at which jobs are put, in epoch milliseconds, to ten minutes."""
    steps: set[int] = set()
    for one in known:
        if one.paused:
            continue
        every = max(one.interval_ms, _STEP_MS)
        for at in range(max(one.next_ms, now_ms), now_ms + _DAY_MS, every):
            steps.add(at // _STEP_MS)
    return tuple(step * _STEP_MS for step in sorted(steps) if step * _STEP_MS >= now_ms)


def in_words(interval_ms: int, next_ms: int) -> str:
    """Return a schedule in words: `every 15 minutes`, `every hour at minute 5`, `every day at 03:00 UTC`."""
    text = every(interval_ms)
    try:
        due = datetime.fromtimestamp(next_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return text
    if interval_ms % _DAY_MS == 0:
        return f"{text} at {due:%H:%M} UTC"
    return f"{text} at minute {due.minute}" if interval_ms % HOUR_MS == 0 else text
