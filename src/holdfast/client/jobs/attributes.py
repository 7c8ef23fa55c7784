"""Tags, tracking, log lines and progress of jobs, and moving a job to another queue."""

import functools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import monotonic
from typing import Any, Concatenate, Final, ParamSpec, TypedDict, TypeVar, Unpack

from holdfast.bounds import ParentJids, Priority, Retries, TagNames, ThrottleNames
from holdfast.client.descriptors import AnyClient, AsyncMethods, CommandMethod, Registrar, sent, with_name
from holdfast.client.jobs.facts import Callback, JobView, Local, most_data
from holdfast.code.current import running
from holdfast.code.steps import Steps, await_steps, run_steps
from holdfast.codecs import encode_data
from holdfast.commands import Command
from holdfast.commands.attributes import Log, Report, Tag, Tagged, Tags, Track
from holdfast.commands.base import hurried, map_reply
from holdfast.commands.jobs import Move
from holdfast.errors import StoreFull, StoreUnsupported, TransportError, UsageError
from holdfast.models import JobFacts
from holdfast.settings import (
    MAX_BATCH,
    MAX_WHOLE,
    Duration,
    HasJid,
    check_bounded,
    check_callable,
    check_each,
    check_jids,
    check_list,
    check_milliseconds,
    check_name,
    check_names,
    check_page,
    check_queue,
    check_text,
    check_whole,
    unknown_option,
)

# Callbacks of a job handle: called before a call that settles the job, and after it succeeded.

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H")


class Callbacks:
    """Callbacks of one job handle; each gets the job.

    Those before a call run in the order in which they were added; if one raises, the call is not made. Those
    after it run in reverse order, if the call succeeded. On an async handle they may be `async def`. They run for
    calls on this object; a worker settles a class job through its object too, and completes a function job so if its
    middleware added callbacks.
    """

    _callbacks: dict[str, list[Callback]]

    before_complete = Registrar("Call this before the job is completed or moved to its next queue.")
    after_complete = Registrar("Call this after that.")
    before_fail = Registrar("Call this before the job is failed.")
    after_fail = Registrar("Call this after that.")
    before_retry = Registrar("Call this before the job is given back for another attempt.")
    after_retry = Registrar("Call this after that, also if the job failed because no retries were left.")
    before_cancel = Registrar("Call this before the job is cancelled.")
    after_cancel = Registrar("Call this after that.")
    before_requeue = Registrar("Call this before the job is moved or requeued.")
    after_requeue = Registrar("Call this after that.")

    def _add_callback(self, name: str, callback: Callback) -> None:
        self._callbacks.setdefault(name, []).append(check_callable(name, callback))


def settling(event: str) -> Callable[[Callable[Concatenate[Any, P], Command[R]]], CommandMethod[P, R]]:
    """Make a CommandMethod with callbacks: `@settling("complete")`."""
    return lambda make: _Settling(make, event)


class _Settling(CommandMethod[P, R]):
    def __init__(self, make: Callable[Concatenate[H, P], Command[R]], event: str) -> None:
        super().__init__(make)
        plain = self.method

        @functools.wraps(plain)
        def call(job: Any, /, *args: object, **kwargs: object) -> object:
            is_awaited = isinstance(job, AsyncMethods)
            if job._callbacks:
                steps = _with_callbacks(job, event, lambda: plain(job, *args, **kwargs))
                return await_steps(steps) if is_awaited else run_steps(steps)
            if is_awaited:
                command: Any = self.make(job, *args, **kwargs)
                return sent(job, command)
            return plain(job, *args, **kwargs)

        self.method = with_name(call)


def _with_callbacks(job: Any, event: str, call: Callable[[], object]) -> Steps[object]:
    for callback in list(job._callbacks.get("before_" + event, ())):
        yield callback(job)
    result = yield call()
    for callback in reversed(list(job._callbacks.get("after_" + event, ()))):
        yield callback(job)
    return result


# Methods that only report: a job never fails for them, and waits only briefly.

log = logging.getLogger("holdfast")

_NOT_WRITTEN: Final = (StoreFull, StoreUnsupported, TransportError)

REST: Final = 5.0
"""Seconds for which reports are dropped untried after one that the store did not answer."""


class _Dropped:
    """The reports of jobs of this process that were dropped since the last one that was written."""

    count = 0
    rests_until = 0.0


class ReportMethod(CommandMethod[P, bool]):
    """A method that records what a job reports, and returns whether it was recorded.

    In a running job it returns False where the store is full, unavailable, or refuses reports to this user; that is counted, and
    logged once. Elsewhere it raises StoreFull, TransportError, StoreUnsupported.
    """

    def __init__(self, make: Callable[Concatenate[H, P], Command[bool]]) -> None:
        super().__init__(make)

        @functools.wraps(make)
        def call(handle: Any, /, *args: P.args, **kwargs: P.kwargs) -> object:
            command: Command[bool] = make(handle, *args, **kwargs)
            is_awaited = isinstance(handle, AsyncMethods)
            if running.get() is None and getattr(handle, "run_of", None) is None:
                return sent(handle, command) if is_awaited else handle._client.run(command)
            return _report_async(handle, command) if is_awaited else _report(handle, command)

        self.method = with_name(call)
        self.method.make = make


