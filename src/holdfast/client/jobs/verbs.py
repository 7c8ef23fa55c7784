"""The methods of a job, for both clients, and what its code can read while it runs."""

import logging
from collections.abc import Callable
from typing import Any, Self, Unpack

from holdfast.bounds import Priority
from holdfast.client.descriptors import CommandMethod, SettableFact, StepMethod
from holdfast.client.explanation import ExplainedVerbs
from holdfast.client.jobs.attributes import AttributeVerbs, Moving
from holdfast.client.jobs.callbacks import Callbacks, settling
from holdfast.client.jobs.dependencies import Completing, WaitingJob
from holdfast.client.jobs.facts import JobView, any_name, set_klass
from holdfast.client.jobs.forms import JobForms, JobParts, built, made_edits, made_facts
from holdfast.client.stacks import LiveStack, ask_worker
from holdfast.code.current import Running
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.base import map_reply
from holdfast.commands.jobs import CancelBy, SetPriority
from holdfast.commands.leases import Heartbeat
from holdfast.commands.outcomes import OWN_BACKOFF, Fail, Retry, Timeout
from holdfast.errors import JobNotFound
from holdfast.models import JobFacts
from holdfast.settings import Duration, check_bounded, check_milliseconds, check_name, check_text


class RunFacts:
    """A job as its own code sees it; `holdfast.current_job()` returns it."""

    facts: JobFacts
    run_of: Running | None
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
            log.error("job %s failed in group %s, by its own call", jid, group)
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
        returned. Raises JobNotFound, WrongState when the job is not running, TimeoutError. Core: nouns/event.lua.
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
        from holdfast.client.jobs.code import run_job

        return (yield from run_job(self))

    @StepMethod
    def process(self) -> Steps[None]:
        """Run the job's code as `perform`; what it raises fails the job, in group `<queue>-<Error>` with the traceback.

        KeyboardInterrupt, SystemExit and the like are raised, and nothing is recorded. Raises LeaseLost if the lease
        is lost, so that the job cannot be failed.
        """
        from holdfast.client.jobs.code import process_job

        yield from process_job(self)
