"""The reports of workers that they are alive, and jobs of an earlier worker of the same name.

The reply to each report is whether the worker is to be quiet, which is to take no more jobs.

Two running workers must not share a name: the store could not distinguish their jobs. So a worker that is to resume jobs ends at
once when it finds another one of its name.
"""

import json
import logging
import os
import re
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic, time
from typing import Any, Final, NamedTuple, TypeVar

from holdfast.client.sync import Client
from holdfast.commands.leases import Lease, Resume
from holdfast.commands.workers import WorkerFacts, WorkerForget, WorkerSeen
from holdfast.errors import HoldfastError, TransportError, UsageError
from holdfast.models import JobFacts
from holdfast.release import VERSION
from holdfast.settings import MAX_BATCH
from holdfast.wire.waiting import sleep
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.supervisor.calls import StoreCalls, log_failure, run, run_all

log = logging.getLogger("holdfast")

PERIOD: Final = 10.0
LATER: Final = 2.0  # seconds to the next, when the store did not answer
SHORTEST_REPORT_PERIOD_S: Final = 1.0  # seconds between two reports, however often one is wanted
MOST_QUEUES: Final = 4096  # bytes of JSON


def log_quiet(worker: str, quiet: bool) -> None:
    """Log that an operator has made a worker quiet, or has resumed it."""
    if quiet:
        log.info("worker %s is quiet: it takes no more jobs until it is resumed", worker)
    else:
        log.info("worker %s was resumed: it takes jobs again", worker)


class Sign(NamedTuple):
    """The state of one worker: its name, its process, how many jobs it runs, and for how many seconds it has been stuck."""

    name: str
    pid: int
    busy: int
    stuck: float = 0.0


class Presence:
    """Reports that workers are alive. Its owner calls `report` at `due()`.

    `is_store_available`: the store has answered the last report.
    """

    def __init__(self, calls: StoreCalls, settings: WorkerSettings) -> None:
        self._calls = calls
        self._facts = _facts_of(settings)
        self._begun: dict[int, int] = {}
        self._names: set[str] = set()
        self._reported = 0.0
        self._due = 0.0
        self._is_reporting = False
        self.is_store_available = False

    def due(self) -> float:
        """Return when to call `report` next, on the monotonic clock."""
        return inf if self._is_reporting else self._due

    def hurry(self) -> None:
        """Report soon: there was a message to one of the workers."""
        self._due = min(self._due, self._reported + SHORTEST_REPORT_PERIOD_S)

    def report(self, signs: Iterable[Sign], on_quiet: Callable[[dict[str, bool]], object]) -> None:
        """Report that these are alive. `on_quiet` is called with which of them are to be quiet, once the store has answered."""
        alive, now = list(signs), monotonic()
        self._reported, self._due = now, now + (PERIOD if alive else SHORTEST_REPORT_PERIOD_S)
        if not alive:
            return
        self._begun = {sign.pid: self._begun.get(sign.pid, round(time() * 1000)) for sign in alive}
        self._names.update(sign.name for sign in alive)
        self._is_reporting = True
        work = partial(run_all, [WorkerSeen(sign.name, self._of(sign)) for sign in alive])
        self._calls.call(work, partial(self._answered, alive, on_quiet))

    def _answered(
        self, alive: list[Sign], on_quiet: Callable[[dict[str, bool]], object], answer: Any
    ) -> None:
        self._is_reporting = False
        answers: list[bool | HoldfastError] = (
            [answer] * len(alive) if isinstance(answer, HoldfastError) else answer
        )
        self.is_store_available = not any(isinstance(one, TransportError) for one in answers)
        if not self.is_store_available:
            self._due = monotonic() + LATER
        quiet: dict[str, bool] = {}
        for sign, one in zip(alive, answers, strict=True):
            if isinstance(one, HoldfastError):
                log.debug("the report that %s is alive failed: %s", sign.name, one)
            else:
                quiet[sign.name] = one
        on_quiet(quiet)

    def end(self) -> None:
        """Remove all of them from the list of workers, for they have ended."""
        names = sorted(self._names)
        for at in range(0, len(names), MAX_BATCH):
            work = partial(run, WorkerForget(names[at : at + MAX_BATCH]))
            self._calls.call(work, partial(log_failure, "removing workers that have ended from the list"))

    def _of(self, sign: Sign) -> dict[str, str]:
        started = self._begun[sign.pid]
        facts = {**self._facts, "pid": str(sign.pid), "busy": str(sign.busy), "started": str(started)}
        return {**facts, "stuck": f"{sign.stuck:.0f}"} if sign.stuck else facts


