"""What the reference model is made of: a job, a queue, a day of statistics."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

HOUR = 3_600_000
DAY = 24 * HOUR
TO_SETTLE = 5_000
Line = tuple[str, int, str]
"""A line of a history: what, when in ms, and the queue or group it names."""


@dataclass
class Job:
    """One job; times in ms. `rank` orders the ready ones: the smallest is next.

    `tags` say when each was attached, `parents` are the open ones, and `due_then` is the due time (0: none) that is
    kept until they are complete. `started` says whether somebody had it in this life.
    `holds` are named throttles of which it has a slot, `pends` the one for which it was set aside; `slot` says that
    the end of its run has to be noticed by a throttle, `freed` that it runs on without the slot of its queue.
    """

    jid: str
    klass: str
    data: bytes
    queue: str
    priority: int
    retries: int
    remaining: int
    created: int
    queued: int
    state: str = "waiting"
    attempts: int = 0
    losses: int = 0
    max_losses: int | None = None
    popped: int = 0
    ended: int = 0
    since: int = 0
    token: int = 0
    worker: str = ""
    end: int = 0
    due: int = 0
    aside: int = 0
    rank: tuple[int, ...] = ()
    ready: bool = False
    noticed: bool = False
    slot: bool = False
    freed: bool = False
    holds: set[str] = field(default_factory=set)
    pends: str = ""
    awaited: bool = False
    tags: dict[str, int] = field(default_factory=dict)
    parents: set[str] = field(default_factory=set)
    due_then: int = 0
    throttles: list[str] = field(default_factory=list)
    started: bool = False
    spawned_from: str = ""
    progress: tuple[float, str, int] | None = None
    tail: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    failure: tuple[str, str, int, str] | None = None
    history: list[Line] = field(default_factory=list)

    @property
    def last_end(self) -> float:
        """When its lease ends at the latest: a run may take `limit`, and its worker then has a moment to say so."""
        return self.popped + self.options["limit"] + TO_SETTLE if "limit" in self.options else float("inf")

    def held_by(self, worker: str, token: int) -> bool:
        return self.state == "running" and self.worker == worker and self.token == token


@dataclass
class Ending:
    """How one attempt ended, for calls that are sent again."""

    what: str
    answer: Any = None


@dataclass
class Queue:
    name: str
    paused: bool = False
    paused_until: int = 0
    limit: int = 0
    heartbeat: int = 0

    def is_paused(self, now: int) -> bool:
        return self.paused and not 0 < self.paused_until <= now


@dataclass
class Series:
    """Samples in seconds, and the protocol's figures of them (core-protocol 4.3 and 4.4)."""

    samples: list[float] = field(default_factory=list)

    def figures(self) -> tuple[int, float, float, list[int]]:
        count, mean, vk = 0, 0.0, 0.0
        histogram = [0] * 148
        for x in self.samples:
            count += 1
            old = mean
            mean += (x - mean) / count
            vk += (x - mean) * (x - old)
            bucket = self.bucket(int(x))
            if bucket is not None:
                histogram[bucket] += 1
        return count, mean, sqrt(vk / (count - 1)) if count > 1 else 0.0, histogram

    @staticmethod
    def bucket(v: int) -> int | None:
        if v < 60:
            return v
        if v < 3600:
            return 60 + v // 60 - 1
        if v < 86_400:
            return 119 + v // 3600 - 1
        if v < 7 * 86_400:
            return 142 + v // 86_400 - 1
        return None


@dataclass
class Day:
    retries: int = 0
    failed: int = 0
    failures: int = 0
    retried: int = 0
    wait: Series = field(default_factory=Series)
    run: Series = field(default_factory=Series)
