"""Pages of other sites, frames, names that resolve to this machine, and addresses without TLS, in a real browser."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from browsing import Visits, chromium, expect, is_same, put, served, stay, toast
from playwright.sync_api import Browser
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import Client
from holdfast.web import User, auth, create_app
from holdfast.web.credentials import Credentials, hash_password, parsed_users
from holdfast.web.sessions import Sessions
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
NAMED = "--host-resolver-rules=MAP *.example 127.0.0.1"
REPORTS = r"status of 40[0-9]|Failed to load resource|blocked|frame-ancestors|X-Frame-Options|Refused to|violates|Ignored call to"
"""What the browser reports of requests that are refused."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for which each name that ends with `.example` is this machine."""
    with chromium(NAMED, "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable") as found:
        yield found


def is_longer(found: Sequence[object], than: int) -> bool:
    return len(found) > than


def with_passwords() -> auth.Passwords:
    return auth.Passwords(Credentials(parsed_users(f"ada:admin:{hash_password('correct horse')}", "users")))


class Recorder:
    """Notes the status of each response to a request for a pause."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.statuses: list[int] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["path"].endswith("/queues/pause"):
                self.statuses.append(message["status"])
            await send(message)

        await self._app(scope, receive, sending)


TRICKS = {
    "a form": '<form method="post" action="{base}act/queues/pause"><input name="name" value="mail"></form><script>document.forms[0].submit()</script>',
    "a form of plain text": """<form method="post" enctype="text/plain" action="{base}api/v1/queues/pause">
      <input name='{{"name": ["mail"], "reason": "' value='"}}'></form><script>document.forms[0].submit()</script>""",
    "a fetch of a form": "<script>fetch('{base}act/queues/pause', {{method: 'POST', mode: 'no-cors', credentials: 'include', body: new URLSearchParams({{name: 'mail'}})}}).catch(() => 0)</script>",
    "a fetch of JSON": "<script>fetch('{base}api/v1/queues/pause', {{method: 'POST', credentials: 'include', headers: {{'Content-Type': 'application/json'}}, body: JSON.stringify({{name: ['mail']}})}}).catch(() => 0)</script>",
    "a beacon": "<script>navigator.sendBeacon('{base}api/v1/queues/pause', new Blob(['{{\"name\": [\"mail\"]}}'], {{type: 'text/plain'}}))</script>",
    "a picture": '<img src="{base}act/queues/pause?name=mail">',
}


def foreign(base: str) -> Any:
    """Return another site, whose pages try what they can to pause the queue mail."""

    async def page(request: Request) -> HTMLResponse:
        if "frame" in request.query_params:
            return HTMLResponse(f'<link rel="icon" href="data:,"><p>theirs</p><iframe src="{base}"></iframe>')
        return HTMLResponse(TRICKS[request.query_params["trick"]].format(base=base))

    return served(Starlette(routes=[Route("/", page)]))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])  # another site, and another origin of this one
@pytest.mark.parametrize("make_auth", [lambda: None, with_passwords], ids=["none", "basic"])
def test_what_a_page_of_another_origin_sends_changes_nothing(
    visit: Visits, client: Client, host: str, make_auth: Callable[[], Any]
) -> None:
    put(client, 1)
    visit.expect(REPORTS)
    recorder = Recorder(create_app(client, auth=make_auth()))
    with served(recorder) as base, foreign(base) as theirs:
        origin = base.rstrip("/")
        context = visit.context(http_credentials={"username": "ada", "password": "correct horse", "origin": origin})  # fmt: skip
        own = visit("queues", base=base, context=context)
        expect(own.locator("#queue tbody tr")).to_have_count(1)
        for name in TRICKS:
            before, page = len(recorder.statuses), context.new_page()
            page.goto(f"{theirs.replace('127.0.0.1', host)}?trick={name}")
            until(partial(is_longer, recorder.statuses, before), f"{name} reaches the application")
            assert set(recorder.statuses[before:]) <= {401, 403, 405}, name
            assert not client.queues["mail"].paused, name
            page.close()
        own.get_by_role("button", name="Pause mail").click()
        toast(own, "mail")
        assert client.queues["mail"].paused  # the same from its own page
        context.close()


def test_pages_are_shown_in_frames_of_those_only_whom_the_application_names(
    visit: Visits, client: Client
) -> None:
    put(client, 1)
    visit.expect(REPORTS)
    with served(create_app(client)) as base, foreign(base) as theirs:
        page = visit("?frame=1", base=theirs)
        expect(page.locator("p")).to_have_text("theirs")
        expect(page.frame_locator("iframe").locator("h1", has_text="Overview")).to_have_count(0)
        assert not page.frames[-1].url.startswith(base)
        with (
            served(create_app(client, frame_ancestors=[theirs.rstrip("/")])) as framed,
            foreign(framed) as other,
        ):
            page = visit("?frame=1", base=other)  # not the one that is named
            expect(page.frame_locator("iframe").locator("h1", has_text="Overview")).to_have_count(0)
            assert not page.frames[-1].url.startswith(framed)


def test_a_page_that_the_application_names_may_show_it_in_a_frame(visit: Visits, client: Client) -> None:
    put(client, 1)
    named = create_app(client, frame_ancestors=["http://127.0.0.1:*"])
    with served(named) as base, foreign(base) as theirs:
        page = visit("?frame=1", base=theirs)
        expect(page.frame_locator("iframe").locator("h1")).to_have_text("Overview")
        page.context.close()


@pytest.mark.parametrize("mode", ["token", "none"])
def test_under_a_foreign_name_that_resolves_to_this_machine_nothing_is_served(
    visit: Visits, client: Client, mode: str
) -> None:
    put(client, 1)
    visit.expect(REPORTS)
    sessions = Sessions(b"s" * 32)
    link = f"login?token={sessions.link_token()}"
    with served(create_app(client, auth=auth.TokenLink(sessions) if mode == "token" else None)) as base:
        evil = base.replace("127.0.0.1", "evil.example")
        context = visit.context()
        page = context.new_page()
        for path in ("", "queues", "api/v1/queues", "live?once=1", link if mode == "token" else "about"):
            found = page.goto(evil + path)
            assert found is not None
            assert found.status in (401, 403), path
            assert "mail" not in page.content(), path
        script = "(path) => fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{\"name\": [\"mail\"]}'}).then((response) => response.status)"
        assert page.evaluate(script, "/api/v1/queues/pause") in (401, 403)
        assert not client.queues["mail"].paused
        own = visit(link if mode == "token" else "", base=base, context=context)  # the link is not used up
        expect(own.locator("h1")).to_have_text("Overview")
        assert page.evaluate("fetch('/api/v1/queues').then((response) => response.status)") in (401, 403)
        context.close()


def admin(_: HTTPConnection) -> User:
    return User("ada", "admin")


def test_copying_and_live_numbers_work_at_an_address_of_the_network_without_tls(
    visit: Visits, client: Client
) -> None:
    [jid] = put(client, 1)
    with served(create_app(client, auth=admin, hosts=["jobs.example"])) as base:
        page = visit(f"jobs/{jid}", base=base.replace("127.0.0.1", "jobs.example"))
        assert page.evaluate("[isSecureContext, navigator.clipboard === undefined]") == [False, True]
        expect(page.locator("#chip")).to_have_text("Live")
        stay(page)
        page.get_by_role("button", name="Copy the jid").click()
        toast(page, "Copied.")
        search = page.locator("[data-search]")
        search.focus()
        page.keyboard.press("Control+v")
        expect(search).to_have_value(jid)
        client.queues["mail"].pop()
        expect(page.locator("h1 .pill")).to_have_text("running")
        assert is_same(page)
        page.context.close()


def test_a_browser_without_shared_workers_has_a_stream_for_each_visible_page(
    visit: Visits, client: Client
) -> None:
    [jid] = put(client, 1)
    context = visit.context()
    context.add_init_script("delete window.SharedWorker")
    page = visit(f"jobs/{jid}", context=context)
    assert page.evaluate("window.SharedWorker === undefined")
    expect(page.locator("#chip")).to_have_text("Live")
    client.queues["mail"].pop()
    expect(page.locator("h1 .pill")).to_have_text("running")


def test_what_comes_from_another_site_is_refused_in_words(visit: Visits, client: Client) -> None:
    put(client, 1)
    visit.expect(REPORTS)
    with foreign(visit.base) as theirs:
        page = visit.context().new_page()
        with page.expect_response(re.compile("/act/queues/pause")):
            page.goto(f"{theirs.replace('127.0.0.1', 'localhost')}?trick=a form")
        expect(page.locator("body")).to_contain_text("came from a page of another site")
