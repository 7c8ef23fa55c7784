"""Pages that stay open: many tabs, hidden tabs, a server that restarts, polling, in a real browser."""

import asyncio
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from browsing import Visits, expect, fail, go, is_same, own_chromium, put, served, stay, tile
from journeys import follow_the_numbers, keep_ten_tabs_live, pause_for_a_reason, retry_one
from playwright.sync_api import Page
from starlette.types import Receive, Scope, Send

from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.web import create_app
from holdfast.web.app import Application
from waiting import until
from web_process import free_port, serving

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]


class Streams:
    """Counts the live streams that an application has open, and the requests for its pages."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self.open = self.pages = 0
        self.loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.loop = asyncio.get_running_loop()
        is_stream = scope.get("path") == "/live"
        self.open += is_stream
        self.pages += not is_stream
        try:
            await self.app(scope, receive, send)
        finally:
            self.open -= is_stream


@pytest.fixture
def streams(client: Client) -> Streams:
    return Streams(create_app(client))


@pytest.fixture
def address(streams: Streams) -> Iterator[str]:
    with served(streams) as found:
        yield found


def test_ten_tabs_share_one_stream_and_every_one_is_live_and_responsive(
    visit: Visits, client: Client, streams: Streams
) -> None:
    tabs = keep_ten_tabs_live(visit, client)
    assert streams.open == 1
    for tab in tabs[:3]:  # with a stream in each tab, none would have a connection left for another page
        assert go(tab, visit.base + "queues").status == 200
        expect(tab.locator("#queue tbody tr")).to_have_count(1)
    put(client, 1)
    for tab in tabs[:3]:
        expect(tab.locator('#queue [data-live="q.mail.waiting"]')).to_have_text("3")


def test_a_hidden_tab_has_no_stream_and_is_brought_up_to_date_when_it_is_seen_again(
    client: Client, streams: Streams, address: str, tmp_path: Path
) -> None:
    fail(client, 1)
    with own_chromium(tmp_path) as browser:  # one window: a tab behind another one is hidden
        visits = Visits(browser, address)
        page = visits("failed", context=browser.contexts[0])
        other = browser.contexts[0].new_page()
        page.bring_to_front()
        expect(page.locator("#chip")).to_have_text("Live")
        until(lambda: streams.open == 1, "the page has a stream")
        other.bring_to_front()
        assert page.evaluate("document.hidden")
        until(lambda: streams.open == 0, "the stream is closed")
        stay(page)
        before = streams.pages
        fail(client, 2, "mail-KeyError")
        put(client, 5)
        assert_nothing_is_asked_for(page, streams, before)
        page.bring_to_front()
        expect(page.locator("#failed tbody tr[id]")).to_have_count(2)
        expect(page.locator('.nav [data-live="t.failed"]')).to_have_text("3")
        until(lambda: streams.open == 1, "the page has a stream again")
        assert is_same(page)
        visits.close()


def assert_nothing_is_asked_for(page: Page, streams: Streams, before: int) -> None:
    """Check that a hidden page asks for nothing while its clock goes on for some seconds."""
    page.evaluate("new Promise((done) => setTimeout(done, 3000))")
    assert (streams.open, streams.pages) == (0, before)
    assert page.locator("#failed tbody tr[id]").count() == 1


@contextmanager
def web(store: ScratchStore, client: Client, folder: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `holdfast web` as a process of its own."""
    words = ("--auth", "none")
    with serving(store.url, client.settings.namespace, folder, *words, port=port) as (_, process):
        yield process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_pages_connect_again_when_the_server_is_back_and_what_happened_meanwhile_is_shown(
    visit: Visits, store: ScratchStore, client: Client, tmp_path: Path, number: signal.Signals
) -> None:
    visit.expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE")
    [jid] = fail(client, 1)
    port = free_port()
    context = visit.context()
    with web(store, client, tmp_path / "web", port) as process:
        base = f"http://127.0.0.1:{port}/"
        overview = visit(base=base, context=context)
        group = visit("failed/mail-ValueError", base=base, context=context)
        job = visit(f"jobs/{jid}", base=base, context=context)
        tabs = (overview, group, job)
        for tab in tabs:
            expect(tab.locator("#chip")).to_have_text("Live")
            stay(tab)
        process.send_signal(number)
        process.wait(30)
        for tab in tabs:
            expect(tab.locator("#chip")).to_contain_text("Reconnecting")
        expect(tile(overview, "t.failed")).to_have_text("1")  # the last numbers stay
        client.jobs[jid].tag("found-later")  # type: ignore[union-attr]
        fail(client, 2)
        put(client, 4)
    with web(store, client, tmp_path / "web", port):
        for tab in tabs:
            expect(tab.locator("#chip")).to_have_text("Live")
        expect(tile(overview, "t.failed")).to_have_text("3")
        expect(tile(overview, "t.waiting")).to_have_text("4")
        expect(group.locator("#jobs-of-group tbody tr[id]")).to_have_count(3)
        expect(job.locator("#tags")).to_contain_text("found-later")
        put(client, 1)  # and they go on
        expect(tile(overview, "t.waiting")).to_have_text("5")
        for tab in tabs:
            assert is_same(tab)
            tab.close()