def _facts_of(settings: WorkerSettings) -> dict[str, str]:
    return {
        "host": socket.gethostname(),
        "parent": str(os.getpid()),
        "version": VERSION,
        "pool": settings.pool,
        "queues": _queues_text(settings.queues),
        "slots": str(settings.concurrency),
    }


def _queues_text(queues: Sequence[str]) -> str:
    """Return the queues as a JSON list, as many as a fact has room for."""
    most = len(queues)
    while len(text := json.dumps(queues[:most], ensure_ascii=False).encode()) > MOST_QUEUES:
        most = most * MOST_QUEUES // len(text)
    return text.decode()


T = TypeVar("T")

RESUME_WITHIN: Final = PERIOD * 1.2
"""Seconds without a report after which a worker of another machine is taken for dead."""

CLOCK_TOLERANCE_S: Final = 2.0
"""Seconds by which a process may seem to have begun after its report: no two clocks agree."""


def divide(jobs: Iterable[T], count: int) -> list[list[T]]:
    """Return `count` groups of `jobs`, whose sizes differ by at most one."""
    groups: list[list[T]] = [[] for _ in range(count)]
    for at, job in enumerate(jobs):
        groups[at % count].append(job)
    return groups


def resumable(client: Client, name: str, serves: Callable[[str], bool]) -> list[Lease]:
    """Return the leases of `name` and its numbers, in queues that the worker serves; the one that ends first first.

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


def refuse_a_second(client: Client, name: str, patience: float = RESUME_WITHIN) -> None:
    """Raise UsageError if another running worker has this name. Raises HoldfastError.

    A process of this machine is known to run at once, any other if it reports within `patience` seconds.
    """
    asked = {worker.name: worker for worker in _named(client, name) if not _is_dead(worker)}
    for worker in asked.values():
        if _is_here(worker):
            raise _refusal(worker)
    if asked:
        log.info("checking for %g s whether a worker named %s is alive", patience, name)
    end = monotonic() + patience
    while asked and monotonic() < end:
        sleep(min(0.5, patience))
        for worker in _named(client, name):
            before = asked.get(worker.name)
            if before is not None and worker.seen_ms > before.seen_ms:
                raise _refusal(worker)


class Resuming:
    """Takes one lease after the other over to `worker`; lost ones are left out."""

    def __init__(self, client: Client, worker: str, leases: Sequence[Lease]) -> None:
        self._client = client
        self._worker = worker
        self._leases = deque(leases)

    def take(self) -> JobFacts | None:
        """Return the next job to resume. Raises StopIteration when there is none, HoldfastError."""
        while self._leases:
            lease = self._leases[0]
            found = self._client.run(Resume(self._worker, [lease]))
            self._leases.popleft()
            if found:
                log.info("resuming job %s of %s", lease.jid, lease.worker)
                return found[0]
            log.warning("job %s cannot be resumed: its lease was lost", lease.jid)
        raise StopIteration


def _is_of(name: str) -> Callable[[str], object]:
    return re.compile(re.escape(name) + r"(-\d+)?").fullmatch


def _named(client: Client, name: str) -> list[WorkerFacts]:
    """Return the workers that are processes of that name; a client that has it is none."""
    mine = _is_of(name)
    found = [worker for worker in client.workers.all() if mine(worker.name) and worker.name != name]
    return [worker for worker in found if "pid" in worker.facts]


def _is_dead(worker: WorkerFacts) -> bool:
    """Whether it was a process of this machine that has ended; another one may have its number by now."""
    if not _is_here(worker):
        return False
    began = _began(worker.facts["pid"])
    reported = int(worker.facts.get("started") or 0) / 1000
    return began is None or began > reported + CLOCK_TOLERANCE_S


def _is_here(worker: WorkerFacts) -> bool:
    return worker.facts.get("host") == socket.gethostname()


def _began(pid: str) -> float | None:
    """Return when the process of that number began, in seconds since 1970; None if there is none."""
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
