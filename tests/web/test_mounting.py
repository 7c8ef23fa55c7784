"""The application inside others: Starlette, FastAPI, Django and Flask, below a prefix, and twice in one process."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI
from flask import Flask
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client as WsgiBrowser

from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.web import User, create_app, create_wsgi_app
from holdfast.web.app import Application

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}
PREFIX = "/ops/jobs"
LINKS = re.compile(r'(?:href|src|action|hx-get|hx-post|data-stream|data-worker|data-home)="([^"#][^"]*)"')


def admin(_: object) -> User:
    return User("ada", "admin")


@pytest.fixture
def waiting(client: Client) -> Client:
    client.queues["mail"].put("Mail.send", {"n": 1}, jid="first")
    return client


def closing(ui: Application) -> Any:
    """A lifespan of a host that closes at its end what it mounts."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncGenerator[None]:
        yield
        await ui.close()

    return lifespan


def starlette(ui: Application) -> Any:
    return Starlette(routes=[Mount(PREFIX, ui)], lifespan=closing(ui))


def fastapi(ui: Application) -> Any:
    app = FastAPI(lifespan=closing(ui))
    app.mount(PREFIX, ui)
    return app


def django(ui: Application) -> Any:
    from django.conf import settings
    from django.core.asgi import get_asgi_application

    if not settings.configured:
        settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="s", ALLOWED_HOSTS=["*"])
    others = get_asgi_application()
    return Starlette(routes=[Mount(PREFIX, ui), Mount("/", others)], lifespan=closing(ui))


@contextmanager
def serving(client: Client, mounted: Callable[[Application], Any]) -> Iterator[TestClient]:
    """Serve a mounted application; its host closes it."""
    with TestClient(mounted(create_app(client, auth=admin)), headers=SAME_SITE) as browser:
        yield browser


urlpatterns: list[Any] = []


@pytest.mark.full
@pytest.mark.parametrize("mounted", [starlette, fastapi, django])
def test_every_link_of_a_mounted_application_has_its_prefix(
    waiting: Client, mounted: Callable[[Application], Any]
) -> None:
    with serving(waiting, mounted) as browser:
        for path in (
            "",
            "/queues",
            "/queues/mail",
            "/queues/mail?tab=waiting",
            "/jobs?q=state:waiting",
            "/jobs/first",
            "/workers",
        ):
            found = browser.get(PREFIX + (path or "/"))
            assert found.status_code == 200, (path, found.text[:2000])
            links = LINKS.findall(found.text)
            assert len(links) > 20
            assert [one for one in links if not one.startswith((PREFIX, "https://", "data:"))] == []
        style = re.search(r'href="([^"]+app\.css)"', browser.get(PREFIX + "/").text)
        assert style is not None
        assert browser.get(style[1]).headers["cache-control"].endswith("immutable")
        described = browser.get(PREFIX + "/api/v1/openapi.json").json()
        assert described["servers"] == [{"url": PREFIX + "/api/v1"}]


@pytest.mark.parametrize("mounted", [starlette, fastapi, django])
def test_an_action_of_a_mounted_application_works_and_leads_back(
    waiting: Client, mounted: Callable[[Application], Any]
) -> None:
    with serving(waiting, mounted) as browser:
        form = {"name": "mail", "back": f"{PREFIX}/queues"}
        found = browser.post(f"{PREFIX}/act/queues/pause", data=form, follow_redirects=False)
        assert (found.status_code, found.headers["location"]) == (303, f"{PREFIX}/queues")
        assert waiting.queues["mail"].paused
        away = {"name": "mail", "back": "https://evil.example/"}
        found = browser.post(f"{PREFIX}/act/queues/resume", data=away, follow_redirects=False)
        assert found.headers["location"] == f"{PREFIX}/"


@pytest.fixture
def flask(waiting: Client) -> Iterator[WsgiBrowser]:
    app, ui = Flask(__name__), create_wsgi_app(waiting, auth=admin)
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {PREFIX: ui})  # type: ignore[method-assign]
    yield WsgiBrowser(app)
    asyncio.run_coroutine_threadsafe(ui.app.close(), ui.loop).result(30)


@pytest.mark.full
def test_flask_serves_pages_and_actions_and_their_numbers_are_asked_for(
    waiting: Client, flask: WsgiBrowser
) -> None:
    page = flask.get(f"{PREFIX}/queues/mail", headers=SAME_SITE)
    assert page.status_code == 200
    assert 'data-live="poll"' in page.text
    assert [one for one in LINKS.findall(page.text) if not one.startswith(PREFIX)] == []
    assert flask.get(f"{PREFIX}/live?once=1").json["tick"]["q.mail.waiting"] == 1
    done = flask.post(f"{PREFIX}/act/queues/pause", data={"name": "mail"}, headers=SAME_SITE)
    assert (done.status_code, waiting.queues["mail"].paused) == (303, True)


def test_two_applications_of_two_namespaces_do_not_mix(store: ScratchStore) -> None:
    names = [f"test-{uuid4().hex[:12]}" for _ in range(2)]
    clients = [Client(store.url, namespace=name) for name in names]
    for client, name in zip(clients, names, strict=True):
        client.queues[f"of-{name}"].put("K", {})
    for client, name in zip(clients, names, strict=True):
        with serving(client, starlette) as browser:
            found = browser.get(f"{PREFIX}/api/v1/queues").text
            assert f"of-{name}" in found
            assert sum(f"of-{one}" in found for one in names) == 1
        client.close()
