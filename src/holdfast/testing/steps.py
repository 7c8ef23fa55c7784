"""What workers for tests do, in steps, written once for the blocking and the async worker.

A generator yields steps: a plan to run, which returns its result, or a job to perform, which returns its outcome.
"""

import functools
import math
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from holdfast.client.recurring import extend_plans
from holdfast.code.allowed import AllowList, Located
from holdfast.code.calendar import moment_of
from holdfast.code.current import running
from holdfast.code.resolver import CodeTarget, Resolver
from holdfast.commands.admin import SetClock
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Popped
from holdfast.commands.queues import QueueNames
from holdfast.errors import JobFailed, UsageError, WorkError
from holdfast.models import JobFacts, text
from holdfast.settings import check_list, check_name, check_whole, unknown_option
from holdfast.testing.clock import StoppedClock
from holdfast.wire.exchange import exchange
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard
from holdfast.worker.performing.outcome import Outcome
from holdfast.worker.queues.route import Route
from holdfast.worker.session import StoreSession

T = TypeVar("T")
Performing = Generator[JobFacts | Plan[object], Any, T]
Taken = tuple[JobFacts, StoreSession]
"""A job that was taken, and the session that reports its outcome."""

MAX_JOBS: Final = 10_000
MAX_NESTED: Final = 20
MAX_TRIES: Final = 1_000
_depth: Final[ContextVar[int]] = ContextVar("holdfast_inline_depth", default=0)
"""How deep inline puts are nested here."""
_OPTIONS: Final = ("queues", "root", "paths", "imports", "allow", "auto_complete", "most")
_LISTS: Final = ("queues", "paths", "imports", "allow")


class Performed(msgspec.Struct, frozen=True, eq=False):
    """A job that was performed: `state` is its state in the store afterwards, "" if it was deleted.

    `data` is JSON, `error` what its code raised, None if it raised nothing; `group` and `message` are those of the failure.
    """

    jid: str
    klass: str
    queue: str
    data: str
    state: str
    error: BaseException | None = None
    group: str = ""
    message: str = ""


