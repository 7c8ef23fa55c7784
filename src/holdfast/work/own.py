"""What a program gives a worker that it runs itself, beside what a command could be told: objects and functions."""

import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.client.sync import Client
from holdfast.commands.leases import Lease, Resume
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.work.settings import WorkerSettings

log = logging.getLogger("holdfast")


class Own(msgspec.Struct, frozen=True):
    """The parts of a worker that are a program's own; each may be missing.

    `plain` are the queues that it named, None for those of the settings. `resolver` says which queues are meant, `reserver`
    which goes first; `ask` answers what is called for each job instead of
    popping it. `companions` go along with jobs,
    `on_lost` is told the jid of a job that is not the worker's any more, `sandbox` is the directory of a serial worker.
    """

    plain: tuple[str, ...] | None = None
    resolver: Any = None
    reserver: Any = None
    ask: Callable[[], Callable[[], Any]] | None = None
    companions: tuple[Any, ...] = ()
    on_lost: Callable[[str], object] | None = None
    sandbox: str = ""

    def hear_of_loss(self, jid: str) -> None:
        """A job that is under way is not this worker's any more. What the program's code raises is logged."""
        if self.on_lost is not None:
            try:
                self.on_lost(jid)
            except Exception:
                log.exception("the callback for the lost job %s failed", jid)


NOTHING: Final = Own()


def own_of(settings: WorkerSettings) -> Own:
    """What is a program's own in these settings."""
    own: Own | None = settings.own
    return own or NOTHING


class Taking:
    """Asks a program for jobs, and sees to it that `worker` holds them.

    `ask` answers a job, or None when there is none just now; it raises StopIteration when there will be no more.
    """

    def __init__(self, client: Client, worker: str, ask: Callable[[], Any]) -> None:
        self._client = client
        self._worker = worker
        self._ask = ask

    def take(self) -> JobFacts | None:
        """The facts of the next job, which this worker holds now. Raises StopIteration, UsageError, HoldfastError."""
        job = self._ask()
        if job is None:
            return None
        facts = getattr(job, "facts", None)
        if not isinstance(facts, JobFacts) or not facts.worker:
            raise UsageError(f"a worker performs jobs that were popped, and {job!r:.80} is none")
        if facts.worker == self._worker and facts.lease_ms:
            return facts
        # It was popped under another name, by a client that is not this worker's.
        found = self._client.run(Resume(self._worker, [Lease(facts.jid, facts.token, facts.worker)]))
        return found[0] if found else None
