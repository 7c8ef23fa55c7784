"""Commands about workers: register them, list them and their leases, pause them, ask where a job is, forget them."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from holdfast.bounds import Count, Name, Names, OptionalName
from holdfast.commands.base import AuditedChange, CommandBase, Reply, Word
from holdfast.models import text

MAX_ROWS: Final = 64
MAX_LEASES: Final = 500


class WorkerSeen(CommandBase, frozen=True, gc=False):
    """Note that a worker is alive, with up to 32 facts that replace its earlier ones; none: they are kept.

    Returns whether the worker is quiet: it should take no more jobs. Core: nouns/lease/worker.lua.
    """

    verb: ClassVar[str] = "worker_seen"

    worker: Name
    facts: Mapping[str, str] = {}

    def words(self) -> Sequence[Word]:
        return (self.worker, *(word for pair in self.facts.items() for word in pair))

    def read(self, reply: Reply) -> bool:
        return bool(int(reply[0]))


class WorkerFacts(msgspec.Struct, frozen=True, gc=False):
    """A worker: when it was last seen, whether it is quiet (takes no more jobs), and its facts."""

    name: str
    seen_ms: int
    quiet: bool
    facts: Mapping[str, str]


class Workers(CommandBase, frozen=True, gc=False):
    """List up to 64 workers, most recently seen first, after that of `after` (its seen time and name).

    Those not seen for `max-worker-age` are left out. Core: nouns/lease/worker.lua.
    """

    verb: ClassVar[str] = "workers"
    reads: ClassVar[bool] = True

    after: tuple[str, str] = ("", "")
    count: Count = MAX_ROWS

    def words(self) -> Sequence[Word]:
        return (*self.after, self.count)

    def read(self, reply: Reply) -> list[WorkerFacts]:
        return [
            WorkerFacts(text(name), int(seen), bool(int(quiet)), _mapping(facts))
            for name, seen, quiet, facts in reply
        ]


def _mapping(flat: Sequence[object]) -> dict[str, str]:
    return {text(name): text(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}


class HeldJob(msgspec.Struct, frozen=True, gc=False):
    """A lease, and when it began; `stalled`: it has ended, and the job was not leased again yet."""

    jid: str
    queue: str
    expires_ms: int
    stalled: bool
    worker: str
    since_ms: int


class HeldPage(msgspec.Struct, frozen=True, gc=False):
    """A page of leases, and the cursor of the next page, '' after the last one."""

    cursor: str
    jobs: tuple[HeldJob, ...]


class WorkerJobs(CommandBase, frozen=True, gc=False):
    """List those of up to 500 leases after `cursor` that `worker` holds ('' for all workers).

    Those of a worker that was not seen for `max-worker-age` are left out. Core: verbs/worker_jobs.lua.
    """

    verb: ClassVar[str] = "worker_jobs"
    reads: ClassVar[bool] = True

    worker: OptionalName = ""
    cursor: str = ""
    count: Count = MAX_LEASES

    def words(self) -> Sequence[Word]:
        return (self.worker, self.cursor, self.count)

    def read(self, reply: Reply) -> HeldPage:
        jobs = [
            HeldJob(text(row[0]), text(row[1]), int(row[2]), bool(int(row[3])), text(row[4]), int(row[5]))
            for row in reply[1:]
        ]
        return HeldPage(text(reply[0]), tuple(jobs))


class WorkerQuiet(CommandBase, frozen=True, gc=False):
    """Stop a worker from taking jobs, or (`on` False) let it take jobs again. Returns whether it is known.

    Core: nouns/lease/worker.lua.
    """

    verb: ClassVar[str] = "worker_quiet"

    worker: Name
    on: bool = True

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("quiet" if self.on else "resume worker", self.worker)

    def words(self) -> Sequence[Word]:
        return (self.worker, 1 if self.on else 0)

    def read(self, reply: Reply) -> bool:
        return bool(int(reply))


class WorkerAsk(CommandBase, frozen=True, gc=False):
    """Ask a worker for the stack of one of its jobs. Returns how many subscribers received it, on this node of the store.

    The answer is published on the channel `<root>e:s:<question>`. Core: nouns/event/event.lua.
    """

    verb: ClassVar[str] = "worker_ask"

    worker: Name
    jid: Name
    question: Name

    def words(self) -> Sequence[Word]:
        return (self.worker, self.jid, self.question)

    def read(self, reply: Reply) -> int:
        return int(reply)


class WorkerAnswer(CommandBase, frozen=True, gc=False):
    """Answer a WorkerAsk with up to 65,536 bytes. Returns how many subscribers received it, on this node of the store.

    Core: nouns/event/event.lua.
    """

    verb: ClassVar[str] = "worker_answer"

    question: Name
    answer: bytes

    def words(self) -> Sequence[Word]:
        return (self.question, self.answer)

    def read(self, reply: Reply) -> int:
        return int(reply)


class WorkerForget(CommandBase, frozen=True, gc=False):
    """Delete workers from the list; their jobs continue. Returns how many were known. Core: nouns/lease/worker.lua."""

    verb: ClassVar[str] = "worker_forget"
    request_id_at: ClassVar[int] = 0

    workers: Names

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("forget worker", ", ".join(self.workers))

    def words(self) -> Sequence[Word]:
        return tuple(self.workers)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind
    for kind in (WorkerSeen, Workers, WorkerJobs, WorkerQuiet, WorkerAsk, WorkerAnswer, WorkerForget)
}
