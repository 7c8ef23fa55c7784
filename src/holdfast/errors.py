"""Every error that holdfast raises, in one tree, and the table from the core's error codes to classes.

The class of an error states what happened. `UsageError`: nothing was sent. `Refused`: the core refused the call, and nothing
was changed. `TransportError`: it may be unknown whether the call happened. Other errors name what has to be fixed.
"""

import re
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final


class HoldfastError(Exception):
    """The base of all errors; older programs catch it as `ReqlessError`."""


class UsageError(HoldfastError, ValueError):
    """A wrong argument, found before anything was sent."""


def missing_extra(purpose: str, extra: str, error: ImportError) -> str:
    """Return the sentence of an error for a package that an extra of this distribution installs."""
    needed = error.name or "more packages"
    return f"{purpose} needs {needed}: {install_extra(extra)}"


def install_extra(extra: str) -> str:
    """Return the command that installs an extra of this distribution."""
    return f"pip install 'holdfast-jobs[{extra}]' (in a checkout: pip install '.[{extra}]')"


class FilterError(UsageError):
    """A search filter cannot be read; the message shows the place, which is `text[position:]`."""

    def __init__(self, sentence: str = "", text: str = "", position: int = 0) -> None:
        super().__init__(sentence)
        self.text = text
        self.position = position


class UnknownName(HoldfastError):
    """Nothing has this name: no such queue, worker, throttle, topic or failure group is known."""


class UnknownEvent(UsageError, NotImplementedError):
    """No event has this name; older programs catch NotImplementedError."""


class Refused(HoldfastError):
    """The core refused the call, and nothing was changed.

    `code` is the core's error code (`HF_LEASE_LOST`), `detail` the rest of its message. A code that this client does not
    know becomes a plain `Refused`, so that old clients work with newer cores.
    """

    def __init__(self, detail: str = "", code: str = "") -> None:
        super().__init__(detail or code)
        self.code = code
        self.detail = detail


class JobNotFound(Refused):
    """No job has this jid."""


class JobExists(Refused):
    """A job with this jid exists already, with other content."""


class NotUnique(Refused):
    """Another job holds the unique key of this one. The message has its jid."""


class WrongState(Refused):
    """The job is in a state that does not allow this call."""


class DependencyRefused(Refused):
    """The dependencies are impossible, or another job still depends on the job."""


class LeaseLost(Refused):
    """The lease on this job ended: another worker may have it, or it was cancelled."""


class OperationNotFound(Refused):
    """No operation on many jobs has this id."""


class ThrottleNotFound(Refused):
    """No throttle has this name."""


class QueueNotEmpty(Refused):
    """The queue still has jobs."""


class QueueFull(Refused):
    """The queue has its maximum number of waiting jobs."""


class FlowClosed(Refused):
    """The flow gets no more jobs: it was closed."""


class TooManyQueues(Refused):
    """The namespace has its maximum number of queues (setting `max-queues`)."""


class DataTooLarge(Refused):
    """The data of a job has more bytes than the namespace allows (setting `max-data`)."""


class StoreFull(Refused):
    """The store has no memory left for new jobs; existing jobs can still be performed.

    `may_have_happened` is True when an earlier try of the same call was sent and its reply was lost; the message
    states whether the call may be repeated.
    """

    may_have_happened = False


class TransportError(HoldfastError):
    """The call did not complete; the message states what is known about it.

    `may_have_happened` is False if it certainly did not happen: nothing was sent, or nothing was applied. Otherwise the
    message states whether the call may be made again.
    """

    def __init__(self, sentence: str = "", *, may_have_happened: bool = True) -> None:
        super().__init__(sentence)
        self.may_have_happened = may_have_happened


class ConnectionLost(TransportError):
    """The connection was lost, or could not be opened, until the deadline."""


class StoreTimeout(TransportError):
    """The store did not reply until the deadline."""


class StoreBusy(TransportError):
    """The store was busy or loading until the deadline; nothing was applied."""


class StoreUnavailable(TransportError):
    """The store refused writes until the deadline; nothing was applied."""


class StoreErrorText(Exception):
    """The error text of the store, as the `__cause__` of an error whose message omits part of it."""


class CoreMismatch(HoldfastError):
    """The store holds a core that this client must not use or replace."""


class StoreUnsupported(HoldfastError):
    """The store is too old, may evict data, or forbids commands that holdfast needs."""


class CodecError(UsageError, TypeError):
    """Data could not be encoded as JSON, or decoded; a TypeError too, as Python's encoder raises it."""


