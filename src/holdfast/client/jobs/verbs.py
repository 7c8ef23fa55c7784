"""The methods of a job, for both clients, and what its code can read while it runs."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import time
from typing import Any, Final, Self, TypedDict, Unpack, cast, get_args

from holdfast.bounds import Priority, Retries, limits
from holdfast.client.descriptors import CommandMethod, PlanProperty, SettableFact, StepMethod
from holdfast.client.explanation import ExplainedVerbs
from holdfast.client.jobs.attributes import AttributeVerbs, Callbacks, Moving, settling
from holdfast.client.jobs.dependencies import Completing, WaitingJob
from holdfast.client.jobs.facts import JobView, any_name, most_data, set_klass
from holdfast.client.stacks import LiveStack, ask_worker
from holdfast.code.current import RunningJob
from holdfast.code.steps import Steps
from holdfast.codecs import encode_data
from holdfast.commands import Command
from holdfast.commands.base import map_reply
from holdfast.commands.jobs import CancelBy, SetPriority
from holdfast.commands.leases import Heartbeat
from holdfast.commands.outcomes import OWN_BACKOFF, Fail, Retry, Timeout
from holdfast.commands.recurring import RecurGet
from holdfast.errors import JobNotFound, UsageError
from holdfast.ids import mint_jid
from holdfast.models import JobFacts, State, text
from holdfast.settings import (
    MAX_WHOLE,
    Duration,
    check_bounded,
    check_list,
    check_milliseconds,
    check_name,
    check_text,
    check_whole,
    unknown_option,
)
from holdfast.wire.plans import Plan, Planner

# Make a job by hand from its parts, and show it as a mapping, as options of a put, and its history with
# datetimes.


class JobParts(TypedDict, total=False):
    """Arguments of a job made by hand, in addition to `jid` and `klass`; what is left out is as in a new job.

    `data` is JSON text or any JSON value; `queue` a queue or its name, '' for none; `expires` the end of the lease in
    epoch seconds; `remaining` the retries left of `retries`; `failure` and the entries of `history` are mappings as a
    job shows them. `tags`, `throttles`, `dependencies`, `dependents` are lists; an empty mapping counts as an empty list.
    """

    data: object
    priority: int
    queue: object
    tags: object
    throttles: object
    state: State
    failure: Mapping[str, object]
    dependencies: object
    dependents: object
    tracked: bool
    worker: str
    token: int
    remaining: int
    retries: int
    expires: float
    history: object
    spawned_from_jid: str | None


_PARTS: Final = tuple(JobParts.__annotations__)
LEASE: Final = 3600.0
"""Seconds of the lease of a job that `Job.build` makes."""


def made_facts(client: object, jid: object, klass: object, parts: Mapping[str, Any]) -> JobFacts:
    """Return the facts of a job made by hand. Raises UsageError naming the part that is wrong."""
    for part in parts:
        if part not in _PARTS:
            raise unknown_option("Job", part, _PARTS)
    state, retries = parts.get("state", "waiting"), parts.get("retries", 5)
    check_bounded("retries", retries, Retries)
    if state not in get_args(State):
        raise UsageError(f"state must be one of {', '.join(get_args(State))}, not {state!r}")
    return JobFacts(
        jid=check_name("jid", jid),
        klass=check_name("klass", klass),
        queue=_name("queue", parts.get("queue", "")),
        data=encode_data(parts.get("data", {}), most_data(client)),
        token=check_whole("token", parts.get("token", 0), 0, MAX_WHOLE),
        worker=_name("worker", parts.get("worker", "")),
        state=state,
        priority=check_whole("priority", parts.get("priority", 0), -MAX_WHOLE, MAX_WHOLE),
        retries=retries,
        remaining=check_whole("remaining", parts.get("remaining", retries), -1, limits(Retries)[1]),
        expires_ms=check_milliseconds("expires", parts.get("expires", 0), 0, 2**43),
        dependencies=tuple(_texts("dependencies", parts)),
        dependents=tuple(_texts("dependents", parts)),
        spawned_from=_name("spawned_from_jid", parts.get("spawned_from_jid") or ""),
        tracked=bool(parts.get("tracked", False)),
    )


def made_edits(parts: Mapping[str, object]) -> dict[str, object]:
    """Return the attributes that such a job shows as they were given, whatever a store would make of them."""
    edits: dict[str, object] = {name: _texts(name, parts) for name in ("tags", "throttles") if name in parts}
    if "failure" in parts:
        edits["failure"] = dict(_mapping("failure", parts["failure"]))
    if "history" in parts:
        entries = parts["history"] or ()
        edits["history"] = [
            dict(_mapping("an entry of history", entry)) for entry in check_list("history", entries)
        ]
    return edits


def built(klass: object, given: Mapping[str, object]) -> dict[str, Any]:
    """Return the parts of a job without a store: those given, and the defaults of `Job.build`."""
    defaults: dict[str, object] = {
        "jid": mint_jid(), "queue": "mock_queue", "worker": "mock_worker", "state": "running",
        "expires": time() + LEASE, "retries": 5, "failure": {}, "history": [], "tags": [], "throttles": [],
    }  # fmt: skip
    parts = {**defaults, **given}
    return {**parts, "klass": klass, "remaining": parts.get("remaining", parts["retries"])}


def _name(what: str, given: object) -> str:
    text = check_text(what, given if what != "queue" else str(given))
    return check_name(what, text) if text else ""


def _texts(what: str, parts: Mapping[str, object]) -> list[str]:
    given = parts.get(what) or ()
    return [check_text(what, name) for name in check_list(what, given)]


def _mapping(what: str, given: object) -> Mapping[str, object]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} must be a mapping, not {given!r:.80}")
    return cast("Mapping[str, object]", given)


_SHOWN: Final = (
    "jid", "spawned_from_jid", "expires_at", "state", "queue_name", "history", "worker_name", "failure", "klass_name",
    "tracked", "dependencies", "dependents", "original_retries", "retries_left", "data", "priority", "tags", "throttles",
)  # fmt: skip
_NO_TIMES: Final = frozenset(("attempt", "token"))
_OPTIONS: Final[Mapping[str, Any]] = {
    "data": {}, "delay": 0, "priority": 0, "tags": [], "retries": 5, "depends": [], "throttles": [],
}  # fmt: skip


class JobForms(JobView):
    """Methods that programs of older clients use."""

    @property
    def raw_queue_history(self) -> list[dict[str, Any]]:
        """The same as `history`."""
        return self.history

    @property
    def queue_history(self) -> list[dict[str, Any]]:
        """A copy of `history` in which every number is an aware UTC datetime, but for `attempt` and `token`."""
        return [{name: _moment(name, value) for name, value in entry.items()} for entry in self.history]

    @property
    def initially_put_at(self) -> datetime | None:
        """When the job was put first; None if its history does not have it."""
        found = [entry.get("when") for entry in self.history if entry.get("what") == "put"]
        moments = [when for when in found if isinstance(when, (int, float))]
        return datetime.fromtimestamp(min(moments), UTC) if moments else None

    @PlanProperty
    def spawned_from(self, ask: Planner) -> Plan[Any]:
        """The recurring job that put this one; None without one, or if it is gone. Core: verbs/recur.lua."""
        jid = self.spawned_from_jid
        if not jid:
            return None
        found = yield from ask(RecurGet((jid,)))
        return self._client.recurring._of(found[0])

    @property
    def throttle_objects(self) -> list[Any]:
        """The throttles of the job as handles, in their order."""
        return [self._client.throttles[name] for name in self.throttles]

    def to_hash(self) -> dict[str, Any]:
        """Return the attributes of the job as a dict."""
        # Also data that are not UTF-8.
        return {name: text(self.raw_data) if name == "data" else getattr(self, name) for name in _SHOWN}

    def enqueue_opts(self) -> dict[str, Any]:
        """Return the options with which `put` makes such a job again: retries, max_losses if it has such a budget, priority, depends, tags, throttles, data."""
        losses = self.facts.max_losses
        return {
            **({} if losses is None else {"max_losses": losses}),
            "retries": self.original_retries,
            "priority": self._read_priority(),
            "depends": list(self.dependencies),
            "tags": list(self.tags),
            "throttles": list(self.throttles),
            "data": self.data,
        }

    @staticmethod
    def build_opts_array(opts: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the arguments of the older core: data as JSON text, delay, then priority, tags, retries, depends and
        throttles as pairs, lists as JSON text. Raises UsageError for other options.
        """
        if opts is not None and not isinstance(opts, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"opts must be a mapping, not {opts!r:.80}")
        given = opts or {}
        for option in given:
            if option not in _OPTIONS:
                raise unknown_option("build_opts_array", option, tuple(_OPTIONS))
        all_ = {**_OPTIONS, **given}
        words: list[object] = [encode_data(all_["data"]).decode(), all_["delay"]]
        for name in ("priority", "tags", "retries", "depends", "throttles"):
            value = all_[name]
            words += (name, encode_data(list(value)).decode() if isinstance(_OPTIONS[name], list) else value)
        return words

    def reconnect_to_redis(self) -> Any:
        """Close the client's idle connections; the next call opens a new one. After a fork this is not needed."""
        return self._client.close()