def _report(handle: Any, command: Command[bool]) -> bool:
    if _rests():
        return False
    try:
        return _written(handle._client.run(hurried(command)))
    except _NOT_WRITTEN as error:
        return _drop(handle.jid, error)


async def _report_async(handle: Any, command: Command[bool]) -> bool:
    if _rests():
        return False
    try:
        reported: Awaitable[bool] = handle._client.run(hurried(command))
        return _written(await reported)
    except _NOT_WRITTEN as error:
        return _drop(handle.jid, error)


def _rests() -> bool:
    rests = monotonic() < _Dropped.rests_until
    _Dropped.count += rests
    return rests


def _written(result: bool) -> bool:
    count, _Dropped.count = _Dropped.count, 0
    if count:
        log.info("reports of jobs can be written again; %d were dropped meanwhile", count)
    return result


def _drop(jid: str, error: Exception) -> bool:
    if isinstance(error, TransportError):
        _Dropped.rests_until = monotonic() + REST
    _Dropped.count += 1
    if _Dropped.count == 1:
        from holdfast.code.failure import brief  # a program that only puts does without

        log.warning(
            "the report of job %s could not be written; reports are dropped until they can be written: %s",
            jid,
            brief(error),
        )
    return False


MAX_LINE_DATA: Final = 16_384


class AttributeVerbs:
    """Methods that attach things to a job."""

    _client: AnyClient
    facts: JobFacts
    tags: Local[list[str]]

    @CommandMethod
    def tag(self, *tags: str) -> Command[list[str]]:
        """Add tags; return all tags of the job, at most 64. Raises JobNotFound. Core: verbs/tag.lua."""
        return map_reply(Tag("add", self.facts.jid, check_each("tag", tags, MAX_BATCH)), self._tagged)

    @CommandMethod
    def untag(self, *tags: str) -> Command[list[str]]:
        """Remove tags; return those left. Raises JobNotFound. Core: verbs/tag.lua."""
        return map_reply(Tag("remove", self.facts.jid, check_each("tag", tags, MAX_BATCH)), self._tagged)

    def _tagged(self, tags: list[str]) -> list[str]:
        self.tags = list(tags)
        return tags

    @CommandMethod
    def track(self) -> Command[bool]:
        """Track the job; return whether it was not tracked before. Raises JobNotFound. Core: verbs/track.lua."""
        return Track(True, self.facts.jid)

    @CommandMethod
    def untrack(self) -> Command[bool]:
        """Stop tracking the job; return whether it was tracked. Core: verbs/track.lua."""
        return Track(False, self.facts.jid)

    @ReportMethod
    def log(self, message: str, data: Mapping[str, object] | None = None) -> Command[bool]:
        """Add a line to the job's history: any text, and a mapping of up to 16 kB as JSON. Return whether it was added.

        In a running job it is dropped where the store is full or unavailable. Raises UsageError, JobNotFound. Core: verbs/log.lua.
        """
        return Log(self.facts.jid, check_name("message", message), _object(data))

    @ReportMethod
    def report(
        self, progress: float | None = None, note: str = "", lines: Iterable[str] = ()
    ) -> Command[bool]:
        """Record the progress of the job, from 0 to 1, with a note (of up to 1,000 bytes), and add lines to its log.

        None leaves progress and note as they were; the log keeps the last 100 lines and 8 kB. Return whether it was
        recorded: in a running job it is dropped where the store is full or unavailable. Raises UsageError, LeaseLost. Core: verbs/report.lua.
        """
        checked = [check_text("line", line) for line in check_list("lines", lines)]
        return self._report(progress, note, checked[-MAX_BATCH:])

    @ReportMethod
    def progress(self, fraction: float, note: str = "") -> Command[bool]:
        """Record the progress of the job, from 0 to 1, with a note of up to 1,000 bytes. Return whether it was recorded.

        In a running job it is dropped where the store is full or unavailable. Raises UsageError, LeaseLost. Core: verbs/report.lua.
        """
        return self._report(fraction, note, [])

    def _report(self, progress: float | None, note: str, lines: list[str]) -> Command[bool]:
        worker = self.facts.worker or self._client.worker_name
        return Report(worker, self.facts, _fraction(progress), check_text("note", note), lines)


