"""Jobs that wait for others, as both clients show them."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, Required, cast

from holdfast.client.colours import Planned, Verb
from holdfast.client.jobs.callbacks import settling
from holdfast.client.jobs.completion import Load, OnCompletion
from holdfast.client.putting.options import NOTHING, PutOptions, make_put
from holdfast.commands import Command
from holdfast.commands.dependencies import CompleteX, Depend, Dependents, FollowUp
from holdfast.commands.leases import Complete
from holdfast.commands.outcomes import Advance
from holdfast.commands.wishes import PutWished, Wished
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.settings import (
    MAX_BATCH,
    Settings,
    check_each,
    check_list,
    check_milliseconds,
    check_names,
    check_queue,
    check_switch,
)
from holdfast.wire.cancelling import cancel_jobs
from holdfast.wire.plans import Ask, Plan

MAX_FOLLOWED: Final = 1000


class FollowUpOptions(PutOptions, total=False):
    """A job that is put when another is complete: `queue` and `klass`, `data`, and the options of `put` but `only_new`.
    One whose `jid` is there already stays as it is."""

    queue: Required[object]
    klass: Required[object]
    data: object


class Completing(OnCompletion):
    """How the holder of a job says that its work is done."""

    _client: Any
    facts: JobFacts
    _ended: Callable[[Command[Any], Any], Command[Any]]

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
        delay: float | None = None,
        depends: Sequence[str] = (),
        follow: Sequence[FollowUpOptions] = (),
    ) -> Command[str | bool]:
        """Say that the work is done; with `next_queue` (a queue or its name), the job goes on there.

        It does so after `delay` seconds and when the jobs in `depends` are complete. `follow` are jobs that are put in
        the same step (mappings of FollowUpOptions), as is what was put in blocks of `on_completion`; they and this job may
        wait for each other. Answers `"complete"`, or
        True when it went on. Raises LeaseLost, DependencyRefused. Core: verbs/complete.lua, advance.lua, complete_x.lua.
        """
        if next_queue is None and (delay is not None or depends):
            raise UsageError(f"complete({'depends' if depends else 'delay'}=…) needs a next queue")
        queue = "" if next_queue is None else check_queue("next_queue", next_queue)
        wait = check_milliseconds("delay", delay or 0)
        said = self._holder, self.facts, self._sent_data
        command: Command[Any]
        if depends or follow or self.kept_back:
            jobs = [*self.kept_back, *_follow_ups(self._client.settings, follow)]
            names = check_names("depends", depends, MAX_FOLLOWED)
            Load().plus(jobs)
            command = CompleteX(*said, next_queue=queue, delay_ms=wait, depends=names, follow=jobs)
        elif queue:
            command = Advance(self._holder, queue, self.facts, wait, self._sent_data)
        else:
            command = Complete(*said)
        return self._ended(command, True if queue else None)


class WaitingJob:
    """What a job can be told of those it waits for, and asked of those that wait for it."""

    _client: Any
    facts: JobFacts

    @Verb
    def depend(self, *jids: str) -> Command[int]:
        """Wait for more jobs, up to 512 a call; only while the job waits already (state `depends`).

        Unknown and complete ones count as done. Raises WrongState, JobNotFound, DependencyRefused for itself and for
        circles. Core: verbs/depend.lua.
        """
        return Depend(self.facts.jid, check_each("jid", jids))

    @Verb
    def undepend(self, *jids: str, all: bool = False) -> Command[int]:
        """Wait for these jobs no more, or with `all=True` for none; when the last one goes, the job is ready at once.

        Raises WrongState, JobNotFound. Core: verbs/depend.lua.
        """
        if check_switch("all", all) == bool(jids):
            raise UsageError("undepend takes jids, or all=True")
        return (
            Depend(self.facts.jid, (), "all")
            if all
            else Depend(self.facts.jid, check_each("jid", jids), "remove")
        )

    @Planned
    def read_dependents(self, ask: Ask) -> Plan[list[str]]:
        """The jids of all jobs that wait for this one now, the first to come first. Core: verbs/depend.lua."""
        return _all_dependents(ask, self.facts.jid)


class Cancelling:
    """How jobs are cancelled by jid."""

    _client: Any

    @Planned
    def cancel(self, ask: Ask, *jids: str, dependents: bool = False) -> Plan[list[bool]]:
        """Delete jobs; True for each that was cancelled, False for unknown and complete ones.

        A job for which another one waits is refused unless that one is given too; with `dependents=True` all that wait
        for them are cancelled as well. Up to 512 jobs go in one step, more of them leaves first, in several. Raises
        DependencyRefused. Core: verbs/cancel.lua.
        """
        if not jids:
            raise UsageError("cancel takes at least one jid")
        return cancel_jobs(
            self._client.shard,
            ask,
            check_each("jid", jids),
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
        raise UsageError("a follow-up takes no only_new: one that is there already stays as it is")
    job = put.job if isinstance(put, PutWished) else Wished(put.klass, put.data, put.jid)
    return FollowUp(put.queue, job, put.priority, put.retries, put.delay_ms, put.max_losses)


def _all_dependents(ask: Ask, jid: str) -> Generator[Any, Any, list[str]]:
    cursor, found = yield from ask(Dependents(jid))
    while cursor:
        cursor, page = yield from ask(Dependents(jid, cursor))
        found += page
    return found
