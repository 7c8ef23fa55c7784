"""What the demo's jobs wrote down: who began and ended which step, and what a kill took away."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

Step = tuple[str, str]
"""A jid and a queue."""


class Lost(NamedTuple):
    """A step that was under way when its worker was killed; `after` is in seconds, None until it begins again."""

    jid: str
    queue: str
    worker: str
    after: float | None


class Diary:
    """Reads the diary of a run as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._begun: Counter[Step] = Counter()
        self._under_way: dict[Step, str] = {}
        self._killed_at = 0.0
        self.lost_jobs: dict[Step, Lost] = {}

    def read(self) -> None:
        """Take in the lines that were added; half a line stays for the next time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as diary:
            diary.seek(self._offset)
            text = diary.read()
        whole, newline, _ = text.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        for line in whole.splitlines():
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        step = (line["jid"], line["queue"])
        if line["what"] == "end":
            self._under_way.pop(step, None)
            return
        self._begun[step] += 1
        self._under_way[step] = line["worker"]
        lost = self.lost_jobs.get(step)
        if lost and lost.after is None and line["at"] > self._killed_at:
            self.lost_jobs[step] = lost._replace(after=line["at"] - self._killed_at)

    def held_by(self, worker: str) -> list[Step]:
        """The steps under way in the children of a worker."""
        return [step for step, name in self._under_way.items() if name.startswith(worker + "-")]

    def lost(self, worker: str, killed_at: float) -> list[Lost]:
        """Note what a worker killed at `killed_at` took along, and answer it."""
        self.read()
        self._killed_at = killed_at
        self.lost_jobs = {
            step: Lost(*step, self._under_way[step], None) for step in self.held_by(worker)
        }  # fmt: skip
        return list(self.lost_jobs.values())

    def returned(self) -> list[Lost]:
        """The lost steps that began again."""
        return [lost for lost in self.lost_jobs.values() if lost.after is not None]

    def twice(self) -> int:
        """How many steps began more than once."""
        return sum(1 for times in self._begun.values() if times > 1)
