"""The application: `create_app` puts its parts together. Each part is made, and its packages are imported, only if it is served."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Unpack

from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.text import one_line
from holdfast.web.auth import Authentication, authentication
from holdfast.web.auth_function import check_login_url
from holdfast.web.error_pages import handle_errors
from holdfast.web.gate import Gate, problem
from holdfast.web.gateway import Gateway
from holdfast.web.namespaces import Namespaces
from holdfast.web.options import AppOptions, Options, checked_options
from holdfast.web.parts import PARTS, Part, part_of, place_of
from holdfast.web.site import Site
from holdfast.web.topic_endpoints import topic_routes


def create_app(client: object = None, **options: Unpack[AppOptions]) -> "Application":
    """Return the web application as an ASGI application, to be run or mounted below any path.

    `client` is a client, whose store and namespace are used, a URL, or nothing: then HOLDFAST_URL, REDIS_URL or the embedded
    store. For the options see `holdfast.web.options.Options`. Nothing is connected yet. Raises UsageError.
    """
    checked = checked_options(options)
    check_login_url(checked.login_url)
    return Application(
        Namespaces(client, checked.namespaces), checked, authentication(checked.auth, checked.login_url)
    )


class Application:
    """The web application. A host that does not report its end to what it mounts calls `close` in its own shutdown."""

    def __init__(self, namespaces: Namespaces, options: Options, auth: Authentication) -> None:
        self._namespaces, self._parts = namespaces, frozenset(options.parts)
        self._site = _site(namespaces, options) if self._parts & {"pages", "api"} else None
        self._gateway = Gateway(namespaces, options, auth) if "gateway" in self._parts else None
        app = Starlette(routes=self._routes(options, auth), lifespan=self._lifespan)
        handle_errors(app)
        self._app = Gate(app, options)
        off: ASGIApp = Gate(_is_off, options)
        self._by_part: dict[Part, ASGIApp] = {
            part: self._app if part in self._parts else off for part in PARTS
        }
        if self._gateway is not None:
            self._by_part["gateway"] = self._gateway

    def _routes(self, options: Options, auth: Authentication) -> list[BaseRoute]:
        found: list[BaseRoute] = []
        if "topics" in self._parts:
            found += topic_routes(self._namespaces, options, auth)
        if self._site is not None:
            from holdfast.web.faces import Faces

            found += Faces(self._site, auth).routes()
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._by_part[part_of(place_of(scope))] if scope["type"] == "http" else self._app
        await app(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncGenerator[None]:
        yield
        await self.close()

    def end_waits(self) -> None:
        """End the requests that wait for jobs, with no jobs, so that a server can stop. New ones do not wait."""
        if self._gateway is not None:
            self._gateway.end_waits()

    def share_connections(self, most: int) -> None:
        """Limit the requests that wait for jobs, and the streams, to a part of the connections that a server may have."""
        if self._gateway is not None:
            self._gateway.limit_waits(most // 2)
        if self._site is not None:
            self._site.hub.limit_streams(most // 4)

    async def close(self) -> None:
        """End the background work and close the connections, in the event loop in which it served."""
        if self._gateway is not None:
            await self._gateway.close()
        if self._site is not None:
            await self._site.close()
        await self._namespaces.close()


def _site(namespaces: Namespaces, options: Options) -> Site:
    from holdfast.web import pages

    site = Site(namespaces.own, options, pages.TABLE)
    if "pages" in options.parts:
        _ = site.pages  # a missing package is noticed here
    return site


async def _is_off(scope: Scope, receive: Receive, send: Send) -> None:
    sentence = f"Not found: {one_line(place_of(scope))[:200]}. This part of holdfast is not served here."
    await problem(scope, 404, sentence, message=sentence)(scope, receive, send)


def create_wsgi_app(client: object = None, **options: Unpack[AppOptions]) -> Any:
    """Return the same as a WSGI application, for Flask, or Django under WSGI. Raises UsageError.

    Pages ask for new numbers every few seconds (`live="poll"`), because each open stream would keep a thread of the server.
    """
    from holdfast.web.wsgi import WsgiApplication

    given: AppOptions = {"live": "poll", **options}
    return WsgiApplication(create_app(client, **given))
