"""What becomes of a job whose code has ended: what it returned, left in its data, put on completion, or raised."""

import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast.code.current import Running
from holdfast.code.description import text_of
from holdfast.code.endings import WISHES, Terminated
from holdfast.code.failure import brief, describe, failure_of
from holdfast.code.registry import Registered
from holdfast.code.resolver import Target
from holdfast.codecs import encode_value
from holdfast.commands.dependencies import FollowUp
from holdfast.commands.outcomes import Fail, Retry
from holdfast.errors import HoldfastError, LeaseLost, UsageError
from holdfast.models import JobFacts
from holdfast.work.performing.outcome import Ending, done, failed, granted, raised

log = logging.getLogger("holdfast")

UNSERIALIZABLE: Final = "UnserializableResult"


def told(current: Running, ending: Ending) -> Ending:
    """The ending, with the last lines that the job logged where it is the end of a run that went wrong."""
    if current.lines and isinstance(ending, (Fail, Retry)):
        return msgspec.structs.replace(ending, lines=tuple(current.lines))
    return ending


def after_return(current: Running, target: Target, value: Any) -> Ending:
    """The ending of a job whose code returned `value`."""
    facts, made = current.facts, current.made
    if made is not None and made.state_changed:
        return None
    data, follow = _left_behind(current)
    if type(value) in WISHES:
        try:
            return granted(value, facts, data, follow)
        except UsageError as error:
            return raised(facts, None, error, data)
    if target.function is not None:
        return _completed(facts, target.function, value, data, follow)
    if target.completes:
        return done(facts, data, follow=follow)
    log.warning(
        "job %s (%s) returned without settling: its lease is no longer renewed, and it will be tried again; "
        "call job.complete(), or run the worker with --auto-complete",
        facts.jid,
        facts.klass,
    )
    return None


def _left_behind(current: Running) -> tuple[bytes, Sequence[FollowUp]]:
    """The data the job's code left, b"" if it changed nothing, and what it put on completion; from now on it puts no more."""
    if current.made is None:
        return b"", ()
    data: bytes = current.made.raw_data
    return b"" if data == current.facts.data else data, current.made.end_collecting()


def _completed(
    facts: JobFacts, function: Registered, value: Any, data: bytes, follow: Sequence[FollowUp]
) -> Ending:
    keep = int(facts.options.get("keep", function.keep_ms))
    if not keep:
        return done(facts, data, follow=follow)
    if value is None:
        return done(facts, data, keep, b"null", follow)
    try:
        result = encode_value(value)
    except Terminated:
        raise
    except BaseException as error:
        # The work is done: trying again would do it twice, and end no better.
        log.warning(
            "job %s failed: the result of %s cannot be kept: %s", facts.jid, function.name, brief(error)
        )
        why = text_of(error) if isinstance(error, HoldfastError) else describe(error)
        return failed(facts, UNSERIALIZABLE, f"the result of {function.name} cannot be kept: {why}", data)
    return done(facts, data, keep, result, follow)


def after_error(current: Running, target: Target, error: BaseException) -> Ending:
    """The ending of a job whose code raised."""
    facts, made = current.facts, current.made
    if isinstance(error, LeaseLost):
        log.warning("job %s lost its lease while it ran: %s", facts.jid, error)
        return None
    if made is not None and made.state_changed:
        log.warning("job %s raised after it had settled itself: %s", facts.jid, brief(error))
        return None
    log.warning("job %s (%s) raised %s", facts.jid, facts.klass, brief(error))
    data, _ = _left_behind(current)
    return raised(facts, target.function, error, data, failure_of(error, facts.queue, current.job))
