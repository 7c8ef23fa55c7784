"""Dependencies between jobs, and puts that become visible only when their job completes."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple, Required, cast

from holdfast.client.bulk import OnePut, noted_jid
from holdfast.client.cancelling import cancel_jobs
from holdfast.client.descriptors import AnyClient, CommandMethod, PlanMethod
from holdfast.client.jobs.attributes import settling
from holdfast.client.put_options import NOTHING, make_put
from holdfast.code.current import put_collector
from holdfast.code.put_options import PutOptions
from holdfast.commands import Command
from holdfast.commands.dependencies import CompleteX, Depend, Dependents, FollowUp
from holdfast.commands.jobs import PutMany
from holdfast.commands.leases import Complete
from holdfast.commands.options import MAX_WEIGHT, JobWithOptions, PutWithOptions
from holdfast.commands.outcomes import Advance
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.settings import (
    MAX_BATCH,
    Duration,
    HasJid,
    Settings,
    check_each,
    check_jids,
    check_list,
    check_milliseconds,
    check_queue,
    check_switch,
    jid_of,
)
from holdfast.wire.plans import Plan, Planner

MOST_BYTES: Final = 16 << 20
"""Of the data of all jobs that one completion puts; a single larger one is allowed."""


_HELD: Final = ("running", "stalled")


class Load(NamedTuple):
    """The size of one completion: how many jobs it puts, their weight (`JobWithOptions.weight`), and bytes of data."""

    jobs: int = 0
    weight: int = 0
    size: int = 0

    def plus(self, jobs: Sequence[FollowUp]) -> "Load":
        """Return the load with these jobs added. Raises UsageError for more than one call takes."""
        load = Load(
            self.jobs + len(jobs),
            self.weight + sum([one.job.weight for one in jobs]),
            self.size + sum([len(one.job.data) for one in jobs]),
        )
        if load.weight > MAX_WEIGHT:
            raise UsageError(
                f"one completion puts at most {MAX_WEIGHT // 2} jobs, fewer with options "
                f"(a job counts 2, with options 3, each option 1, a parent 2; {MAX_WEIGHT} is the most)"
            )
        if load.jobs > 1 and load.size > MOST_BYTES:
            raise UsageError(f"one completion puts at most {MOST_BYTES >> 20} MiB of data")
        return load


class Collector:
    """The puts that one job holds until it completes, block by block, within the limits of one call."""

    def __init__(self, job: "OnCompletion", client: AnyClient) -> None:
        self._job = job
        self._client = client
        self._blocks: list[Block] = []
        self._load = Load()
        # Threads that share a context may put at the same time.
        self._lock = Lock()
        self.is_over = False

    def begin(self) -> "Block":
        """Return a new block."""
        block = Block(self)
        self._blocks.append(block)
        return block

    @property
    def follow(self) -> list[FollowUp]:
        """The puts so far."""
        return [one for block in self._blocks for one in block.follow]

    def check(self, client: Any, put: OnePut | PutMany) -> None:
        """Check that this put of this client can wait for the completion. Raises UsageError."""
        jid = self._job.facts.jid
        if self.is_over or self._job.state_changed:
            raise UsageError(f"job {jid} has ended, so no more jobs can be put on its completion")
        if not client._shares_root_with(self._client):
            raise UsageError(
                f"a put on the completion of job {jid} goes to its own store and namespace, "
                f"{self._client!r}, not to {client!r}"
            )
        if put.mode == "move":
            raise UsageError(
                "a put on completion with jid= requires only_new=True: an existing job is not changed"
            )
        if put.mode == "old":
            raise UsageError("a job cannot be requeued on the completion of another, only put")
        if isinstance(put, PutWithOptions) and put.job.options.on_conflict == "raise":
            raise UsageError(
                "a put on completion cannot raise when another job holds its unique key: leave out on_conflict='raise'"
            )

    def add(self, follow: list[FollowUp], jobs: Sequence[FollowUp]) -> None:
        """Add `jobs` to the `follow` of a block. Raises UsageError for too many in all."""
        with self._lock:
            self._load = self._load.plus(jobs)
            follow += jobs

    def drop(self, block: "Block") -> None:
        """Remove a block and its puts."""
        with self._lock:
            self._blocks.remove(block)
            block.is_dropped = True
            self._load = Load().plus(self.follow)


class Block:
    """One block of `on_completion`, which gets the puts inside."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self.follow: list[FollowUp] = []
        self.is_dropped = False

    def take(self, client: object, put: OnePut) -> str:
        """Add one put; return its jid. Raises UsageError."""
        self._add(client, put, [follow_up_of(put)])
        return noted_jid(put)

    def take_all(self, client: object, puts: Sequence[OnePut | PutMany]) -> list[object]:
        """Add the puts of one step; return the result of each. Raises UsageError."""
        return [
            self._take_many(client, put) if isinstance(put, PutMany) else self.take(client, put)
            for put in puts
        ]

    def _take_many(self, client: object, puts: PutMany) -> list[str]:
        flat: list[Any] = list(puts.jobs)
        shared = puts.priority, puts.retries, puts.delay_ms, puts.max_losses
        jobs = [
            FollowUp(puts.queue, JobWithOptions(klass, body, jid), *shared)
            for jid, klass, body in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        ]
        self._add(client, puts, jobs)
        return flat[::3]

    def _add(self, client: object, put: OnePut | PutMany, jobs: Sequence[FollowUp]) -> None:
        if self.is_dropped:
            raise UsageError("this block of on_completion has raised, so no more jobs can be put in it")
        self._collector.check(client, put)
        self._collector.add(self.follow, jobs)


