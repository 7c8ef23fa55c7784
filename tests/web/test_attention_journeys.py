"""What people do with what needs attention, in a real browser."""

import pytest
from browsing import Visits, expect, fail, put, toast
from playwright.sync_api import Route

from holdfast import Client
from holdfast.console.handles import Console
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]


def test_a_surge_is_inspected_snoozed_for_everybody_and_comes_back_when_it_grows(
    visit: Visits, client: Client
) -> None:
    put(client, 1, "idle")
    fail(client, 25)
    page, other = visit("/"), visit("/")
    row = page.locator(".wants li", has_text="mail-ValueError")
    row.get_by_role("link", name="Inspect").click()
    expect(page.locator("h1")).to_have_text("mail-ValueError")
    page.go_back()
    row.locator(".menu summary").click()
    row.get_by_role("button", name="Snooze for an hour").click()
    toast(page, "mail-ValueError snoozed for 1")
    expect(row).to_have_count(0)
    expect(page.locator(".snoozed summary")).to_have_text("1 snoozed")
    other.bring_to_front()
    expect(other.locator(".wants li", has_text="mail-ValueError")).to_have_count(0)
    page.bring_to_front()
    fail(client, 12)
    expect(row).to_contain_text("37 jobs failed in this hour")
    expect(page.locator(".snoozed")).to_have_count(0)


def test_a_snooze_is_undone_and_shown_again_from_its_list(visit: Visits, client: Client) -> None:
    fail(client, 25)
    page = visit("/")
    row = page.locator(".wants li", has_text="mail-ValueError")
    row.locator(".menu summary").click()
    row.get_by_role("button", name="Snooze until it grows").click()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    toast(page, "mail-ValueError shown again")
    expect(row).to_have_count(1)
    row.locator(".menu summary").click()
    row.get_by_role("button", name="Snooze for a day").click()
    page.locator(".snoozed summary").click()
    page.get_by_role("button", name="Show again").click()
    expect(row).to_have_count(1)


def test_a_group_is_muted_from_its_list_and_the_overview_leaves_it_out(visit: Visits, client: Client) -> None:
    fail(client, 25)
    page = visit("/failed")
    page.locator("#failed .menu summary").click()
    page.get_by_role("button", name="Mute until it grows").click()
    toast(page, "Group mail-ValueError muted until it grows.")
    expect(page.locator("#failed .pill")).to_have_text("muted")
    assert not [one for one in Console(client).overview().attention if one.subject == "mail-ValueError"]
    page.get_by_role("link", name="mail-ValueError", exact=True).click()
    page.get_by_role("button", name="Unmute").click()
    expect(page.get_by_role("button", name="Mute", exact=True)).to_be_visible()
    assert [one.kind for one in Console(client).overview().attention] == ["surge"]


def test_the_dialog_that_cancels_many_jobs_focuses_the_safe_answer(visit: Visits, client: Client) -> None:
    jids = put(client, 3)
    client.queues["mail"].put("k.K", depends=jids)
    page = visit("/jobs?q=queue:mail state:waiting")
    page.locator("[data-all]").check()
    page.locator(".bulk [data-verb=cancel]").click()
    expect(page.locator("#dialog[open]")).to_contain_text("the job that waits for them too")
    expect(page.locator("#dialog [data-close]")).to_be_focused()


def test_no_message_is_shown_for_a_load_that_nobody_asked_for(visit: Visits, client: Client) -> None:
    put(client, 1)
    page = visit("/")
    tried: list[str] = []

    def cut(route: Route) -> None:
        tried.append(route.request.method)
        route.abort()

    visit.expect("net::ERR_FAILED|Failed to fetch")
    page.route(lambda url: not url.endswith("/live"), cut)
    put(client, 5)
    until(lambda: page.evaluate("1") and "GET" in tried, "a region loads itself again", 60.0)
    page.locator("#queue").get_by_role("button", name="Pause mail").click()
    expect(page.locator(".toast")).to_have_count(1)
    assert "POST" in tried
