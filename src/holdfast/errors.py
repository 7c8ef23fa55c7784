"""Every error holdfast raises, in one tree, and the table from the core's code words to classes.

The tree says what a caller may conclude. `UsageError`: nothing was sent. `Refused`: the core said no and
nothing changed. `TransportError`: it is not known whether it happened. The rest says who must act.
"""

import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final


class HoldfastError(Exception):
    """The root of the tree; older programs catch it as `ReqlessError`."""


class UsageError(HoldfastError, ValueError):
    """The caller's mistake, found before anything was sent."""


class UnknownEvent(UsageError, NotImplementedError):
    """No event has this name; older programs catch NotImplementedError."""


class Refused(HoldfastError):
    """The core said no, and nothing changed.

    `code` is the core's word (`HF_LEASE_LOST`), `detail` the rest of its sentence. A code this client does
    not know arrives as a plain `Refused`, so that old clients survive new cores.
    """

    def __init__(self, detail: str = "", code: str = "") -> None:
        super().__init__(detail or code)
        self.code = code
        self.detail = detail


class JobNotFound(Refused):
    """No job has this jid."""


class JobExists(Refused):
    """A job with this jid is there already, with other content."""


class WrongState(Refused):
    """The job is in a state in which this cannot be done."""


class DependencyRefused(Refused):
    """The dependencies asked for are impossible, or somebody still depends on the job."""


class LeaseLost(Refused):
    """The lease on this job ended: another worker may have it, or it was cancelled."""


class ThrottleNotFound(Refused):
    """No throttle has this name."""


class QueueNotEmpty(Refused):
    """The queue still has jobs."""


class QueueFull(Refused):
    """The queue holds as many waiting jobs as it may."""


class TooManyQueues(Refused):
    """The namespace has as many queues as it may (setting `max-queues`)."""


class DataTooLarge(Refused):
    """The data of a job have more bytes than the namespace allows (setting `max-data`)."""


class StoreFull(Refused):
    """The store has no memory left for more work; what it holds can still be worked off.

    `may_have_happened` is True when an earlier try of the same call was sent and its reply was lost; the message
    states whether the call may be repeated.
    """

    may_have_happened = False


class TransportError(HoldfastError):
    """The call did not come to its end, and the sentence says what is known of it.

    `may_have_happened` is False when it certainly did not happen: nothing was sent, or nothing was applied. Else the
    sentence says whether the call may be made again.
    """

    def __init__(self, sentence: str = "", *, may_have_happened: bool = True) -> None:
        super().__init__(sentence)
        self.may_have_happened = may_have_happened


class ConnectionLost(TransportError):
    """The connection ended, or could not be made, until the deadline had passed."""


class StoreTimeout(TransportError):
    """The store did not answer until the deadline had passed."""


class StoreBusy(TransportError):
    """The store was busy or loading until the deadline had passed; nothing was applied."""


class StoreUnavailable(TransportError):
    """The store could not take writes until the deadline had passed."""


class StoreErrorText(Exception):
    """The store's own words, as the `__cause__` of an error whose sentence leaves some of them out."""


class CoreMismatch(HoldfastError):
    """The store holds a core that this client must not use or replace."""


class StoreUnsupported(HoldfastError):
    """The store is too old, may throw data away, or bars what holdfast needs."""


class CodecError(UsageError, TypeError):
    """Data could not be written as JSON or read; a TypeError, as the encoder of Python raises it."""


class JobFailed(HoldfastError):
    """What waiting for the result of a failed job raises; `group`, `message` and `jid` are the failure's and the job's.

    `remote_traceback` is the traceback in the message, "" where it holds none. The text of the error is the group and
    what was raised, in one line where it was one; the traceback is printed behind it.
    """

    def __init__(self, group: str, message: str = "", jid: str = "") -> None:
        super().__init__(group, message, jid)
        self.group = group
        self.message = message
        self.jid = jid
        self.remote_traceback = message if message.startswith(_TRACEBACKS) else ""
        if self.remote_traceback:
            self.add_note(f"On the worker's side:\n{self.remote_traceback.rstrip()}")

    def __str__(self) -> str:
        told = _raised_line(self.message) if self.remote_traceback else self.message
        return f"{self.group}: {told}" if told else self.group


