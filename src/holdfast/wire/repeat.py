"""What may be sent again, when, and for how long. The driver's own retries are off; this is the only repeating.

    refused                              final: the store answered
    BUSY, LOADING, READONLY, OOM, …      "not now": nothing was applied; wait a little, send again
    no connection                        nothing was sent; wait a little, send again
    a connection lost under way, or
    no answer in time                    unknown: send *the same words* again, which every verb allows

until the deadline has passed. Then the error says whether it may have happened.
"""

import logging
import random
from collections.abc import Callable
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
from holdfast.wire.outage import ReconnectGate
from holdfast.wire.plans import Call, ErrorReply, LinkError, Plan, Replies, Step

log = logging.getLogger("holdfast")

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0

_BUSY: Final = frozenset({"BUSY", "LOADING", "TRYAGAIN", "MOVED", "ASK"})
_UNWELL: Final = frozenset({"CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "READONLY", "MISCONF"})
_NOT_NOW: Final = _BUSY | _UNWELL | {"OOM"}


class Patience:
    """How long one call may still be repeated, and how long to wait before the next try.

    `gate` knows whether the store is said to be away.
    """

    def __init__(self, seconds: float, clock: Callable[[], float], gate: ReconnectGate | None = None) -> None:
        self.gate = gate or ReconnectGate()
        self._clock = clock
        self._begun = clock()
        self._end = self._begun + seconds
        self._pause = FIRST_PAUSE
        self.tries = 0

    def next_pause(self) -> float | None:
        """Seconds to wait before another try, with jitter; None when the deadline has passed."""
        self.tries += 1
        left = self._end - self._clock()
        if left <= 0:
            return None
        pause = self._pause * random.uniform(0.5, 1.0)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        # The last try comes at the deadline itself.
        return min(pause, left)

    def glance(self, seconds: float) -> float | None:
        """Wait so long for a store that others try to reach; None when the deadline has passed."""
        left = self._end - self._clock()
        return None if left <= 0 else min(seconds, left)

    def __str__(self) -> str:
        if self.tries == 1:
            return "at the only try"
        return f"in {self.tries} tries over {self._clock() - self._begun:.1f} s"


def is_not_now(reply: ErrorReply) -> bool:
    """Whether this answer means that nothing was applied and that it may be different soon."""
    return reply.code in _NOT_NOW


def patient(calls: list[Call], patience: Patience, pause: float = 0.0) -> Plan[Replies]:
    """Send calls that change nothing, or nothing twice, until all are answered. Raises TransportError.

    Used where a step stands alone (meeting a store); `exchange` repeats commands one by one.
    """
    while True:
        try:
            replies = yield Step(calls, pause)
        except LinkError as error:
            refused: ErrorReply | LinkError = error
        else:
            unready = [reply for reply in replies if type(reply) is ErrorReply and is_not_now(reply)]
            if not unready:
                return replies
            refused = unready[0]
        pause = wait(refused, patience)


def wait(reason: ErrorReply | LinkError, patience: Patience) -> float:
    """Seconds to wait before the next try. Raises what `reason` means when there is no time for one."""
    if isinstance(reason, LinkError) and reason.after:
        pause = patience.glance(reason.after)
        if pause is None:
            raise gave_up(reason, patience)
        return pause
    pause = patience.next_pause()
    if pause is None:
        raise gave_up(reason, patience)
    level = logging.WARNING if patience.tries >= 3 and patience.gate.begins() else logging.DEBUG
    text = reason.text if isinstance(reason, ErrorReply) else reason
    log.log(level, "the store is not available (%s); trying again", text)
    return pause


def gave_up(reason: ErrorReply | LinkError, patience: Patience) -> HoldfastError:
    """The error for a call whose deadline passed because of `reason`; `told` says what it means for the call."""
    if isinstance(reason, ErrorReply):
        return not_now_error(reason)
    kind: type[TransportError] = StoreTimeout if reason.timed_out else ConnectionLost
    missing = "answer from" if reason.sent else "connection to"
    return kind(f"no {missing} the store {patience} ({reason})", may_have_happened=False)


def told(error: HoldfastError, verb: str, again: str, *, sent: bool) -> HoldfastError:
    """`error` as the caller of one call gets it: whether the call was sent, and whether it may be made again.

    A store that is busy now may have done what an earlier try said, so a call that was sent once never ends as
    StoreBusy or StoreUnavailable, which promise that nothing was applied.
    """
    if not isinstance(error, TransportError):
        if sent:
            error.add_note(f"an earlier try of this {verb} was sent and may have happened; {again}")
        return error
    if sent:
        kind = type(error) if isinstance(error, ConnectionLost | StoreTimeout) else ConnectionLost
        return kind(f"{verb}: {error}; it may have happened; {again}")
    if isinstance(error, ConnectionLost | StoreTimeout):
        return type(error)(f"{verb}: {error}; nothing was sent", may_have_happened=False)
    return error


def full_after_resend(error: HoldfastError, verb: str, again: str) -> StoreFull:
    """Return the error for a call whose first reply was lost and whose repeat met a full store."""
    full = StoreFull(f"{error}; an earlier try of this {verb} was sent and may have happened; {again}", "OOM")
    full.may_have_happened = True
    return full


def not_now_error(reply: ErrorReply) -> HoldfastError:
    """The error for a `not now` that did not end in time."""
    if reply.code == "OOM":
        return StoreFull(
            "the store has no memory left for more work; let workers drain it, or raise maxmemory", "OOM"
        )
    if reply.code in _UNWELL:
        return StoreUnavailable(
            f"the store takes no writes ({reply.sentence}); nothing was applied", may_have_happened=False
        )
    return StoreBusy(
        f"the store was not ready in time ({reply.sentence}); nothing was applied", may_have_happened=False
    )
