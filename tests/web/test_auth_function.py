"""`auth=` that is a function: in a thread or awaited, what it raises, how long it takes, and the way to log in."""

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import Visits, expect, served
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from test_mounting import closing
from test_wsgi_servers import called, environ

from holdfast import Client, UsageError
from holdfast.web import User, auth_function, create_app, create_wsgi_app

Browse = Callable[..., TestClient]
ADA = User("ada", "operator")
LOGIN = "/accounts/login/"
PREFIX = "/ops/jobs"


def of(browser: TestClient, path: str, **headers: str) -> Any:
    return browser.get(path, headers=headers, follow_redirects=False)


class Seen:
    """The threads in which functions were called."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def plain(self, _: HTTPConnection) -> User:
        self.threads.append(threading.current_thread())
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return ADA

    async def in_loop(self, _: HTTPConnection) -> User:
        self.threads.append(threading.current_thread())
        await asyncio.sleep(0)
        return ADA

    async def __call__(self, request: HTTPConnection) -> User:
        return await self.in_loop(request)


# Where it runs.


@pytest.mark.full
@pytest.mark.parametrize("made", [lambda it: it.plain, lambda it: partial(it.plain)])
def test_a_plain_function_runs_in_a_thread_without_an_event_loop(browse: Browse, made: Any) -> None:
    seen = Seen()
    assert browse(auth=made(seen)).get("/api/v1/queues").status_code == 200
    [thread] = seen.threads
    assert (thread.name, thread.daemon) == ("holdfast-auth", True)


@pytest.mark.full
@pytest.mark.parametrize(
    "made",
    [
        lambda it: it.in_loop,
        lambda it: partial(it.in_loop),
        lambda it: it,
        lambda it: lambda request: it.in_loop(request),
    ],
)
def test_an_async_function_an_async_object_and_a_returned_awaitable_are_awaited(
    browse: Browse, made: Any
) -> None:
    seen = Seen()
    assert browse(auth=made(seen)).get("/api/v1/queues").status_code == 200
    assert [thread.name for thread in seen.threads] != ["holdfast-auth"]


@pytest.mark.full
def test_a_function_that_waits_holds_up_no_other_request(browse: Browse) -> None:
    ends = threading.Event()

    def auth(request: HTTPConnection) -> User:
        assert request.headers.get("x-who") != "slow" or ends.wait(30)
        return ADA

    browser = browse(auth=auth)
    slow: list[int] = []
    waiting = threading.Thread(
        target=lambda: slow.append(of(browser, "/queues", **{"X-Who": "slow"}).status_code)
    )
    waiting.start()
    assert of(browser, "/queues").status_code == 200
    assert slow == []
    ends.set()
    waiting.join(30)
    assert slow == [200]


@pytest.mark.full
def test_a_function_that_never_returns_has_a_few_threads_and_a_deadline(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(auth_function, "_THREADS", 2)
    monkeypatch.setattr(auth_function, "_LINE", 1)
    ends, calls = threading.Event(), list[int]()

    def auth(_: HTTPConnection) -> None:
        calls.append(1)
        ends.wait(60)

    way = auth_function.AuthFunction(auth, seconds=0.2)
    with TestClient(create_app(client, auth=way)) as browser:
        found = [of(browser, "/queues") for _ in range(5)]
        program = browser.post("/v1/info")
    assert [one.status_code for one in (*found, program)] == [503] * 6
    assert len(calls) == 2
    assert "text/html" in found[0].headers["content-type"]
    request = program.json()["request"]
    assert request in caplog.text
    assert "did not return within 0.2 s" in caplog.text
    ends.set()


@pytest.mark.full
def test_an_async_function_that_refuses_to_be_cancelled_has_a_deadline_too(client: Client) -> None:
    async def auth(_: HTTPConnection) -> User:
        for _ in range(100):
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                continue
            break
        return ADA

    with TestClient(create_app(client, auth=auth_function.AuthFunction(auth, seconds=0.1))) as browser:
        assert of(browser, "/queues").status_code == 503


# What it raises.


def raises(_: HTTPConnection) -> User:
    raise ValueError("the password is hunter2")


async def raises_in_loop(request: HTTPConnection) -> User:
    return raises(request)


def leaves(_: HTTPConnection) -> User:
    raise SystemExit(1)


def stops(_: HTTPConnection) -> User:
    raise StopIteration


def returns_a_name(_: HTTPConnection) -> Any:
    return "hunter2"


@pytest.mark.parametrize("auth", [raises, raises_in_loop, leaves, stops, returns_a_name])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/queues"),
        ("GET", "/api/v1/queues"),
        ("GET", "/live?once=1"),
        ("POST", "/act/queues/pause"),
        ("POST", "/v1/info"),
        ("GET", "/ready/mail"),
    ],
)
def test_what_it_raises_is_logged_once_and_is_a_500_with_the_id_of_the_request(
    client: Client, caplog: pytest.LogCaptureFixture, auth: Any, method: str, path: str
) -> None:
    with TestClient(create_app(client, auth=auth)) as browser:  # which raises what the application raises
        found = browser.request(method, path, headers={"Sec-Fetch-Site": "same-origin"})
    assert found.status_code == 500
    assert "hunter2" not in found.text
    assert "Traceback" not in found.text
    logged = [one for one in caplog.records if one.levelno >= logging.ERROR]
    [line] = logged
    assert line.exc_info
    request = line.getMessage().split()[1].rstrip(":")
    assert request in found.text
    is_page = path in ("/queues", "/act/queues/pause", "/live?once=1")
    assert ("<h1>" in found.text) == is_page


def test_an_http_exception_of_it_is_the_response(browse: Browse, caplog: pytest.LogCaptureFixture) -> None:
    def auth(_: HTTPConnection) -> User:
        raise HTTPException(403, "Ask the operations team for access.")

    browser = browse(auth=auth, login_url=LOGIN)
    page, api, gateway = of(browser, "/queues"), of(browser, "/api/v1/queues"), browser.post("/v1/info")
    assert {one.status_code for one in (page, api, gateway)} == {403}
    assert all("Ask the operations team" in one.text for one in (page, api, gateway))
    assert "<h1>" in page.text
    assert api.json()["type"] == "holdfast:forbidden"
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


# The way to log in.


def no_user(_: HTTPConnection) -> None:
    return None


@pytest.mark.full
@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("/", "/"),
        ("/queues", "/queues"),
        ("/jobs?q=state:failed+queue:a%26b&after=1", "/jobs?q=state:failed+queue:a%26b&after=1"),
        ("/queues/a%2Fb", "/queues/a%2Fb"),
        ("//evil.example/x", "/evil.example/x"),
        ("/%5Cevil.example", "/%5Cevil.example"),
        ("/%2Fevil.example", None),
    ],
)
def test_people_without_a_user_are_sent_to_log_in_and_from_there_to_the_page_that_they_wanted(
    browse: Browse, asked: str, wanted: str | None
) -> None:
    found = of(browse(auth=no_user, login_url=LOGIN), "http://testserver" + asked)
    assert found.status_code == 302
    place = urlsplit(found.headers["location"])
    assert (place.scheme, place.netloc, place.path) == ("", "", LOGIN)
    [given] = parse_qs(place.query)["next"]
    assert given == (wanted or given)
    assert given.startswith("/")
    assert not given.startswith(("//", "/\\"))


def test_a_place_that_is_too_long_leads_back_to_its_page(browse: Browse) -> None:
    found = of(browse(auth=no_user, login_url=LOGIN), "/jobs?q=" + "x" * 3000)
    assert found.headers["location"] == f"{LOGIN}?next=/jobs"


def test_a_login_url_with_a_query_or_on_another_host_keeps_what_it_has(browse: Browse) -> None:
    found = of(browse(auth=no_user, login_url="https://id.example/in?app=jobs#top"), "/queues")
    assert found.headers["location"] == "https://id.example/in?app=jobs&next=/queues#top"


@pytest.mark.full
def test_programs_the_stream_and_actions_without_a_user_get_401_with_the_way_to_log_in(
    browse: Browse,
) -> None:
    browser = browse(auth=no_user, login_url=LOGIN)
    for found in (
        of(browser, "/api/v1/queues"),
        of(browser, "/queues", Accept="application/json"),
        of(browser, "/queues?fragment=rows", **{"HX-Request": "true"}),
        of(browser, "/live"),
        of(browser, "/live?once=1"),
        browser.post("/api/v1/queues/pause", json={"name": ["q"]}),
        browser.post("/v1/info"),
        of(browser, "/ready/mail"),
    ):
        assert (found.status_code, found.json()["login_url"]) == (401, LOGIN), found.url
        assert found.json()["type"] == "holdfast:unauthorized"
    for headers in ({}, {"HX-Request": "true"}):
        found = browser.post("/act/queues/pause", data={"name": "q"}, headers=headers)
        assert found.status_code == 401
        assert f'href="{LOGIN}?next=/"' in found.text


def test_without_a_login_url_a_request_without_a_user_is_refused(browse: Browse) -> None:
    browser = browse(auth=no_user)
    assert [of(browser, path).status_code for path in ("/queues", "/api/v1/queues", "/live")] == [403] * 3


@pytest.mark.parametrize(
    "wrong",
    ["login", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "https:///x", "/a b", "/a\n", 5],
)
def test_a_login_url_that_is_none_is_refused(client: Client, wrong: Any) -> None:
    with pytest.raises(UsageError, match="login_url"):
        create_app(client, auth=no_user, login_url=wrong)


def test_a_login_url_without_a_function_is_refused(client: Client) -> None:
    with pytest.raises(UsageError, match="login_url: only for an auth= function"):
        create_app(client, login_url=LOGIN)


# Inside others.


def host(kind: str, client: Client) -> Any:
    """An application with sessions of its own, in which the pages lie below a prefix."""

    def auth(request: HTTPConnection) -> User | None:
        name = request.session.get("name")
        return User(name, "operator") if name else None

    async def log_in(request: Any) -> PlainTextResponse:
        request.session["name"] = "ada"
        return PlainTextResponse(f"now go to {request.query_params['next']}")

    ui = create_app(client, auth=auth, login_url="/in")
    if kind == "starlette":
        routes = [Route("/in", log_in), Mount(PREFIX, ui)]
        return Starlette(
            routes=routes, middleware=[Middleware(SessionMiddleware, secret_key="s")], lifespan=closing(ui)
        )
    app = FastAPI(lifespan=closing(ui))
    app.add_middleware(SessionMiddleware, secret_key="s")
    app.add_route("/in", log_in)
    app.mount(PREFIX, ui)
    return app


@pytest.mark.full
@pytest.mark.parametrize("kind", ["starlette", "fastapi"])
def test_mounted_people_log_in_at_their_host_and_come_back(client: Client, kind: str) -> None:
    client.queues["q"].put("K", {})
    with TestClient(host(kind, client), headers={"Sec-Fetch-Site": "same-origin"}) as browser:
        assert browser.get(f"{PREFIX}/queues?sort=-failed").text == f"now go to {PREFIX}/queues?sort=-failed"
        page = browser.get(f"{PREFIX}/queues?sort=-failed")
        assert (page.status_code, page.url.path) == (200, f"{PREFIX}/queues")
        done = browser.post(f"{PREFIX}/act/queues/pause", data={"name": "q"}, follow_redirects=False)
        assert (done.status_code, client.queues["q"].paused) == (303, True)


def test_under_wsgi_people_are_sent_to_log_in_too(client: Client) -> None:
    ui = create_wsgi_app(client, auth=no_user, login_url=LOGIN)
    heads: list[Any] = []
    asked = environ(SCRIPT_NAME=PREFIX, PATH_INFO="/queues", QUERY_STRING="sort=name")
    list(ui(asked, lambda *given: heads.append(given)))
    status, headers, *_ = heads[0]
    assert status.startswith("302")
    assert dict(headers)["location"] == f"{LOGIN}?next={PREFIX}/queues%3Fsort%3Dname"
    assert called(ui, environ())[1]["login_url"] == LOGIN


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")
def test_an_action_after_the_session_has_ended_offers_to_log_in(browser: Any, client: Client) -> None:
    client.queues["q"].put("K", {})
    session = {"user": ADA}
    app = create_app(client, auth=lambda _: session.get("user"), login_url="/health?")
    with served(app) as base:
        visits = Visits(browser, base)
        visits.expect("401")
        page = visits("queues/q")
        session.clear()
        page.get_by_role("button", name="Pause").first.click()
        page.locator("dialog[open] .btn.main").click()
        link = page.locator(".toast").get_by_role("link", name="Log in")
        expect(link).to_have_attribute("href", "/health?next=/")
        visits.close()
    assert not client.queues["q"].paused
