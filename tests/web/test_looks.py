"""What pages do for the eye: charts that are zoomed, words that are suggested, lists that fold."""

import re

import pytest
from browsing import Visits, expect, put

from holdfast import Client

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]


def test_a_part_of_a_chart_is_dragged_over_to_zoom_into_it(visit: Visits, client: Client) -> None:
    put(client, 5)
    for job in client.queues["mail"].pop(5):
        job.complete()
    page = visit("queues/mail")
    chart = page.locator("hf-chart").first
    expect(chart.locator("canvas")).to_be_visible()
    chart.scroll_into_view_if_needed()
    box = chart.locator(".u-over").bounding_box()
    assert box
    y = box["y"] + 40
    page.mouse.move(box["x"] + box["width"] * 0.5, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.95, y, steps=5)
    expect(chart.locator(".u-select")).to_be_visible()
    page.mouse.up()
    page.wait_for_url(re.compile(r"range=\d+-\d+"))
    start, end = (int(one) for one in page.url.partition("range=")[2].split("&")[0].split("-"))
    assert 2000 < end - start < 3000  # of 90 minutes
    expect(page.get_by_role("heading", name="Throughput")).to_be_visible()
    page.get_by_role("link", name="Zoom out").first.click()
    expect(page.get_by_role("link", name="90 min").first).to_have_attribute("aria-current", "true")


def test_fields_and_then_their_values_are_suggested_for_what_is_typed(visit: Visits, client: Client) -> None:
    put(client, 1, "mail-fast")
    put(client, 1, "odd queue", tags=["vip"])
    page = visit()
    field, choices = page.locator(".top [data-search]"), page.locator(".top .suggest [role=option]")
    field.focus()
    expect(choices.first).to_contain_text("state:")
    page.keyboard.type("sta")
    expect(choices).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(field).to_have_value("state:")
    page.keyboard.type("wai")
    choices.first.click()
    expect(field).to_have_value("state:waiting ")
    page.keyboard.type("queue:odd")
    choices.first.click()
    expect(field).to_have_value('state:waiting queue:"odd queue" ')
    page.keyboard.press("Escape")
    expect(choices.first).to_be_hidden()
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?q=**")
    expect(page.locator("#jobs tbody tr[id]")).to_have_count(1)


def test_a_filter_is_kept_as_a_view_in_the_navigation(visit: Visits, client: Client) -> None:
    put(client, 2, tags=["vip"])
    context = visit.context()
    page = visit("jobs?q=tag:vip", context=context)
    page.get_by_role("button", name="Save view…").click()
    page.locator("#dialog input").fill("Important <b>")
    page.locator("#dialog .btn.main").click()
    expect(page.locator("#views a")).to_have_text("Important <b>")
    expect(page.locator("#views a")).to_have_attribute("aria-current", "page")
    other = visit("", context=context)
    other.locator("#views a").click()
    expect(other.locator("#jobs tbody tr[id]")).to_have_count(2)
    other.get_by_role("button", name="Remove view").click()
    expect(other.locator("#views a")).to_have_count(0)
    expect(other.get_by_role("button", name="Save view…")).to_be_visible()


def test_queues_that_share_a_prefix_are_a_group_that_folds_and_stays_folded(
    visit: Visits, client: Client
) -> None:
    for name in ("mail.digest", "mail.receipts", "reports"):
        put(client, 2, name)
    page = visit("queues")
    group, row = page.locator("[data-fold]"), page.get_by_role("link", name="mail.digest")
    expect(group).to_have_text("mail.*")
    expect(page.locator(".group th")).to_contain_text("2 queues · 0 running · 4 waiting · 0 failed")
    group.click()
    expect(row).to_be_hidden()
    page.mouse.move(700, 20)  # rows below the pointer hold still
    put(client, 1, "mail.digest")
    expect(page.locator(".group th")).to_contain_text("5 waiting")
    expect(row).to_be_hidden()
    page.reload()
    expect(page.get_by_role("link", name="reports")).to_be_visible()
    expect(row).to_be_hidden()
    page.locator("[data-fold]").click()
    expect(row).to_be_visible()
