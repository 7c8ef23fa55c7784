"""The outcome of a job, and which command reports it to the store.

A job may return an instruction (`return Retry(after=30)`). A worker turns an instruction, a result or an exception into an
outcome: a `Done`, which shares the next call to the store with others, a command of its own, or None when nothing is left to
report.

During deploys, workers with old code get new jobs for a while. The names of unknown code are noted in memory that the processes
of a worker share, so that each name is logged once and not for each of its jobs.
"""

import logging
import mmap
import sys
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from holdfast.code.backoff import DEFAULT_WORDS, Backoff, backoff_text
from holdfast.code.calling import CannotRun
from holdfast.code.current import RunningJob
from holdfast.code.failure import (
    ByQueue,
    brief,
    cut,
    describe,
    failure_formatter,
    failure_of,
    group_of,
    name_of,
    raised_by,
    text_of,
)
from holdfast.code.outcomes import OUTCOMES, Failed, Moved, Retry, Skip, Terminated
from holdfast.code.registry import Registered
from holdfast.code.resolver import CodeTarget
from holdfast.codecs import encode_value
from holdfast.commands.base import Command
from holdfast.commands.dependencies import CompleteX, FollowUp
from holdfast.commands.flows import SKIPS, EndWithFlow
from holdfast.commands.leases import Done, Lease
from holdfast.commands.outcomes import OWN_BACKOFF, Advance, Expire, Fail, HowReleased, Release
from holdfast.commands.outcomes import Retry as RetryCommand
from holdfast.errors import HoldfastError, LeaseLost, UsageError
from holdfast.logs import ERROR, JOB, jobs_log
from holdfast.models import JobFacts
from holdfast.models.job import BUDGETED, RESULT_TAKEN
from holdfast.settings import check_milliseconds, check_name
from holdfast.text import one_line

log = logging.getLogger("holdfast")

EXHAUSTED: Final = "RetriesExhausted"
Outcome = Done | Command[Any] | None


def granted(
    instruction: Retry | Failed | Moved, facts: JobFacts, data: bytes, follow: Sequence[FollowUp] = ()
) -> Command[Any]:
    """Turn an instruction into a command. `follow` is put if the job moves on. Raises UsageError for absurd values."""
    if isinstance(instruction, Moved):
        queue, delay = check_name("queue", instruction.queue), check_milliseconds("delay", instruction.delay)
        if follow:
            return CompleteX(facts.worker, facts, data, next_queue=queue, delay_ms=delay, follow=follow)
        return Advance(facts.worker, queue, facts, delay, data)
    if isinstance(instruction, Failed):
        return Fail(
            facts.worker, facts, check_name("group", instruction.group), cut(instruction.message), data
        )
    after = (
        own_backoff(facts) if instruction.after is None else check_milliseconds("after", instruction.after)
    )
    group, message = instruction.group and check_name("group", instruction.group), cut(instruction.message)
    if facts.flags & BUDGETED and facts.remaining <= 0:
        group = group or group_of(facts.queue, EXHAUSTED)
        message = message or "the job returned Retry(), and has no retries left"
    return RetryCommand(facts.worker, facts, after, group, message, data)


def own_backoff(facts: JobFacts) -> int:
    """Return the delay of a retry for which none was given."""
    return OWN_BACKOFF if "backoff" in facts.options else 0


def failed(facts: JobFacts, name: str, message: str, data: bytes = b"") -> Command[Any]:
    """Return the outcome of a job that fails in group `<queue>-<name>`."""
    return Fail(facts.worker, facts, group_of(facts.queue, name), cut(message), data)


def is_interruption(error: BaseException) -> bool:
    """Whether what a job raised means that it was interrupted from outside, not that it failed."""
    greenlet: Any = sys.modules.get("greenlet")
    kinds = (KeyboardInterrupt,) if greenlet is None else (KeyboardInterrupt, greenlet.GreenletExit)
    return issubclass(type(error), kinds)


