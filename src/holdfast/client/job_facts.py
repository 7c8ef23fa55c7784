"""A job as it was at one moment: what the store said of it, and what was changed here since."""

from collections.abc import Mapping
from datetime import UTC, datetime
from time import time
from typing import Any, Self, cast

from holdfast.codecs import decode, encode_data
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.settings import OWN_THROTTLE


class JobView:
    """What can be read of a job, and edited locally; `facts` are what the store said, never read again.

    `data` is JSON text; assigning it is local until the next call that ends, renews or moves the job.
    Item access reads and writes the decoded mapping.
    """

    _client: Any
    facts: JobFacts

    @classmethod
    def of(cls, facts: JobFacts, client: Any) -> Self:
        """The handle of a job that the store told of."""
        job = cls.__new__(cls)
        job._begin(facts, client)
        return job

    def _begin(self, facts: JobFacts, client: Any) -> None:
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

    def _read_priority(self) -> int:
        """Higher runs first; assigning it tells the store at once. Core: verbs/reprioritise.lua."""
        return self.facts.priority if self._priority is None else self._priority

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
