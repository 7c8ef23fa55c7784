"""The results of verbs as JSON: times in seconds, stored data unchanged, refusals as objects with `error`."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw

from holdfast.code.put_options import kept_options
from holdfast.commands.jobs import Outcome
from holdfast.commands.leases import Settlement
from holdfast.console.plain import plain
from holdfast.errors import HoldfastError, JobCancelled, JobFailed, Refused
from holdfast.models import JobFacts
from holdfast.models.job import Failure
from holdfast.text import one_line

encode = msgspec.json.encode
_check = msgspec.json.Decoder().decode


class LeasedJob(msgspec.Struct, frozen=True, gc=False):
    """A job that a pop leased. Times are epoch seconds, lengths seconds, and null where there is none.

    `token` and `worker` come with every call about it. `remaining` retries are left of `retries`; the lease ends at
    `lease_ends` unless a heartbeat renews it, and is `lease` long. `failure` is that of the attempt before. `scheduled_for` is the moment that a recurring job (`spawned_from`) put it for.
    """

    jid: str
    klass: str
    queue: str
    data: Any
    token: int
    worker: str
    state: str
    priority: int
    retries: int
    remaining: int
    attempts: int
    losses: int
    max_losses: int | None
    created: float
    queued: float
    lease_ends: float
    lease: float
    tags: Sequence[str]
    throttles: Sequence[str]
    timeout: float | None
    expires: float | None
    result_keep: float | None
    backoff: str | None
    failure: dict[str, Any] | None
    spawned_from: str
    scheduled_for: float | None


class RefusedJob(msgspec.Struct, frozen=True):
    """What one job of a batch was refused for; `code` is that of the core, if it has one."""

    error: str
    code: str = ""


class Ended(msgspec.Struct, frozen=True):
    """How a job ended: `status` is open, done, failed, cancelled or gone. The other fields are empty if they do not apply."""

    jid: str
    status: str
    result: Any = None
    group: str = ""
    message: str = ""
    by: str = ""
    at: float = 0.0


class Settled(msgspec.Struct, frozen=True):
    """The jobs that could not be completed, by jid, and those that were leased."""

    lost: Mapping[str, RefusedJob]
    jobs: Sequence[LeasedJob]


def leased(facts: JobFacts) -> LeasedJob:
    """Return a popped job."""
    options = kept_options(facts.options)
    return LeasedJob(
        facts.jid,
        facts.klass,
        facts.queue,
        raw(facts.data),
        facts.token,
        facts.worker,
        facts.state,
        facts.priority,
        facts.retries,
        facts.remaining,
        facts.attempts,
        facts.losses,
        facts.max_losses,
        facts.created_ms / 1000,
        facts.queued_ms / 1000,
        facts.expires_ms / 1000,
        facts.lease_ms / 1000,
        facts.tags,
        facts.throttles,
        options["timeout"],
        options["expires"],
        options["result_keep"],
        options["backoff"],
        _failure(facts.failure),
        facts.spawned_from,
        facts.scheduled_for_ms / 1000 if facts.scheduled_for_ms else None,
    )


def _failure(failure: Failure | None) -> dict[str, Any] | None:
    return None if failure is None else failure.as_dict()


def raw(stored: bytes) -> Any:
    """Return stored JSON, to be written as it is; as text if it is not JSON, which only other programs store; None for nothing."""
    if not stored:
        return None
    try:
        _check(stored)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return stored.decode(errors="replace")
    return Raw(stored)


def in_json(value: object) -> Any:
    """Return the result of a verb as values that can be written as JSON."""
    if isinstance(value, list):
        return [in_json(one) for one in cast("list[object]", value)]
    if isinstance(value, HoldfastError):
        return failed(value)
    if isinstance(value, JobFacts):
        return leased(value) if value.lease_ms else plain(value, raw)
    if isinstance(value, Settlement):
        return {
            "lost": {jid: failed(why) for jid, why in value.lost.items()},
            "jobs": [leased(one) for one in value.jobs],
        }
    return plain(value, raw)


def failed(error: HoldfastError) -> RefusedJob:
    """Return what one job of a batch was refused for."""
    return RefusedJob(one_line(str(error)), error.code if isinstance(error, Refused) else "")


def outcome(jid: str, found: Outcome) -> Ended:
    """Return how a job ended."""
    error = found.error
    if isinstance(error, JobFailed):
        return Ended(jid, found.status, None, error.group, error.message)
    if isinstance(error, JobCancelled):
        return Ended(jid, found.status, by=error.by, at=error.at)
    return Ended(jid, found.status, raw(found.result or b""))