def given_back(facts: JobFacts) -> Command[Any]:
    """Return the command that records a lost lease and nothing else of the run: the job is handed out again and pays for a loss."""
    return Expire([Lease(facts.jid, facts.token, facts.worker)])


def timed_out(lease: Lease, seconds: float) -> Command[Any]:
    """Return the command for a run that exceeded its timeout of `seconds`: a failure of the job."""
    return Release([lease], "timed-out", f"{seconds:g} s")


def gives_back(outcome: Outcome) -> bool:
    """Whether an outcome releases the lease, with nothing recorded of the run."""
    return isinstance(outcome, Expire | Release)


def log_release(
    jid: str, how: HowReleased, cause: str, facts: JobFacts | None = None, has_failed: bool = False
) -> None:
    """Log that the lease of a job is released, and why; at ERROR if the job has failed with that. `facts`: if they are known."""
    job = f"job {jid}" if facts is None else f"job {jid} ({one_line(facts.klass)})"
    if how == "preempted":
        why, what_follows = f"its worker stopped it ({cause})", "this costs it nothing"
    elif how == "timed-out":
        why, what_follows = f"it exceeded its timeout of {cause}", "this counts as a failure"
    else:
        why, what_follows = f"its process ended with {cause or 'an unknown status'}", "this counts as a loss"
    level = logging.ERROR if has_failed else logging.WARNING
    line = f"{job} failed: {why}" if has_failed else f"{job} released: {why}; {what_follows}"
    if jobs_log.isEnabledFor(level):
        record = jobs_log.makeRecord(jobs_log.name, level, __file__, 0, "%s", (line,), None)
        if facts is not None:
            setattr(record, JOB, facts)
        jobs_log.handle(record)


def log_attempt(facts: JobFacts, outcome: Outcome, error: BaseException | None = None) -> None:
    """Log an attempt that failed: at WARNING if the job is tried again, at ERROR if not, with the traceback of `error`."""
    if isinstance(outcome, (Fail, RetryCommand)):
        is_last = isinstance(outcome, Fail) or facts.remaining <= 0
        level = logging.ERROR if is_last else logging.WARNING
        if not jobs_log.isEnabledFor(level):
            return
        try:
            jobs_log.handle(_record_of(facts, outcome, level, error))
        except Terminated:
            raise
        except BaseException:
            pass  # a handler of the program read the exception, which may do anything; the outcome counts


def _record_of(
    facts: JobFacts, outcome: Fail | RetryCommand, level: int, error: BaseException | None
) -> logging.LogRecord:
    name = one_line(outcome.group.removeprefix(f"{facts.queue}-"))
    text = one_line(outcome.message)[:LONGEST_LINE]
    cause = brief(error) if error is not None else ": ".join(filter(None, (name, text)))
    line = f"job {facts.jid} ({one_line(facts.klass)}) {_what_follows(facts, outcome, level)}: {cause or 'as its code asked'}"
    extra = {ERROR: {"type": name, "message": text}} if error is None else {}
    raised = None if error is None else raised_by(error)
    record = jobs_log.makeRecord(jobs_log.name, level, __file__, 0, "%s", (line,), raised, extra=extra)
    if error is not None:
        # The default formatter has made it already, without our own frames.
        is_made = type(failure_formatter()) is ByQueue
        record.exc_text = (outcome.message if is_made else describe(error)).rstrip("\n")
    return record


def _what_follows(facts: JobFacts, outcome: Fail | RetryCommand, level: int) -> str:
    if level == logging.ERROR:
        return (
            f"failed in group {one_line(outcome.group)}" if outcome.group else "failed, without retries left"
        )
    delay = outcome.delay_ms if isinstance(outcome, RetryCommand) else 0
    if isinstance(outcome, RetryCommand) and delay == OWN_BACKOFF:
        pause = f"after its backoff ({backoff_text(_backoff_of(facts, outcome))})"
    else:
        pause = f"in {delay / 1000:g} s"
    return f"failed and is tried again {pause}" if delay else "failed and is tried again"


