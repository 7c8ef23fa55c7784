"""Count what an operation on many jobs would change, without changing anything."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from holdfast.commands.job_rows import JobRow
from holdfast.console.operations.operations import is_done
from holdfast.console.operations.spec import APPLIES, Spec, check_spec
from holdfast.console.search.search import (
    STATES,
    Pace,
    Position,
    by_jid,
    chunk,
    matched,
    page_size,
    planned,
    wants_of,
)
from holdfast.wire.plans import Plan, Planner

EXAMPLES: Final = 10


class DryRun(msgspec.Struct):
    """What an operation would change: how many jobs match, by state and queue, and examples.

    `complete` is False where a match may be among the jobs that were not looked at; `refused` are jobs among them whose state does not allow it.
    """

    matched: int = 0
    looked: int = 0
    candidates: int = 0
    index: str = ""
    complete: bool = False
    refused: int = 0
    by_state: Counter[str] = msgspec.field(default_factory=Counter[str])
    by_queue: Counter[str] = msgspec.field(default_factory=Counter[str])
    examples: list[JobRow] = msgspec.field(default_factory=list[JobRow])

    def add(self, rows: Sequence[JobRow], applies: Sequence[str] = STATES) -> None:
        """Count some jobs; those in one of the states `applies` can be changed."""
        self.matched += len(rows)
        self.refused += sum(row.state not in applies for row in rows)
        self.by_state.update(row.state for row in rows)
        self.by_queue.update(row.queue for row in rows)
        self.examples += rows[: EXAMPLES - len(self.examples)]


def dry_run(ask: Planner, spec: Spec, now_ms: int, most: int, note: Callable[[DryRun], None]) -> Plan[DryRun]:
    """Look at up to `most` jobs, and count those that an operation would change. Each page is given to `note`."""
    query, applies = check_spec(spec).query, APPLIES.get(spec.action, STATES)
    plan = yield from planned(ask, query, applies)
    found, matches = DryRun(candidates=plan.candidates, index=plan.index), query.matcher(now_ms)
    limit = spec.most or sys.maxsize
    if plan.jids:
        page = yield from by_jid(ask, plan, matches, now_ms)
        found.looked, found.complete = page.looked, True
        found.add(page.jobs[:limit], applies)
        return found
    at, wants, pace = Position(), wants_of(query, plan), Pace()
    while found.looked < most:
        some = yield from chunk(ask, plan, at, page_size(wants), wants)
        if some is not None:
            found.looked += some.page.looked
            rows = yield from matched(some.page.jobs, matches, pace)
            rows = [row for row in rows if not is_done(spec, row)]
            found.add(rows[: limit - found.matched], applies)
            note(found)
            at = some.following
        if some is None or not at.set or found.matched == limit:
            found.complete = True
            break
    return found