class JobCancelled(HoldfastError):
    """What waiting for the result of a cancelled job raises; `by` is who cancelled it, "" where that is not known.

    `at` is when, in seconds since 1970; `jid` is the job's.
    """

    def __init__(self, by: str = "", at: float = 0.0, jid: str = "") -> None:
        super().__init__(by, at, jid)
        self.by = by
        self.at = at
        self.jid = jid

    def __str__(self) -> str:
        return f"job {self.jid} was {cancelled_text(self.by, self.at)}"


def cancelled_text(by: str, at: float) -> str:
    """When and by whom a job was cancelled: `cancelled at 2026-11-22 23:10:03 UTC by web-1`."""
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"cancelled at {when} by {by or 'somebody who gave no name'}"


_TRACEBACKS: Final = (
    "Traceback (most recent call last):",
    "  + Exception Group Traceback (most recent call last):",
)
_PARTS, _END, _OF_GROUP = "  +-+--", "    +--", "  | "
"""How tracebacks of groups begin their parts, end, and begin what is said of the group itself."""


def _raised_line(traceback: str) -> str:
    """The end of a traceback, which says what was raised: what follows the last indented line."""
    lines = traceback.rstrip().splitlines()
    if lines[-1].startswith(_END):
        parts = max((at for at, line in enumerate(lines) if line.startswith(_PARTS)), default=len(lines))
        said = [line.removeprefix(_OF_GROUP) for line in lines[:parts] if line.startswith(_OF_GROUP)]
        lines = ["  ", *said]
    for at in range(len(lines) - 1, 0, -1):
        if lines[at - 1].startswith("  "):
            return "\n".join(lines[at:])
    return lines[-1]


class WorkError(HoldfastError):
    """Something is wrong on the worker's side."""


class StartFailed(WorkError):
    """Code that a worker loads before it takes jobs has raised: its setup hook, middleware, or an imported module."""


class NotAllowed(WorkError):
    """The klass of this job lies outside what the worker may run."""


class UnknownKlass(WorkError):
    """The klass of this job could not be found."""


class MiddlewareMisconfigured(WorkError):
    """The middleware of this worker or job cannot work as it is put together."""


class InvalidTimeout(WorkError):
    """A timeout is not a positive number of seconds."""


class PerformTimeout(WorkError):
    """A job ran longer than it may."""


class JobTimedOutError(PerformTimeout):
    """A job of a class ran longer than its `Timeout` middleware lets it."""


_CLASSES: Final[dict[str, type[Refused]]] = {
    "HF_JOB_NOT_FOUND": JobNotFound,
    "HF_JOB_EXISTS": JobExists,
    "HF_WRONG_STATE": WrongState,
    "HF_LEASE_LOST": LeaseLost,
    "HF_QUEUE_FULL": QueueFull,
    "HF_DATA_TOO_LARGE": DataTooLarge,
    "HF_TOO_MANY_QUEUES": TooManyQueues,
    "HF_QUEUE_NOT_EMPTY": QueueNotEmpty,
    "HF_THROTTLE_NOT_FOUND": ThrottleNotFound,
    "HF_DEPENDENCY_REFUSED": DependencyRefused,
}


_BARE: Final = {"HF_JOB_NOT_FOUND": "job {} does not exist", "HF_JOB_EXISTS": "there is a job {} already"}
"""What a refusal says that names its job and nothing else."""


def refusal(text: str | bytes) -> Refused:
    """Turn the core's `HF_CODE detail` into the exception of that code, not raised."""
    sentence = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    code, _, detail = sentence.partition(" ")
    if not code.startswith("HF_"):
        return Refused(sentence)
    if code in _BARE and " " not in detail:
        detail = _BARE[code].format(detail)
    return _CLASSES.get(code, Refused)(detail, code)


ReqlessError = HoldfastError
LostLockError = LeaseLost
QueueNotEmptyError = QueueNotEmpty
UnsupportedRedisVersionError = StoreUnsupported
InvalidTimeoutError = InvalidTimeout
MiddlewareMisconfiguredError = MiddlewareMisconfigured


_RENAMED: Final[Mapping[str, type[HoldfastError]]] = {"StoreUnwell": StoreUnavailable}


def renamed(name: str) -> type[HoldfastError]:
    """Return the class that an earlier release called `name`, with a DeprecationWarning. Raises AttributeError."""
    found = _RENAMED.get(name)
    if found is None:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    warnings.warn(f"{name} is called {found.__name__} now", DeprecationWarning, stacklevel=3)
    return found


def __getattr__(name: str) -> type[HoldfastError]:
    return renamed(name)
