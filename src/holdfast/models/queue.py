"""What is known of one queue (its counts, its statistics), and what the core returns about itself."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.errors import UsageError
from holdfast.models.job import text


class Counts(msgspec.Struct, frozen=True, gc=False):
    """How many jobs of one queue are in which state, and what people want to know beside that.

    `oldest_ms`: since when the job waits that is next, `next_ms`: when the next scheduled one is due (0: none).
    `limit` and `max_waiting` are 0 where there is none, and so is the end of a pause.
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
    def from_row(cls, row: Sequence[Any]) -> "Counts":
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

    def as_dict(self) -> dict[str, Any]:
        """The mapping that `queue.counts` shows; its times are in seconds."""
        return {
            name.removesuffix("_ms"): value / 1000 if name.endswith("_ms") else value
            for name, value in msgspec.structs.asdict(self).items()
        }


class Sample(msgspec.Struct, frozen=True, gc=False):
    """Durations of one day: count, mean and deviation in seconds, the 148 buckets, the finer scale."""

    count: int
    mean: float
    std: float
    histogram: tuple[int, ...]
    fine: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Sample":
        """Read [count, mean, std, buckets, fine]."""
        count, mean, std, buckets, fine = row
        numbers = [int(value) for value in fine]
        pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        return cls(int(count), float(mean), float(std), tuple([int(value) for value in buckets]), pairs)

    def percentile(self, percent: float) -> float:
        """So many percent of the durations were at most this long, in seconds; 0.0 if there were none.

        Read off the finer scale, whose steps are a quarter wide at most. Raises UsageError.
        """
        if not 0 <= percent <= 100:
            raise UsageError(f"a percentile is from 0 to 100, not {percent!r}")
        left = percent / 100 * sum(count for _, count in self.fine)
        for bucket, count in sorted(self.fine):
            if left <= count:
                return _moment(bucket + left / count)
            left -= count
        return 0.0

    def as_dict(self) -> dict[str, Any]:
        """The mapping that `queue.stats()` shows for `wait` and `run`."""
        return {"count": self.count, "mean": self.mean, "std": self.std, "histogram": list(self.histogram)}


class Stats(msgspec.Struct, frozen=True, gc=False):
    """One queue on one UTC day: lost leases, jobs still failed, failures, time waited, time run."""

    retries: int
    failed: int
    failures: int
    wait: Sample
    run: Sample

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Stats":
        """Read the reply of `stats`."""
        return cls(
            int(row[0]), int(row[1]), int(row[2]), Sample.from_row(row[3:8]), Sample.from_row(row[8:13])
        )

    def as_dict(self) -> dict[str, Any]:
        """The mapping that `queue.stats()` shows."""
        return {
            "retries": self.retries,
            "failed": self.failed,
            "failures": self.failures,
            "wait": self.wait.as_dict(),
            "run": self.run.as_dict(),
        }


def _moment(place: float) -> float:
    """The seconds at a place of the finer scale: bucket b begins at b mod 4 + 4 eighths of a power of two."""
    power, quarter = divmod(place - 4, 4)
    return (2**power * (quarter + 4) / 8 - 1) / 1000


class CoreInfo(msgspec.Struct, frozen=True, gc=False):
    """What the core says of itself and of this root; `heartbeat` and `grace` are seconds."""

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
    def from_row(cls, row: Sequence[Any]) -> "CoreInfo":
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
