"""Notifications of the browser for tracked jobs: asked for by a button, off at first, also from a page in the background."""

from typing import Any

import pytest
from browsing import Visits, expect, go, put
from playwright.sync_api import Page

from holdfast import Client
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]

NOTED = """
window.noted = [];
const Real = window.Notification;
window.Notification = class extends Real {
  constructor(title, options) {
    super(title, options);
    window.noted.push([title, options.body, options.tag]);
  }
};
Object.defineProperty(document, "hidden", { get: () => window.isAway === true });
"""
"""Notes each notification that a page makes; and a page may be said to be in the background."""


def opened(visit: Visits, allowed: bool = True) -> Page:
    context = visit.context(permissions=["notifications"] if allowed else [])
    context.add_init_script(NOTED)
    return visit("/tracked", context=context)


def noted(page: Page, count: int) -> list[Any]:
    """The notifications, once there are so many."""
    page.wait_for_function("count => window.noted.length >= count", arg=count)
    return list(page.evaluate("window.noted"))


def tracked(client: Client, count: int = 1, **options: Any) -> list[str]:
    jids = put(client, count, **options)
    for jid in jids:
        client.track(jid)
    return jids


def take(client: Client, queue: str = "mail") -> Any:
    job = client.queues[queue].pop()
    assert job is not None
    return job


def switch_on(page: Page) -> None:
    button = page.get_by_role("button", name="Notify me")
    expect(button).to_have_attribute("aria-pressed", "false")
    with page.expect_response(lambda response: "/api/v1/tracked" in response.url):
        button.click()
    expect(button).to_have_attribute("aria-pressed", "true")


def test_a_change_of_state_is_shown_and_the_choice_is_remembered(
    visit: Visits, client: Client, address: str
) -> None:
    [jid] = tracked(client)
    page = opened(visit)
    switch_on(page)
    job = take(client)
    assert noted(page, 1) == [[f"▸ {jid[-8:]} running", "jobs.Send · mail", f"{jid} running"]]
    job.fail("mail-ValueError", "no luck")
    assert noted(page, 2)[1] == [
        f"✕ {jid[-8:]} failed",
        "jobs.Send · mail · mail-ValueError",
        f"{jid} failed",
    ]
    with page.expect_response(lambda response: "/api/v1/tracked" in response.url):
        go(page, address + "tracked")
    expect(page.get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "true")
    client.queues["mail"].put("jobs.Send", jid=jid)
    assert noted(page, 1)[0][0] == f"▸ {jid[-8:]} waiting"


def test_it_is_off_at_first_and_can_be_switched_off(visit: Visits, client: Client) -> None:
    tracked(client, 2)
    page = opened(visit)
    take(client)
    expect(page.locator("#tracked tbody .pill").filter(has_text="running")).to_have_count(1)
    switch_on(page)
    page.get_by_role("button", name="Notify me").click()
    take(client)
    expect(page.locator("#tracked tbody .pill").filter(has_text="running")).to_have_count(2)
    assert page.evaluate("window.noted") == []
    assert page.evaluate("localStorage.getItem('holdfast.notify')") == "off"


def test_a_page_in_the_background_notifies_too(visit: Visits, client: Client) -> None:
    [jid] = tracked(client)
    page = opened(visit)
    switch_on(page)
    page.evaluate("isAway = true; document.dispatchEvent(new Event('visibilitychange'))")
    take(client)
    assert noted(page, 1)[0][0] == f"▸ {jid[-8:]} running"


def test_a_browser_that_does_not_allow_it_says_so(visit: Visits, client: Client) -> None:
    tracked(client)
    page = opened(visit, allowed=False)
    button = page.get_by_role("button", name="Notify me")
    until(lambda: button.is_visible(), "the button is there")
    if page.evaluate("Notification.permission") != "denied":
        button.click()
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("title", "This browser does not allow notifications of this site")


def test_hostile_names_are_text(visit: Visits, client: Client) -> None:
    name = "<img src=x onerror=alert(1)>\u202e{{7*7}}"
    client.queues["mail"].put(name, {}, jid=f"{name}{'x' * 100}")
    client.track(f"{name}{'x' * 100}")
    page = opened(visit)
    switch_on(page)
    take(client)
    [[title, body, _]] = noted(page, 1)
    assert title == "▸ <img src=x onerror=alert running"
    assert body == "<img src=x onerror=alert(1)>?{{7*7}} · mail"


def test_many_changes_at_once_are_few_notifications(visit: Visits, client: Client) -> None:
    tracked(client, 12)
    page = opened(visit)
    switch_on(page)
    assert len(client.queues["mail"].pop(12)) == 12
    found = [title for title, _, _ in noted(page, 6)]
    assert [title.endswith(" running") for title in found] == [True] * 5 + [False]
    assert found[5] == "7 more tracked jobs changed state"
