"""What became of a run, in a word: for measures and traces."""

import sys
from typing import Any, Final, NamedTuple

from holdfast.code.current import Running
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.leases import Done
from holdfast.commands.outcomes import Advance, Expire, Fail, Release, Retry
from holdfast.work.performing.outcome import Ending

OUTCOMES: Final = ("completed", "moved", "retried", "failed", "cancelled", "dropped", "lost", "interrupted")
"""`dropped`: it returned without settling; `lost`: its lease was lost; `interrupted`: its process was told to end."""

GOOD: Final = ("completed", "moved", "cancelled")

_SETTLED: Final = {
    "complete": "completed",
    "complete_x": "completed",
    "advance": "moved",
    "move": "moved",
    "retry": "retried",
    "fail": "failed",
    "cancel": "cancelled",
}


class Result(NamedTuple):
    """One of OUTCOMES, and of a failure its group and message."""

    outcome: str
    group: str = ""
    message: str = ""


def result_of(current: Running, ending: Ending) -> Result:
    """What became of a run that ended so. Ask while it ends: what broke it off is an exception under way."""
    if type(ending) is Done:
        return Result("completed")
    if isinstance(ending, CompleteX):
        return Result("moved" if ending.next_queue else "completed")
    if isinstance(ending, Advance):
        return Result("moved")
    if isinstance(ending, Fail):
        return Result("failed", ending.group, ending.message)
    if isinstance(ending, Retry):
        return Result("retried" if current.facts.remaining > 0 else "failed", ending.group, ending.message)
    if isinstance(ending, Expire | Release):
        return Result("lost")
    return Result(_unsaid(current))


def _unsaid(current: Running) -> str:
    """What became of a run of which nothing is left to say."""
    job: Any = current.made
    if job is not None and job.state_changed:
        return _SETTLED.get(job.settled_by, "moved")
    if current.lost():
        return "lost"
    return "dropped" if sys.exc_info()[0] is None else "interrupted"