def follow_up_of(put: OnePut) -> FollowUp:
    job = put.job if isinstance(put, PutWithOptions) else JobWithOptions(put.klass, put.data, put.jid)
    return FollowUp(put.queue, job, put.priority, put.retries, put.delay_ms, put.max_losses)


class OnCompletion:
    """Puts that wait until their job completes."""

    facts: JobFacts
    state_changed: bool
    _client: AnyClient
    _collector: Collector | None = None

    @contextmanager
    def on_completion(self) -> Generator[None]:
        """A block whose puts become visible only if this job completes, in the same step: `with job.on_completion():`.

        This applies to `put` and `put_many` of queues and functions of this job's store and namespace, in this thread or
        task and the tasks it starts; other calls are made at once. The jids are known at once. The puts are sent when
        the job is completed or moved to its next queue, and never if it fails, is retried or raises; those of a
        block that raises are dropped. A put whose unique key another job holds then makes no job of its jid. At most 512, fewer with options; a jid of your own needs `only_new=True`, and an
        existing job stays as it is; `max-waiting` of a queue does not apply to them. Raises UsageError.
        Core: verbs/complete_x.lua.
        """
        if self.state_changed:
            raise UsageError(f"job {self.facts.jid} has ended already")
        if self.facts.state not in _HELD:
            # This object cannot complete it, so the puts would never be sent.
            raise UsageError(
                f"job {self.facts.jid} is {self.facts.state}, so it cannot complete: on_completion is for a running job, "
                "as returned by current_job() or pop()"
            )
        collector = self._collector = self._collector or Collector(self, self._client)
        block = collector.begin()
        token = put_collector.set(block)
        try:
            yield
        except BaseException:
            collector.drop(block)
            raise
        finally:
            put_collector.reset(token)

    @property
    def kept_back(self) -> list[FollowUp]:
        """The puts in blocks of `on_completion` so far."""
        return [] if self._collector is None else self._collector.follow

    def end_collecting(self) -> list[FollowUp]:
        """Return the puts in blocks of `on_completion`, and take no more."""
        if self._collector is not None:
            self._collector.is_over = True
        return self.kept_back


MAX_FOLLOWED: Final = 1000


class FollowUpOptions(PutOptions, total=False):
    """A job that is put when another is complete: `queue` and `klass`, `data`, and the options of `put` but `only_new`.
    An existing job of the same `jid` stays as it is."""

    queue: Required[object]
    klass: Required[object]
    data: object