class JobFailed(HoldfastError):
    """The awaited job failed; `group` and `message` are those of the failure, `jid` is that of the job.

    `remote_traceback` is the traceback in the message, "" if there is none. The text of this error is the group and the
    exception; the whole traceback is printed after it.
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
        text = _raised_line(self.message) if self.remote_traceback else self.message
        return f"{self.group}: {text}" if text else self.group


class JobCancelled(HoldfastError):
    """The awaited job was cancelled; `by` is who cancelled it, "" if unknown.

    `at` is when, in epoch seconds; `jid` is that of the job.
    """

    def __init__(self, by: str = "", at: float = 0.0, jid: str = "") -> None:
        super().__init__(by, at, jid)
        self.by = by
        self.at = at
        self.jid = jid

    def __str__(self) -> str:
        return f"job {self.jid} was {cancelled_text(self.by, self.at)}"


def cancelled_text(by: str, at: float) -> str:
    """Return when and by whom a job was cancelled: `cancelled at 2026-11-22 23:10:03 UTC by web-1`."""
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"cancelled at {when} by {by or 'an unnamed user'}"


_TRACEBACKS: Final = (
    "Traceback (most recent call last):",
    "  + Exception Group Traceback (most recent call last):",
)
_PARTS, _END, _OF_GROUP = "  +-+--", "    +--", "  | "
"""The prefixes in the traceback of an exception group: of a member, of the end, of the group itself."""


def _raised_line(traceback: str) -> str:
    """Return the end of a traceback, which has the exception: the text after the last indented line."""
    lines = traceback.rstrip().splitlines()
    if lines[-1].startswith(_END):
        parts = max((at for at, line in enumerate(lines) if line.startswith(_PARTS)), default=len(lines))
        own = [line.removeprefix(_OF_GROUP) for line in lines[:parts] if line.startswith(_OF_GROUP)]
        lines = ["  ", *own]
    for at in range(len(lines) - 1, 0, -1):
        if lines[at - 1].startswith("  "):
            return "\n".join(lines[at:])
    return lines[-1]


class WorkError(HoldfastError):
    """An error of a worker."""


class StartFailed(WorkError):
    """Code that a worker imports before it takes jobs has raised: its setup hook, middleware, or a module."""


class NotAllowed(WorkError):
    """The worker is not allowed to run the klass of this job."""


class UnknownKlass(WorkError):
    """The klass of this job does not exist here."""


class MiddlewareMisconfigured(WorkError):
    """The middleware of this worker or job class is combined in a wrong way."""


class InvalidTimeout(WorkError):
    """A timeout is not a positive number of seconds."""


class PerformTimeout(WorkError):
    """A job exceeded its time limit."""


class JobTimedOutError(PerformTimeout):
    """A class job exceeded the limit of its `Timeout` middleware."""


_CLASSES: Final[dict[str, type[Refused]]] = {
    "HF_JOB_NOT_FOUND": JobNotFound,
    "HF_JOB_EXISTS": JobExists,
    "HF_NOT_UNIQUE": NotUnique,
    "HF_WRONG_STATE": WrongState,
    "HF_LEASE_LOST": LeaseLost,
    "HF_QUEUE_FULL": QueueFull,
    "HF_FLOW_CLOSED": FlowClosed,
    "HF_DATA_TOO_LARGE": DataTooLarge,
    "HF_TOO_MANY_QUEUES": TooManyQueues,
    "HF_QUEUE_NOT_EMPTY": QueueNotEmpty,
    "HF_THROTTLE_NOT_FOUND": ThrottleNotFound,
    "HF_OPERATION_NOT_FOUND": OperationNotFound,
    "HF_DEPENDENCY_REFUSED": DependencyRefused,
}


_BARE: Final = {
    "HF_JOB_NOT_FOUND": "job {} does not exist",
    "HF_JOB_EXISTS": "there is a job {} already",
    "HF_NOT_UNIQUE": "another job holds the unique key of this one: {}",
    "HF_OPERATION_NOT_FOUND": "operation {} does not exist",
}
"""The messages of refusals that consist of a name only."""
_SENTENCE: Final = re.compile(
    r"no recurring job |a job has the jid |flow .+ (has no|was put)|.+ is a flow of \d+ jobs$", re.DOTALL
)
"""What such refusals begin with that are a sentence."""


def refusal(text: str | bytes) -> Refused:
    """Return the exception for the core's `HF_CODE detail`."""
    sentence = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    code, _, detail = sentence.partition(" ")
    if not code.startswith("HF_"):
        return Refused(sentence)
    if code in _BARE and not _SENTENCE.match(detail):
        detail = _BARE[code].format(detail)
    return _CLASSES.get(code, Refused)(detail, code)


ReqlessError = HoldfastError
LostLockError = LeaseLost
QueueNotEmptyError = QueueNotEmpty
UnsupportedRedisVersionError = StoreUnsupported
InvalidTimeoutError = InvalidTimeout
MiddlewareMisconfiguredError = MiddlewareMisconfigured


_RENAMED: Final[Mapping[str, type[HoldfastError]]] = {"StoreUnwell": StoreUnavailable}


_OF_CLIENT: Final = "functions are made jobs by a client: write app = holdfast.Client(), then @app.job"
_WORKER: Final = "a worker is a program: run holdfast worker -q QUEUE --import MODULE"
_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("job", "task", "actor", "shared_task"), _OF_CLIENT),
    **dict.fromkeys(("Worker", "worker", "run_worker"), _WORKER),
    **dict.fromkeys(
        ("App", "Celery", "Holdfast", "connect"), "the client is holdfast.Client, or holdfast.AsyncClient"
    ),
}
"""What people look for at the top level, and where it is."""


def renamed(name: str) -> type[HoldfastError]:
    """Return the class that an earlier release called `name`, with a DeprecationWarning. Raises AttributeError."""
    found = _RENAMED.get(name)
    if found is None:
        hint = _ELSEWHERE.get(name)
        advice = f": {hint}" if hint else ""
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}{advice}", name=name)
    warnings.warn(f"{name} is called {found.__name__} now", DeprecationWarning, stacklevel=3)
    return found


def __getattr__(name: str) -> type[HoldfastError]:
    return renamed(name)