def _moment(name: str, value: object) -> object:
    if name in _NO_TIMES or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return value


class RunFacts:
    """A job as its own code sees it; `holdfast.current_job()` returns it."""

    facts: JobFacts
    run_of: RunningJob | None
    """The run of which this is the job; only in a worker."""
    _sandbox: str | None = None

    @property
    def attempt(self) -> int:
        """The number of this attempt in the queue, 1 for the first; an attempt that cost nothing is repeated under its number."""
        return self.facts.attempt

    @property
    def deadline(self) -> float | None:
        """Epoch seconds, by the store's clock, when this run has to end; None without `timeout`.

        The lease is taken away then. Heartbeats do not move it, unlike `expires_at`.
        """
        limit = self.facts.options.get("limit")
        if not limit:
            return None
        # A popped job has no `popped_ms`: its lease began at the pop.
        start = self.facts.popped_ms or self.facts.expires_ms - self.facts.lease_ms
        return (start + int(limit)) / 1000

    @property
    def cancelled(self) -> bool:
        """Whether the lease is known to be lost: the job was cancelled, moved, or timed out; its outcome will be refused.

        The worker's heartbeats find out, every third of a lease or sooner. They also stop a job in a process or
        coroutine; one in a thread has to check this.
        """
        run = getattr(self, "run_of", None)
        return run is not None and bool(run.lost())

    @property
    def sandbox(self) -> str | None:
        """A directory that the worker keeps for this job while it runs, empty at its start; None elsewhere. Raises OSError.

        Assigning it changes nothing else.
        """
        run = getattr(self, "run_of", None)
        if self._sandbox is None and run is not None and run.sandbox is not None:
            self._sandbox = run.sandbox()
        return self._sandbox

    @sandbox.setter
    def sandbox(self, path: str | None) -> None:
        self._sandbox = path


