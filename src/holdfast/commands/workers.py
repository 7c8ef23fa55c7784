"""Commands about workers: what they say of themselves, what they hold, quieting and forgetting them."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from holdfast.commands.base import Reply, Spoken, Word
from holdfast.models import text

MOST_ROWS: Final = 64
MOST_LEASES: Final = 500
MOST_ANSWER: Final = 65536


class WorkerSeen(Spoken, frozen=True, gc=False):
    """A sign of life of a worker, with up to 32 facts in place of those it gave before; none: they stay.

    Answers whether somebody told it to be quiet, which is to take no more jobs. Core: nouns/worker.lua.
    """

    verb: ClassVar[str] = "worker_seen"

    worker: str
    facts: Mapping[str, str] = {}

    def words(self) -> Sequence[Word]:
        return (self.worker, *(word for pair in self.facts.items() for word in pair))

    def read(self, reply: Reply) -> bool:
        return bool(int(reply[0]))


class WorkerFacts(msgspec.Struct, frozen=True, gc=False):
    """A worker: when it was last seen, whether it was told to be quiet, and what it says of itself."""

    name: str
    seen_ms: int
    quiet: bool
    facts: Mapping[str, str]


class Workers(Spoken, frozen=True, gc=False):
    """Read up to 64 workers, most recently seen first, behind the one of `after` (its seen time and name).

    Those not seen for `max-worker-age` are left out. Core: nouns/worker.lua.
    """

    verb: ClassVar[str] = "workers"
    reads: ClassVar[bool] = True

    after: tuple[str, str] = ("", "")
    count: int = MOST_ROWS

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
    """A lease, and when it began: `stalled` when its end has passed and nobody has noticed yet."""

    jid: str
    queue: str
    expires_ms: int
    stalled: bool
    worker: str
    since_ms: int


class HeldPage(msgspec.Struct, frozen=True, gc=False):
    """Some leases, and where the next page begins; '' when there is none."""

    cursor: str
    jobs: tuple[HeldJob, ...]


class WorkerJobs(Spoken, frozen=True, gc=False):
    """Look through up to 500 leases for those of `worker` ('' for all), behind `cursor`.

    Those of a worker that was silent for `max-worker-age` are left out. Core: verbs/holding.lua.
    """

    verb: ClassVar[str] = "worker_jobs"
    reads: ClassVar[bool] = True

    worker: str = ""
    cursor: str = ""
    count: int = MOST_LEASES

    def words(self) -> Sequence[Word]:
        return (self.worker, self.cursor, self.count)

    def read(self, reply: Reply) -> HeldPage:
        jobs = [
            HeldJob(text(row[0]), text(row[1]), int(row[2]), bool(int(row[3])), text(row[4]), int(row[5]))
            for row in reply[1:]
        ]
        return HeldPage(text(reply[0]), tuple(jobs))


class WorkerQuiet(Spoken, frozen=True, gc=False):
    """Tell a worker to take no more jobs, or (`on` False) to take jobs again. Answers whether it is known.

    Core: nouns/worker.lua.
    """

    verb: ClassVar[str] = "worker_quiet"

    worker: str
    on: bool = True

    def words(self) -> Sequence[Word]:
        return (self.worker, 1 if self.on else 0)

    def read(self, reply: Reply) -> bool:
        return bool(int(reply))


class WorkerAsk(Spoken, frozen=True, gc=False):
    """Ask a worker where one of its jobs is just now. Answers how many heard that, on this node of the store.

    The answer is published on the channel `<root>e:s:<question>`. Core: nouns/event.lua.
    """

    verb: ClassVar[str] = "worker_ask"

    worker: str
    jid: str
    question: str

    def words(self) -> Sequence[Word]:
        return (self.worker, self.jid, self.question)

    def read(self, reply: Reply) -> int:
        return int(reply)


class WorkerAnswer(Spoken, frozen=True, gc=False):
    """Answer what a worker was asked, with up to MOST_ANSWER bytes. Answers how many heard that, on this node of the store.

    Core: nouns/event.lua.
    """

    verb: ClassVar[str] = "worker_answer"

    question: str
    answer: bytes

    def words(self) -> Sequence[Word]:
        return (self.question, self.answer)

    def read(self, reply: Reply) -> int:
        return int(reply)


class WorkerForget(Spoken, frozen=True, gc=False):
    """Take workers off the list; their jobs run on. Answers how many were known. Core: nouns/worker.lua."""

    verb: ClassVar[str] = "worker_forget"
    line_at: ClassVar[int] = 0

    workers: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.workers)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[Spoken]] = {
    kind.verb: kind
    for kind in (WorkerSeen, Workers, WorkerJobs, WorkerQuiet, WorkerAsk, WorkerAnswer, WorkerForget)
}
