"""How the application finds out who asks. `create_app(auth=…)` takes one of these, or a function of a request.

Nothing: this machine only. `TokenLink`: whoever has the link that `holdfast web` prints. `Passwords`, `Tokens`: a users file.
`Proxy`: a reverse proxy has logged the user in. A function returns a `User`, or None if there is none (`auth_function.py`).
"""

import base64
import binascii
import hashlib
import hmac
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Protocol, cast

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.errors import UsageError
from holdfast.web.auth_function import AuthFunction
from holdfast.web.credentials import Credential, Credentials, TooMany
from holdfast.web.front_pages import front_page, login_page
from holdfast.web.gate import LOOPBACK, host_of, is_forwarded, real_address, refusal, wants_json
from holdfast.web.sessions import SESSION, Sessions
from holdfast.web.users import BY_NAME, Role, User
from holdfast.web.views import read_form

_LINK: Final = "link"
"""The mark of sessions that were begun by a link."""
_SECRET_HEADER: Final = "x-holdfast-secret"
_BARRED: Final = "holdfast.barred"
"""Where the scope of a request has the seconds after which its password or token may be tried again."""


class Authentication(Protocol):
    """A way to find the user of a request."""

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """What it adds to the application, such as a page to log in; reachable by anybody."""
        ...

    async def user(self, request: HTTPConnection) -> User | None:
        """Return the user of a request, None if it has none."""
        ...

    def refused(self, request: HTTPConnection) -> Response:
        """Return the response to a request without a user."""
        ...


def is_local(request: HTTPConnection) -> bool:
    """Return whether a request came from this machine to it by a name of its own, and not through a reverse proxy.

    The name matters: a page of another site can make its own name resolve to this machine.
    """
    if is_forwarded(request.scope):
        return False
    return _address(request) in (*LOOPBACK, "") and host_of(request.headers) in LOOPBACK


def check_proxy(address: str) -> None:
    """Raise UsageError for the address of a reverse proxy that no request can come from."""
    if address.lower() in LOOPBACK:
        return
    try:
        ip_address(address)
    except ValueError:
        raise UsageError(f"proxy: expected an IP address, got {address!r:.80}") from None


