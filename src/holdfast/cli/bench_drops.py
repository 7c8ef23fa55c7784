"""`holdfast bench --drop-jobs`: jobs that do nothing, and threads that drop some of them, as crashed workers would."""

import random
import threading
from collections.abc import Callable, Sequence
from time import monotonic, perf_counter
from typing import Any, Final, NamedTuple

from holdfast.cli.bench_run import Scratch
from holdfast.client.handles import Job, Queue
from holdfast.commands.leases import WILL_WAIT, WOKEN, Pop
from holdfast.errors import HoldfastError, Refused, StoreUnavailable
from holdfast.models import JobFacts
from holdfast.text import duration

KLASS: Final = "bench.Contrived"
HEARTBEAT: Final = 1  # seconds until a dropped job loses its lease
LOOK_EVERY: Final = 0.2
LONGEST_WAIT: Final = 0.5
PATIENCE: Final = 60.0
"""Seconds in which at least one job must end."""
_OPEN: Final = ("waiting", "running", "stalled", "scheduled", "throttled", "depends")


class Plan(NamedTuple):
    """A run: each of `jobs` goes through `stages` queues; `workers` threads drop a share of the jobs that they take."""

    forgetfulness: float = 0.1
    stages: int = 1
    jobs: int = 1000
    workers: int = 10
    retries: int = 5

    @property
    def queues(self) -> tuple[str, ...]:
        """Return the queues, the last stage first, so that started jobs are finished first."""
        return tuple(f"stage-{number}" for number in reversed(range(self.stages)))


class Findings(NamedTuple):
    """The result of a run: seconds, jobs, memory and CPU of the server; `queues` maps each queue to its statistics."""

    put_seconds: float
    work_seconds: float
    completed: int
    failed: int
    dropped: int
    server_memory: int
    server_cpu_seconds: float
    queues: dict[str, dict[str, Any]]


class DropBench:
    """Runs one plan in a scratch namespace."""

    def __init__(self, scratch: Scratch, plan: Plan) -> None:
        self._scratch = scratch
        self._client = scratch.client
        self._plan = plan
        self._queues: list[Queue] = [self._client.queues[name] for name in plan.queues]
        self._over = threading.Event()
        self._dropped = [0] * plan.workers
        self._broken: list[BaseException] = []

    def run(self, advance: Callable[[int], None]) -> Findings:
        """Put the jobs and work until each is complete or failed; call `advance` with the number of jobs that ended.

        Raises StoreUnavailable if none ends for a minute, HoldfastError if a thread failed.
        """
        self._client.config["heartbeat"] = HEARTBEAT
        self._client.config["grace-period"] = 0  # nobody will settle a dropped job
        cpu, begun = self._scratch.cpu(), perf_counter()
        first = self._queues[-1]
        first.put_many(((KLASS, number) for number in range(self._plan.jobs)), retries=self._plan.retries)
        put = perf_counter() - begun
        threads = [
            threading.Thread(target=self._work, args=(number,), name=f"dropping-{number}", daemon=True)
            for number in range(self._plan.workers)
        ]
        begun = perf_counter()
        for thread in threads:
            thread.start()
        try:
            self._watch(advance)
        finally:
            self._over.set()
            for thread in threads:
                thread.join(PATIENCE)
        worked = perf_counter() - begun
        return self._findings(put, worked, self._scratch.cpu() - cpu)

    def _work(self, number: int) -> None:
        try:
            self._take_and_drop(number)
        except BaseException as error:  # raised again by the main thread
            self._broken.append(error)
            self._over.set()

    def _take_and_drop(self, number: int) -> None:
        chance = random.Random(number)
        shard = self._client.shard
        keys = [shard.wake_key(queue) for queue in self._plan.queues]
        wake_up = self._client.link.wake_up()
        mode = WILL_WAIT
        try:
            while not self._over.is_set():
                found = self._client.run(Pop(f"dropping-{number}", self._plan.queues, 1, None, mode))
                mode = WILL_WAIT
                if not found:
                    due = LONGEST_WAIT if found.due is None else found.due
                    if wake_up.wait(keys, min(due, LONGEST_WAIT)) is not None:
                        mode = WOKEN
                elif chance.random() < self._plan.forgetfulness:
                    self._dropped[number] += 1
                else:
                    self._finish(found[0])
        finally:
            wake_up.close()

    def _finish(self, facts: JobFacts) -> None:
        stage = int(facts.queue.partition("-")[2]) + 1
        job = Job.of(facts, self._client)
        try:
            job.complete(f"stage-{stage}" if stage < self._plan.stages else None)
        except Refused:
            pass  # the lease was lost: another thread has the job

    def _watch(self, advance: Callable[[int], None]) -> None:
        """Wait until no job is open."""
        ended, last = 0, monotonic()
        while not self._over.wait(LOOK_EVERY):
            rows = self._client.queues.counts
            left = sum(row[state] for row in rows for state in _OPEN)
            if self._plan.jobs - left > ended:
                advance(self._plan.jobs - left - ended)
                ended, last = self._plan.jobs - left, monotonic()
            if not left:
                return
            if monotonic() - last > PATIENCE:
                raise StoreUnavailable(f"no job ended for {PATIENCE:.0f} s; {left} are left")
        raise HoldfastError(f"a worker's thread ended: {self._broken[0]}") from self._broken[0]

    def _findings(self, put: float, worked: float, cpu: float) -> Findings:
        failed = sum(self._client.jobs.failed().values())
        stats = {queue.name: queue.stats() for queue in reversed(self._queues)}
        return Findings(
            put,
            worked,
            self._plan.jobs - failed,
            failed,
            sum(self._dropped),
            self._scratch.memory(),
            cpu,
            stats,
        )


def rows_of(findings: Findings) -> list[Sequence[object]]:
    """Return a row for waiting and one for running of each queue: count, mean, deviation, lost leases."""
    rows: list[Sequence[object]] = []
    for name, stats in findings.queues.items():
        for what in ("wait", "run"):
            found = stats[what]
            lost = stats["lost"] if what == "run" else ""
            rows.append((name, what, found["count"], round(found["mean"], 3), round(found["std"], 3), lost))
    return rows


_BUCKETS: Final = (
    *range(60),
    *range(60, 3600, 60),
    *range(3600, 86_400, 3600),
    *range(86_400, 7 * 86_400, 86_400),
)
"""Where each bucket of a histogram begins, in seconds."""


def histogram(buckets: Sequence[int]) -> list[str]:
    """Return a line for each bucket that is not empty: 60 of a second, 59 of a minute, 23 of an hour, 6 of a day."""
    most = max(buckets, default=0)
    lines: list[str] = []
    for place, count in enumerate(buckets):
        if count:
            lines.append(
                f"{duration(_BUCKETS[place]):>6}  {count:>7}  {'#' * max(1, round(40 * count / most))}"
            )
    return lines
