"""The running job as seen by its code, and the collector of its puts."""

from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from math import inf
from typing import Any, Final, Protocol

from holdfast.models import JobFacts


def not_lost() -> str:
    """Return "": the lease is not known to be lost."""
    return ""


class RunningJob:
    """A running job. Its `Job` object is made by `make` at the first use.

    `lost` returns the reason if its lease is known to be lost, else "". `sandbox` returns the directory of its sandbox,
    and `enter_sandbox` makes that the working directory, if class jobs of this pool run there. `lines` are the last that
    it logged. `error` is the exception for which it fails. `begun` and `interrupted` are when it began and was last interrupted, in monotonic seconds. `slot` is its
    slot in a pool with several. `additions`: how often it has added jobs to its flow. `thread` is the native number of the thread in which an event loop has it run, 0 outside.
    """

    __slots__ = (
        "additions",
        "begun",
        "enter_sandbox",
        "error",
        "facts",
        "interrupted",
        "lines",
        "lost",
        "made",
        "make",
        "sandbox",
        "slot",
        "thread",
    )

    def __init__(
        self, facts: JobFacts, make: Callable[[JobFacts], object], lost: Callable[[], str] = not_lost
    ) -> None:
        self.facts = facts
        self.make = make
        self.lost = lost
        self.made: Any = None
        self.sandbox: Callable[[], str] | None = None
        self.enter_sandbox: Callable[[], None] | None = None
        self.lines: deque[str] | None = None
        self.error: BaseException | None = None
        self.additions = 0
        self.begun = 0.0
        self.interrupted = -inf
        self.slot: Any = None
        self.thread = 0

    def job(self) -> Any:
        """Return the `Job` object of this run, always the same."""
        if self.made is None:
            self.made = self.make(self.facts)
            self.made.run_of = self
        return self.made


running: Final[ContextVar[RunningJob | None]] = ContextVar("holdfast_running", default=None)


def running_job() -> Any:
    """Return the job that this code is performing, or None outside of one."""
    current = running.get()
    return None if current is None else current.job()


class PutCollector(Protocol):
    """An object that collects puts, which are then not sent."""

    def take(self, client: object, put: Any, /) -> str:
        """Collect one put. Returns its jid."""
        ...

    def take_all(self, client: object, puts: Sequence[Any], /) -> list[object]:
        """Collect several puts. Returns what each would have returned."""
        ...


put_collector: Final[ContextVar[PutCollector | None]] = ContextVar("holdfast_collecting", default=None)
"""Set inside a block of `job.on_completion()`."""
