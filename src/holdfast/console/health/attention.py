"""What a person should look at, and the facts from which the rules of `triage.py` find it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from holdfast.client.serving import SILENT_MS
from holdfast.commands.failures import FailureGroup
from holdfast.commands.workers import WorkerFacts
from holdfast.models import Counts
from holdfast.text import one_line

_SILENT_PROGRAM: Final = 120_000
"""A program that pops by itself sends one a minute."""
Severity = Literal["urgent", "warning", "note"]
ORDER: Final[Sequence[Severity]] = ("urgent", "warning", "note")


class Attention(msgspec.Struct, frozen=True):
    """Something that a person should look at: what, about which thing, the evidence, and the command that helps.

    `kind` is one of KINDS. One that stands for more of its kind (`count`) has the first subject, and their names as text.
    `jobs` is how many jobs it is about, 0 if it is not about jobs; `since_ms` when it began, 0 if that is not known.
    `also` is another command that helps; `details` are more lines of evidence.
    """

    severity: Severity
    kind: str
    subject: str
    text: str
    command: str = ""
    count: int = 1
    jobs: int = 0
    since_ms: int = 0
    also: str = ""
    details: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """All of it on one line: `queue mail: 3 jobs wait …`."""
        kind = KINDS[self.kind]
        what = f"{self.count} {kind.together}" if self.count > 1 else f"{kind.noun} {one_line(self.subject)}"
        return f"{what}: {self.text}"


class Kind(NamedTuple):
    """What a kind of finding is about, and how many of them are named together."""

    noun: str
    together: str


KINDS: Final[Mapping[str, Kind]] = {
    "surge": Kind("failure group", "groups with many more failures than before"),
    "many-failures": Kind("failure group", "groups with very many failed jobs"),
    "not-allowed": Kind("failure group", "groups of jobs whose code is not allowed"),
    "no-worker": Kind("queue", "queues with waiting jobs and no worker"),
    "waiting-long": Kind("queue", "queues whose next job has waited for long"),
    "paused": Kind("queue", "paused queues"),
    "stalled": Kind("queue", "queues with expired leases"),
    "depends-failed": Kind("queue", "queues with jobs that wait for failed jobs"),
    "flow-failed": Kind("flow", "failed flows"),
    "flow-open": Kind("flow", "flows left open"),
    "worker-gone": Kind("worker", "silent workers that hold jobs"),
    "throttle-left": Kind("throttle", "throttles full of jobs that do not run"),
    "throttle-full": Kind("throttle", "throttles that are full"),
    "recurring-paused": Kind("recurring job", "paused recurring jobs that have missed a run"),
    "recurring-late": Kind("recurring job", "recurring jobs that are late"),
    "recurring-unplanned": Kind("recurring job", "recurring jobs whose plan ends"),
    "recurring-vanished": Kind("recurring job", "recurring jobs that code declares no more"),
    "recurring-flood": Kind("recurring job", "recurring jobs that put more than runs"),
    "operation": Kind("operation", "operations whose program is gone"),
    "store-memory": Kind("store", "stores that are almost full"),
    "store-persistence": Kind("store", "stores that are less durable than promised"),
    "store-eviction": Kind("store", "stores that delete keys"),
    "store-replication": Kind("store", "stores whose replicas are behind"),
    "store-unknown": Kind("store", "stores that cannot be checked"),
}


def silent_ms(worker: WorkerFacts) -> int:
    """Return the time in ms from which a worker is silent unless it sends a heartbeat before."""
    return worker.seen_ms + (SILENT_MS if "queues" in worker.facts else _SILENT_PROGRAM) + 1


def is_silent(worker: WorkerFacts, now_ms: int) -> bool:
    """Return whether a worker has sent no heartbeat for longer than it should."""
    return now_ms >= silent_ms(worker)


class NamespaceFacts(msgspec.Struct, frozen=True):
    """What the rules start from. Times in ms; `flags` complete a command line.

    `lost` counts the leases that silent or unknown workers hold, by worker. `groups` is None where they were not read.
    """

    now: int
    flags: str
    queues: Sequence[Counts]
    workers: Sequence[WorkerFacts]
    lost: Counter[str]
    groups: Sequence[FailureGroup] | None = None


class RuleFindings(NamedTuple):
    """What a rule found, and the sentence that is shown if it found nothing."""

    fine: str
    attention: Sequence[Attention]
