"""How the application finds out who asks. `create_app(auth=…)` takes one of these, or a function of a request.

Nothing: this machine only. `TokenLink`: whoever has the link that `holdfast web` prints. `Passwords`, `Tokens`: a users file.
`Proxy`: a server in front has logged the user in. A function returns a `User`, or None for nobody.
"""

import base64
import binascii
from collections.abc import Awaitable, Sequence
from inspect import isawaitable
from typing import Any, Protocol, cast

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.errors import UsageError
from holdfast.web.credentials import TRY_SECONDS, Credentials
from holdfast.web.front_pages import front_page, login_page
from holdfast.web.gate import LOOPBACK, host_of, refusal, wants_json
from holdfast.web.sessions import Sessions
from holdfast.web.users import BY_NAME, Role, User
from holdfast.web.views import read_form


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
    """Return whether a request came from this machine to it by a name of its own.

    The name matters: a page of another site can make its own name resolve to this machine.
    """
    address = request.client.host if request.client else ""
    return address in (*LOOPBACK, "") and host_of(request.headers) in LOOPBACK


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
        sentence = "Without authentication this application is for this machine only, as localhost. Start it with --auth."
        return refusal(request.scope, 403, sentence)


class TokenLink:
    """Who opens the link `/login?token=…` once gets a session, as administrator; for this machine only."""

    def __init__(self, sessions: Sessions, name: str = "local") -> None:
        self._sessions, self._user = sessions, User(name, "admin")
        self.routes: Sequence[BaseRoute] = (Route("/login", self._log_in),)

    async def user(self, request: HTTPConnection) -> User | None:
        """Return the user of the session."""
        return self._sessions.user(request) if is_local(request) else None

    async def _log_in(self, request: Request) -> Response:
        if not is_local(request) or not self._sessions.take_link(request.query_params.get("token", "")):
            return self.refused(request)
        response = RedirectResponse(request.scope.get("root_path", "") + "/", 303)
        self._sessions.log_in(request, response, self._user)
        return response

    def refused(self, request: HTTPConnection) -> Response:
        """Return 401, and where to get a link."""
        sentence = "This link was used, or is too old, or there is none. holdfast web -S prints a new one."
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
            return self._credentials.with_token(text.strip(), _address(request))
        if kind.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(text.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeError):
            return None
        return self._credentials.with_password(name, password, _address(request))

    def refused(self, request: HTTPConnection) -> Response:
        """Return 401, or 429 after too many failures."""
        if self._credentials.is_barred(_address(request)):
            return _too_many(request)
        response = refusal(request.scope, 401, "A name and a password are needed.")
        response.headers["WWW-Authenticate"] = 'Basic realm="holdfast", charset="UTF-8"'
        return response


class Tokens:
    """Long random tokens: programs send them (`Authorization: Bearer`), people trade one for a session at `/login`."""

    def __init__(self, credentials: Credentials, sessions: Sessions) -> None:
        self._credentials, self._sessions = credentials, sessions
        self.routes: Sequence[BaseRoute] = (
            Route("/login", self._ask),
            Route("/login", self._log_in, methods=["POST"]),
        )

    async def user(self, request: HTTPConnection) -> User | None:
        """Return whom the token, or the session, belongs to."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._credentials.with_token(token.strip(), _address(request))
        return self._sessions.user(request)

    async def _ask(self, request: Request) -> Response:
        return login_page(request.scope)

    async def _log_in(self, request: Request) -> Response:
        form = await read_form(request)
        user = self._credentials.with_token(str(form.get("token", "")), _address(request))
        if user is None:
            return (
                self.refused(request)
                if self._credentials.is_barred(_address(request))
                else login_page(request.scope, "No such token.")
            )
        if not user.may("viewer"):  # a session would not have its limits
            return login_page(request.scope, "This token is one of a program: it opens no pages.")
        response = RedirectResponse(request.scope.get("root_path", "") + "/", 303)
        self._sessions.log_in(request, response, user)
        return response

    def refused(self, request: HTTPConnection) -> Response:
        """Return 401 to programs, the page to log in to people, 429 after too many failures."""
        if self._credentials.is_barred(_address(request)):
            return _too_many(request)
        if wants_json(request.scope):
            was_sent = "authorization" in request.headers
            sentence = "This token is not known, or has ended." if was_sent else "A bearer token is needed."
            response = refusal(request.scope, 401, sentence)
            response.headers["WWW-Authenticate"] = 'Bearer realm="holdfast"'
            return response
        return RedirectResponse(request.scope.get("root_path", "") + "/login", 303)


class Proxy:
    """A server in front has logged the user in, and names user and role in headers; only its addresses are believed.

    `secret`, if given, has to be in the header `X-Holdfast-Secret` too. A user without a role gets `role`.
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
            raise UsageError("Proxy: expected a list with at least one address of the server in front")
        self._addresses, self._secret = frozenset(addresses), secret
        self._role: Role = role
        self._user_header, self._role_header = user_header, role_header

    async def user(self, request: HTTPConnection) -> User | None:
        """Return the user that the server names."""
        if _address(request) not in self._addresses:
            return None
        if self._secret and request.headers.get("x-holdfast-secret", "") != self._secret:
            return None
        name = request.headers.get(self._user_header, "").strip()
        given = request.headers.get(self._role_header, "").strip()
        role = BY_NAME.get(given, self._role)
        return User(name[:100], role) if name else None

    def refused(self, request: HTTPConnection) -> Response:
        """Return 401."""
        return refusal(request.scope, 401, "The server in front of this application named no user.")


class Callback:
    """The user is what a function of the program returns for a request."""

    routes: Sequence[BaseRoute] = ()

    def __init__(self, authenticate: Any) -> None:
        self._authenticate = authenticate

    async def user(self, request: HTTPConnection) -> User | None:
        """Return what the function returns, awaited if it is async. Raises UsageError for anything but a User or None."""
        found = self._authenticate(request)
        if isawaitable(found):
            found = await cast("Awaitable[object]", found)
        if found is not None and not isinstance(found, User):
            raise UsageError(f"auth: expected a User or None, got {type(found).__name__}")
        return found

    def refused(self, request: HTTPConnection) -> Response:
        """Return 403."""
        return refusal(request.scope, 403, "You may not use this application.")


def authentication(given: object) -> Authentication:
    """Return the way that `auth=` names: nothing, a function, or one of this module. Raises UsageError."""
    if given is None:
        return LoopbackOnly()
    if hasattr(given, "user") and hasattr(given, "refused"):
        return cast("Authentication", given)
    if callable(given):
        return Callback(given)
    raise UsageError(
        f"auth: expected a function or an authentication of holdfast.web.auth, got {given!r:.80}"
    )


def _address(request: HTTPConnection) -> str:
    return request.client.host if request.client else ""


def _too_many(request: HTTPConnection) -> Response:
    response = refusal(
        request.scope, 429, "Too many wrong passwords or tokens came from this address; wait a minute."
    )
    response.headers["Retry-After"] = f"{TRY_SECONDS:.0f}"
    return response
