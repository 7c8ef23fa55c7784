"""What people do with flows, in a real browser."""

from collections.abc import Sequence

import pytest
from browsing import Visits, confirm, expect, is_same, stay, toast
from everything import put_flow

from holdfast import Client
from holdfast.commands.flows import Edge
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]


def nightly(client: Client, count: int = 6) -> None:
    """Put a flow of some jobs that are alike, and one behind them."""
    jobs: list[tuple[str, Sequence[Edge]]] = [("shop.count", ()) for _ in range(count)]
    jobs.append(("shop.total", [Edge(f"nightly-{number}") for number in range(count)]))
    put_flow(client, "nightly", jobs, "q", "total")


def test_the_failed_jobs_of_a_flow_are_found_and_retried_and_its_page_follows_them(
    visit: Visits, client: Client
) -> None:
    nightly(client)
    page = visit()
    page.keyboard.press("g")
    page.keyboard.press("l")
    page.wait_for_url("**/flows")
    row = page.locator("#flows tbody tr")
    expect(row).to_contain_text("0 / 7")
    for number, job in enumerate(client.queues["q"].pop(6)):
        job.fail("q-ValueError", "ValueError: no page") if number == 2 else job.complete()
    expect(row).to_contain_text("7 / 7")  # without another load
    expect(row).to_contain_text("failed")
    row.get_by_role("link", name="nightly").click()
    page.wait_for_url("**/flows/nightly")
    expect(page.locator("h1 .pill")).to_have_text("failed")
    graph = page.locator("#graph svg.graph")
    graph.locator("a", has_text="count × 6").click()
    page.wait_for_url("**/flows/nightly?node=0#jobs")
    page.locator("#jobs .tabs a", has_text="Failed").click()
    rows = page.locator("#jobs-of-flow tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("ValueError: no page")
    stay(page)
    page.get_by_role("button", name="Retry 2 failed").click()
    confirm(page, "Retry 2 failed jobs?")
    toast(page, "2 jobs: retried.")
    expect(page.locator("h1 .pill")).to_have_text("running")
    expect(graph.locator("a", has_text="count × 6")).to_contain_text("1 waiting, 5 complete")
    client.queues["q"].pop(1)[0].complete()
    client.queues["q"].pop(1)[0].complete()
    expect(page.locator("h1 .pill")).to_have_text("complete")
    expect(page.locator("#progress header")).to_contain_text("7 of 7 jobs ended")
    assert is_same(page)
    page.get_by_role("link", name="Show all jobs of the flow").click()
    expect(rows).to_have_count(7)
    page.get_by_text("Show as table").click()
    expect(page.get_by_role("region", name="Graph as a table")).to_contain_text("shop.count × 6")


def test_a_flow_is_cancelled_and_that_is_undone_and_then_it_is_cancelled_for_good(
    visit: Visits, client: Client
) -> None:
    nightly(client)
    page = visit("/flows/nightly")

    def cancel() -> None:
        page.locator(".head .menu summary").click()
        page.get_by_role("button", name="Cancel 7 jobs…").click()
        confirm(page, "Cancel 7 jobs?")
        toast(page, "7 jobs: cancelled in 10 s.")

    cancel()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    toast(page, "Undone before any job was changed.")
    assert client.flow("nightly").counts == {"waiting": 6, "depends": 1}
    page.reload()
    cancel()
    until(lambda: client.flow("nightly").counts == {"gone": 7}, "all jobs are cancelled", within=60)
    expect(page.locator("h1 .pill")).to_have_text("gone")
    page.locator(".head .menu summary").click()
    page.get_by_role("button", name="Take it off the list…").click()
    confirm(page, "Take this flow off the list?")
    page.wait_for_url("**/flows")
    expect(page.locator("main")).to_contain_text("No flows")


def test_on_a_phone_the_graph_is_walked_by_the_keyboard_and_nothing_is_too_wide(
    visit: Visits, client: Client
) -> None:
    nightly(client)
    page = visit("/flows/nightly", viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("region", name="Graph of dependencies").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/nightly-6")
    page.get_by_role("link", name="nightly", exact=True).first.click()
    page.wait_for_url("**/flows/nightly")
