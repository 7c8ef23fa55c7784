"""What the two Job classes share: the facts of one moment, local edits, and the verb table of a job."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import time
from typing import Any, cast

from holdfast.client.attributes import AttributeVerbs
from holdfast.client.colours import Verb, Written
from holdfast.client.dependencies import Completing, WaitingJob
from holdfast.client.explaining import ExplainedVerbs
from holdfast.client.options import check_priority
from holdfast.codecs import decode, encode_data
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.jobs import Cancel, Move, SetPriority
from holdfast.commands.leases import Heartbeat
from holdfast.commands.outcomes import OWN_BACKOFF, Fail, Retry, Timeout
from holdfast.errors import JobNotFound, UsageError
from holdfast.models import JobFacts
from holdfast.settings import OWN_THROTTLE, check_milliseconds, check_name, check_text

log = logging.getLogger("holdfast")


class JobVerbs(AttributeVerbs, WaitingJob, Completing, ExplainedVerbs):
    """A job as it was at one moment; `facts` are what the store said, never read again.

    `data` is JSON text; assigning it is local until the next call that ends, renews or moves the job.
    Item access reads and writes the decoded mapping.
    """

    def __init__(self, facts: JobFacts, client: Any) -> None:
        self.facts = facts
        self._client = client
        self._edited: bytes | None = None
        self._priority: int | None = None
        self._expires_at: float | None = None
        self._decoded: Mapping[str, Any] | None = None
        self.state_changed = False
        """Whether one of complete, fail, retry, cancel and move succeeded on this object."""

    # Facts.

    @property
    def jid(self) -> str:
        """The job's name."""
        return self.facts.jid

    @property
    def token(self) -> int:
        """The number of this lease, 0 when nobody holds one."""
        return self.facts.token

    @property
    def klass_name(self) -> str:
        """The name of what performs the job."""
        return self.facts.klass

    @property
    def queue_name(self) -> str:
        """The name of its queue, '' for a completed job."""
        return self.facts.queue

    @property
    def worker_name(self) -> str:
        """Who holds the lease, '' for nobody."""
        return self.facts.worker

    @property
    def state(self) -> str:
        """`waiting`, `running`, `stalled`, `scheduled`, `depends`, `throttled`, `complete` or `failed`."""
        return self.facts.state

    @property
    def original_retries(self) -> int:
        """How many retries each queue grants this job."""
        return self.facts.retries

    @property
    def retries_left(self) -> int:
        """How many of them are left."""
        return self.facts.remaining

    @property
    def attempts(self) -> int:
        """How often the job was popped."""
        return self.facts.attempts

    @property
    def losses(self) -> int:
        """How often its lease was lost."""
        return self.facts.losses

    @property
    def tags(self) -> list[str]:
        """The job's tags."""
        return list(self.facts.tags)

    @property
    def throttles(self) -> list[str]:
        """The job's throttles; its queue's own comes last."""
        # A popped job without throttles of its own came without the one of its queue too.
        own = [OWN_THROTTLE + self.queue_name] if self.queue_name else []
        return list(self.facts.throttles) or own

    @property
    def dependencies(self) -> list[str]:
        """The jids this job waits for."""
        return list(self.facts.dependencies)

    @property
    def dependents(self) -> list[str]:
        """The jids that wait for this job."""
        return list(self.facts.dependents)

    @property
    def failure(self) -> dict[str, Any]:
        """`group`, `message`, `when` and `worker` of the failure, {} without one."""
        return self.facts.failure.as_dict() if self.facts.failure else {}

    @property
    def history(self) -> list[dict[str, Any]]:
        """What happened to the job, oldest first; `what`, `when` (epoch seconds), and what is known beside."""
        return [entry.as_dict() for entry in self.facts.history]

    @property
    def created_at(self) -> datetime:
        """When the job was first put."""
        return datetime.fromtimestamp(self.facts.created_ms / 1000, UTC)

    @property
    def expires_at(self) -> float:
        """Epoch seconds, by the store's clock, until which the holder must heartbeat; 0 when nobody holds it."""
        return self.facts.expires_ms / 1000 if self._expires_at is None else self._expires_at

    @expires_at.setter
    def expires_at(self, moment: float) -> None:
        self._expires_at = moment

    @property
    def ttl(self) -> float:
        """Seconds left of the lease."""
        return self.expires_at - time()

    # Data, and local edits.

    @property
    def data(self) -> str:
        """The job's data, as JSON text."""
        return (self.facts.data if self._edited is None else self._edited).decode()

    @data.setter
    def data(self, value: object) -> None:
        self._edited = encode_data(value, self._client.settings.max_data)
        self._decoded = None

    def __getitem__(self, key: str) -> Any:
        return self._mapping()[key]

    def __setitem__(self, key: str, value: object) -> None:
        mapping = {**self._mapping(), key: value}
        self._edited = encode_data(mapping, self._client.settings.max_data)
        self._decoded = mapping

    def _mapping(self) -> Mapping[str, Any]:
        if self._decoded is None:
            decoded = decode(self.data)
            if not isinstance(decoded, Mapping):
                raise UsageError(f"the data of {self.jid} are no mapping, so they have no items")
            self._decoded = cast("Mapping[str, Any]", decoded)
        return self._decoded

    # Verbs.

    def _ended(self, command: Command[Any], answer: Any = None) -> Command[Any]:
        return then(command, lambda reply: self._mark(reply if answer is None else answer))

    def _warn_of(self, group: str) -> Callable[[str], str]:
        def warn(jid: str) -> str:
            log.warning("job %s failed in group %s", jid, group)
            return jid

        return warn

    def _mark(self, answer: Any) -> Any:
        self.state_changed = True
        return answer

    @Verb
    def fail(self, group: str, message: str = "") -> Command[str]:
        """Fail the job for good under a failure group; answers its jid. Raises LeaseLost. Core: verbs/fail.lua."""
        check_name("group", group)
        told = check_text("message", message)
        command = Fail(self._holder, self.facts, group, told, self._sent_data)
        return then(self._ended(command), self._warn_of(group))

    @Verb
    def retry(
        self, delay: float | None = None, group: str | None = None, message: str | None = None
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

    @Verb
    def heartbeat(self) -> Command[float]:
        """Push the lease's end away and save the data; answers and sets `expires_at`. Raises LeaseLost.

        Core: verbs/heartbeat.lua.
        """
        return then(Heartbeat(self._holder, self.facts, None, self._sent_data), self._beaten)

    def _beaten(self, end_ms: int) -> float:
        self._expires_at = end_ms / 1000
        return self._expires_at

    @Verb
    def cancel(self) -> Command[list[str]]:
        """Delete the job; answers the jids asked for. Core: verbs/cancel.lua."""
        return self._ended(Cancel((self.jid,)), [self.jid])

    @Verb
    def move(self, queue: object, delay: float = 0) -> Command[str]:
        """Take the job out of whatever state it is in and put it into `queue`; answers its jid.

        Its holder loses the lease. Raises JobNotFound. Core: verbs/move.lua.
        """
        name = check_name("queue", str(queue))
        return self._ended(Move(name, self.jid, check_milliseconds("delay", delay), self._sent_data))

    @Verb
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
            raise JobNotFound(f"there is no job {self.jid}", "HF_JOB_NOT_FOUND")
        self._priority = priority
        return priority

    def _read_priority(self) -> int:
        """Higher runs first; assigning it tells the store at once. Core: verbs/reprioritise.lua."""
        return self.facts.priority if self._priority is None else self._priority

    priority = Written(_read_priority, _tell_priority)
    set_priority = Verb(_tell_priority)

    @property
    def description(self) -> str:
        """Class, jid, queue and state in one line."""
        return f"{self.klass_name} ({self.jid} / {self.queue_name} / {self.state})"

    def __repr__(self) -> str:
        return f"<{self.klass_name} {self.jid}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.jid == other.jid and self._client == other._client

    def __hash__(self) -> int:
        return hash(self.jid)
