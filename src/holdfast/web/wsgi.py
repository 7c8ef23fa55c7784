"""The application for WSGI servers: their requests are adapted for ASGI."""

import io
import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from a2wsgi import ASGIMiddleware

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp

_MOST_DIGITS: Final = 18
_LARGEST: Final = 8 << 20  # bytes of a body that any part of the application takes
_LENGTH: Final = "HTTP_CONTENT-LENGTH"
"""Becomes the header `content-length`, but is not taken for a number by a2wsgi, which would fail."""


class WsgiApplication:
    """A WSGI application around an ASGI application, which runs in an event loop in a thread of each process.

    The thread is started by the first request: one of before a fork (`gunicorn --preload`) would be missing in the children.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app
        self._middleware: ASGIMiddleware | None = None
        self._pid = 0
        self._lock = threading.Lock()

    @property
    def loop(self) -> "asyncio.AbstractEventLoop":
        """The event loop of this process in which the application runs."""
        return self._here().loop

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Respond to a request."""
        found = _readable(environ)
        if not _has_whole_body(found):
            start_response("400 Bad Request", [("Content-Type", "text/plain; charset=utf-8")])
            return [b"The body is shorter than its Content-Length.\n"]
        return self._here()(cast("Any", found), start_response)

    def _here(self) -> ASGIMiddleware:
        with self._lock:
            if self._middleware is None or self._pid != os.getpid():
                self._middleware, self._pid = ASGIMiddleware(cast("Any", self.app)), os.getpid()
            return self._middleware


def _readable(environ: dict[str, Any]) -> dict[str, Any]:
    """Return a request as a2wsgi can read it; what is wrong with it is left to the gate, which refuses it."""
    found = dict(environ)
    length = found.pop("CONTENT_LENGTH", "") or ""  # empty, or missing: no body
    if length and (not length.isascii() or not length.isdecimal() or len(length) > _MOST_DIGITS):
        found[_LENGTH] = length
    elif length:
        found["CONTENT_LENGTH"] = length
    elif not found.get("HTTP_TRANSFER_ENCODING"):
        found.pop("CONTENT_TYPE", None)  # wsgiref gives text/plain to what has none
    for name in ("SCRIPT_NAME", "PATH_INFO"):
        found[name] = _as_utf8(found.get(name) or "")
    found["QUERY_STRING"] = quote((found.get("QUERY_STRING") or "").encode("latin-1"), safe=_AS_IT_IS)
    if found.get(
        "REMOTE_ADDR"
    ):  # without a port a2wsgi drops the address, and everybody would be of this machine
        found["REMOTE_PORT"] = found.get("REMOTE_PORT") or "0"
    return found


def _has_whole_body(environ: dict[str, Any]) -> bool:
    """Read the body, unless the gate will refuse it for its size. Return whether it is as long as it should be.

    Of one that ends too soon a2wsgi would read nothing again and again.
    """
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if not 0 < length <= _LARGEST:
        return True
    body = io.BytesIO()
    while (left := length - body.tell()) and (some := environ["wsgi.input"].read(left)):
        body.write(some)
    is_whole = body.tell() == length
    body.seek(0)
    environ["wsgi.input"] = body
    return is_whole


_AS_IT_IS: Final = "".join(chr(code) for code in range(33, 127))


def _as_utf8(path: str) -> str:
    """Return a path of WSGI, whose characters stand for bytes, with those that are not UTF-8 replaced."""
    return path.encode("latin-1").decode(errors="replace").encode().decode("latin-1")
