"""Find jobs by a filter: choose the sets to look through, read them page by page, and keep what matches."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from holdfast.client.plans import counts_of, failed_counts
from holdfast.commands.job_rows import JobRow
from holdfast.commands.jobs import JobGet
from holdfast.commands.operations import Scan, ScanPage
from holdfast.commands.queues import QueueNames
from holdfast.commands.views import Cursor
from holdfast.console.filters import Filter, glob
from holdfast.errors import UsageError
from holdfast.models import Counts, JobFacts
from holdfast.settings import MAX_BATCH, check_name
from holdfast.text import counted
from holdfast.wire.plans import Plan, Planner, Step

QUEUE_STATES: Final = ("running", "stalled", "scheduled", "waiting", "throttled", "depends", "failed")
"""The states whose jobs each queue lists, in the order in which they are read."""
STATES: Final = (*QUEUE_STATES, "complete")
MOST_LOOKED: Final = 5000
"""The largest number of jobs that one page of a search reads."""
MOST_SECONDS: Final = 1.0
"""CPU time that one page of a search takes to compare jobs with the filter. Then it ends, and the next page continues there."""
_SLICE: Final = 0.005
"""Seconds in which jobs are compared before other work of the event loop has its turn."""
_TURN: Final = Step([], 1e-6)
_FIRST: Final = 64
_BY_JID: Final = 32
_WITH_MORE: Final = 256
_WANTS: Final = {"data": "d", "tags": "t", "group": "e", "failure": "e"}


class Pace:
    """How long jobs are compared without a pause, and at all: `is_over()` after MOST_SECONDS of CPU time."""

    __slots__ = ("_begun", "_left", "_used")

    def __init__(self) -> None:
        self._left = MOST_SECONDS
        self.start()

    def start(self) -> None:
        """Start to measure; the time since the last turn was not spent on comparing."""
        self._begun, self._used = time.monotonic(), time.thread_time()

    @property
    def is_due(self) -> bool:
        """Whether other work should have its turn."""
        return time.monotonic() - self._begun > _SLICE

    def is_over(self) -> bool:
        """Whether a page took as long as one may."""
        return self._left <= 0

    def stop(self) -> None:
        """Add the CPU time used since `start`."""
        self._left -= time.thread_time() - self._used

    def turn(self) -> Plan[None]:
        """Let other work have its turn."""
        self.stop()
        yield _TURN
        self.start()


class Source(msgspec.Struct, frozen=True, gc=False):
    """A set of jobs to look through, and how many entries it had when the search was planned."""

    set: str
    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.set} of {self.name}" if self.name else self.set


class SearchPlan(msgspec.Struct, frozen=True, gc=False):
    """Where a search looks: sets, or jids where the filter names them; `index` is the reason in one sentence.

    Sources are in the order of `kinds`, and of their names, so that a search continues behind one that is empty now.
    """

    sources: tuple[Source, ...]
    index: str
    jids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def candidates(self) -> int:
        """How many jobs there were to look at."""
        return len(self.jids) + sum(source.size for source in self.sources)


class SearchPage(msgspec.Struct, frozen=True, gc=False):
    """Some matching jobs, how many were looked at for them, how many there are to look at, and how they are found.

    `cursor` continues the search; "" if all of it was seen.
    """

    jobs: tuple[JobRow, ...]
    looked: int
    candidates: int
    index: str
    cursor: str = ""


def planned(ask: Planner, query: Filter, states: Sequence[str] = STATES) -> Plan[SearchPlan]:
    """Choose the smallest sets that hold every match; only of jobs in one of `states`.

    In this order: jids, tags, failure groups, tracked jobs, then the states of the queues that may match.
    """
    jids = query.required("jid")
    if jids is not None and not any("*" in jid for jid in jids):
        return SearchPlan((), f"{counted(len(jids), 'job')} by jid", _possible(jids))
    tags = query.required("tag")
    if tags is not None and not any("*" in tag for tag in tags):
        return (yield from _sized(ask, "tagged", _possible(tags), "by tag"))
    groups = query.required("group")
    if groups is not None and "failed" in states:
        return (yield from _of_groups(ask, groups))
    if query.required("is") == ("tracked",):
        return (yield from _sized(ask, "tracked", ("",), "tracked"))
    return (yield from _of_queues(ask, query, states))


def _possible(names: Sequence[str]) -> tuple[str, ...]:
    """Return those of the names that something can have, each once: the store refuses to look for others."""
    found: dict[str, None] = {}
    for name in names:
        with suppress(UsageError):
            found[check_name("name", name)] = None
    return tuple(found)


def _sized(ask: Planner, set: str, names: Sequence[str], how: str) -> Plan[SearchPlan]:
    sources: list[Source] = []
    for name in names:
        page = yield from ask(Scan(set, name, None, 0))
        sources.append(Source(set, name, page.size))
    total = sum(source.size for source in sources)
    return SearchPlan(tuple(sources), f"{counted(total, 'job')} {how}")


def _of_groups(ask: Planner, groups: Sequence[str]) -> Plan[SearchPlan]:
    known = yield from failed_counts(ask)
    chosen = yield from _allowed(groups, list(known))
    sources = tuple(Source("group", name, known[name]) for name in sorted(chosen))
    total = sum(source.size for source in sources)
    index = f"{counted(total, 'failed job')} of {counted(len(sources), 'group')}"
    return SearchPlan(sources, index, kinds=("group",))


def _of_queues(ask: Planner, query: Filter, states: Sequence[str]) -> Plan[SearchPlan]:
    wanted = yield from _allowed(query.required("state"), states)
    queues = query.required("queue")
    sources: list[Source] = []
    if set(wanted) - {"complete"}:
        names = yield from _allowed(queues, sorted((yield from ask(QueueNames()))))
        sources += _sets_of((yield from counts_of(ask, names)), wanted)
    if "complete" in wanted:
        page = yield from ask(Scan("completed", "", None, 0))
        sources.append(Source("completed", "", page.size))
    kinds = (*[state for state in wanted if state != "complete"], "completed")
    return SearchPlan(tuple(sources), _sentence(sources, wanted, queues is not None), kinds=kinds)


def _allowed(names: Sequence[str] | None, known: Sequence[str]) -> Plan[list[str]]:
    if names is None:
        return list(known)
    tests, found, pace = [glob(name) for name in names], list[str](), Pace()
    for one in known:
        if any(test(one) for test in tests):
            found.append(one)
        if pace.is_due:
            yield from pace.turn()
    return found


def _sets_of(counts: Sequence[Counts], states: Sequence[str]) -> Iterator[Source]:
    for state in states:
        for one in counts:
            size = 0 if state == "complete" else int(getattr(one, state))
            if size:
                yield Source(state, one.name, size)


def _sentence(sources: Sequence[Source], states: Sequence[str], is_by_queue: bool) -> str:
    total = sum(source.size for source in sources)
    queues = len({source.name for source in sources if source.name})
    which = "any state" if len(states) == len(STATES) else "state " + " or ".join(states)
    where = f" in {counted(queues, 'queue')}" if is_by_queue or queues else ""
    return f"{counted(total, 'job')} in {which}{where}"


class Position(msgspec.Struct, frozen=True, gc=False):
    """Where a search continues: the source under way, and the last entry seen of it."""

    set: str = ""
    name: str = ""
    after: Cursor | None = None

    def __str__(self) -> str:
        return json.dumps([self.set, self.name, *(self.after or ())], ensure_ascii=False) if self.set else ""

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read a cursor. Raises UsageError."""
        try:
            words = msgspec.json.decode(text.encode(), type=list[str]) if text else []
        except (msgspec.MsgspecError, UnicodeEncodeError):
            words = [""]
        if len(words) not in (0, 2, 4):
            raise UsageError(f"a cursor is what the page before returned, not {text!r:.80}")
        after = (words[2], words[3]) if len(words) == 4 else None
        return cls(words[0], words[1], after) if words else cls()


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A page of one source, and where the search continues: an empty position after the last page."""

    page: ScanPage
    source: Source
    following: Position

    def behind(self, row: JobRow, score: bytes | int) -> Position:
        """Return the position behind one of its jobs."""
        if row is self.page.jobs[-1]:
            return self.following
        return Position(
            self.source.set,
            self.source.name,
            (score.decode() if isinstance(score, bytes) else str(score), row.jid),
        )


def chunk(ask: Planner, plan: SearchPlan, at: Position, count: int, wants: str) -> Plan[Chunk | None]:
    """Read the next page of a search that has anything in it, None after the last one."""
    index = _index_of(plan, at)
    while index < len(plan.sources):
        source = plan.sources[index]
        after = at.after if (source.set, source.name) == (at.set, at.name) else None
        page = yield from ask(Scan(source.set, source.name, after, count, wants))
        if page.next is not None:
            return Chunk(page, source, Position(source.set, source.name, page.next))
        index += 1
        following = plan.sources[index] if index < len(plan.sources) else None
        at = Position(following.set, following.name) if following else Position()
        if page.looked:
            return Chunk(page, source, at)
    return None


def _index_of(plan: SearchPlan, at: Position) -> int:
    """Return the place of the source under way. If it is gone, of the next one, so that nothing is left out or read twice."""
    if not at.set:
        return 0
    for index, source in enumerate(plan.sources):
        if (source.set, source.name) == (at.set, at.name):
            return index
    behind = [index for index, source in enumerate(plan.sources) if _comes_before(plan, at, source)]
    return behind[0] if behind else len(plan.sources)


def _comes_before(plan: SearchPlan, at: Position, source: Source) -> bool:
    if at.set not in plan.kinds:
        return False
    return (plan.kinds.index(at.set), at.name) < (plan.kinds.index(source.set), source.name)


def wants_of(query: Filter, plan: SearchPlan) -> str:
    """Return what scans have to read for a filter, as letters; the jobs of a group come with its name."""
    needs = query.needs - {"group"} if all(source.set == "group" for source in plan.sources) else query.needs
    return "".join(sorted({_WANTS[need] for need in needs if need in _WANTS}))


def page_size(wants: str) -> int:
    """Return how many jobs a call may read so that it is a short one."""
    return _WITH_MORE if wants else MAX_BATCH


def search(
    ask: Planner, query: Filter, now_ms: int, limit: int, cursor: str = "", wants: str = ""
) -> Plan[SearchPage]:
    """Return up to `limit` matching jobs from `cursor` on; it looks at up to 5,000 jobs, and compares them for up to a second.

    `wants` names what the rows should have beside what the filter needs: `d` data, `t` tags, `e` failures.
    """
    plan = yield from planned(ask, query)
    if plan.jids:
        return (yield from by_jid(ask, plan, query.matcher(now_ms), now_ms))
    letters = "".join(sorted({*wants, *wants_of(query, plan)}))
    found, looked, at = yield from _matches(
        ask, plan, query.matcher(now_ms), limit, Position.parse(cursor), letters
    )
    return SearchPage(tuple(found), looked, plan.candidates, plan.index, str(at))


def _matches(
    ask: Planner, plan: SearchPlan, matches: Callable[[JobRow], bool], limit: int, at: Position, wants: str
) -> Plan[tuple[list[JobRow], int, Position]]:
    found: list[JobRow] = []
    pace = Pace()
    looked, size, most = 0, min(_FIRST, limit), page_size(wants)
    while looked < MOST_LOOKED and not pace.is_over():
        some = yield from chunk(ask, plan, at, size, wants)
        if some is None:
            return found, looked, Position()
        before, looked = looked, looked + some.page.looked
        pace.start()
        for index, (row, score) in enumerate(zip(some.page.jobs, some.page.scores, strict=True), 1):
            if matches(row):
                found.append(row)
                if len(found) == limit:
                    return found, looked, some.behind(row, score)
            if pace.is_due:
                yield from pace.turn()
                if pace.is_over():
                    return found, before + index, some.behind(row, score)
        pace.stop()
        at, size = some.following, min(2 * size, most)
        if not at.set:
            break
    return found, looked, at


def matched(rows: Sequence[JobRow], matches: Callable[[JobRow], bool], pace: Pace) -> Plan[list[JobRow]]:
    """Return those of some jobs that match, with pauses in which others have their turn."""
    found: list[JobRow] = []
    pace.start()
    for row in rows:
        if matches(row):
            found.append(row)
        if pace.is_due:
            yield from pace.turn()
    pace.stop()
    return found


def by_jid(
    ask: Planner, plan: SearchPlan, matches: Callable[[JobRow], bool], now_ms: int
) -> Plan[SearchPage]:
    """Return those of the jobs that a plan names by jid that match."""
    found: list[JobRow] = []
    pace = Pace()
    for at in range(0, len(plan.jids), _BY_JID):
        jobs = yield from ask(JobGet(plan.jids[at : at + _BY_JID]))
        rows = [row_of(facts, now_ms) for facts in jobs if facts is not None]
        found += yield from matched(rows, matches, pace)
    return SearchPage(tuple(found), len(plan.jids), len(plan.jids), plan.index)


def as_counted(facts: JobFacts, now_ms: int) -> JobFacts:
    """Return the facts of a job with the state as the lists and counts of its queue have it.

    That is `stalled` from the end of its lease until a worker takes it again, and `waiting` if it was timed out.
    """
    if facts.state == "running" and 0 < facts.expires_ms <= now_ms:
        return msgspec.structs.replace(facts, state="stalled")
    return msgspec.structs.replace(facts, state="waiting") if facts.state == "stalled" else facts


def row_of(facts: JobFacts, now_ms: int) -> JobRow:
    """Return all facts of a job as a row of a search."""
    facts = as_counted(facts, now_ms)
    failure = facts.failure
    return JobRow(
        facts.jid,
        facts.klass,
        facts.queue,
        facts.state,
        facts.priority,
        facts.retries,
        facts.remaining,
        facts.attempts,
        facts.losses,
        facts.created_ms,
        facts.queued_ms,
        facts.popped_ms,
        facts.ended_ms,
        facts.due_ms or facts.expires_ms,
        facts.worker or next((line.worker for line in reversed(facts.history) if line.worker), ""),
        facts.tracked,
        facts.tags,
        failure.group if failure else "",
        failure.message if failure else "",
        failure.when_ms if failure else 0,
        facts.data,
    )