class Steps:
    """What one worker for tests does, in steps. Raises UsageError for invalid options."""

    def __init__(
        self, shard: Shard, worker: str, clock: StoppedClock | None, options: Mapping[str, Any]
    ) -> None:
        for option in options:
            if option not in _OPTIONS:
                raise unknown_option("a worker for tests", option, _OPTIONS)
        for option in _LISTS:
            check_list(option, options.get(option, ()))
        self._shard = shard
        self._worker = worker
        self._clock = clock
        self._queues = tuple(check_name("queue", queue) for queue in options.get("queues", ()))
        self._max_jobs = check_whole("most", options.get("most", MAX_JOBS), 1, 1 << 53)
        self._due: float | None = None
        self._known: Sequence[str] = ()
        self.resolver = _Noting(options, self._queues)

    def one(self, raises: bool) -> Performing[Performed | None]:
        """Perform one job. Returns None if none is ready."""
        self._known = ()
        return (yield from self._one(raises))

    def _one(self, raises: bool) -> Performing[Performed | None]:
        taken = yield from self._take()
        if taken is None:
            return None
        return (yield from self._finish(*taken, raises))

    def drain(self, raises: bool) -> Performing[list[Performed]]:
        """Perform jobs until none is ready. Raises WorkError after too many jobs."""
        found: list[Performed] = []
        self._known = ()
        yield from self._drain(found, raises)
        return found

    def nested(self, raises: bool) -> Performing[list[Performed]]:
        """Drain inside a put, which may itself be inside a job."""
        depth = _depth.get()
        if depth == MAX_NESTED:
            raise UsageError(f"jobs put jobs, nested {MAX_NESTED} deep: use drain() without inline")
        before = _depth.set(depth + 1)
        try:
            return (yield from self.drain(raises))
        finally:
            _depth.reset(before)

    def run_for(self, span_ms: int, raises: bool) -> Performing[list[Performed]]:
        """Move the clock by `span_ms` and perform what becomes due."""
        return (yield from self._until(self._stopped().now_ms + span_ms, raises))

    def run_until(self, moment: datetime | float, raises: bool) -> Performing[list[Performed]]:
        """Move the clock to `moment` and perform what becomes due. Raises UsageError if it has passed, or has no time zone."""
        clock = self._stopped()
        end_ms = round(moment_of("moment", moment) * 1000)
        if end_ms < clock.now_ms:
            raise UsageError(f"it is {clock.moment:%Y-%m-%d %H:%M:%S} UTC by this clock: {moment} has passed")
        return (yield from self._until(end_ms, raises))

    def _until(self, end_ms: int, raises: bool) -> Performing[list[Performed]]:
        clock = self._stopped()
        found: list[Performed] = []
        self._known = ()
        while True:
            yield from self._drain(found, raises)
            if clock.now_ms >= end_ms:
                return found
            next_ms = end_ms if self._due is None else clock.now_ms + max(1, math.ceil(self._due * 1000))
            clock.now_ms = min(next_ms, end_ms)
            yield exchange(self._shard, SetClock(clock.now_ms))
            yield extend_plans(partial(exchange, self._shard), clock.now_ms / 1000)

    def _stopped(self) -> StoppedClock:
        if self._clock is None:
            raise UsageError(
                "this worker uses the real clock: request the fixture holdfast_clock, or give a clock"
            )
        return self._clock

    def _drain(self, found: list[Performed], raises: bool) -> Performing[None]:
        while True:
            performed = yield from self._one(raises)
            if performed is None:
                return
            found.append(performed)
            if len(found) >= self._max_jobs:
                raise WorkError(f"{self._max_jobs} jobs were run, and more are ready: does a job put itself?")

    def _take(self) -> Performing[Taken | None]:
        """Take a job. If none is ready, note when the next one is due and return None.

        Each job has a session of its own: several drains may run at once, and the calls of one session are made one after the other.
        """
        self._due = None
        for _ in range(MAX_TRIES):
            queues = self._queues or self._known or (yield exchange(self._shard, QueueNames()))
            self._known = queues
            if not queues:
                return None
            self.resolver.plain_queues = frozenset(queues)
            session = StoreSession(self._shard, self._worker, Route(self._shard, queues), will_wait=False)
            popped: Popped = yield session.round_trip(1)
            if popped:
                return popped[0], session
            self._due = popped.due
            if popped.due != 0:
                return None
        raise WorkError("jobs are due in the store, but none is handed out")

    def _finish(self, facts: JobFacts, session: StoreSession, raises: bool) -> Performing[Performed]:
        self._known = ()
        outcome: Outcome = yield facts
        error = self.resolver.raised.pop(facts.jid, None)
        [left] = yield _settled(session, self._shard, facts.jid, outcome)
        state, failure = ("", None) if left is None else (left.state, left.failure)
        group, message = ("", "") if failure is None else (failure.group, failure.message)
        if raises and state == "failed":
            raise JobFailed(group, message) from error
        data = text(facts.data)
        return Performed(facts.jid, facts.klass, facts.queue, data, state, error, group, message)


def _settled(session: StoreSession, shard: Shard, jid: str, outcome: Outcome) -> Plan[list[JobFacts | None]]:
    session.end(outcome)
    if session.has_outcomes:
        yield from session.round_trip(0)
    return (yield from exchange(shard, JobGet((jid,))))


class _Noting(Resolver):
    """A resolver that records what the code of each job raised, by jid."""

    def __init__(self, options: Mapping[str, Any], queues: Iterable[str]) -> None:
        roots = [options.get("root", "."), *options.get("paths", ())]
        allow = _Loaded(options.get("imports", ()), options.get("allow", ()), roots)
        super().__init__(allow, queues, options.get("auto_complete", False))
        self.raised: dict[str, BaseException] = {}

    def resolve(self, klass: str, queue: str) -> CodeTarget:
        found = super().resolve(klass, queue)
        noting = copy(found)
        noting.call = self._noting(found)
        return noting

    def _noting(self, target: CodeTarget) -> Callable[..., object]:
        call = target.call
        if not target.is_async:

            @functools.wraps(call)
            def plain(*args: object, **kwargs: object) -> object:
                with self._note():
                    return call(*args, **kwargs)

            return plain

        @functools.wraps(call)
        async def waiting(*args: object, **kwargs: object) -> object:
            with self._note():
                return await call(*args, **kwargs)

        return waiting

    @contextmanager
    def _note(self) -> Generator[None]:
        try:
            yield
        except BaseException as error:
            current = running.get()
            if current is not None:
                self.raised[current.facts.jid] = error
            raise


class _Loaded(AllowList):
    """The allow-list for tests: that of a worker, and imported modules in its locations under any name."""

    def locate(self, klass: str) -> Located:
        parts = klass.split(".")
        for count in range(len(parts), 0, -1):
            module = ".".join(parts[:count])
            if self.holds(sys.modules.get(module)):
                return Located(module, tuple(parts[count:]))
        return super().locate(klass)
