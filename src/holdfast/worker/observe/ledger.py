"""Counts of jobs and troubles, on pages that each child shares with its parent.

A child adds, and its parent reads them for metrics. The counts of a child that died stay, and the process that replaces it
continues them.
"""

import fcntl
import mmap
import os
import sys
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from time import monotonic
from typing import Any, ClassVar, Final, NamedTuple

from holdfast.code.current import RunningJob
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.flows import EndWithFlow
from holdfast.commands.leases import Done
from holdfast.commands.outcomes import Advance, Expire, Fail, Release, Retry
from holdfast.models import JobFacts
from holdfast.wire.outage import OUTAGES
from holdfast.worker.leases.keeper import GAPS
from holdfast.worker.performing.outcome import Outcome

OUTCOMES: Final = ("completed", "moved", "retried", "failed", "cancelled", "dropped", "lost", "interrupted")
"""`dropped`: it returned without settling; `lost`: its lease was lost; `interrupted`: its process was ordered to end."""

SUCCESSFUL_OUTCOMES: Final = ("completed", "moved", "cancelled")

_SETTLED: Final = {
    "complete": "completed",
    "complete_x": "completed",
    "advance": "moved",
    "move": "moved",
    "retry": "retried",
    "fail": "failed",
    "cancel": "cancelled",
}


class Result(NamedTuple):
    """One of OUTCOMES, and of a failure its group and message."""

    outcome: str
    group: str = ""
    message: str = ""


def result_of(current: RunningJob, outcome: Outcome) -> Result:
    """Return the result of a run. Call it while the run ends: what interrupted it is an exception that is being raised."""
    if type(outcome) is Done:
        return Result("completed")
    if isinstance(outcome, CompleteX):
        return Result("moved" if outcome.next_queue else "completed")
    if isinstance(outcome, (Advance, EndWithFlow)):
        return Result("moved")
    if isinstance(outcome, Fail):
        return Result("failed", outcome.group, outcome.message)
    if isinstance(outcome, Retry):
        return Result("retried" if current.facts.remaining > 0 else "failed", outcome.group, outcome.message)
    if isinstance(outcome, Expire | Release):
        return Result("lost")
    return Result(_unreported(current))


def _unreported(current: RunningJob) -> str:
    """Return the result of a run of which nothing is left to report."""
    job: Any = current.made
    if job is not None and job.state_changed:
        return _SETTLED.get(job.settled_by, "moved")
    if current.lost():
        return "lost"
    return "dropped" if sys.exc_info()[0] is None else "interrupted"


BOUNDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0)
"""Upper bounds of what jobs are sorted by, in seconds; one more bucket is for what takes longer."""
MAX_ROWS: Final = 256
"""Pairs of queue and klass that are counted each; later ones are counted together."""
OTHER: Final = "(other)"

_LOST: Final = OUTCOMES.index("lost")
_WORD: Final = 8
_NAME: Final = 26  # words: a length, and up to 200 bytes
_BEGUN: Final = 2 * _NAME
_OUTCOMES: Final = _BEGUN + 1
_SUM: Final = _OUTCOMES + len(OUTCOMES)
_BUCKETS: Final = _SUM + 1
_ROW: Final = _BUCKETS + len(BOUNDS) + 1
_USED, _OUTAGES, _GAPS, _HEAD = 0, 1, 2, 4


class LedgerRow(NamedTuple):
    """The jobs of one queue and klass: how many ended how, and how many took up to each of BOUNDS seconds, or longer."""

    queue: str
    klass: str
    outcomes: dict[str, int]
    seconds: float
    buckets: list[int]