def is_of_this_machine(address: str) -> bool:
    """Return whether an address is one under which programs of this machine reach each other."""
    try:
        found = ip_address(address)
    except ValueError:
        return address.lower() in LOOPBACK
    if isinstance(found, IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    return found.is_loopback or _is_bound_here(found)


def _is_bound_here(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an interface of this machine has an address, or the address means all of them."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


class LoopbackOnly:
    """Everybody on this machine is an administrator; requests from or for others are refused."""

    routes: Sequence[BaseRoute] = ()

    def __init__(self, name: str = "local") -> None:
        self._user = User(name, "admin")

    async def user(self, request: HTTPConnection) -> User | None:
        """Return the local user."""
        return self._user if is_local(request) else None

    def refused(self, request: HTTPConnection) -> Response:
        """Return 403, and what to do."""
        sentence = (
            "Without authentication this application is for this machine only, as localhost and not behind a reverse proxy. "
            "Start it with --auth."
        )
        return refusal(request.scope, 403, sentence)


class TokenLink:
    """Who opens the link `/login?token=…` once gets a session, as administrator; for this machine only."""

    def __init__(self, sessions: Sessions, name: str = "local") -> None:
        self._sessions, self._user = sessions, User(name, "admin")
        self.routes: Sequence[BaseRoute] = (
            Route("/login", self._log_in),
            Route("/logout", self._log_out, methods=["POST"]),
        )

    async def user(self, request: HTTPConnection) -> User | None:
        """Return the user of the session, if it was begun by a link."""
        found = self._sessions.session(request) if is_local(request) else None
        if found is None or (found.name, found.mark) != (self._user.name, _LINK):
            return None
        request.scope[SESSION] = True
        return self._user

    async def _log_in(self, request: Request) -> Response:
        if not is_local(request) or not self._sessions.take_link(request.query_params.get("token", "")):
            return self.refused(request)
        response = RedirectResponse(request.scope.get("root_path", "") + "/", 303)
        self._sessions.log_in(request, response, self._user.name, _LINK)
        return response

    async def _log_out(self, request: Request) -> Response:
        sentence = "You are logged out. holdfast web -S prints a new link."
        if wants_json(request.scope):
            response: Response = JSONResponse({"logged_out": True})
        else:
            response = front_page(request.scope, 200, "Logged out", sentence)
        self._sessions.log_out(request, response)
        return response

    def refused(self, request: HTTPConnection) -> Response:
        """Return 401, and where to get a link."""
        sentence = (
            "This login link has been used, has expired, or is missing. holdfast web -S prints a new one."
        )
        if wants_json(request.scope):
            return refusal(request.scope, 401, sentence)
        return front_page(request.scope, 401, "Not logged in", sentence)


class Passwords:
    """Names and passwords, which browsers ask for (HTTP basic authentication); programs may have a token in the same file."""

    routes: Sequence[BaseRoute] = ()

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def user(self, request: HTTPConnection) -> User | None:
        """Return the user with that name and password, or with that token."""
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return _with_token(self._credentials, text.strip(), request)
        if kind.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(text.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeError):
            return None
        try:
            return await self._credentials.with_password(name, password, real_address(request))
        except TooMany as error:
            request.scope[_BARRED] = error.seconds
            return None

    def refused(self, request: HTTPConnection) -> Response:
        """Return 401, or 429 for a password that is not looked at."""
        if _BARRED in request.scope:
            return _too_many(request)
        response = refusal(request.scope, 401, "A user name and a password are required.")
        response.headers["WWW-Authenticate"] = 'Basic realm="holdfast", charset="UTF-8"'
        return response


class Tokens:
    """Long random tokens: programs send them (`Authorization: Bearer`), people trade one for a session at `/login`."""

    def __init__(self, credentials: Credentials, sessions: Sessions) -> None:
        self._credentials, self._sessions = credentials, sessions
        self.routes: Sequence[BaseRoute] = (
            Route("/login", self._ask),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
        )

    async def user(self, request: HTTPConnection) -> User | None:
        """Return whom the token, or the session, belongs to; of a session as it is now in the file of users."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return _with_token(self._credentials, token.strip(), request)
        session = self._sessions.session(request)
        found = None if session is None else self._credentials.named(session.name)
        if session is None or found is None or _mark(found) != session.mark:
            return None
        request.scope[SESSION] = True
        return found.user if found.user.may("viewer") else None

    async def _ask(self, request: Request) -> Response:
        return login_page(request.scope)

    async def _log_in(self, request: Request) -> Response:
        form = await read_form(request)
        user = _with_token(self._credentials, str(form.get("token", "")), request)
        found = None if user is None else self._credentials.named(user.name)
        if user is None or found is None:
            return (
                self.refused(request)
                if _BARRED in request.scope
                else login_page(request.scope, "This token is not valid.")
            )
        if not user.may("viewer"):  # pages show everything
            return login_page(request.scope, "This token is for programs: it cannot open pages.")
        response = RedirectResponse(request.scope.get("root_path", "") + "/", 303)
        self._sessions.log_in(request, response, user.name, _mark(found), found.ends)
        return response

    async def _log_out(self, request: Request) -> Response:
        if wants_json(request.scope):
            response: Response = JSONResponse({"logged_out": True})
        else:
            response = RedirectResponse(request.scope.get("root_path", "") + "/login", 303)
        self._sessions.log_out(request, response)
        return response

    def refused(self, request: HTTPConnection) -> Response:
        """Return 401 to programs, the page to log in to people, 429 after too many unknown tokens."""
        if _BARRED in request.scope:
            return _too_many(request)
        if wants_json(request.scope):
            was_sent = "authorization" in request.headers
            sentence = (
                "This token is not valid, or has expired." if was_sent else "A bearer token is required."
            )
            response = refusal(request.scope, 401, sentence)
            response.headers["WWW-Authenticate"] = 'Bearer realm="holdfast"'
            return response
        return RedirectResponse(request.scope.get("root_path", "") + "/login", 303)


class Proxy:
    """A reverse proxy has logged the user in, and names user and role in headers; only its addresses are believed.

    `secret`, if given, has to be in the header `X-Holdfast-Secret` too; for a server on this machine it has to be given, because
    every program here has its address. A user without a role gets `role`. Raises UsageError.
    """

    routes: Sequence[BaseRoute] = ()

    def __init__(
        self,
        addresses: Sequence[str],
        user_header: str = "X-Forwarded-User",
        role_header: str = "X-Forwarded-Role",
        *,
        secret: str = "",
        role: Role = "viewer",
    ) -> None:
        if not addresses or isinstance(addresses, str):
            raise UsageError("Proxy: expected a list with at least one address of the reverse proxy")
        for one in addresses:
            check_proxy(one)
        if not secret and any(is_of_this_machine(one) for one in addresses):
            raise UsageError(
                "Proxy: every program on this machine has the address of a reverse proxy that runs here: give secret="
            )
        self._addresses, self._secret = frozenset(addresses), secret
        self._role: Role = role
        self._user_header, self._role_header = user_header, role_header

    async def user(self, request: HTTPConnection) -> User | None:
        """Return the user that the server names."""
        if _address(request) not in self._addresses:
            return None
        sent = _only(request, _SECRET_HEADER)
        if self._secret and not hmac.compare_digest(sent.encode(), self._secret.encode()):
            return None
        name, given = _only(request, self._user_header), _only(request, self._role_header)
        role = BY_NAME.get(given, self._role)
        return User(name[:100], role) if name else None

    def refused(self, request: HTTPConnection) -> Response:
        """Return 401."""
        return refusal(request.scope, 401, "The reverse proxy sent no user name.")


def authentication(given: object, login_url: str = "") -> Authentication:
    """Return the way that `auth=` names: nothing, a function, or one of this module. Raises UsageError."""
    is_own = hasattr(given, "user") and hasattr(given, "refused")
    if callable(given) and not is_own:
        return AuthFunction(given, login_url)
    if login_url:
        raise UsageError(
            "login_url: only for an auth= function; other ways to log in have a page of their own"
        )
    if given is None:
        return LoopbackOnly()
    if is_own:
        return cast("Authentication", given)
    raise UsageError(
        f"auth: expected a function or an authentication of holdfast.web.auth, got {given!r:.80}"
    )


def _only(request: HTTPConnection, name: str) -> str:
    """Return the value of a header, "" if it is missing, or there is another one, which was not set by the reverse proxy."""
    found = request.headers.getlist(name)
    return found[0].strip() if len(found) == 1 else ""


def _with_token(credentials: Credentials, token: str, request: HTTPConnection) -> User | None:
    try:
        return credentials.with_token(token, real_address(request))
    except TooMany as error:
        request.scope[_BARRED] = error.seconds
        return None


def _mark(found: Credential) -> str:
    """Return what a session keeps of the credential that it was begun with: with another one it ends."""
    return hashlib.sha256(f"session {found.secret}".encode()).hexdigest()[:32]


def _address(request: HTTPConnection) -> str:
    return request.client.host if request.client else ""


def _too_many(request: HTTPConnection) -> Response:
    response = refusal(request.scope, 429, "Too many wrong passwords or tokens; try again later.")
    response.headers["Retry-After"] = f"{request.scope[_BARRED]:.0f}"
    return response
