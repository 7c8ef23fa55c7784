"""The application below a prefix: in FastAPI, beside Django, in Flask, and behind a server that cuts the prefix off."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from browsing import Visits, expect, go, served
from flask import Flask
from journeys import follow_the_numbers, keep_ten_tabs_live, pause_for_a_reason, retry_one
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from test_mounting import PREFIX, admin, django, fastapi
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import make_server

from holdfast import Client
from holdfast.web import create_app, create_wsgi_app
from web_process import serving

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
Host = Callable[[Client, Path], AbstractContextManager[str]]


def in_fastapi(client: Client, _: Path) -> AbstractContextManager[str]:
    return served(fastapi(create_app(client, auth=admin)))


def beside_django(client: Client, _: Path) -> AbstractContextManager[str]:
    return served(django(create_app(client, auth=admin)))


@contextmanager
def in_flask(client: Client, _: Path) -> Iterator[str]:
    app, ui = Flask(__name__), create_wsgi_app(client, auth=admin)
    server = make_server("127.0.0.1", 0, DispatcherMiddleware(app.wsgi_app, {PREFIX: ui}), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join(30)
        server.server_close()
        asyncio.run_coroutine_threadsafe(ui.app.close(), ui.loop).result(30)


SECRET = "s" * 32


@contextmanager
def behind_a_server(client: Client, folder: Path) -> Iterator[str]:
    """`holdfast web` behind a server that logs users in and cuts off the prefix, as nginx does."""
    secret = folder / "proxy.secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    words = ("--auth", "proxy", "--proxy", "127.0.0.1", "--proxy-secret-file", str(secret))
    store, namespace = str(client.store_url), client.settings.namespace
    with serving(store, namespace, folder / "web", *words) as (backend, _), served(proxy(backend)) as base:
        yield base


def proxy(backend: str) -> Starlette:
    browser = httpx.AsyncClient(base_url=backend, timeout=None, limits=httpx.Limits(max_connections=100))

    async def forward(request: Request) -> StreamingResponse:
        headers = {name: value for name, value in request.headers.items() if name != "connection"}
        headers |= {"x-forwarded-user": "ada", "x-forwarded-role": "admin", "x-holdfast-secret": SECRET}
        headers |= {"x-forwarded-proto": "http", "x-forwarded-prefix": PREFIX}
        target = request.scope["raw_path"].split(b"?")[0].removeprefix(PREFIX.encode())
        url = httpx.URL(backend).copy_with(raw_path=target + b"?" + request.scope["query_string"])
        sent = browser.build_request(request.method, url, headers=headers, content=await request.body())
        found = await browser.send(sent, stream=True)
        answer = StreamingResponse(
            found.aiter_raw(), found.status_code, background=BackgroundTask(found.aclose)
        )
        answer.raw_headers = [
            (name.lower(), value) for name, value in found.headers.raw if name.lower() != b"connection"
        ]
        return answer

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        yield
        await browser.aclose()

    methods = ["GET", "POST"]
    return Starlette(routes=[Route(PREFIX + "/{path:path}", forward, methods=methods)], lifespan=lifespan)


@pytest.fixture(params=[in_fastapi, beside_django, in_flask, behind_a_server])
def mounted(
    request: pytest.FixtureRequest, client: Client, tmp_path: Path, visit: Visits
) -> Iterator[Visits]:
    with request.param(client, tmp_path) as host:
        visit.base = host.rstrip("/") + PREFIX + "/"
        yield visit
        visit.close()


@pytest.fixture
def address() -> str:
    """No application of its own: each host has one."""
    return ""


@pytest.mark.parametrize("journey", [follow_the_numbers, pause_for_a_reason, retry_one, keep_ten_tabs_live])
def test_a_mounted_application_is_used_as_any_other(
    mounted: Visits, client: Client, journey: Callable[[Visits, Client], Any]
) -> None:
    journey(mounted, client)


def test_every_page_and_link_of_a_mounted_application_is_below_its_prefix(
    mounted: Visits, client: Client
) -> None:
    client.queues["a/b %2F"].put("jobs.Send", {})
    page = mounted()
    seen, left = set(), [mounted.base]
    origin = mounted.base.removesuffix(PREFIX + "/")
    while left and len(seen) < 40:
        place = left.pop(0)
        if place in seen or "/api/v1/" in place:
            continue
        seen.add(place)
        assert go(page, place).status == 200, place
        for link in page.locator("a[href]").evaluate_all("(all) => all.map((one) => one.href.split('#')[0])"):
            assert link.startswith((origin + PREFIX, "https://")), (place, link)
            if link.startswith(origin) and "?" not in link:
                left.append(link)
    assert len(seen) > 18
    go(page, mounted.base + "queues")
    page.locator("#queue").get_by_role("link", name="a/b %2F", exact=True).click()
    expect(page.locator("h1")).to_have_text("a/b %2F")
