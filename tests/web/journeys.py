"""What people do wherever the application is mounted: each function is one journey, below the address of `visit`."""

from browsing import Visits, confirm, expect, fail, go, is_same, put, stay, tile, toast
from playwright.sync_api import Page

from holdfast import Client


def follow_the_numbers(visit: Visits, client: Client) -> None:
    """The numbers of the overview are those of the API, and change with the store, without another load."""
    fail(client, 2)
    put(client, 3)
    page = visit()
    totals = page.request.get(visit.base + "api/v1/overview").json()["overview"]["totals"]
    assert (totals["waiting"], totals["failed"]) == (3, 2)
    for state, count in totals.items():
        if state != "recurring":
            expect(tile(page, f"t.{state}")).to_have_text(str(count))
    expect(page.locator("#chip")).to_have_text("Live")
    stay(page)
    put(client, 4)
    expect(tile(page, "t.waiting")).to_have_text("7")
    assert is_same(page)


def pause_for_a_reason(visit: Visits, client: Client) -> None:
    """A pause is seen with its reason in another tab and in the audit log, until somebody resumes the queue."""
    put(client, 3)
    context = visit.context()
    other, page = visit("queues", context=context), visit(context=context)
    page.locator("#queue").get_by_role("link", name="mail", exact=True).click()
    page.get_by_role("button", name="Pause…").click()
    page.locator("dialog[open]").get_by_label("Reason").fill("the provider is down")
    confirm(page, "Pause mail?")
    toast(page, "mail")
    expect(page.locator("h1 .pill")).to_have_text("paused")
    row = other.locator("#queue tbody tr", has_text="mail")
    other.bring_to_front()
    expect(row).to_contain_text("paused")
    expect(row).to_contain_text("the provider is down")
    go(other, visit.base + "audit")
    line = other.locator("tbody tr").first
    for text in ("pause", "mail", "the provider is down"):
        expect(line).to_contain_text(text)
    go(page, visit.base)
    expect(page.locator("#queue tbody tr", has_text="mail")).to_contain_text("the provider is down")
    page.bring_to_front()
    page.get_by_role("button", name="Resume mail").click()
    expect(page.get_by_role("button", name="Pause mail")).to_be_visible()
    assert not client.queues["mail"].paused


def retry_one(visit: Visits, client: Client) -> None:
    """A failed job that is retried leaves the list, the number of its group falls, the filter stays."""
    jids = fail(client, 3)
    page = visit("failed/mail-ValueError?message=ValueError: no luck with mail")
    where = page.url
    expect(page.locator("#jobs-of-group tbody tr")).to_have_count(3)
    stay(page)
    row = page.locator("#jobs-of-group tbody tr", has=page.locator(f'[value="{jids[0]}"]'))
    row.locator("[data-verb=retry]").click()
    toast(page, "retried.")
    page.mouse.move(0, 0)
    expect(page.locator("#jobs-of-group tbody tr")).to_have_count(2)
    expect(page.locator(".head p")).to_contain_text("2 jobs")
    assert (page.url, is_same(page)) == (where, True)
    assert client.jobs[jids[0]].state == "waiting"


def keep_ten_tabs_live(visit: Visits, client: Client) -> list[Page]:
    """Ten tabs of one browser, which may have six connections to a host, all follow the store; return them."""
    put(client, 1)
    context = visit.context()
    tabs = [visit(context=context) for _ in range(10)]
    for tab in tabs:
        expect(tile(tab, "t.waiting")).to_have_text("1")
        stay(tab)
    put(client, 1)
    for tab in tabs:
        expect(tile(tab, "t.waiting")).to_have_text("2")
        assert is_same(tab)
    return tabs
