"""Failure groups that begin to grow fast, and those that do not any more, by the rule of the attention list."""

import threading
from collections.abc import Callable, Sequence
from time import time
from typing import Final

from holdfast.cli.notices.notice import MOST_LINE, Notice, cut, masked
from holdfast.cli.output import echo_text
from holdfast.commands.failures import FailureGroup
from holdfast.console.handles import Console
from holdfast.console.health.attention import Attention
from holdfast.console.health.triage import is_surge, surge_text
from holdfast.console.masking import Mask
from holdfast.console.page_paths import group_path
from holdfast.errors import HoldfastError
from holdfast.printable import one_line

SURGE: Final = "surge"
"""The event of a surge, as `--event` has it."""
OVER: Final = "surge-over"


class SurgeNotice(Notice, frozen=True, kw_only=True):
    """A failure group that grows fast, or does not any more: its jobs, and how many failed in the present hour."""

    group: str
    what: str
    count: int
    hour: int

    @property
    def title(self) -> str:
        """Return the group and its figures."""
        return cut(one_line(Attention("urgent", SURGE, self.group, self.what).sentence), MOST_LINE)


class SurgeWatch:
    """Finds surges by comparing the failure groups with those of the last look."""

    def __init__(self, web: str = "") -> None:
        self._web = web
        self._surging: set[str] = set()

    def look(self, groups: Sequence[FailureGroup]) -> list[SurgeNotice]:
        """Return notices of surges that have begun, and of those that are over.

        An hour begins with no failures, so a surge is over after a whole hour without one, or when its group is gone.
        """
        found: list[SurgeNotice] = []
        known = {group.name: group for group in groups}
        for name in sorted(self._surging):
            group = known.get(name)
            if group is None or not (is_surge(group.trend) or is_surge(group.trend[:-1])):
                self._surging.remove(name)
                found.append(self._notice(OVER, name, group))
        for group in groups:
            if is_surge(group.trend) and group.name not in self._surging:
                self._surging.add(group.name)
                found.append(self._notice(SURGE, group.name, group))
        return found

    def _notice(self, event: str, name: str, group: FailureGroup | None) -> SurgeNotice:
        link = self._web + group_path(name) if self._web and group else ""
        if group is None:
            text, count, hour = "no failed jobs are left", 0, 0
        else:
            text, count, hour = surge_text(group), group.count, group.trend[-1]
        what = text if event == SURGE else f"the surge is over: {text}"
        return SurgeNotice(event=event, when=time(), link=link, group=name, what=what, count=count, hour=hour)


class SurgePoller:
    """A thread that looks at the failure groups every so many seconds, until `stop`. Outages of the store are printed once."""

    def __init__(
        self, console: Console, every: float, web: str, mask: Mask, give: Sequence[Callable[[Notice], None]]
    ) -> None:
        self._console, self._every, self._mask, self._give = console, every, mask, give
        self._watch = SurgeWatch(web)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast notify surges", daemon=True)
        self._is_out = False

    def start(self) -> None:
        """Look at once, then again and again."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End the thread, and wait for it for so many seconds."""
        self._ends.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._ends.is_set():
            self._look()
            self._ends.wait(self._every)

    def _look(self) -> None:
        try:
            groups = self._console.failures()
        except HoldfastError as error:
            if not self._is_out:
                echo_text(f"failure groups cannot be read: {error}; trying again", err=True)
            self._is_out = True
            return
        if self._is_out:
            echo_text("failure groups can be read again", err=True)
        self._is_out = False
        for notice in self._watch.look(groups):
            for give in self._give:
                give(masked(notice, self._mask))