class _FileLock:
    """Keeps threads and other processes away; one that dies gives it up."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._mutex = threading.Lock()

    def __enter__(self) -> None:
        self._mutex.acquire()
        # A job may close what it did not open: better a wrong count than a failed job.
        with suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_UN)
        self._mutex.release()


class Ledger:
    """The page of one process, or (`shared`, which costs system calls) of those forked from it for a job.

    Made before the fork.
    """

    def __init__(self, shared: bool = False) -> None:
        size = (_HEAD + (MAX_ROWS + 1) * _ROW) * _WORD
        with tempfile.TemporaryFile() as file:
            self._file = os.dup(file.fileno())
        os.ftruncate(self._file, size)
        self._page = mmap.mmap(self._file, size)
        self._bytes = memoryview(self._page)
        self._counts = self._bytes.cast("Q")
        self._seconds = self._bytes.cast("d")
        self._known: dict[tuple[str, str], int] = {}
        self._alone: AbstractContextManager[Any] = _FileLock(self._file) if shared else threading.Lock()

    def close(self) -> None:
        """Free the page."""
        for view in (self._counts, self._seconds, self._bytes):
            view.release()
        self._page.close()
        os.close(self._file)

    def begin(self, queue: str, klass: str) -> None:
        """Count a job that begins."""
        with self._alone:
            self._counts[self._row(queue, klass) + _BEGUN] += 1

    def end(self, queue: str, klass: str, outcome: str, seconds: float) -> None:
        """Count a job that has ended, and its seconds."""
        with self._alone:
            row = self._row(queue, klass)
            self._counts[row + _OUTCOMES + OUTCOMES.index(outcome)] += 1
            self._counts[row + _BUCKETS + bisect_left(BOUNDS, seconds)] += 1
            self._seconds[row + _SUM] += seconds

    def lose(self, queue: str, klass: str) -> None:
        """Count a job that was lost, after an unknown time."""
        with self._alone:
            self._counts[self._row(queue, klass) + _OUTCOMES + _LOST] += 1

    def note_outage(self) -> None:
        """Count an outage of the store."""
        with self._alone:
            self._counts[_OUTAGES] += 1

    def note_gap(self) -> None:
        """Count leases that were not renewed for too long."""
        with self._alone:
            self._counts[_GAPS] += 1

    def count_lost(self) -> None:
        """Count what a dead process began and did not end as lost."""
        for row in self._rows():
            ended = sum(self._counts[row + _OUTCOMES : row + _SUM])
            self._counts[row + _OUTCOMES + _LOST] += max(0, self._counts[row + _BEGUN] - ended)

    def rows(self) -> list[LedgerRow]:
        """Return the counts."""
        return [
            LedgerRow(
                self._text(row),
                self._text(row + _NAME),
                dict(zip(OUTCOMES, self._counts[row + _OUTCOMES : row + _SUM], strict=True)),
                self._seconds[row + _SUM],
                list(self._counts[row + _BUCKETS : row + _ROW]),
            )
            for row in self._rows()
        ]

    @property
    def outages(self) -> int:
        """How often the store was unavailable."""
        return self._counts[_OUTAGES]

    @property
    def gaps(self) -> int:
        """How often leases were not renewed for too long."""
        return self._counts[_GAPS]

    def _rows(self) -> Iterator[int]:
        return iter(range(_HEAD, _HEAD + self._counts[_USED] * _ROW, _ROW))

    def _row(self, queue: str, klass: str) -> int:
        """Return where a row begins; it is made if there is none."""
        row = self._known.get((queue, klass))
        if row is None:
            row = self._found(queue, klass)
            if self._text(row) == queue:
                self._known[queue, klass] = row
        return row

    def _found(self, queue: str, klass: str) -> int:
        for row in self._rows():
            if (self._text(row), self._text(row + _NAME)) == (queue, klass):
                return row
        used = self._counts[_USED]
        if used > MAX_ROWS:
            return _HEAD + MAX_ROWS * _ROW
        row = _HEAD + used * _ROW
        if used == MAX_ROWS:
            queue = klass = OTHER
        self._write(row, queue)
        self._write(row + _NAME, klass)
        self._counts[_USED] = used + 1
        return row

    def _write(self, at: int, name: str) -> None:
        text = name.encode()[: (_NAME - 1) * _WORD]
        self._counts[at] = len(text)
        self._bytes[(at + 1) * _WORD : (at + 1) * _WORD + len(text)] = text

    def _text(self, at: int) -> str:
        first = (at + 1) * _WORD
        return bytes(self._bytes[first : first + self._counts[at]]).decode(errors="replace")


class Pair(NamedTuple):
    """The ledgers of one child: its own, and that of the processes forked from it for a job."""

    own: Ledger
    forked: Ledger


class _Open:
    """The ledgers by the names of their workers, and whether this process was forked for a job."""

    pairs: ClassVar[dict[str, Pair]] = {}
    is_forked: ClassVar[bool] = False


def open_ledgers(name: str) -> Pair:
    """Return the ledgers of the process `name`, made before it is forked."""
    if name not in _Open.pairs:
        _Open.pairs[name] = Pair(Ledger(), Ledger(shared=True))
    return _Open.pairs[name]


def ledger_of(name: str) -> Ledger | None:
    """Return the ledger in which this process counts for a worker, None if there is none."""
    pair = _Open.pairs.get(name)
    if pair is None:
        return None
    return pair.forked if _Open.is_forked else pair.own


def count_as_forked() -> None:
    """Note that this process was forked for a job."""
    _Open.is_forked = True


def note_lost(facts: JobFacts) -> None:
    """Count the job of a process that was forked for it and has ended without an outcome."""
    pair = _Open.pairs.get(facts.worker)
    if pair is not None:
        pair.forked.lose(facts.queue, facts.klass)


def count_lost(name: str) -> None:
    """Count what the dead process of that worker did not end as lost."""
    for ledger in _Open.pairs.get(name, ()):
        ledger.count_lost()


def close_ledgers() -> None:
    """Free all of them."""
    while _Open.pairs:
        for ledger in _Open.pairs.popitem()[1]:
            ledger.close()


class Counting:
    """Built-in middleware that counts in a ledger how each job ended, and after how long."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._begun: dict[RunningJob, float] = {}
        watch_troubles(ledger)

    def begin(self, current: RunningJob) -> None:
        self._begun[current] = monotonic()
        self._ledger.begin(current.facts.queue, current.facts.klass)

    def end(self, current: RunningJob, outcome: Outcome) -> None:
        facts, took = current.facts, monotonic() - self._begun.pop(current)
        self._ledger.end(facts.queue, facts.klass, result_of(current, outcome).outcome, took)


def watch_troubles(ledger: Ledger) -> None:
    """Have this process count outages of the store, and leases that were not renewed in time, in a ledger."""
    OUTAGES.callback = ledger.note_outage
    GAPS.callback = ledger.note_gap
