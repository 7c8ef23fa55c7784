"""What every request passes first: its name, the host it was sent to, its size, whether another site sent it; and the headers
of every response.
"""

import itertools
import re
import secrets
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import TransportError
from holdfast.web.options import Options
from holdfast.web.packing import Packing, is_own_request, takes_gzip
from holdfast.web.parts import part_of, place_of

MOST_BYTES: Final = 1 << 20
_MOST_QUERY: Final = 8000
_MOST_DIGITS: Final = 18
_SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]+){1,20}")
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]*))(?::\d*)?", re.ASCII)
_REAL: Final = "holdfast.address"
LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))


def policy(frame_ancestors: Sequence[str]) -> str:
    """Return the Content-Security-Policy: own files only, no inline script or style, HTML only by the policy of `boot.js`."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; object-src 'none'; "
        f"frame-ancestors {' '.join(frame_ancestors) or chr(39) + 'none' + chr(39)}; "
        "require-trusted-types-for 'script'; trusted-types default"
    )


def fixed_headers(options: Options) -> dict[str, str]:
    """Return the headers of every response."""
    headers = {
        "Content-Security-Policy": policy(options.frame_ancestors),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }
    return headers if options.frame_ancestors else {"X-Frame-Options": "DENY", **headers}


_PREFIX_OF_NAMES: Final = secrets.token_hex(4)
_numbers = itertools.count(1)


def request_name() -> str:
    """Return a new name of a request, for the log and for errors."""
    return f"{_PREFIX_OF_NAMES}-{next(_numbers):x}"


def host_of(headers: Mapping[str, str]) -> str:
    """Return the host name that a request was sent to, without its port, in lower case; "" if it names none."""
    host = headers.get("host", "")
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def is_forwarded(scope: Scope) -> bool:
    """Return whether a request was passed on by a reverse proxy, by its headers."""
    return any(
        name in (b"forwarded", b"via", b"x-real-ip") or name.startswith(b"x-forwarded-")
        for name, _ in scope["headers"]
    )


def real_address(connection: HTTPConnection) -> str:
    """Return the address that a request came from: behind a trusted reverse proxy the one that it names. "" if unknown.

    Of an IPv6 address the network, because each customer has a whole one.
    """
    found = str(connection.scope.get(_REAL) or (connection.client.host if connection.client else ""))
    try:
        address = ip_address(found)
    except ValueError:  # that of a socket of the file system, or of a test
        return found
    if isinstance(address, IPv4Address):
        return found
    return str(address.ipv4_mapped or ip_network((int(address), 64), strict=False))


def is_cross_site(
    method: str, scheme: str, headers: Mapping[str, str], is_for_programs: bool = False
) -> bool:
    """Return whether a request that changes something was, or may have been, sent by a page of another origin.

    Browsers send `Sec-Fetch-Site`; without it the `Origin` has to be that of this request. A bearer token cannot be sent
    by a page of another site. `is_for_programs`: of a part that no page uses, a request with neither header is one of a
    program if it has no cookie, or is JSON: pages cannot send that to another site without asking it.
    """
    if method in _SAFE:
        return False
    if headers.get("authorization", "").lower().startswith("bearer "):
        return False
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site != "same-origin"
    is_json = headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
    if is_for_programs and "origin" not in headers and ("cookie" not in headers or is_json):
        return False
    origin = urlsplit(headers.get("origin", ""))
    return (origin.scheme, origin.netloc) != (scheme, headers.get("host", "")) or not origin.netloc


def is_foreign_read(options: Options, method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a page of another site makes a browser ask for something that it does not show as a page of its own.

    The other site could not read the response, but the work would be done. Pages in frames are for those that may show them.
    """
    if method not in _SAFE or headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    if headers.get("authorization", "").lower().startswith("bearer ") and "cookie" not in headers:
        return False
    frames = ("iframe", "frame") if options.frame_ancestors else ()
    is_shown = headers.get("sec-fetch-dest", "document") in ("document", *frames)
    return headers.get("sec-fetch-mode") != "navigate" or not is_shown


def refused_by(
    options: Options, scope: Scope, headers: Mapping[str, str], most: int = MOST_BYTES
) -> Response | None:
    """Return the response to a request that goes no further, None for one that does. `most`: bytes that its body may have."""
    take_forwarded(options, scope, headers)
    if options.hosts and host_of(headers) not in options.hosts:
        return refusal(scope, 403, f"This application is not served at the host {host_of(headers)!r:.100}.")
    if len(scope.get("query_string", b"")) > _MOST_QUERY:
        return refusal(scope, 414, f"The query of the URL is longer than {_MOST_QUERY} characters.")
    size = headers.get("content-length") or "0"  # WSGI may have it empty
    if not size.isascii() or not size.isdecimal():
        return refusal(scope, 400, f"Content-Length: expected a number of bytes, got {size!r:.80}.")
    if len(size) > _MOST_DIGITS or int(size) > most:
        return refusal(scope, 413, f"The body is larger than {most:,} bytes.")
    if "wsgi_environ" in scope and "transfer-encoding" in headers and "content-length" not in headers:
        return refusal(scope, 411, "Under WSGI the body of a request needs a Content-Length.")
    part = part_of(place_of(scope))
    is_for_programs = part in ("gateway", "topics") or part not in options.parts  # nothing is there
    is_read = is_foreign_read(options, scope["method"], headers)
    if is_read or is_cross_site(scope["method"], scope["scheme"], headers, is_for_programs):
        return refusal(
            scope, 403, "This request came from a page of another site, or does not name its site."
        )
    return None


