"""How the application finds out who asks."""

from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any, Protocol, cast

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute

from holdfast.errors import UsageError
from holdfast.web.gate import LOOPBACK, host_of, refusal
from holdfast.web.users import User


class Authentication(Protocol):
    """A way to find the user of a request."""

    routes: tuple[BaseRoute, ...]
    """What it adds to the application, such as a page to log in; reachable without a user."""

    async def user(self, request: HTTPConnection) -> User | None:
        """Return who asks; None for nobody who may."""
        ...

    def refused(self, request: HTTPConnection) -> Response:
        """Return the response to a request of nobody."""
        ...


class LoopbackOnly:
    """Everybody on this machine is an administrator; requests for other hosts, or from other machines, are refused."""

    routes: tuple[BaseRoute, ...] = ()

    def __init__(self, name: str = "local") -> None:
        self._user = User(name, "admin")

    async def user(self, request: HTTPConnection) -> User | None:
        """Return the local user. The host is checked too: a foreign name that resolves to this machine is a trick."""
        address = request.client.host if request.client else ""
        is_local = address in LOOPBACK or address in ("", "testclient")
        return self._user if is_local and host_of(request.headers) in LOOPBACK else None

    def refused(self, request: HTTPConnection) -> Response:
        """Return 403, and what to do."""
        return refusal(
            request.scope,
            403,
            "Without authentication this application is for the machine itself, by the name localhost. Give it auth=….",
        )


class Callback:
    """The user is what a function of the program returns for a request."""

    routes: tuple[BaseRoute, ...] = ()

    def __init__(self, authenticate: Any) -> None:
        self._authenticate = authenticate

    async def user(self, request: HTTPConnection) -> User | None:
        """Return what the function returns, awaited if it is async."""
        found = self._authenticate(request)
        if isawaitable(found):
            found = await cast("Awaitable[User | None]", found)
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
