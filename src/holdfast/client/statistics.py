"""What both clients show of what happened in a queue."""

from itertools import pairwise
from typing import Any

from holdfast.client.colours import Verb
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.tallies import Minutes, Tallies
from holdfast.settings import check_milliseconds


class QueueStatistics:
    """What a queue can be asked about its past."""

    _client: Any
    name: str

    @Verb
    def tallies(self) -> Command[dict[str, int]]:
        """What happened here since the queue was first used: put, popped, completed, failed, retried, lost, timed_out
        and cancelled. Exact. Core: verbs/minutes.lua."""
        return then(Minutes(self.name, 2**53 - 1), lambda lines: lines[-1].as_dict())

    @Verb
    def minutes(self, since: float = 0) -> Command[list[dict[str, Any]]]:
        """What happened here from line to line, from epoch second `since` on: dicts of `when`, the end of the time they
        count, and the counts of `tallies`.

        Lines are a minute apart for three hours, ten minutes for the week before; who asks gets the time since
        the last line as well. Core: verbs/minutes.lua.
        """
        return then(Minutes(self.name, check_milliseconds("since", since, 0, 2**43)), _steps)


def _steps(lines: list[Tallies]) -> list[dict[str, Any]]:
    return [{"when": now.when_ms / 1000, **now.since(before).as_dict()} for before, now in pairwise(lines)]
