"""Frozen data read from the core's replies.

Names that end in `_ms` are whole milliseconds of the store's clock; times without a unit in their name are seconds.
"""

from collections.abc import Sequence

import msgspec

from holdfast.errors import UsageError
from holdfast.models.job import Failure, HistoryEntry, JobFacts, Progress, Reply, State, text, texts

__all__ = [
    "CoreInfo",
    "Counts",
    "Failure",
    "HistoryEntry",
    "JobFacts",
    "Progress",
    "Reply",
    "Sample",
    "State",
    "Stats",
    "text",
    "texts",
]


class Counts(msgspec.Struct, frozen=True, gc=False):
    """The number of jobs of one queue in each state, and its limits and pause.

    `oldest_ms`: when the next ready job was queued, `next_ms`: when the next scheduled one is due (0: none). `limit`,
    `max_waiting` and `paused_until_ms` are 0 if there is none.
    """

    name: str
    waiting: int = 0
    running: int = 0
    stalled: int = 0
    throttled: int = 0
    scheduled: int = 0
    depends: int = 0
    recurring: int = 0
    paused: bool = False
    failed: int = 0
    oldest_ms: int = 0
    next_ms: int = 0
    limit: int = 0
    heartbeat_ms: int = 60_000
    paused_by: str = ""
    paused_why: str = ""
    paused_since_ms: int = 0
    paused_until_ms: int = 0
    max_waiting: int = 0

    @classmethod
    def from_row(cls, row: Sequence[Reply]) -> "Counts":
        """Read a row of `counts`."""
        waiting, running, stalled, throttled, scheduled, depends, recurring, paused, failed = map(
            int, row[1:10]
        )
        return cls(
            text(row[0]),
            waiting,
            running,
            stalled,
            throttled,
            scheduled,
            depends,
            recurring,
            bool(paused),
            failed,
            oldest_ms=int(row[10]),
            next_ms=int(row[11]),
            limit=int(row[12]),
            heartbeat_ms=int(row[13]),
            paused_by=text(row[14]),
            paused_why=text(row[15]),
            paused_since_ms=int(row[16]),
            paused_until_ms=int(row[17]),
            max_waiting=int(row[18]),
        )

    @property
    def length(self) -> int:
        """Waiting, running, stalled and scheduled jobs together: the `len` of a queue."""
        return self.waiting + self.running + self.stalled + self.scheduled

    def as_dict(self) -> dict[str, object]:
        """Return the mapping that `queue.counts` shows; its times are in seconds."""
        return {
            name.removesuffix("_ms"): value / 1000 if name.endswith("_ms") else value
            for name, value in msgspec.structs.asdict(self).items()
        }


class Sample(msgspec.Struct, frozen=True, gc=False):
    """Durations of one day: count, mean and standard deviation in seconds, 148 buckets, and finer buckets."""

    count: int
    mean: float
    std: float
    histogram: tuple[int, ...]
    fine: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_row(cls, row: Sequence[Reply]) -> "Sample":
        """Read [count, mean, std, buckets, fine]."""
        count, mean, std, buckets, fine = row
        numbers = [int(value) for value in fine]
        pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        return cls(int(count), float(mean), float(std), tuple([int(value) for value in buckets]), pairs)

    def percentile(self, percent: float) -> float:
        """Return the duration in seconds that `percent` percent of all durations do not exceed; 0.0 if there are none.

        It is read from the finer buckets, which are at most a quarter wide. Raises UsageError.
        """
        if not 0 <= percent <= 100:
            raise UsageError(f"a percentile is from 0 to 100, not {percent!r}")
        left = percent / 100 * sum(count for _, count in self.fine)
        for bucket, count in sorted(self.fine):
            if left <= count:
                return _moment(bucket + left / count)
            left -= count
        return 0.0

    def moments(self) -> list[tuple[float, int]]:
        """Return the middle of each of the finer buckets, in seconds, with its count; the shortest first."""
        return [(_moment(bucket + 0.5), count) for bucket, count in sorted(self.fine)]

    def as_dict(self) -> dict[str, object]:
        """Return the mapping that `queue.stats()` shows for `wait` and `run`."""
        return {"count": self.count, "mean": self.mean, "std": self.std, "histogram": list(self.histogram)}


class Stats(msgspec.Struct, frozen=True, gc=False):
    """One queue on one UTC day: lost leases, jobs that are still failed, failures, waiting times, run times, retried runs.

    `retries` is the older name of `lost`.
    """

    retries: int
    failed: int
    failures: int
    wait: Sample
    run: Sample
    retried: int = 0

    @property
    def lost(self) -> int:
        """The leases that were lost."""
        return self.retries

    @classmethod
    def from_row(cls, row: Sequence[Reply]) -> "Stats":
        """Read the reply of `stats`."""
        wait, run, retried = Sample.from_row(row[3:8]), Sample.from_row(row[8:13]), int(row[13])
        return cls(int(row[0]), int(row[1]), int(row[2]), wait, run, retried)

    def as_dict(self) -> dict[str, object]:
        """Return the mapping that `queue.stats()` shows."""
        return {
            "retries": self.retries,
            "failed": self.failed,
            "failures": self.failures,
            "wait": self.wait.as_dict(),
            "run": self.run.as_dict(),
            "retried": self.retried,
            "lost": self.lost,
        }


def _moment(place: float) -> float:
    """Return the seconds at a position of the finer buckets: bucket b begins at b mod 4 + 4 eighths of a power of two."""
    power, quarter = divmod(place - 4, 4)
    return (2**power * (quarter + 4) / 8 - 1) / 1000


class CoreInfo(msgspec.Struct, frozen=True, gc=False):
    """The version of the core, and the facts of this root; `heartbeat` and `grace` are in milliseconds."""

    version: str
    digest: str
    schema: int
    epoch: str
    now_ms: int
    is_test: bool
    denied: tuple[str, ...]
    heartbeat: float = 60.0
    grace: float = 10.0

    @classmethod
    def from_row(cls, row: Sequence[Reply]) -> "CoreInfo":
        """Read the reply of `info`."""
        denied = text(row[6])
        return cls(
            text(row[0]),
            text(row[1]),
            int(row[2]),
            text(row[3]),
            int(row[4]),
            bool(int(row[5])),
            tuple(denied.split(",")) if denied else (),
            float(row[7]),
            float(row[8]),
        )
