"""How a job ended, and what that says to the store.

A job may return a wish (`return Retry(after=30)`). A worker turns a wish, a result or an exception into an
ending: a `Done`, which shares the next call to the store with others, a command of its own, or None when
there is nothing left to say.
"""

import logging
import sys
from collections.abc import Sequence
from typing import Any

from holdfast.code.backoff import exponential
from holdfast.code.description import name_of
from holdfast.code.endings import Failed, Moved, Retry, Terminated
from holdfast.code.failure import cut, describe, group_of
from holdfast.code.registry import Registered
from holdfast.commands.base import Command
from holdfast.commands.dependencies import CompleteX, FollowUp
from holdfast.commands.leases import Done, Lease
from holdfast.commands.outcomes import OWN_BACKOFF, Advance, Expire, Fail, HowReleased, Release
from holdfast.commands.outcomes import Retry as RetryCommand
from holdfast.models import JobFacts
from holdfast.settings import check_milliseconds, check_name

log = logging.getLogger("holdfast")

Ending = Done | Command[Any] | None


def done(
    facts: JobFacts, data: bytes, keep_ms: int = 0, result: bytes = b"", follow: Sequence[FollowUp] = ()
) -> Ending:
    """The job is complete; what it put on completion is put in the same step."""
    if follow:
        return CompleteX(facts.worker, facts, data, keep_ms, result, follow=follow)
    return Done(facts.jid, facts.token, data, keep_ms, result)


def granted(
    wish: Retry | Failed | Moved, facts: JobFacts, data: bytes, follow: Sequence[FollowUp] = ()
) -> Command[Any]:
    """Turn a wish into the command that grants it. `follow` is put if the job moves on. Raises UsageError for absurd values."""
    if isinstance(wish, Moved):
        queue, delay = check_name("queue", wish.queue), check_milliseconds("delay", wish.delay)
        if follow:
            return CompleteX(facts.worker, facts, data, next_queue=queue, delay_ms=delay, follow=follow)
        return Advance(facts.worker, queue, facts, delay, data)
    if isinstance(wish, Failed):
        return Fail(facts.worker, facts, check_name("group", wish.group), cut(wish.message), data)
    after = own_backoff(facts) if wish.after is None else check_milliseconds("after", wish.after)
    group = wish.group and check_name("group", wish.group)
    return RetryCommand(facts.worker, facts, after, group, cut(wish.message), data)


def own_backoff(facts: JobFacts) -> int:
    """The delay of a retry about which nobody said anything."""
    return OWN_BACKOFF if "backoff" in facts.options else 0


def failed(facts: JobFacts, name: str, message: str, data: bytes = b"") -> Command[Any]:
    """The job fails in group `<queue>-<name>`."""
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


def gives_back(ending: Ending) -> bool:
    """Whether an ending gives the lease back, with nothing recorded of the run."""
    return isinstance(ending, Expire | Release)


def log_release(jid: str, how: HowReleased, cause: str) -> None:
    """Log that the lease of a job is released, and why."""
    if how == "preempted":
        log.warning("job %s released: its worker stopped it (%s); this costs it nothing", jid, cause)
    elif how == "timed-out":
        log.warning("job %s released: it exceeded its timeout of %s; this counts as a failure", jid, cause)
    else:
        log.warning(
            "job %s released: its process ended with %s; this counts as a loss",
            jid,
            cause or "an unknown status",
        )


def raised(
    facts: JobFacts,
    function: Registered | None,
    error: BaseException,
    data: bytes = b"",
    told: tuple[str, str] | None = None,
) -> Command[Any]:
    """Return what follows from an exception: a function job with retries left is retried, any other job fails.

    An interruption is no failure: the lease is released. `told` is group and message by a failure formatter.
    """
    if is_interruption(error):
        log.warning("job %s released: it was interrupted", facts.jid)
        return given_back(facts)
    group, message = told or (group_of(facts.queue, name_of(error)), describe(error))
    if function is None or facts.remaining <= 0 or not _pays_for_failures(facts, function):
        return Fail(facts.worker, facts, group, message, data)
    delay = OWN_BACKOFF if "backoff" in facts.options else _delay(facts, function, error)
    return RetryCommand(facts.worker, facts, delay, group, message, data)


def _pays_for_failures(facts: JobFacts, function: Registered) -> bool:
    """Whether a function job was put with retries for its exceptions: clients of 0.1.0 sent 5, for losses, where it declares none."""
    return facts.max_losses is not None or function.retries is not None


def _delay(facts: JobFacts, function: Registered, error: BaseException) -> int:
    attempt = max(1, facts.retries - facts.remaining + 1)
    try:
        return check_milliseconds("backoff", function.backoff(attempt, error))
    except Terminated:
        raise
    except BaseException as problem:
        # It is the user's code; that it is wrong must not cost the job.
        log.error(
            "the backoff of %s cannot be used; taking the default\n%s", function.name, describe(problem)
        )
        return check_milliseconds("backoff", exponential()(attempt, error))


def word_of(ending: Ending) -> str:
    """How a job ended, in a word: complete, failed or retried; "" where it settled itself, or goes back unsettled."""
    if isinstance(ending, (Done, CompleteX, Advance)):
        return "complete"
    if isinstance(ending, Fail):
        return "failed"
    return "retried" if isinstance(ending, RetryCommand) else ""