class Completing(OnCompletion):
    """How the holder of a job completes it."""

    _client: AnyClient
    facts: JobFacts
    _ended: Callable[[Command[Any], object], Command[Any]]

    _edited: bytes | None

    @property
    def _sent_data(self) -> bytes:
        return self._edited or b""

    @property
    def _holder(self) -> str:
        return self.facts.worker or self._client.worker_name

    @settling("complete")
    def complete(
        self,
        next_queue: object = None,
        delay: Duration | None = None,
        depends: Sequence[str | HasJid] = (),
        follow: Sequence[FollowUpOptions] = (),
    ) -> Command[str | bool]:
        """Complete the job; with `next_queue` (a queue or its name), it continues there.

        It does so after `delay` seconds and when the jobs in `depends` are complete. `follow` are jobs to put in
        the same step (mappings of FollowUpOptions), with the puts in blocks of `on_completion`; they and this job may
        depend on each other. Returns `"complete"`, or True with a `next_queue`. Raises LeaseLost, DependencyRefused.
        Core: verbs/complete.lua, advance.lua, complete_x.lua.
        """
        if next_queue is None and (delay is not None or depends):
            raise UsageError(f"complete({'depends' if depends else 'delay'}=…) needs a next queue")
        queue = "" if next_queue is None else check_queue("next_queue", next_queue)
        wait = check_milliseconds("delay", delay or 0)
        lease = self._holder, self.facts, self._sent_data
        command: Command[object]
        if depends or follow or self.kept_back:
            jobs = [*self.kept_back, *_follow_ups(self._client.settings, follow)]
            names = check_jids("depends", depends, MAX_FOLLOWED)
            Load().plus(jobs)
            command = CompleteX(*lease, next_queue=queue, delay_ms=wait, depends=names, follow=jobs)
        elif queue:
            command = Advance(self._holder, queue, self.facts, wait, self._sent_data)
        else:
            command = Complete(*lease)
        return self._ended(command, True if queue else None)


class WaitingJob:
    """Methods for the dependencies and dependents of a job."""

    _client: AnyClient
    facts: JobFacts

    @CommandMethod
    def depend(self, *jids: str | HasJid) -> Command[int]:
        """Wait for more jobs, up to 512 a call; only while the job waits for some (state `depends`).

        Unknown and complete jobs count as done. Raises WrongState, JobNotFound, DependencyRefused for itself and for
        cycles. Core: verbs/depend.lua.
        """
        return Depend(self.facts.jid, check_each("jid", map(jid_of, jids)))

    @CommandMethod
    def undepend(self, *jids: str | HasJid, all: bool = False) -> Command[int]:
        """Stop waiting for these jobs, or with `all=True` for any; after the last one the job is ready at once.

        Raises WrongState, JobNotFound. Core: verbs/depend.lua.
        """
        if check_switch("all", all) == bool(jids):
            raise UsageError("undepend takes jids, or all=True")
        return Depend(self.facts.jid, check_each("jid", map(jid_of, jids)), "all" if all else "remove")

    @PlanMethod
    def read_dependents(self, ask: Planner) -> Plan[list[str]]:
        """The jids of all jobs that wait for this one, in the order they began to. Core: verbs/depend.lua."""
        cursor, found = yield from ask(Dependents(self.facts.jid))
        while cursor:
            cursor, page = yield from ask(Dependents(self.facts.jid, cursor))
            found += page
        return found


class Cancelling:
    """Cancelling jobs by jid."""

    _client: AnyClient

    @PlanMethod
    def cancel(self, ask: Planner, *jids: str | HasJid, dependents: bool = False) -> Plan[list[bool]]:
        """Delete jobs; True for each that was cancelled, False for unknown and complete ones.

        A job with dependents is refused unless they are given too; with `dependents=True` all dependents are cancelled
        as well. Up to 512 jobs are one step; of more, those without dependents are cancelled first. Raises
        DependencyRefused. Core: verbs/cancel.lua.
        """
        if not jids:
            raise UsageError("cancel takes at least one jid")
        return cancel_jobs(
            self._client.shard,
            ask,
            check_each("jid", map(jid_of, jids)),
            self._client.worker_name,
            dependents=check_switch("dependents", dependents),
        )


def _follow_ups(settings: Settings, follow: object) -> list[FollowUp]:
    jobs = list(check_list("follow", follow))
    if len(jobs) > MAX_BATCH:
        raise UsageError(f"follow: at most {MAX_BATCH} jobs, not {len(jobs)}")
    return [_follow_up(settings, job) for job in jobs]


def _follow_up(settings: Settings, given: object) -> FollowUp:
    if not isinstance(given, Mapping):
        raise UsageError(f"follow: a job is a mapping with queue and klass, not {given!r:.80}")
    options = dict(cast("Mapping[str, Any]", given))
    queue, klass, data = (options.pop(name, NOTHING) for name in ("queue", "klass", "data"))
    if queue is NOTHING or klass is NOTHING:
        raise UsageError("a follow-up needs queue and klass")
    put = make_put(settings, check_queue("queue", queue), klass, data, options)
    if put.mode == "only":
        raise UsageError("a follow-up takes no only_new: an existing job is not changed")
    return follow_up_of(put)