log = logging.getLogger("holdfast")


class JobVerbs(RunFacts, JobForms, Callbacks, AttributeVerbs, WaitingJob, Completing, Moving, ExplainedVerbs):
    """The attributes and methods of a job."""

    settled_by: str = ""
    """The verb by which this object settled the job, "" before that."""

    def __init__(self, client: Any, *, jid: str, klass: object, **parts: Unpack[JobParts]) -> None:
        """Make a handle by hand; nothing is sent. `klass` is a class, module, function or name.

        `JobParts` are the other arguments. Raises UsageError naming the part that is wrong.
        """
        self._begin(made_facts(client, jid, any_name(klass), parts), client)
        self._local.update(made_edits(parts))
        set_klass(self, klass)

    @classmethod
    def build(cls, client: object, klass: object, **parts: object) -> Self:
        """Make a job without a store, to test job code with; `client` may be anything.

        It is running under `mock_worker` in `mock_queue` with a lease of one hour, five retries and a generated jid;
        `parts` are `jid` and those of `JobParts`. Data is converted to JSON and back. Raises UsageError.
        """
        return cls(client, **built(klass, parts))

    def _ended(self, command: Command[object], result: object = None) -> Command[Any]:
        """Return `command` so that its success settles this object, and its result is `result` unless None."""

        def ended(reply: object) -> object:
            self.settled_by = command.verb
            return self._mark(reply if result is None else result)

        return map_reply(command, ended)

    def _log_failure(self, group: str) -> Callable[[str], str]:
        def report(jid: str) -> str:
            log.error("job %s failed in group %s, because its code called fail()", jid, group)
            return jid

        return report

    def _mark(self, result: object) -> object:
        self.state_changed = True
        return result

    @settling("fail")
    def fail(self, group: str, message: str = "") -> Command[str]:
        """Fail the job for good in a failure group; return its jid. Raises LeaseLost. Core: verbs/fail.lua."""
        check_name("group", group)
        command = Fail(self._holder, self.facts, group, check_text("message", message), self._sent_data)
        return map_reply(self._ended(command), self._log_failure(group))

    @settling("retry")
    def retry(
        self, delay: Duration | None = None, group: str | None = None, message: str | None = None
    ) -> Command[int]:
        """Give the job back for another attempt after `delay` seconds; None: by its own backoff, at once if it has none.

        Returns the retries left; negative when there were none and the job failed, in `group` if group and message
        are given. Raises LeaseLost. Core: verbs/retry.lua.
        """
        failure = "", ""
        if group is not None and message is not None:
            failure = check_name("group", group), check_text("message", message)
        if delay is None:
            wait = OWN_BACKOFF if "backoff" in self.facts.options else 0
        else:
            wait = check_milliseconds("delay", delay)
        return self._ended(Retry(self._holder, self.facts, wait, *failure, self._sent_data))

    @CommandMethod
    def heartbeat(self) -> Command[float]:
        """Extend the lease and save the data; set and return `expires_at`. Raises LeaseLost.

        Core: verbs/heartbeat.lua.
        """
        return map_reply(Heartbeat(self._holder, self.facts, None, self._sent_data), self._extended)

    def _extended(self, end_ms: int) -> float:
        self.expires_at = end_ms / 1000
        return self.expires_at

    @settling("cancel")
    def cancel(self) -> Command[list[str]]:
        """Delete the job; return its jid in a list. Core: verbs/cancel.lua."""
        return self._ended(CancelBy((self.jid,), self._client.worker_name), [self.jid])

    @CommandMethod
    def timeout(self) -> Command[int]:
        """Take the lease away at once; the job is granted next. Raises WrongState. Core: verbs/timeout.lua."""
        return Timeout((self.jid,))

    def _set_priority(self, priority: int) -> Command[int]:
        """Change the priority of the job, higher first; a waiting job changes its place. Returns the priority.

        Raises UsageError, JobNotFound. Core: verbs/reprioritise.lua.
        """
        check_bounded("priority", priority, Priority)
        return map_reply(
            SetPriority(priority, (self.jid,)), lambda known: self._has_priority(known, priority)
        )

    def _has_priority(self, known: list[bool], priority: int) -> int:
        if not known[0]:
            raise JobNotFound(f"job {self.jid} does not exist", "HF_JOB_NOT_FOUND")
        self._priority = priority
        return priority

    priority = SettableFact(JobView._read_priority, _set_priority)
    set_priority = CommandMethod(_set_priority)

    @StepMethod
    def stack(self, timeout: float = 5.0) -> Steps[LiveStack]:
        """Ask the worker where the job is in its code; `str()` of the result is the stack, innermost frame last.

        This works for code that blocks its process too: then the stacks of all threads that perform jobs there are
        returned. Raises JobNotFound, WrongState when the job is not running, TimeoutError. Core: nouns/event/event.lua.
        """
        found: LiveStack = yield ask_worker(self._client, self.jid, timeout)
        return found

    @StepMethod
    def result(self, timeout: float | None = None) -> Steps[Any]:
        """Wait for the result of the job, for at most `timeout` seconds; None: without limit.

        If its function is known here, the result is of the type that the function declares, else a JSON value. Raises
        JobFailed, JobCancelled, JobNotFound when no result is kept, TimeoutError. Core: verbs/await.lua.
        """

        from holdfast.code.registry import find

        return (yield self._client.jobs.handle(self.jid, find(self.klass_name) or Any).result(timeout))

    # What finds and runs code is imported when a job is performed: most programs only put jobs.

    @StepMethod
    def perform(self) -> Steps[Any]:
        """Run the job's code here, with its middleware; return what it returns, and raise what it raises.

        The class is imported, again if its file changed, and the attribute named like the queue is called with this job,
        else `process`, else `perform`; a function job gets its own arguments. A job whose code is not found
        fails: in `<queue>-<Error>` if importing raised, in `<queue>-method-missing`. The job is not completed: its code
        does that. Raises LeaseLost, and UsageError for `async def`, which a job of a sync client cannot await. With an
        AsyncClient plain code runs in this thread, and what it returns is awaited if it can be.
        """

        from holdfast.client.jobs.code import run_job  # few programs do

        return (yield from run_job(self))

    @StepMethod
    def process(self) -> Steps[None]:
        """Run the job's code as `perform`; what it raises fails the job, in group `<queue>-<Error>` with the traceback.

        KeyboardInterrupt, SystemExit and the like are raised, and nothing is recorded. Raises LeaseLost if the lease
        is lost, so that the job cannot be failed.
        """

        from holdfast.client.jobs.code import process_job

        yield from process_job(self)
