"""Going on with what a worker of the same name held before it ended: which jobs, and who takes which.

Two workers that live at once must not share a name: the store could not tell their jobs apart. So one that is to go on
with old jobs ends at once when it finds another alive.
"""

import logging
import os
import re
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic, time
from typing import Final, TypeVar

from holdfast.client.sync import Client
from holdfast.commands.leases import Lease, Resume
from holdfast.commands.workers import WorkerFacts
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.wire.waiting import hold
from holdfast.work.parent.presence import PERIOD

log = logging.getLogger("holdfast")

T = TypeVar("T")

PATIENCE: Final = PERIOD * 1.2
"""Seconds without a sign of life after which a worker of another machine is taken for dead."""

LATE: Final = 2.0
"""Seconds by which a process may seem to have begun after it said so: no two clocks agree."""


def divide(jobs: Iterable[T], count: int) -> list[list[T]]:
    """`count` groups of `jobs`, whose sizes differ by at most one."""
    groups: list[list[T]] = [[] for _ in range(count)]
    for at, job in enumerate(jobs):
        groups[at % count].append(job)
    return groups


def resumable(client: Client, name: str, serves: Callable[[str], bool]) -> list[Lease]:
    """The leases that stand under `name` and its numbers, in queues that the worker serves; the one that ends first first.

    Raises HoldfastError.
    """
    mine = _is_of(name)
    held = [
        job for job in client.workers.jobs() if mine(job.worker) and not job.stalled and serves(job.queue)
    ]
    held.sort(key=lambda job: job.expires_ms)
    found = client.jobs.get(*[job.jid for job in held])
    return [
        Lease(job.jid, job.facts.token, job.worker_name)
        for job in found
        if job.state == "running" and mine(job.worker_name)
    ]


def refuse_a_second(client: Client, name: str, patience: float = PATIENCE) -> None:
    """End this worker if another one lives that has its name.

    What says that it is a process of this machine is known at once, any other after `patience` seconds without a sign.
    Raises UsageError, HoldfastError.
    """
    asked = {worker.name: worker for worker in _named(client, name) if not _is_dead(worker)}
    for worker in asked.values():
        if _is_here(worker):
            raise _refusal(worker)
    if asked:
        log.info("looking for %g s whether a worker named %s is alive", patience, name)
    end = monotonic() + patience
    while asked and monotonic() < end:
        hold(min(0.5, patience))
        for worker in _named(client, name):
            before = asked.get(worker.name)
            if before is not None and worker.seen_ms > before.seen_ms:
                raise _refusal(worker)


class Resuming:
    """Takes one lease after the other over to `worker`; those that were lost are left out."""

    def __init__(self, client: Client, worker: str, leases: Sequence[Lease]) -> None:
        self._client = client
        self._worker = worker
        self._leases = deque(leases)

    def take(self) -> JobFacts | None:
        """The next job to go on with. Raises StopIteration when there is none, HoldfastError."""
        while self._leases:
            lease = self._leases[0]
            found = self._client.run(Resume(self._worker, [lease]))
            self._leases.popleft()
            if found:
                log.info("resuming job %s of %s", lease.jid, lease.worker)
                return found[0]
            log.warning("cannot resume job %s: %s has lost its lease", lease.jid, lease.worker)
        raise StopIteration


def _is_of(name: str) -> Callable[[str], object]:
    return re.compile(re.escape(name) + r"(-\d+)?").fullmatch


def _named(client: Client, name: str) -> list[WorkerFacts]:
    """Workers that say of themselves that they are processes under that name; a client that has it is none."""
    mine = _is_of(name)
    found = [worker for worker in client.workers.all() if mine(worker.name) and worker.name != name]
    return [worker for worker in found if "pid" in worker.facts]


def _is_dead(worker: WorkerFacts) -> bool:
    """Whether it was a process of this machine that has ended; another one may have its number by now."""
    if not _is_here(worker):
        return False
    began = _began(worker.facts["pid"])
    said = int(worker.facts.get("started") or 0) / 1000
    return began is None or began > said + LATE


def _is_here(worker: WorkerFacts) -> bool:
    return worker.facts.get("host") == socket.gethostname()


def _began(pid: str) -> float | None:
    """When the process of that number began, in seconds since 1970; None if there is none."""
    try:
        stat = Path(f"/proc/{int(pid)}/stat").read_text()
        up = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError):
        return None
    state, *rest = stat.rpartition(")")[2].split()
    if state in "ZX":
        return None
    ticks = float(rest[18])
    return time() - up + ticks / os.sysconf("SC_CLK_TCK")


def _refusal(worker: WorkerFacts) -> UsageError:
    facts = worker.facts
    where = f"process {facts.get('pid')} on {facts.get('host')}"
    return UsageError(
        f"another worker named {worker.name} is alive ({where}): two that share a name cannot resume; "
        "give each a --name of its own, or end the other one"
    )