class AttributesVerbs:
    """Methods for tags and tracking of all jobs."""

    _client: AnyClient

    @CommandMethod
    def tags(self, offset: int = 0, count: int = 100, *, least: int = 2) -> Command[list[str]]:
        """The tags that at least `least` jobs have, most used first. Core: verbs/tag.lua."""
        page = Tags(check_whole("least", least, 1, MAX_WHOLE), *check_page(offset, count))
        return map_reply(page, list)

    @CommandMethod
    def tag_counts(self, offset: int = 0, count: int = 100, *, least: int = 1) -> Command[dict[str, int]]:
        """The tags as `tags` returns them, with how many jobs have each. Core: verbs/tag.lua."""
        return Tags(check_whole("least", least, 1, MAX_WHOLE), *check_page(offset, count))

    @CommandMethod
    def tagged(self, tag: str, offset: int = 0, count: int = 25) -> Command[dict[str, Any]]:
        """How many jobs have the tag: `total`, and a page of their jids: `jobs`, the job tagged longest ago first.

        Without any, `jobs` is {}, as older programs expect. Core: verbs/tag.lua.
        """
        page = Tagged(check_name("tag", tag), *check_page(offset, count))
        return map_reply(page, lambda found: {"total": found[0], "jobs": found[1] or {}})

    @CommandMethod
    def track(self, jid: str) -> Command[bool]:
        """Track a job; return whether it was not tracked before. Raises JobNotFound. Core: verbs/track.lua."""
        return Track(True, check_name("jid", jid))

    @CommandMethod
    def untrack(self, jid: str) -> Command[bool]:
        """Stop tracking a job, even one that is gone; return whether it was tracked. Core: verbs/track.lua."""
        return Track(False, check_name("jid", jid))


def _object(data: Mapping[str, object] | None) -> bytes:
    if data is None:
        return b""
    if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"the data of a line must be a mapping, not {type(data).__name__}")
    return encode_data(data, MAX_LINE_DATA)


def _fraction(progress: object) -> float | None:
    if progress is None:
        return None
    if isinstance(progress, bool) or not isinstance(progress, (int, float)) or not 0 <= progress <= 1:
        raise UsageError(f"progress must be a number from 0 to 1, not {progress!r}")
    return float(progress)


class RequeueOptions(TypedDict, total=False):
    """Options of a job that `requeue` may change; what is left out, or None, stays as it was.

    `delay` is in seconds or a timedelta, `data` JSON text or any JSON value; `tags`, `throttles` and `depends` (jids, jobs
    or handles) are lists. Empty `tags` and `throttles` mean none; empty `depends` keep the dependencies, which `undepend`
    removes.
    """

    delay: Duration | None
    data: object
    priority: int | None
    tags: Iterable[str] | None
    retries: int | None
    depends: Iterable[str | HasJid] | None
    throttles: Iterable[str] | None


_OPTIONS: Final = tuple(RequeueOptions.__annotations__)


class Moving:
    """Methods that put a job again under its own jid."""

    _sent_data: Any
    _ended: Callable[[Command[Any]], Command[Any]]

    @settling("requeue")
    def move(
        self, queue: object, delay: Duration = 0, depends: Iterable[str | HasJid] | None = None
    ) -> Command[str]:
        """Put the job, in whatever state, into `queue`, a queue or its name; return its jid.

        It is ready after `delay` seconds, and when the jobs in `depends` are complete. Its holder loses the lease and its
        retries are renewed. It keeps klass, data and throttles of this object, and the rest as the store has it. Raises
        JobNotFound, DependencyRefused. Core: verbs/move.lua.
        """
        return self._ended(_moved(self, queue, {"delay": delay, "depends": depends}))

    @settling("requeue")
    def requeue(self, queue: object, **options: Unpack[RequeueOptions]) -> Command[str]:
        """As `move`, and change the options that are given: delay, data, priority, tags, retries, depends, throttles.

        Raises UsageError, JobNotFound for a job that was cancelled, which is not put again. Core: verbs/move.lua.
        """
        for option in options:
            if option not in _OPTIONS:
                raise unknown_option("requeue", option, _OPTIONS)
        return self._ended(_moved(self, queue, options))


def _moved(job: Any, queue: object, options: Mapping[str, object]) -> Move:
    given = {name: value for name, value in options.items() if value is not None}
    data, retries, throttles = given.get("data"), given.get("retries"), given.get("throttles")
    if throttles is None and JobView.throttles.differs(job):
        throttles = job.throttles
    return Move(
        check_queue("queue", queue),
        job.jid,
        check_milliseconds("delay", given.get("delay", 0)),
        job._sent_data if data is None else encode_data(data, most_data(job._client)),
        check_bounded("priority", given["priority"], Priority) if "priority" in given else None,
        check_name("klass", job.klass_name) if JobView.klass_name.differs(job) else "",
        None if retries is None else check_bounded("retries", retries, Retries),
        check_names("tags", given["tags"], TagNames) if "tags" in given else None,
        None if throttles is None else check_names("throttles", throttles, ThrottleNames),
        check_jids("depends", given.get("depends", ()), ParentJids),
    )
