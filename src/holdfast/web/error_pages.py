"""The responses to errors, for pages and the JSON API: HTML for people, problem documents for programs."""

from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from holdfast.errors import (
    HoldfastError,
    JobNotFound,
    OperationNotFound,
    Refused,
    StoreFull,
    ThrottleNotFound,
    TransportError,
    UnknownName,
    UsageError,
)
from holdfast.logs import logger
from holdfast.text import one_line
from holdfast.web.front_pages import front_page
from holdfast.web.gate import GateRefusal, TooLarge, about_store, problem, wants_json
from holdfast.web.parts import part_of, place_of
from holdfast.web.views import Done

_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (JobNotFound, 404),
    (OperationNotFound, 404),
    (ThrottleNotFound, 404),
    (UnknownName, 404),
    (UsageError, 400),
    (StoreFull, 503),
    (Refused, 409),
    (TransportError, 503),
    (HoldfastError, 500),
)
"""The first that fits is the status of an error."""


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error of the tree."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def handle_errors(app: Starlette) -> None:
    """Add the handlers of all errors to an application."""
    kinds: list[type[Exception]] = [HTTPException, GateRefusal, TooLarge, ClientDisconnect, Exception]
    for kind in [*kinds, *(kind for kind, _ in _STATUS)]:
        app.add_exception_handler(kind, respond)


async def respond(request: Request, error: Exception) -> Response:
    """Return the response to an error. That of a bug is logged, and its text is not shown."""
    if isinstance(error, HTTPException):
        is_bare = error.detail == HTTPStatus(error.status_code).phrase
        response = _page(request, error.status_code, f"{error.detail}." if is_bare else error.detail)
        response.headers.update(error.headers or {})
        return response
    if isinstance(error, GateRefusal):
        return error.response
    if isinstance(error, TransportError) and part_of(place_of(request.scope)) == "topics":
        logger.warning("request %s: %s", request.scope.get("holdfast.request"), one_line(str(error)))
        return _page(request, 503, about_store(error, "A request with an id can be sent again."))
    if isinstance(error, HoldfastError):
        return _page(request, status_of(error), one_line(str(error)))
    if isinstance(error, TooLarge):
        return _page(request, 413, "The body of the request is too large.")
    if isinstance(error, ClientDisconnect):  # the client has gone, so the response is not read
        return _page(request, 400, "The connection was closed before the whole body had arrived.")
    logger.exception("request %s failed", request.scope.get("holdfast.request"), exc_info=error)
    return _page(request, 500, "Internal error; see the log of the application.")


def _page(request: Request, status: int, sentence: str) -> Response:
    ctx = getattr(request.state, "ctx", None)
    if wants_json(request.scope):
        return problem(request.scope, status, sentence)
    if ctx is None:  # it is not known who asks
        return front_page(request.scope, status, "Request failed", sentence)
    if "hx-request" in request.headers:  # what is swapped in are messages and regions, never a page in a page
        message = Done(text=sentence, changed=0)
        return HTMLResponse(ctx.site.pages.page("toast.html", ctx, message, kind="failed"), status)
    return HTMLResponse(ctx.site.pages.page("error.html", ctx, {"status": status, "text": sentence}), status)
