"""People cancel jobs, with those that wait for them, and change their minds, in a real browser."""

import pytest
from browsing import Visits, confirm, expect, go, put, tile, toast

from holdfast import Client
from holdfast.console.handles import Console
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]


def family(client: Client) -> list[str]:
    """Put 50 jobs and three that wait for some of them."""
    jids = put(client, 50)
    child, _ = put(client, 2, "later", "jobs.Report", depends=jids[:2])
    put(client, 1, "later", "jobs.Send", depends=[child])
    return jids


def test_fifty_jobs_are_cancelled_with_those_that_wait_and_it_is_undone_in_time(
    visit: Visits, client: Client
) -> None:
    family(client)
    page = visit("/queues/mail?tab=waiting")
    page.keyboard.press("A")
    page.locator(".bulk [data-verb=cancel]").click()
    dialog = page.locator("#dialog[open]")
    expect(dialog).to_contain_text("Cancel 50 jobs?")
    expect(dialog).to_contain_text("3 other jobs wait for them")
    expect(dialog.locator("tbody tr")).to_have_count(3)
    dialog.get_by_label("Cancel the 3 jobs that wait for them too").check()
    dialog.locator(".acts .btn").last.click()
    toast(page, "50 jobs: cancelled in 10 s.")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    toast(page, "Undone before any job was changed.")
    [operation] = Console(client).operations()
    assert (operation.state, operation.looked) == ("stopped", 0)
    assert client.queues["mail"].counts["waiting"] == 50
    assert client.queues["later"].counts["depends"] == 3


def test_what_is_not_undone_is_cancelled_with_those_that_wait(visit: Visits, client: Client) -> None:
    family(client)
    page = visit("/queues/mail?tab=waiting")
    page.keyboard.press("A")
    page.locator(".bulk [data-verb=cancel]").click()
    page.locator("#dialog[open]").get_by_label("that wait for them too").check()
    confirm(page, "Cancel 50 jobs?")
    toast(page, "50 jobs: cancelled in 10 s.")
    assert client.queues["mail"].counts["waiting"] == 50
    expect(tile(page, "q.mail.waiting")).to_have_text("0")
    until(lambda: client.queues["later"].counts["depends"] == 0, "those that waited are gone")


def test_a_job_is_cancelled_from_its_page_and_that_is_undone_on_the_next_page(
    visit: Visits, client: Client, address: str
) -> None:
    [jid] = put(client, 1)
    page = visit(f"/jobs/{jid}", java_script_enabled=False)
    page.locator(".head .menu summary").click()
    page.locator(".head .menu[open] [data-verb=cancel]").click()
    expect(page.locator("main")).to_contain_text("It can be undone for 10 s.")
    page.locator("main .btn.bad").click()
    expect(page.locator(".toast")).to_contain_text("cancelled in 10 s.")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("Undone before any job was changed.")
    go(page, f"{address}jobs/{jid}")
    expect(page.locator("h1 .pill")).to_have_text("waiting")
