"""What must not happen, and what must go on: hostile data, other sites, read only, masking, themes, phones, no script, no store."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import Visits, expect, fail, go, is_same, put, served, stay, tile
from playwright.sync_api import Route
from starlette.requests import HTTPConnection

from holdfast import Client
from holdfast.console.handles import Console
from holdfast.console.page_paths import segment
from holdfast.testing.store import ScratchStore
from holdfast.web import User, create_app
from holdfast.web.serving import Folder
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
HOSTILE = (
    "<script>document.title='no'</script>", "</textarea><img src=x onerror=alert(1)>", "javascript:alert(1)", "'\" onmouseover=alert(1) x=\"",
    "{{7*7}}{%raw%}", "\u202eright to left\u2066", "lone \\ud800",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_every_field_is_shown_as_text_on_every_page(
    visit: Visits, client: Client, address: str, text: str
) -> None:
    queue = client.queues[text]
    jid = queue.put(
        text,
        {text: text, "odd": "nul\x00 bell\x07 \x1b[31m", "deep": json.loads("[" * 60 + "]" * 60)},
        jid=text,
        tags=[text],
        throttles=[text],
    )
    client.throttles[text].set_maximum(2)
    client.topics[text].put(text, text, delay=600)
    queue.recur(text, {text: text}, 600, jid=f"r{text}")
    with Client(client.store_url, namespace=client.settings.namespace, hostname=text) as worker:
        worker.queues[text].pop().fail(text, text)  # type: ignore[union-attr]
    Console(client, actor=text).act("track", jid)
    Console(client, actor=text).pause(text, why=text)
    name = segment(text)
    paths = [
        "",
        "queues",
        f"queues/{name}",
        f"queues/{name}?tab=failed",
        "jobs",
        f"jobs/{name}",
        "failed",
        f"failed/{name}",
        "recurring",
        f"recurring/r{name}",
    ]
    paths += [
        "topics",
        f"topics/{name}",
        "workers",
        f"workers/{name}",
        "throttles",
        f"throttles/{name}",
        "tracked",
        "tags",
        f"tags/{name}",
        "audit",
        "config",
        "operations",
        f"queues/{name}?tab=recurring",
        f"queues/{name}?tab=settings",
    ]
    page = visit("about")
    for path in paths:
        assert go(page, address + path).status == 200, path
        assert page.title().startswith("holdfast"), path
        assert page.locator("main img, main script:not([src])").count() == 0, path
        assert page.locator("a[href^='javascript:']").count() == 0, path


def test_a_megabyte_of_data_is_shown_in_part_and_downloaded_whole(visit: Visits, client: Client) -> None:
    jid = client.queues["mail"].put("jobs.Send", {"text": "x" * 1_000_000})
    page = visit(f"/jobs/{jid}")
    expect(page.locator("main")).to_contain_text("Only the beginning is shown")
    with page.expect_download() as found:
        page.get_by_role("link", name="Download").first.click()
    assert Path(found.value.path()).stat().st_size > 1_000_000


def test_read_only_pages_have_no_control_that_writes(visit: Visits, client: Client) -> None:
    [jid] = fail(client, 1)
    put(client, 1)
    client.throttles["api"].set_maximum(1)
    client.queues["mail"].recur("jobs.Send", {}, 600, jid="often")
    client.topics["mail"].put("m", "x", delay=600)
    visit.expect("status of 403")
    with served(create_app(client, read_only=True)) as base:
        page = visit("", base=base)
        for path in ("", "queues", "queues/mail", "queues/mail?tab=settings", "jobs", f"jobs/{jid}", "failed", "failed/mail-ValueError", "recurring", "recurring/often",
                     "topics", "topics/mail", "workers", "throttles", "throttles/api", "tracked", "config", "config?tab=patterns", "operations", "audit"):  # fmt: skip
            go(page, base + path)
            expect(page.locator(".ribbon")).to_contain_text("Read-only")
            assert (
                page.locator(
                    "form[method=post] :is(button, input:not([type=hidden]), textarea, select)"
                ).count()
                == 0
            ), path
        headers = {"Sec-Fetch-Site": "same-origin"}
        for action in ("queues/pause", "jobs/retry", "throttles/set", "config/set", "workers/quiet"):
            assert (
                page.request.post(f"{base}act/{action}", form={"name": "mail"}, headers=headers).status == 403
            )
            assert page.request.post(f"{base}api/v1/{action}", data={}, headers=headers).status == 403
        page.context.close()


def test_what_is_masked_is_on_no_page(visit: Visits, client: Client) -> None:
    jid = client.queues["mail"].put(
        "jobs.Send", {"user": {"password": "hunter2"}, "card": "4111111111111111"}
    )
    client.queues["mail"].pop().fail("mail-E", "no luck with 4111111111111111")  # type: ignore[union-attr]
    with served(create_app(client, redact=["*.password", r"re:\d{16}"])) as base:
        page = visit("", base=base)
        for path in (
            f"jobs/{jid}",
            f"jobs/{jid}?raw=data",
            "jobs",
            "failed",
            "failed/mail-E",
            f"api/v1/jobs/{jid}",
            "jobs?q=queue:mail&export=jsonl",
            "bundle",
        ):
            text = page.request.get(base + path).text()
            assert "hunter2" not in text, path
            assert "4111111111111111" not in text, path
        page.context.close()


def test_pages_follow_the_theme_of_the_system_and_a_choice_without_a_flash(
    visit: Visits, client: Client
) -> None:
    put(client, 1)
    page = visit("/", color_scheme="light")
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert light != dark
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == light
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => { window.early = document.documentElement.dataset.theme; });"
    )
    page.reload()
    assert page.evaluate("window.early") == "light"


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_there_is_a_drawer_and_only_tables_scroll_sideways(
    visit: Visits, client: Client, address: str, width: int
) -> None:
    [jid] = fail(client, 1)
    put(client, 30)
    page = visit("/", viewport={"width": width, "height": 700}, has_touch=True)
    expect(page.locator(".nav")).to_be_hidden()
    page.get_by_role("link", name="Menu", exact=True).tap()
    page.locator(".nav").get_by_role("link", name="Queues").tap()
    page.wait_for_url("**/queues")
    for path in ("queues/mail?tab=waiting", f"jobs/{jid}", "failed/mail-ValueError", "config", "throttles"):
        go(page, address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    go(page, address + "queues/mail?tab=waiting")
    page.locator("[data-pick]").first.tap()
    bar = page.locator(".bulk")
    expect(bar).to_be_visible()
    box = bar.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    bar.locator("[data-verb=cancel]").tap()
    expect(page.locator("#dialog[open]")).to_be_in_viewport()
    page.locator("#dialog [data-close]").tap()


@pytest.mark.parametrize("width", [640, 1280])
def test_with_letters_of_twice_the_size_only_tables_scroll_sideways(
    visit: Visits, client: Client, address: str, width: int
) -> None:
    [jid] = fail(client, 1)
    put(client, 30)
    page = visit("/about", viewport={"width": width, "height": 700})
    for path in ("", "queues", "queues/mail?tab=waiting", f"jobs/{jid}", "failed/mail-ValueError", "config"):
        go(page, address + path)
        page.evaluate("document.documentElement.style.setProperty('font-size', '200%')")
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") > "32px", path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        expect(page.locator("h1")).to_be_in_viewport()


def test_without_script_lists_are_read_and_jobs_retried_by_whole_pages(
    visit: Visits, client: Client, address: str
) -> None:
    [jid] = fail(client, 1)
    put(client, 30)
    page = visit("/", java_script_enabled=False)
    page.locator(".nav").get_by_role("link", name="Queues").click()
    page.locator("#queue").get_by_role("link", name="mail", exact=True).click()
    page.locator(".tabs").get_by_role("link", name="Waiting").click()
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#jobs tbody tr")).to_have_count(5)
    go(page, f"{address}jobs/{jid}")
    expect(page.locator("main")).to_contain_text("no luck with mail")
    page.get_by_role("button", name="Retry", exact=True).first.click()
    expect(page.locator(".toast")).to_contain_text(": retried.")
    expect(page.locator("h1 .pill")).to_have_text("waiting")
    go(page, f"{address}queues")
    page.get_by_role("button", name="Pause mail").click()
    expect(page.locator(".toast")).to_contain_text("mail")
    assert client.queues["mail"].paused
    go(page, f"{address}jobs?q=queue:mail")
    page.locator("#jobs [data-pick]").first.check()
    page.locator(".bulk [data-verb=cancel]").click()
    expect(page.locator("main")).to_contain_text("Cancel this job?")
    page.locator("main .btn.bad").click()
    expect(page.locator(".toast")).to_contain_text("cancelled in 10 s")


def test_pages_keep_their_last_numbers_while_the_store_is_away_and_recover(
    visit: Visits,
) -> None:
    visit.expect("status of 503|ERR_|net::")
    with (
        ScratchStore("valkey", "process") as store,
        Client(store.url, namespace="test-away", timeout=1, deadline=2) as client,
    ):
        put(client, 3)
        with served(create_app(client)) as base:
            page = visit("", base=base)
            expect(page.locator("#chip")).to_have_text("Live")
            expect(tile(page, "t.waiting")).to_have_text("3")
            stay(page)
            store.kill()
            expect(page.locator("#chip")).to_have_text("Store unavailable")
            expect(tile(page, "t.waiting")).to_have_text("3")
            other = visit("queues", base=base)
            expect(other.locator("main")).to_contain_text("store")
            for path in ("api/v1/health", "api/v1/queues"):
                assert page.request.get(base + path).status == 503, path
            store.restart()
            put(client, 1)
            expect(page.locator("#chip")).to_have_text("Live")
            until(
                lambda: tile(page, "t.waiting").inner_text() in ("1", "4"),
                "the numbers are those of the store",
            )
            assert is_same(page)
            assert page.request.get(base + "api/v1/health").status == 200
            page.context.close()
            other.context.close()


def test_the_printed_link_logs_in_once(visit: Visits, client: Client, tmp_path: Path) -> None:
    visit.expect("status of 401|net::ERR")  # the server ends before its pages
    words = [
        sys.executable,
        "-m",
        "holdfast.cli.main",
        "web",
        "-L",
        "--app-dir",
        str(tmp_path / "web"),
        "--url",
        str(client.store_url),
        "--namespace",
        client.settings.namespace,
    ]
    started = subprocess.run(
        words, capture_output=True, text=True, timeout=120, check=True, env={**os.environ, "DISPLAY": ""}
    )
    try:
        link = re.search(r"http://\S+", started.stdout)
        assert link is not None
        base, _, rest = link[0].partition("/login")
        page = visit("login" + rest, base=base + "/")
        expect(page.locator("h1")).to_have_text("Overview")
        assert "token" not in page.url
        page.reload()
        expect(page.locator("h1")).to_have_text("Overview")
        again = visit("login" + rest, base=base + "/")
        expect(again.locator("body")).to_contain_text("This login link has been used")
    finally:
        Folder(tmp_path / "web").stop()


def test_a_user_of_a_host_sees_what_the_role_allows(visit: Visits, client: Client) -> None:
    put(client, 1)
    with served(create_app(client, auth=viewer)) as base:
        page = visit("queues", base=base)
        expect(page.locator("#queue tbody tr")).to_have_count(1)
        assert page.get_by_role("button", name="Pause mail").count() == 0
        page.context.close()


def viewer(_: HTTPConnection) -> User:
    return User("eve", "viewer")


def test_a_page_whose_part_fails_to_load_keeps_what_it_shows(visit: Visits, client: Client) -> None:
    put(client, 1)
    visit.expect("status of 500")
    page = visit("/queues")
    expect(page.locator("#chip")).to_have_text("Live")

    def broken(route: Route) -> None:
        route.fulfill(status=500, body="no")

    page.route(re.compile("fragment="), broken)
    with page.expect_response(re.compile("fragment=")):
        put(client, 1)
    expect(page.locator("#queue tbody tr")).to_have_count(1)