def _backoff_of(facts: JobFacts, outcome: RetryCommand) -> str:
    own = str(facts.options.get("backoff", ""))
    return own if own.count(":") == 3 else outcome.backoff or DEFAULT_WORDS


LONGEST_LINE: Final = 400
"""Characters of a message on the line of a failed attempt."""


def raised(
    facts: JobFacts,
    function: Registered | None,
    error: BaseException,
    data: bytes = b"",
    formatted: tuple[str, str] | None = None,
) -> Outcome:
    """Return what follows from an exception: a function job with retries left is retried, any other job fails.

    If the job was interrupted, its lease is released instead. `formatted` is group and message by a failure formatter.
    """
    if is_interruption(error):
        log.warning("job %s released: it was interrupted", facts.jid)
        return given_back(facts)
    if isinstance(error, Skip):
        return skipped(facts, function, error, data)
    group, message = formatted or (group_of(facts.queue, name_of(error)), describe(error))
    if function is None or facts.remaining <= 0 or not _is_retried(facts, function, error):
        return Fail(facts.worker, facts, group, message, data)
    backoff, delay = function.backoff, OWN_BACKOFF
    if callable(backoff):
        delay = OWN_BACKOFF if "backoff" in facts.options else _delay(facts, function.name, backoff, error)
        backoff = ""
    return RetryCommand(facts.worker, facts, delay, group, message, data, backoff=backoff)


def _is_retried(facts: JobFacts, function: Registered, error: BaseException) -> bool:
    """Whether retries pay for this exception: clients of 0.1.0 sent 5, for losses, with a function that declares none."""
    pays = facts.max_losses is not None or function.retries is not None
    return pays and function.retries_after(error)


def _delay(facts: JobFacts, name: str, backoff: Backoff, error: BaseException) -> int:
    """Return what a user's function makes of an exception, in milliseconds; OWN_BACKOFF, the default, if it is wrong."""
    attempt = max(1, facts.retries - facts.remaining + 1)
    try:
        return check_milliseconds("backoff", backoff(attempt, error))
    except Terminated:
        raise
    except BaseException as problem:
        # It is the user's code: that it is wrong must not cost the job.
        log.error("the backoff of %s cannot be used; taking the default\n%s", name, describe(problem))
        return OWN_BACKOFF


def word_of(outcome: Outcome) -> str:
    """Return an outcome in a word: complete, failed or retried; "" where the job settled itself, or is released."""
    if isinstance(outcome, (Done, CompleteX, Advance, EndWithFlow)):
        return "complete"
    if isinstance(outcome, Fail):
        return "failed"
    return "retried" if isinstance(outcome, RetryCommand) else ""


MOST_CAUSE: Final = 200
_ROWS: Final = 1024
_WIDTH: Final = 8


class _SharedNames:
    """Which names were noted, by their hashes; made before the first fork. Of two with one place the later one counts."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _ROWS * _WIDTH)

    def note(self, text: str) -> bool:
        """Note a text. Returns whether it is new."""
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=_WIDTH).digest()
        at = int.from_bytes(digest, "big") % _ROWS * _WIDTH
        is_new = self._page[at : at + _WIDTH] != digest
        self._page[at : at + _WIDTH] = digest
        return is_new

    def clear(self) -> bool:
        """Forget all of them. Returns whether there were any."""
        held = any(self._page[:])
        self._page[:] = bytes(_ROWS * _WIDTH)
        return held


_names: Final = _SharedNames()


def met_unknown() -> bool:
    """Whether this worker met a job of unknown code since the last call."""
    return _names.clear()


def is_unknown(facts: JobFacts, error: CannotRun) -> bool:
    """Whether the job's code is unknown here, and perhaps not to another worker; class jobs fail at once."""
    return error.is_unknown and bool(facts.flags & BUDGETED)


