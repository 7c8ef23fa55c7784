"""The methods of a job, which both Job classes share, and what its code can read while it runs."""

import logging
from collections.abc import Callable
from typing import Any, Self, Unpack

from holdfast.client.descriptors import CommandMethod, SettableFact
from holdfast.client.explanation import ExplainedVerbs
from holdfast.client.jobs.attributes import AttributeVerbs, Moving
from holdfast.client.jobs.callbacks import Callbacks, settling
from holdfast.client.jobs.dependencies import Completing, WaitingJob
from holdfast.client.jobs.facts import JobView, any_name, take
from holdfast.client.jobs.forms import JobForms, JobParts, built, made_edits, made_facts
from holdfast.client.put_options import check_priority
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.jobs import CancelBy, SetPriority
from holdfast.commands.leases import Heartbeat
from holdfast.commands.outcomes import OWN_BACKOFF, Fail, Retry, Timeout
from holdfast.errors import JobNotFound
from holdfast.models import JobFacts
from holdfast.settings import Duration, check_milliseconds, check_name, check_text


class RunFacts:
    """A job as its own code sees it; `holdfast.current_job()` answers it."""

    facts: JobFacts
    run_of: Any
    """The run of which this is the job; only where a worker performs it."""
    _sandbox: str | None = None

    @property
    def attempt(self) -> int:
        """The number of this attempt in the queue, 1 for the first; one that cost nothing is made again under its number."""
        return self.facts.attempt

    @property
    def deadline(self) -> float | None:
        """Epoch seconds, by the store's clock, until which this run may go on; None without `timeout`.

        No heartbeat moves it, as it does `expires_at`: then the lease is taken away.
        """
        limit = self.facts.options.get("limit")
        if not limit:
            return None
        # A popped job came without the moment of its pop: its lease began then.
        begun = self.facts.popped_ms or self.facts.expires_ms - self.facts.lease_ms
        return (begun + int(limit)) / 1000

    @property
    def cancelled(self) -> bool:
        """Whether the lease is known to be lost: the job was cancelled, moved, or its time is over; what it does is dropped.

        Known from the worker's heartbeats, every third of a lease or sooner. A job that hangs in a process or coroutine is
        stopped then; one in a thread has to look.
        """
        run = getattr(self, "run_of", None)
        return run is not None and bool(run.lost())

    @property
    def sandbox(self) -> str | None:
        """The directory that a worker keeps for this job while it runs, empty at its start; None elsewhere. Raises OSError.

        It may be assigned, which changes nothing else.
        """
        run = getattr(self, "run_of", None)
        if self._sandbox is None and run is not None and run.sandbox is not None:
            self._sandbox = run.sandbox()
        return self._sandbox

    @sandbox.setter
    def sandbox(self, path: str | None) -> None:
        self._sandbox = path


log = logging.getLogger("holdfast")


class JobVerbs(
    JobView, RunFacts, JobForms, Callbacks, AttributeVerbs, WaitingJob, Completing, Moving, ExplainedVerbs
):
    """What a job can be told."""

    settled_by: str = ""
    """The verb by which it was settled through this object, "" while it was not."""

    def __init__(self, client: Any, *, jid: str, klass: object, **parts: Unpack[JobParts]) -> None:
        """Make a handle by hand, which puts nothing: `klass` is a class, module, function or name.

        What else it may be given is in `JobParts`. Raises UsageError naming the part that cannot be.
        """
        self._begin(made_facts(client, jid, any_name(klass), parts), client)
        self._local.update(made_edits(parts))
        take(self, klass)

    @classmethod
    def build(cls, client: Any, klass: object, **parts: Any) -> Self:
        """A job that never met a store, to test job code with; `client` may be anything, and nobody is asked.

        It is running under `mock_worker` in `mock_queue` for an hour to come, with five retries and a jid of its own;
        `parts` are `jid` and those of `JobParts`. Data goes through JSON, as it would in a store. Raises UsageError.
        """
        return cls(client, **built(klass, parts))

    def _ended(self, command: Command[Any], answer: Any = None) -> Command[Any]:
        def ended(reply: Any) -> Any:
            self.settled_by = command.verb
            return self._mark(reply if answer is None else answer)

        return then(command, ended)

    def _warn_of(self, group: str) -> Callable[[str], str]:
        def warn(jid: str) -> str:
            log.warning("job %s failed in group %s", jid, group)
            return jid

        return warn

    def _mark(self, answer: Any) -> Any:
        self.state_changed = True
        return answer

    @settling("fail")
    def fail(self, group: str, message: str = "") -> Command[str]:
        """Fail the job for good under a failure group; answers its jid. Raises LeaseLost. Core: verbs/fail.lua."""
        check_name("group", group)
        told = check_text("message", message)
        command = Fail(self._holder, self.facts, group, told, self._sent_data)
        return then(self._ended(command), self._warn_of(group))

    @settling("retry")
    def retry(
        self, delay: Duration | None = None, group: str | None = None, message: str | None = None
    ) -> Command[int]:
        """Give the job back for another try after `delay` seconds; None: by its own backoff, at once if it has none.

        Answers the retries left; negative when there were none and the job failed, in `group` if group and message
        are given. Raises LeaseLost. Core: verbs/retry.lua.
        """
        told = (
            (check_name("group", group), check_text("message", message))
            if group is not None and message is not None
            else ("", "")
        )
        if delay is None:
            wait = OWN_BACKOFF if "backoff" in self.facts.options else 0
        else:
            wait = check_milliseconds("delay", delay)
        return self._ended(Retry(self._holder, self.facts, wait, *told, self._sent_data))

    @CommandMethod
    def heartbeat(self) -> Command[float]:
        """Push the lease's end away and save the data; answers and sets `expires_at`. Raises LeaseLost.

        Core: verbs/heartbeat.lua.
        """
        return then(Heartbeat(self._holder, self.facts, None, self._sent_data), self._beaten)

    def _beaten(self, end_ms: int) -> float:
        self.expires_at = end_ms / 1000
        return self.expires_at

    @settling("cancel")
    def cancel(self) -> Command[list[str]]:
        """Delete the job; answers the jids asked for. Core: verbs/cancel.lua."""
        return self._ended(CancelBy((self.jid,), self._client.worker_name), [self.jid])

    @CommandMethod
    def timeout(self) -> Command[int]:
        """Take the lease away at once; the job is offered again first. Raises WrongState. Core: verbs/timeout.lua."""
        return Timeout((self.jid,))

    def _tell_priority(self, priority: int) -> Command[int]:
        """Give the job another priority, higher first; a waiting one changes its place. Answers it.

        Raises UsageError, JobNotFound. Core: verbs/reprioritise.lua.
        """
        check_priority(priority)
        return then(SetPriority(priority, (self.jid,)), lambda known: self._raised(known, priority))

    def _raised(self, known: list[bool], priority: int) -> int:
        if not known[0]:
            raise JobNotFound(f"job {self.jid} does not exist", "HF_JOB_NOT_FOUND")
        self._priority = priority
        return priority

    priority = SettableFact(JobView._read_priority, _tell_priority)
    set_priority = CommandMethod(_tell_priority)