def take_forwarded(options: Options, scope: Scope, headers: Mapping[str, str]) -> None:
    """Take the scheme and the path prefix that a trusted reverse proxy was reached by, which removed the prefix.

    The address of the scope stays that of the server: by it, it is trusted. `real_address` has the one that it names.
    """
    if not options.trusted_proxies or (scope.get("client") or ("",))[0] not in options.trusted_proxies:
        return
    scheme = headers.get("x-forwarded-proto", "").partition(",")[0].strip()
    if scheme in ("http", "https"):
        scope["scheme"] = scheme
    scope[_REAL] = _forwarded_for(scope, options)
    prefix = headers.get("x-forwarded-prefix", "").strip().rstrip("/")
    if _PREFIX.fullmatch(prefix):
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        scope["root_path"] = prefix + scope.get("root_path", "")
        scope["path"] = prefix + scope["path"]
        scope["raw_path"] = prefix.encode() + raw


def _forwarded_for(scope: Scope, options: Options) -> str:
    """Return the address that the outermost trusted reverse proxy saw, "" if none is named. What is before it may be invented."""
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    for one in reversed(",".join(lines).split(",")):
        try:
            address = str(ip_address(one.strip()))
        except ValueError:
            return ""
        if address not in options.trusted_proxies:
            return address
    return ""


class Gate:
    """An ASGI application around another one. The name of a request is `holdfast.request` of its scope."""

    def __init__(self, app: ASGIApp, options: Options) -> None:
        self._app, self._options = app, options
        self._headers = fixed_headers(options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["holdfast.request"] = request_name()
        headers = Headers(scope=scope)
        refused = refused_by(self._options, scope, headers)
        app = self._app if refused is None else refused
        is_trusted = scope["scheme"] == "https" or host_of(headers) in LOOPBACK
        is_packed = part_of(place_of(scope)) in ("pages", "api") and takes_gzip(headers)
        if is_packed and is_own_request(scope["scheme"], headers):
            send = Packing(send)
        await app(scope, _bounded(receive), self._with_headers(send, is_trusted))

    def _with_headers(self, send: Send, is_trusted: bool) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                if is_trusted:  # browsers ignore it elsewhere, and report that as an error of the page
                    headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
                headers.setdefault("Cache-Control", "no-store")
                headers.add_vary_header("Accept-Encoding")
            await send(message)

        return sending


def wants_json(scope: Scope) -> bool:
    """Return whether a request is one of a program: not for a page, or for JSON."""
    return part_of(place_of(scope)) != "pages" or "application/json" in Headers(scope=scope).get("accept", "")


def refusal(scope: Scope, status: int, sentence: str) -> Response:
    """Return a response that refuses a request, as a problem document for programs."""
    if wants_json(scope):
        return problem(scope, status, sentence)
    return PlainTextResponse(sentence + "\n", status)


class GateRefusal(Exception):
    """A request that is refused with a response that was made elsewhere."""

    def __init__(self, response: Response) -> None:
        super().__init__("refused")
        self.response = response


_KINDS: Final[Mapping[int, str]] = {
    400: "holdfast:bad-request", 401: "holdfast:unauthorized", 403: "holdfast:forbidden", 404: "holdfast:not-found",
    405: "holdfast:method-not-allowed", 411: "holdfast:bad-request", 413: "holdfast:too-large", 414: "holdfast:too-large", 415: "holdfast:not-json",
    429: "holdfast:too-many-requests", 503: "holdfast:store-unavailable",
}  # fmt: skip
"""The types of problems that have none of their own, by their status."""


def problem(scope: Scope, status: int, sentence: str, kind: str = "", **more: object) -> JSONResponse:
    """Return an error as a problem document (RFC 9457); the sentence of one about topics is also its `message`."""
    if part_of(place_of(scope)) == "topics":
        more["message"] = sentence
    content = {
        "type": kind or _KINDS.get(status, "about:blank"),
        "title": sentence,
        "status": status,
        "request": scope.get("holdfast.request", ""),
        **more,
    }
    return JSONResponse(content, status, media_type="application/problem+json")


def about_store(error: TransportError, again: str) -> str:
    """Return what a program may know of a call that did not complete: not where the store is; `again`: how it is repeated."""
    if not error.may_have_happened:
        return "The store does not respond. Nothing was changed."
    return f"The store did not respond in time, so this may or may not have been done. {again}"


class TooLarge(Exception):
    """A body without a length has more bytes than are read."""


def _bounded(receive: Receive) -> Receive:
    read = 0

    async def receiving() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MOST_BYTES:
            raise TooLarge
        return message

    return receiving