def note_unknown(facts: JobFacts, error: CannotRun) -> bool:
    """Note that the code of this job is unknown here. Return whether that is new."""
    return _names.note(f"{facts.klass}\n{facts.queue}\n{error.cause}")


def given_back_unknown(facts: JobFacts, error: CannotRun) -> Command[Any]:
    """Return the outcome of a job of unknown code: it is offered again after a growing pause. Logged once for each name."""
    group, cause = group_of(facts.queue, error.reason), _printable(error.cause)
    if note_unknown(facts, error):
        log.warning(
            "the code of job %s (%s, queue %s) is not known here: %s; its jobs are requeued at no cost for workers that know it, "
            "and fail in %s if none does within the setting unknown-for (default 600 s)",
            facts.jid,
            _printable(facts.klass),
            _printable(facts.queue),
            cause,
            _printable(group),
        )
    return Release([Lease(facts.jid, facts.token, facts.worker)], "unknown", cause, group)


def _printable(text: str) -> str:
    return one_line(text[:MOST_CAUSE])


UNSERIALIZABLE: Final = "UnserializableResult"
WRONG_RESULT: Final = "WrongResult"

_wrong_results: Final = _SharedNames()
"""The functions whose wrong results were logged, each once for all processes of a worker."""


def with_lines(current: RunningJob, outcome: Outcome) -> Outcome:
    """Return the outcome, with the last lines that the job logged where its run went wrong."""
    if isinstance(outcome, (Fail, RetryCommand)):
        return msgspec.structs.replace(outcome, lines=tuple(current.lines or ()))
    return outcome


def after_return(current: RunningJob, target: CodeTarget, value: Any) -> Outcome:
    """Return the outcome of a job whose code returned `value`."""
    facts, made = current.facts, current.made
    if made is not None and made.state_changed:
        return None
    data, follow = (b"", ()) if made is None else _left_behind(current)
    function = target.function
    if isinstance(value, Skip):
        return skipped(facts, function, value, data, follow)
    if function is not None and _is_empty_group(value):
        value = []
    if type(value) in OUTCOMES or _is_flow(value):
        try:
            if _is_flow(value):
                return _ended_with(facts, function, value, data, follow)
            return granted(value, facts, data, follow)
        except UsageError as error:
            current.error = error
            return raised(facts, None, error, data)
    is_wanted = facts.options or facts.flags & RESULT_TAKEN
    if function is not None and (is_wanted or function.keep_ms or function.strict_results):
        return _completed(facts, function, value, data, follow)
    if target.completes:
        if follow:
            return CompleteX(facts.worker, facts, data, follow=follow)
        return Done(facts.jid, facts.token, data)
    log.warning(
        "job %s (%s) returned without settling: its lease is no longer renewed, and it will be tried again; "
        "call job.complete(), or run the worker with --auto-complete",
        facts.jid,
        facts.klass,
    )
    return None


def skipped(
    facts: JobFacts,
    function: Registered | None,
    skip: Skip,
    data: bytes = b"",
    follow: Sequence[FollowUp] = (),
) -> Outcome:
    """Return the outcome of a job that skips the steps of its flow behind it; its own result is None."""
    keep = 0 if function is None else int(facts.options.get("keep", function.keep_ms))
    reason = one_line(skip.reason)[:MOST_CAUSE] or facts.jid
    is_taken = facts.flags & RESULT_TAKEN
    result = SKIPS + reason.encode("utf-8", "replace") if is_taken else b"null" if keep else b""
    if follow:
        return CompleteX(facts.worker, facts, data, keep, result, follow=follow)
    return Done(facts.jid, facts.token, data, keep, result)


def _is_flow(value: object) -> bool:
    """Whether a job returned a call or a group: their module is loaded then."""
    calls = sys.modules.get("holdfast.client.calls")
    return calls is not None and isinstance(value, (calls.Call, calls.Group))


def _is_empty_group(value: object) -> bool:
    """Whether a job returned a group without calls, which ends at once."""
    return _is_flow(value) and getattr(value, "calls", None) == () and not getattr(value, "before", ())