def test_a_page_that_missed_events_loads_its_parts_again(
    visit: Visits, client: Client, streams: Streams
) -> None:
    page = visit("queues")
    expect(page.locator("#chip")).to_have_text("Live")
    stay(page)

    def burst() -> None:  # more events at once than are kept for one browser; none is about this page
        for number in range(200):
            streams.app._site.hub.changed(f"job:{number}")

    assert streams.loop is not None
    with page.expect_response(re.compile("fragment=rows")) as found:
        streams.loop.call_soon_threadsafe(burst)
    assert found.value.status == 200
    assert is_same(page)


def test_live_updates_that_were_paused_stay_paused(visit: Visits, client: Client) -> None:
    put(client, 1)
    page = visit()
    expect(page.locator("#chip")).to_have_text("Live")
    page.locator("#chip").click()
    page.reload()
    expect(page.locator("#chip")).to_have_text("Paused")
    put(client, 1)
    page.reload()
    expect(tile(page, "t.waiting")).to_have_text("2")
    expect(page.locator("#chip")).to_have_text("Paused")
    other = visit("queues", context=page.context)  # the choice is one of the browser, not of the tab
    expect(other.locator("#chip")).to_have_text("Paused")
    page.keyboard.press(".")
    put(client, 1)
    expect(tile(page, "t.waiting")).to_have_text("3")


# Without a stream.


@pytest.mark.parametrize("journey", [follow_the_numbers, pause_for_a_reason, retry_one, keep_ten_tabs_live])
def test_pages_that_poll_do_the_same(
    visit: Visits, client: Client, journey: Callable[[Visits, Client], Any]
) -> None:
    with served(create_app(client, live="poll")) as base:
        visit.base = base
        journey(visit, client)
        visit.close()


def show_the_same(*pages: Page) -> bool:
    first, second = [page.evaluate(NUMBERS) for page in pages]
    return bool(first) and first == second


NUMBERS = "() => Object.fromEntries([...document.querySelectorAll('body [data-live]')].map((one) => [one.dataset.live, one.textContent]))"


def test_the_numbers_of_a_page_that_polls_are_those_of_a_page_with_a_stream(
    visit: Visits, client: Client
) -> None:
    put(client, 2)
    fail(client, 1)
    with served(create_app(client, live="poll")) as polled:
        for path in ("", "queues", "queues/mail"):
            first, second = visit(path), visit(path, base=polled)
            for page in (first, second):
                expect(page.locator("#chip")).to_have_text("Live")
                stay(page)
            put(client, 3)
            fail(client, 2, queue="sms")
            waiting = str(client.queues["mail"].counts["waiting"])
            for page in (first, second):
                expect(page.locator('main [data-live$=".waiting"]').first).to_have_text(waiting)
                assert is_same(page)
            until(partial(show_the_same, first, second), "both show the same numbers")
            first.context.close()
            second.context.close()
