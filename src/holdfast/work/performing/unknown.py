"""Jobs whose code this worker does not know: they are requeued at no cost, for a worker that knows it.

This happens during deploys: for a while, workers with old code get new jobs. What was logged is remembered in memory that the
processes of a worker share, so that each name is logged once and not for each of its jobs.
"""

import logging
import mmap
from hashlib import blake2b
from typing import Any, Final

from holdfast.code.calling import CannotRun
from holdfast.code.failure import group_of
from holdfast.commands.base import Command
from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Release
from holdfast.models import JobFacts
from holdfast.printable import one_line

log = logging.getLogger("holdfast")

BUDGETED: Final = 8192
"""The flag of a job that was put with budgets of its own, as jobs of `@app.job` are."""
MOST_CAUSE: Final = 200
_ROWS: Final = 1024
_WIDTH: Final = 8


class _SharedNames:
    """Which names were noted, by their hashes; made before the first fork. Of two with one place the later one counts."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _ROWS * _WIDTH)

    def note(self, text: str) -> bool:
        """Note a text. Returns whether it is new."""
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=_WIDTH).digest()
        at = int.from_bytes(digest, "big") % _ROWS * _WIDTH
        is_new = self._page[at : at + _WIDTH] != digest
        self._page[at : at + _WIDTH] = digest
        return is_new

    def clear(self) -> bool:
        """Forget all of them. Returns whether there were any."""
        held = any(self._page[:])
        self._page[:] = bytes(_ROWS * _WIDTH)
        return held


_names: Final = _SharedNames()


def met_unknown() -> bool:
    """Whether this worker met a job of unknown code since this was asked before."""
    return _names.clear()


def is_unknown(facts: JobFacts, error: CannotRun) -> bool:
    """Whether the job's code is not known here, and may be to another worker; class jobs fail at once."""
    return error.is_unknown and bool(facts.flags & BUDGETED)


def note_unknown(facts: JobFacts, error: CannotRun) -> bool:
    """Remember that the code of this job is not known here. Returns whether that was not known yet."""
    return _names.note(f"{facts.klass}\n{facts.queue}\n{error.cause}")


def given_back_unknown(facts: JobFacts, error: CannotRun) -> Command[Any]:
    """Give the job back, to be offered again after a pause that grows; logged once for each name."""
    group, cause = group_of(facts.queue, error.reason), _printable(error.cause)
    if note_unknown(facts, error):
        log.warning(
            "the code of job %s (%s, queue %s) is not known here: %s; its jobs are requeued at no cost for workers that know it, "
            "and fail in %s if none does within the setting unknown-for (default 600 s)",
            facts.jid,
            _printable(facts.klass),
            _printable(facts.queue),
            cause,
            _printable(group),
        )
    return Release([Lease(facts.jid, facts.token, facts.worker)], "unknown", cause, group)


def _printable(text: str) -> str:
    return one_line(text[:MOST_CAUSE])
