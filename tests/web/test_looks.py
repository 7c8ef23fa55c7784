"""What pages do for the eye: charts that are zoomed, words that are suggested, lists that fold."""

import re

import pytest
from browsing import Visits, expect, put

from holdfast import Client

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]


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
    expect(page.locator("hf-chart").first.locator("canvas")).to_be_visible()
    page.get_by_role("link", name="Zoom out").first.click()
    expect(page.get_by_role("link", name="90 min").first).to_have_attribute("aria-current", "true")
