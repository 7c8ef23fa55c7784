"""What operators do to single things. Where it is known who acts, each action writes a line of the audit log with it."""

import hashlib
from collections.abc import Sequence
from typing import Final, Literal, TypeVar, get_args

from holdfast.bounds import Maximum
from holdfast.client.workers import is_meant
from holdfast.codecs import decode, encode_data
from holdfast.commands import Command
from holdfast.commands.admin import Audit
from holdfast.commands.attributes import Track
from holdfast.commands.jobs import JobGet
from holdfast.commands.operations import MAX_CHANGED, Act, audited
from holdfast.commands.queues import (
    ThrottleSet,
)
from holdfast.commands.recurring import RecurGet, RecurUpdate
from holdfast.commands.workers import WorkerQuiet
from holdfast.console.operations.dependents import with_dependents
from holdfast.console.operations.spec import Spec, check_value, merged, patch_of
from holdfast.console.read.queries import all_workers
from holdfast.errors import CodecError, JobNotFound, Refused, UsageError, WrongState
from holdfast.settings import (
    check_bounded,
    check_each,
    check_milliseconds,
    check_name,
    check_text,
    check_throttle,
)
from holdfast.text import counted
from holdfast.wire.plans import Plan, Planner

R = TypeVar("R")


def act(ask: Planner, who: str, spec: Spec, jids: Sequence[str]) -> Plan[list[tuple[str, bool | Refused]]]:
    """Change jobs. Returns for each jid True (changed), False (nothing to change), or why it was refused."""
    check_value(spec)
    names = list(dict.fromkeys(check_each("jid", jids)))
    if spec.dependents:
        names, _ = yield from with_dependents(ask, names)
    if spec.action == "data":
        return (yield from _patched(ask, who, names, spec.value))
    results: list[tuple[str, bool | Refused]] = []
    while len(results) < len(names):  # a call may do fewer of them
        some = names[len(results) :][:MAX_CHANGED]
        target = some[0] if len(names) == 1 else counted(len(some), "job")
        detail = spec.value if len(names) == 1 else " ".join([spec.value, *some])
        command = Act(spec.action, [(jid, "") for jid in some], spec.common, who)
        results += zip(
            some, (yield from ask(audited(who, command, spec.action, target, detail))), strict=False
        )
    return (yield from _unmarked(ask, results)) if spec.action == "untrack" else results


def _patched(
    ask: Planner, who: str, jids: Sequence[str], patch: str
) -> Plan[list[tuple[str, bool | Refused]]]:
    """Change the data of jobs by a merge patch, of each by itself."""
    found: list[tuple[str, bool | Refused]] = []
    for jid in jids:
        try:
            found.append((jid, (yield from edit(ask, who, jid, None, patch))))
        except Refused as why:
            found.append((jid, why))
    return found


def _unmarked(
    ask: Planner, results: list[tuple[str, bool | Refused]]
) -> Plan[list[tuple[str, bool | Refused]]]:
    """Remove also the marks of tracked jobs that do not exist any more."""
    found: list[tuple[str, bool | Refused]] = []
    for jid, result in results:
        is_gone = isinstance(result, JobNotFound) and (yield from ask(Track(False, jid)))
        found.append((jid, is_gone or result))
    return found


def edit(ask: Planner, who: str, jid: str, data: object, patch: str, seen: bytes | None = None) -> Plan[bool]:
    """Replace the data of a job that does not run, or change them by a JSON merge patch.

    Returns whether they differ. Raises JobNotFound, WrongState, also when they were changed meanwhile: since they were
    `seen`, if that is given.
    """
    [facts] = yield from ask(JobGet((check_name("jid", jid),)))
    if facts is None:
        raise JobNotFound(f"job {jid} does not exist", "HF_JOB_NOT_FOUND")
    if seen is not None and facts.data != seen:
        raise WrongState(f"the data of {jid} was changed meanwhile", "HF_WRONG_STATE")
    if patch:
        data = merged(_decoded(jid, facts.data), patch_of(patch))
    new = encode_data(data)
    if new == facts.data:
        return False
    digest = hashlib.sha1(facts.data).hexdigest().encode()
    [result] = yield from ask(
        audited(who, Act("data", [(jid, digest + new)], "", who), "edit", jid, new.decode()[:1000])
    )
    if isinstance(result, Refused):
        raise result
    return result


Part = Literal["data", "result", "message"]
PARTS: Final[Sequence[Part]] = get_args(Part)


def reveal(ask: Planner, who: str, jid: str, part: Part) -> Plan[bytes]:
    """Return a part of a job, or the data of a recurring job, as it is stored, and note in the audit log who saw it."""
    if part not in PARTS:
        raise UsageError(f"part: expected one of {', '.join(PARTS)}, got {part!r:.80}")
    [facts] = yield from ask(JobGet((check_name("jid", jid),)))
    [template] = (yield from ask(RecurGet((jid,)))) if facts is None else [None]
    holder = facts or template
    if holder is None:
        raise JobNotFound(f"job {jid} does not exist", "HF_JOB_NOT_FOUND")
    yield from ask(Audit(check_name("actor", who), "reveal", jid, part))
    if facts is None or part == "data":
        return holder.data
    if part == "result":
        return facts.result or b"null"
    return (facts.failure.message if facts.failure else "").encode(errors="surrogateescape")


def _decoded(jid: str, data: bytes) -> object:
    try:
        return decode(data)
    except CodecError:
        raise WrongState(
            f"the data of {jid} is not JSON, so it cannot be patched, only replaced", "HF_WRONG_STATE"
        ) from None


def checked_reason(why: object) -> str:
    """Return why something is done, as lists and the audit log show it. Raises UsageError for text that is not UTF-8."""
    text = check_text("why", why)
    if text != why:
        raise UsageError(f"why: {why!r} cannot be written as UTF-8")
    return text


def checked_edit(change: RecurUpdate) -> RecurUpdate:
    """Return a change of a recurring job. Raises UsageError if it changes nothing."""
    if all(getattr(change, name) is None for name in change.__struct_fields__[1:]):
        raise UsageError("nothing to change: give at least one attribute")
    return change


def quiet(ask: Planner, names: Sequence[str], on: bool) -> Plan[dict[str, list[str]]]:
    """Stop workers from taking jobs, or let them again. Returns by name the workers that it stands for."""
    known = yield from all_workers(ask)
    found = {
        name: [one.name for one in known if is_meant(name, one.name)] for name in check_each("worker", names)
    }
    for name in dict.fromkeys(name for meant in found.values() for name in meant):
        yield from ask(WorkerQuiet(name, on))
    return found


def set_throttle(id: str, maximum: int | None, seconds: float, seen: int | None) -> Command[int]:
    """Return the command that sets how many jobs of a throttle run at once, without end or for a number of seconds.

    `seen` is the maximum that it has to have, None for any.
    """
    most = None if maximum is None else check_bounded("maximum", maximum, Maximum)
    return ThrottleSet(check_throttle(id), most, check_milliseconds("seconds", seconds), seen)
