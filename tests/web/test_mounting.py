"""The application inside others: Starlette, FastAPI, Django and Flask, below a prefix, and twice in one process."""

import re
from collections.abc import Callable
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

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}
PREFIX = "/ops/jobs"
LINKS = re.compile(r'(?:href|src|action|hx-get|hx-post|data-stream|data-worker|data-home)="([^"#][^"]*)"')


def admin(_: object) -> User:
    return User("ada", "admin")


@pytest.fixture
def waiting(client: Client) -> Client:
    client.queues["mail"].put("Mail.send", {"n": 1}, jid="first")
    return client


def starlette(client: Client) -> Any:
    return Starlette(routes=[Mount(PREFIX, create_app(client, auth=admin))])


def fastapi(client: Client) -> Any:
    app = FastAPI()
    app.mount(PREFIX, create_app(client, auth=admin))
    return app


def django(client: Client) -> Any:
    from django.conf import settings
    from django.core.asgi import get_asgi_application

    if not settings.configured:
        settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="s", ALLOWED_HOSTS=["*"])
    others = get_asgi_application()
    return Starlette(routes=[Mount(PREFIX, create_app(client, auth=admin)), Mount("/", others)])


urlpatterns: list[Any] = []


@pytest.mark.parametrize("mounted", [starlette, fastapi, django])
def test_every_link_of_a_mounted_application_has_its_prefix(
    waiting: Client, mounted: Callable[[Client], Any]
) -> None:
    with TestClient(mounted(waiting), headers=SAME_SITE) as browser:
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


@pytest.mark.parametrize("mounted", [starlette, fastapi, django])
def test_an_action_of_a_mounted_application_works_and_leads_back(
    waiting: Client, mounted: Callable[[Client], Any]
) -> None:
    with TestClient(mounted(waiting), headers=SAME_SITE) as browser:
        form = {"name": "mail", "back": f"{PREFIX}/queues"}
        found = browser.post(f"{PREFIX}/act/queues/pause", data=form, follow_redirects=False)
        assert (found.status_code, found.headers["location"]) == (303, f"{PREFIX}/queues")
        assert waiting.queues["mail"].paused
        away = {"name": "mail", "back": "https://evil.example/"}
        found = browser.post(f"{PREFIX}/act/queues/resume", data=away, follow_redirects=False)
        assert found.headers["location"] == f"{PREFIX}/"


@pytest.fixture
def flask(waiting: Client) -> WsgiBrowser:
    app = Flask(__name__)
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {PREFIX: create_wsgi_app(waiting, auth=admin)})  # type: ignore[method-assign]
    return WsgiBrowser(app)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
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
    both = [create_app(client, auth=admin) for client in clients]
    for name, app in zip(names, both, strict=True):
        with TestClient(Starlette(routes=[Mount(f"/{name}", app)])) as browser:
            found = browser.get(f"/{name}/api/v1/queues").json()["queues"]["rows"]
            assert [one["name"] for one in found] == [f"of-{name}"]
    for client in clients:
        client.close()
