"""What may be sent again, when, and for how long. The driver's own retries are off; no other code sends again.

    refused                              final
    BUSY, LOADING, READONLY, OOM, …      temporary: nothing was applied; wait, then send again
    no connection                        nothing was sent; wait, then send again
    connection lost after sending, or
    no reply in time                     unknown: send *the same words* again, which every verb allows

until the deadline. The error then states whether the call may have happened.
"""

import logging
import random
from collections.abc import Callable
from math import inf
from typing import Final

from holdfast.errors import (
    ConnectionLost,
    HoldfastError,
    StoreBusy,
    StoreFull,
    StoreTimeout,
    StoreUnavailable,
    TransportError,
)
from holdfast.wire.outage import UNAVAILABLE, ReconnectGate
from holdfast.wire.plans import Call, ErrorReply, LinkError, Plan, Replies, Step

log = logging.getLogger("holdfast")

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0

_BUSY: Final = frozenset({"BUSY", "LOADING", "TRYAGAIN", "MOVED", "ASK"})
_NO_WRITES: Final = frozenset({"CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "READONLY", "MISCONF"})
_TEMPORARY: Final = _BUSY | _NO_WRITES | {"OOM"}


class RetryTimer:
    """The time in which one call may be sent again, and the pauses between its tries.

    `gate` knows whether an outage of the store was logged. `store` names the store in errors. A connection that is refused is
    tried for `refused` seconds only.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float],
        gate: ReconnectGate | None = None,
        store: str = "the store",
        refused: float = inf,
    ) -> None:
        self.gate = gate or ReconnectGate()
        self.store = store
        self._clock = clock
        self._begun = clock()
        self._end = self._begun + seconds
        self._end_refused = self._begun + refused
        self._pause = FIRST_PAUSE
        self.tries = 0

    def note(self, reason: object) -> None:
        """Note why a try failed."""
        if isinstance(reason, LinkError) and reason.refused:
            self._end = min(self._end, self._end_refused)

    def next_pause(self) -> float | None:
        """Return the seconds to wait before the next try, with jitter; None after the deadline."""
        self.tries += 1
        left = self._end - self._clock()
        if left <= 0:
            return None
        pause = self._pause * random.uniform(0.5, 1.0)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        # The last try is made at the deadline.
        return min(pause, left)

    def within_deadline(self, seconds: float) -> float | None:
        """Return `seconds`, or less if the deadline comes first; None after it. Others are trying to connect meanwhile."""
        left = self._end - self._clock()
        return None if left <= 0 else min(seconds, left)

    def __str__(self) -> str:
        seconds = self._clock() - self._begun
        if self.tries == 1:
            return "in 1 try" if seconds < 0.05 else f"in 1 try over {seconds:.1f} s"
        return f"in {self.tries} tries over {seconds:.1f} s"


def is_temporary(reply: ErrorReply) -> bool:
    """Return whether this error is temporary: nothing was applied, and the call may succeed soon."""
    return reply.code in _TEMPORARY


def send_until_done(
    calls: list[Call], timer: RetryTimer, pause: float = 0.0, *, is_new: bool = False
) -> Plan[Replies]:
    """Send calls that may be repeated until each has a reply. Raises TransportError.

    `is_new`: this client has not met the store before, so that a replica is a wrong address and no failover.

    Used for the first contact with a store; `exchange` repeats commands one by one.
    """
    while True:
        try:
            replies = yield Step(calls, pause)
        except LinkError as error:
            refused: ErrorReply | LinkError = error
        else:
            unready = [reply for reply in replies if type(reply) is ErrorReply and is_temporary(reply)]
            if not unready:
                return replies
            refused = unready[0]
            if is_new and any(reply.code == "READONLY" for reply in unready):
                raise StoreUnavailable(
                    "the URL leads to a replica, which refuses writes: give the URL of its primary, which "
                    "`INFO replication` names there; nothing was applied",
                    may_have_happened=False,
                )
        pause = wait(refused, timer)


def wait(reason: ErrorReply | LinkError, timer: RetryTimer) -> float:
    """Return the seconds to wait before the next try. Raises the error for `reason` after the deadline."""
    timer.note(reason)
    if isinstance(reason, LinkError) and reason.after:
        pause = timer.within_deadline(reason.after)
        if pause is None:
            raise deadline_error(reason, timer)
        return pause
    pause = timer.next_pause()
    if pause is None:
        raise deadline_error(reason, timer)
    level = logging.WARNING if timer.tries >= 3 and timer.gate.report_outage() else logging.DEBUG
    text = reason.text if isinstance(reason, ErrorReply) else reason
    log.log(level, UNAVAILABLE, text)
    return pause


def deadline_error(reason: ErrorReply | LinkError, timer: RetryTimer) -> HoldfastError:
    """Return the error for a call whose deadline passed because of `reason`. `call_error` adds what it means for the call."""
    if isinstance(reason, ErrorReply):
        return temporary_error(reason)
    kind: type[TransportError] = StoreTimeout if reason.timed_out else ConnectionLost
    missing = "reply from" if reason.sent else "connection to"
    return kind(f"no {missing} {timer.store} {timer} ({reason})", may_have_happened=False)


def call_error(error: HoldfastError, verb: str, advice: str, *, sent: bool) -> HoldfastError:
    """Return `error` with what it means for one call: whether it was sent, and whether it may be made again.

    A store that is busy now may have applied an earlier try, so a call that was sent never ends as
    StoreBusy or StoreUnavailable, which promise that nothing was applied.
    """
    if not isinstance(error, TransportError):
        if sent:
            error.add_note(f"an earlier try of this {verb} was sent and may have happened; {advice}")
        return error
    if sent:
        kind = type(error) if isinstance(error, ConnectionLost | StoreTimeout) else ConnectionLost
        return kind(f"{verb}: {error}; it may have happened; {advice}")
    if isinstance(error, ConnectionLost | StoreTimeout):
        return type(error)(f"{verb}: {error}; nothing was sent", may_have_happened=False)
    return error


def full_after_resend(error: HoldfastError, verb: str, advice: str) -> StoreFull:
    """Return the error for a call whose first reply was lost and whose repeat was refused by a full store."""
    full = StoreFull(
        f"{error}; an earlier try of this {verb} was sent and may have happened; {advice}", "OOM"
    )
    full.may_have_happened = True
    return full


def temporary_error(reply: ErrorReply) -> HoldfastError:
    """Return the exception for a temporary error that did not end in time."""
    if reply.code == "OOM":
        return StoreFull("the store's memory is full; let workers drain it, or raise maxmemory", "OOM")
    if reply.code in _NO_WRITES:
        return StoreUnavailable(
            f"the store refuses writes ({reply.sentence}); nothing was applied", may_have_happened=False
        )
    return StoreBusy(
        f"the store was not ready in time ({reply.sentence}); nothing was applied", may_have_happened=False
    )