def _ended_with(
    facts: JobFacts, function: Registered | None, flow: Any, data: bytes, follow: Sequence[FollowUp]
) -> Command[Any]:
    """Return the outcome of a job that ends as a flow does. Raises UsageError."""
    from holdfast.client.flow_plans import plan

    if function is None:
        raise UsageError("only function jobs return flows")
    if follow:
        raise UsageError("a job that returns a flow puts nothing else on its completion")
    made = plan(flow, f"{facts.jid}.{facts.attempts}", flow.settings)
    if made.large is not None:
        raise UsageError("a job returns flows of up to 512 jobs")
    if len(set(made.last)) < len(made.last):
        raise UsageError("a group that a job returns has each call once: make two calls of it")
    keep = int(facts.options.get("keep", function.keep_ms))
    return EndWithFlow(
        facts.worker, facts, made.id, made.label(), made.jobs, made.last, made.is_group, keep, data
    )


def _left_behind(current: RunningJob) -> tuple[bytes, Sequence[FollowUp]]:
    """Return the data that the job left, b"" if unchanged, and what it put on completion; from now on it puts no more."""
    if current.made is None:
        return b"", ()
    data: bytes = current.made.raw_data
    return b"" if data == current.facts.data else data, current.made.end_collecting()


def _completed(
    facts: JobFacts, function: Registered, value: Any, data: bytes, follow: Sequence[FollowUp]
) -> Outcome:
    keep, result = int(facts.options.get("keep", function.keep_ms)), b""
    # Jobs that wait for this one may take its result, which need not be kept for that.
    is_wanted = bool(keep or facts.flags & RESULT_TAKEN)
    if is_wanted or function.strict_results:
        try:
            result = b"null" if value is None else encode_value(value)
        except Terminated:
            raise
        except BaseException as error:
            # The work is done: another try would do it twice, and end no better.
            why = text_of(error) if isinstance(error, HoldfastError) else describe(error)
            message = f"the result of {function.name} cannot be kept: {why}"
            return failed(facts, UNSERIALIZABLE, message, data)
        mismatch = function.result.mismatch(value, result)
        if mismatch and function.strict_results:
            return failed(facts, WRONG_RESULT, f"the result of {function.name} is wrong: {mismatch}", data)
        if mismatch:
            _warn_of_result(facts, function, mismatch)
    if not is_wanted:
        result = b""
    if follow:
        return CompleteX(facts.worker, facts, data, keep, result, follow=follow)
    return Done(facts.jid, facts.token, data, keep, result)


def forget_wrong_results() -> None:
    """Forget which wrong results were logged, perhaps by another worker that the same program forked."""
    _wrong_results.clear()


def _warn_of_result(facts: JobFacts, function: Registered, mismatch: str) -> None:
    """Log that a result is not of the declared type, once for each function and all processes of a worker."""
    if _wrong_results.note(function.name):
        log.warning(
            "the result of %s (job %s) is wrong: %s; the job is complete. Correct the annotation or the result, or let such "
            "jobs fail with @app.job(strict_results=True). This is logged once for each function",
            function.name,
            facts.jid,
            one_line(mismatch),
        )


def after_error(current: RunningJob, target: CodeTarget, error: BaseException) -> Outcome:
    """Return the outcome of a job whose code raised."""
    facts, made = current.facts, current.made
    if isinstance(error, LeaseLost):
        log.warning("job %s: its lease was lost; its result is not recorded (%s)", facts.jid, error)
        return None
    if made is not None and made.state_changed:
        log.warning(
            "job %s raised after it had settled itself: %s",
            facts.jid,
            brief(error),
            exc_info=raised_by(error),
        )
        return None
    if is_interruption(error) and current.lost():
        return given_back(facts)  # its worker, which interrupted it, logs why
    current.error = error
    data, _ = _left_behind(current)
    return raised(facts, target.function, error, data, failure_of(error, facts.queue, current.job))
