"""A job as it was at one moment: what the store returned, and what was changed on the handle since."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import time
from typing import Any, Self, TypeVar, cast

import msgspec

from holdfast.client.descriptors import AnyClient, AsyncMethods, Fact
from holdfast.client.put_options import name_of
from holdfast.codecs import MAX_DATA, decode, encode_data
from holdfast.commands.jobs import JobGet
from holdfast.errors import CodecError, UsageError
from holdfast.models import JobFacts
from holdfast.models.job import DEPENDENTS, EXTRA, HISTORY, TRACKED
from holdfast.settings import OWN_THROTTLE, check_name


def imported(handle: Any) -> Any:
    """Return the class, function or module of `handle.klass_name`, imported by `Importer` and kept.

    Raises what importing it raises: ModuleNotFoundError, AttributeError, and whatever its module raises.
    """
    from holdfast.code.importing import Importer

    known = handle._local.get("klass")
    if known is None or known[0] != handle.klass_name:
        known = handle._local["klass"] = handle.klass_name, Importer.import_class(handle.klass_name)
    return known[1]


def set_klass(handle: Any, klass: object) -> None:
    """Make `klass`, a class, function, module or name, the klass of this handle; nothing is sent."""
    handle.klass_name = name = any_name(klass)
    if isinstance(klass, str):
        handle._local.pop("klass", None)
    else:
        handle._local["klass"] = name, klass


def any_name(klass: object) -> str:
    """Return the name of a class, function, module or text, even if no other program could import it."""
    try:
        return name_of(klass)
    except UsageError:
        name = getattr(klass, "__name__", None)
        if not isinstance(name, str):
            raise
        return f"{getattr(klass, '__module__', '__main__')}.{name}"


T = TypeVar("T")
Callback = Callable[[Any], object]
"""A callback of a job handle; it gets the job, a `Job` or an `AsyncJob`."""


class Local(Fact[T]):
    """A fact that can be assigned on its handle. It is read once, so a list can be changed in place."""

    def of(self, handle: Any) -> T:
        """Return the value."""
        known: dict[str, Any] = handle._local
        if self.name not in known:
            known[self.name] = self.read(handle)
        value: T = known[self.name]
        return value

    def differs(self, handle: Any) -> bool:
        """Return whether it was changed on this handle."""
        known: dict[str, object] = handle._local
        return self.name in known and bool(known[self.name] != self.read(handle))

    def __set__(self, handle: Any, value: T) -> None:
        handle._local[self.name] = value


class JidHandle:
    """The base of jobs and recurring jobs: they are equal if class, jid and client are equal."""

    _client: AnyClient
    facts: Any

    @property
    def jid(self) -> str:
        """The id. Assigning it makes this object stand for another job, or recurring job."""
        jid: str = self.facts.jid
        return jid

    @jid.setter
    def jid(self, jid: str) -> None:
        self.facts = msgspec.structs.replace(self.facts, jid=check_name("jid", jid))

    @property
    def _kind(self) -> type:
        """The class for comparisons."""
        return type(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JidHandle) or self._kind is not other._kind:
            return False
        return self.jid == other.jid and bool(self._client == other._client)

    def __hash__(self) -> int:
        return hash(self.jid)


class JobView(JidHandle):
    """The attributes of a job, which can be edited locally; `facts` are as the store returned them.

    `data` is JSON text; assigning it is local until the next call that settles, renews or moves the job.
    Item access reads and writes the decoded mapping. Reading an attribute sends nothing, with one exception: a job that
    was popped came without its history, dependents, progress and log if it has any, which a sync handle reads
    at first use. An async handle raises UsageError there until `await job.load()`.
    """

    facts: JobFacts
    state_changed: bool
    """Whether one of complete, fail, retry, cancel and move or requeue succeeded on this object."""

    @classmethod
    def of(cls, facts: JobFacts, client: AnyClient) -> Self:
        """Return the handle of a job as the store returned it."""
        job = cls.__new__(cls)
        job._begin(facts, client)
        return job

    def _begin(self, facts: JobFacts, client: AnyClient) -> None:
        self.facts = facts
        self._client = client
        self._local: dict[str, Any] = {}
        self._callbacks: dict[str, list[Callback]] = {}
        self._more: JobFacts | None = None
        self._edited: bytes | None = None
        self._priority: int | None = None
        self._decoded: Mapping[str, object] | None = None
        self.state_changed = False

    def _whole(self, flag: int, what: str) -> JobFacts:
        """Return facts with what a popped job came without, if `flag` is set, which means that there is some."""
        facts = self.facts
        if not facts.lease_ms or not facts.flags & flag:
            return facts
        if self._more is None:
            if isinstance(self, AsyncMethods):
                raise UsageError(f"a popped job does not include its {what}: call `await job.load()` first")
            self._fill(self._client.run(JobGet((self.jid,))))
        return cast("JobFacts", self._more)

    def _fill(self, found: list[JobFacts | None]) -> None:
        self._more = found[0] or self.facts

    # Facts.

    @property
    def token(self) -> int:
        """The number of this lease, 0 without one."""
        return self.facts.token

    @Local
    def klass_name(self) -> str:
        """The name of the class, function or module that performs the job."""
        return self.facts.klass

    @property
    def klass(self) -> Any:
        """The class, function or module that performs the job: imported at first use, again if its file changed.

        Assigning one, or a name, changes `klass_name` too, on this object alone. Raises what importing it raises.
        """
        return imported(self)

    @klass.setter
    def klass(self, klass: object) -> None:
        set_klass(self, klass)

    @Local
    def queue_name(self) -> str:
        """The name of its queue, '' for a completed job, whose last queue is `facts.queue`."""
        return "" if self.facts.state == "complete" else self.facts.queue

    def _queue_of(self, kind: Any) -> object:
        known = self._local.get("queue")
        if known is None or known.name != self.queue_name:
            known = self._local["queue"] = kind.of_job(self.queue_name, self._client)
        return known

    @property
    def worker_name(self) -> str:
        """The worker that holds the lease, '' without one."""
        return self.facts.worker

    @property
    def state(self) -> str:
        """`waiting`, `running`, `stalled`, `scheduled`, `depends`, `throttled`, `complete` or `failed`."""
        return self.facts.state

    @property
    def original_retries(self) -> int:
        """How many retries the job has in each queue."""
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

    @Local
    def tags(self) -> list[str]:
        """The job's tags; `tag` and `untag` change them in the store."""
        return list(self.facts.tags)

    @Local
    def throttles(self) -> list[str]:
        """The job's throttles; its queue's own comes last."""
        # A popped job without throttles of its own came without the one of its queue too.
        own = [OWN_THROTTLE + self.queue_name] if self.queue_name else []
        return list(self.facts.throttles) or own

    @Local
    def dependencies(self) -> list[str]:
        """The jids that this job waits for, in no order."""
        return list(self.facts.dependencies)

    @property
    def dependents(self) -> list[str]:
        """The jids that wait for this job, the first 1,000; `read_dependents` returns all."""
        return list(self._whole(DEPENDENTS, "dependents").dependents)

    @Local
    def failure(self) -> dict[str, Any]:
        """`group`, `message`, `when` and `worker` of the failure, {} without one."""
        return self.facts.failure.as_dict() if self.facts.failure else {}

    @property
    def tracked(self) -> bool:
        """Whether the job is tracked."""
        return self.facts.tracked or bool(self.facts.flags & TRACKED)

    @property
    def spawned_from_jid(self) -> str | None:
        """The jid of the recurring job that put it, None for any other."""
        return self.facts.spawned_from or None

    @property
    def scheduled_for(self) -> datetime | None:
        """The moment that a recurring job put it for, of its interval or calendar, without jitter; None for any other job.

        Of a job that `run_now` put, the time of that."""
        moment = self.facts.scheduled_for_ms
        return datetime.fromtimestamp(moment / 1000, UTC) if moment else None

    @property
    def history(self) -> list[dict[str, Any]]:
        """What happened to the job, oldest first: `what`, `when` (epoch seconds), and details."""
        made: list[dict[str, object]] | None = self._local.get("history")
        if made is not None:
            return made
        return [entry.as_dict() for entry in self._whole(HISTORY, "history").all_history()]

    @property
    def progress_fraction(self) -> float | None:
        """The progress that the job reported, from 0 to 1; None without."""
        progress = self._whole(EXTRA, "progress").progress
        return progress.fraction if progress else None

    @property
    def progress_note(self) -> str:
        """The note that it reported with that."""
        progress = self._whole(EXTRA, "progress").progress
        return progress.note if progress else ""

    @property
    def log_lines(self) -> list[str]:
        """The last lines that the job reported."""
        return list(self._whole(EXTRA, "log").log)

    @property
    def earlier_data(self) -> dict[int, str]:
        """The data as JSON at the start of earlier attempts, by attempt, if it was changed and the setting `keep-data` is 1
        (`client.upkeep.set`). Up to 4 kB each, of the last 20.
        """
        earlier = self._whole(EXTRA, "earlier data").earlier
        return {attempt: data.decode("utf-8", "replace") for attempt, data in earlier}

    @property
    def created_at(self) -> datetime:
        """When the job was first put."""
        return datetime.fromtimestamp(self.facts.created_ms / 1000, UTC)

    @Local
    def expires_at(self) -> float:
        """Epoch seconds, by the store's clock, by which the holder must send a heartbeat; 0 without a lease."""
        return self.facts.expires_ms / 1000

    @property
    def ttl(self) -> float:
        """Seconds until the lease ends."""
        return self.expires_at - time()

    # Data, and local edits.

    @property
    def data(self) -> str:
        """The job's data as JSON text. Raises CodecError for bytes that are not UTF-8, which only other programs can put."""
        try:
            return self.raw_data.decode()
        except UnicodeDecodeError as error:
            raise CodecError(f"the data of {self.jid} are not JSON: {error}") from None

    @data.setter
    def data(self, value: object) -> None:
        self._edited = encode_data(value, most_data(self._client))
        self._decoded = None

    @property
    def raw_data(self) -> bytes:
        """The job's data as bytes, even if they are not JSON."""
        return self.facts.data if self._edited is None else self._edited

    def __getitem__(self, key: str) -> Any:
        return self._mapping()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._mapping()

    def __setitem__(self, key: str, value: object) -> None:
        mapping = {**self._mapping(), key: value}
        self._edited = encode_data(mapping, most_data(self._client))
        self._decoded = mapping

    def _mapping(self) -> Mapping[str, object]:
        if self._decoded is None:
            decoded = decode(self.raw_data)
            if not isinstance(decoded, Mapping):
                raise UsageError(f"the data of {self.jid} are not a mapping, so they have no items")
            self._decoded = cast("Mapping[str, object]", decoded)
        return self._decoded

    def _read_priority(self) -> int:
        """Higher runs first; assigning it changes it in the store at once. Core: verbs/reprioritise.lua."""
        return self.facts.priority if self._priority is None else self._priority

    @property
    def description(self) -> str:
        """Class, jid, queue and state in one line."""
        return f"{self.klass_name} ({self.jid} / {self.queue_name} / {self.state})"

    def __repr__(self) -> str:
        return f"<{self.klass_name} {self.jid}>"


def most_data(client: object) -> int:
    """Return how many bytes of JSON a job of this client may have; the default if a test uses something else as client."""
    most = getattr(getattr(client, "settings", None), "max_data", None)
    return most if isinstance(most, int) else MAX_DATA
