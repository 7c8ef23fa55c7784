"""The errors of the gateway as problem documents (RFC 9457): status, stable type, and when to try again."""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from holdfast.errors import (
    DataTooLarge,
    HoldfastError,
    JobNotFound,
    LeaseLost,
    OperationNotFound,
    QueueFull,
    Refused,
    StoreFull,
    ThrottleNotFound,
    TransportError,
    UnknownName,
    UsageError,
)
from holdfast.logs import logger
from holdfast.text import one_line
from holdfast.web.gate import GateRefusal, about_store, problem

_KINDS: Final[tuple[tuple[type[HoldfastError], int, str], ...]] = (
    (LeaseLost, 409, "lease-lost"),
    (JobNotFound, 404, "job-not-found"),
    (OperationNotFound, 404, "not-found"),
    (ThrottleNotFound, 404, "not-found"),
    (UnknownName, 404, "not-found"),
    (UsageError, 400, "bad-request"),
    (QueueFull, 429, "queue-full"),
    (DataTooLarge, 413, "too-large"),
    (StoreFull, 503, "store-full"),
    (Refused, 409, "refused"),
    (TransportError, 503, "store-unavailable"),
    (HoldfastError, 500, "error"),
)
"""The first that fits is the status and the type of an error."""
_BAD: Final = frozenset(("HF_BAD_ARGUMENT", "HF_TOO_MANY"))
_REPEAT: Final = 'Send it again with the same Idempotency-Key, or a put with the same jid and "mode": "only".'
_AGAIN: Final = {429: "1", 503: "1"}
"""Seconds after which a refused request may be sent again."""


class Problem(Exception):
    """A request that is refused: the status, a stable type, a sentence, and further headers of the response."""

    def __init__(self, status: int, kind: str, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.kind, self.sentence, self.headers = status, kind, sentence, headers


def response_to(scope: Scope, error: Exception) -> Response:
    """Return the response to an error. That of a bug is logged, and its text is not shown."""
    if isinstance(error, GateRefusal):
        return error.response
    if isinstance(error, HTTPException):  # of the program's own `auth`
        return _response(scope, error.status_code, "error", one_line(str(error.detail)), {})
    if isinstance(error, Problem):
        return _response(scope, error.status, error.kind, error.sentence, error.headers)
    if not isinstance(error, HoldfastError):
        logger.exception("request %s failed", scope.get("holdfast.request"), exc_info=error)
        return _response(scope, 500, "error", "Internal error; see the log of the application.", {})
    status, kind = _kind_of(error)
    code = error.code if isinstance(error, Refused) else ""
    if code in _BAD:
        status, kind = 400, "bad-request"
    more = {"code": code} if code else {}
    if isinstance(error, TransportError):
        logger.warning("request %s: %s", scope.get("holdfast.request"), one_line(str(error)))
        return _response(scope, status, kind, about_store(error, _REPEAT), {})
    return _response(scope, status, kind, one_line(str(error)), {}, **more)


def _kind_of(error: Exception) -> tuple[int, str]:
    return next((status, kind) for known, status, kind in _KINDS if isinstance(error, known))


def _response(
    scope: Scope, status: int, kind: str, sentence: str, headers: dict[str, str], **more: str
) -> Response:
    found = problem(scope, status, sentence, f"holdfast:{kind}", **more)
    found.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    if status in _AGAIN:
        found.headers.setdefault("Retry-After", _AGAIN[status])
    return found
