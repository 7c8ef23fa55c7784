"""Each action that the older web app had, done once from its page in a real browser."""

import re
from collections.abc import Callable

import pytest
from browsing import Visits, confirm, expect, fail, go, put, toast
from playwright.sync_api import Page

from holdfast import Client
from holdfast.console.handles import Console
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]


def one_job(client: Client, jid: str) -> str:
    job = client.jobs[jid]
    return "gone" if job is None else job.state


def click(page: Page, name: str) -> None:
    """Click a button by its whole label."""
    page.get_by_role("button", name=name, exact=True).first.click()


def click_twice(page: Page, name: str) -> None:
    """Click a button that asks by its own label for three seconds, and answer before they are over on any machine."""
    button = page.get_by_role("button", name=name, exact=True).first
    twice = "(button) => { button.click(); const asked = button.textContent; button.click(); return asked; }"
    assert button.evaluate(twice) == f"{name}?"


def more(page: Page) -> None:
    page.locator(".head .menu summary").click()


def test_a_job_is_tracked_and_untracked(visit: Visits, client: Client) -> None:
    [jid] = put(client, 1)
    page = visit(f"jobs/{jid}")
    click(page, "Track")
    toast(page, "tracked.")
    assert client.jobs[jid].tracked  # type: ignore[union-attr]
    click(page, "Untrack")
    toast(page, "untracked.")
    assert not client.jobs[jid].tracked  # type: ignore[union-attr]


def test_a_priority_is_set_by_a_field_and_by_presets_and_is_a_number(visit: Visits, client: Client) -> None:
    [jid] = put(client, 1)
    page = visit(f"jobs/{jid}")
    click(page, "High 25")
    expect(page.locator("#facts")).to_contain_text(re.compile(r"Priority\s*25"))
    until(lambda: client.jobs[jid].priority == 25, "it is set")  # type: ignore[union-attr]
    more(page)
    click(page, "Priority…")
    field = page.locator("dialog[open]").get_by_label("Priority")
    expect(field).to_have_attribute("placeholder", "Pri 25")
    field.fill("")
    page.locator("dialog[open]").get_by_role("button", name="Set").click()
    assert field.evaluate("(field) => field.validationMessage")  # it is refused at its place
    field.fill("-3")
    page.locator("dialog[open]").get_by_role("button", name="Set").click()
    toast(page, "priority set.")
    assert client.jobs[jid].priority == -3  # type: ignore[union-attr]


def test_a_queue_is_paused_and_resumed_by_one_button(visit: Visits, client: Client) -> None:
    put(client, 1)
    page = visit("queues")
    page.get_by_role("button", name="Pause mail").click()
    expect(page.get_by_role("button", name="Resume mail")).to_be_visible()
    assert client.queues["mail"].paused
    page.get_by_role("button", name="Resume mail").click()
    expect(page.get_by_role("button", name="Pause mail")).to_be_visible()
    assert not client.queues["mail"].paused


def test_a_running_job_is_timed_out(visit: Visits, client: Client) -> None:
    [jid] = put(client, 1)
    client.queues["mail"].pop()
    page = visit(f"jobs/{jid}")
    click_twice(page, "Time out")
    toast(page, "timed out.")
    assert one_job(client, jid) in ("stalled", "waiting")


def test_tags_are_added_and_removed(visit: Visits, client: Client) -> None:
    [jid] = put(client, 1, tags=["old"])
    page = visit(f"jobs/{jid}")
    field = page.get_by_label("Add tag")
    field.fill("new")
    field.press("Enter")
    expect(page.locator("#tags .tag", has_text="new")).to_be_visible()
    page.get_by_role("button", name="Remove the tag new").click()  # also one that was just added
    expect(page.locator("#tags .tag", has_text="new")).to_have_count(0)
    assert list(client.jobs[jid].tags) == ["old"]  # type: ignore[union-attr]


def test_a_job_is_moved_also_when_it_is_complete(visit: Visits, client: Client, address: str) -> None:
    [jid] = put(client, 1)
    put(client, 1, "other")
    page = visit(f"jobs/{jid}")
    for state, queue in (("waiting", "other"), ("complete", "mail")):
        if state == "complete":
            client.queues["other"].pop(2)[1].complete()
            go(page, f"{address}jobs/{jid}")
        expect(page.locator("h1 .pill")).to_have_text(state)
        click(page, "Move…")
        dialog = page.locator("dialog[open]")
        assert dialog.locator("datalist option").evaluate_all("(all) => all.map((one) => one.value)") == ["mail", "other"]  # fmt: skip
        dialog.get_by_label("Queue").fill(queue)
        confirm(page, "Move this job")
        toast(page, "moved.")
        expect(page.locator("h1 .pill")).to_have_text("waiting")
        assert client.jobs[jid].queue_name == queue  # type: ignore[union-attr]


def test_a_recurrence_is_moved_retagged_given_a_priority_and_deleted(
    visit: Visits, client: Client, address: str
) -> None:
    client.queues["mail"].recur("jobs.Digest", {}, 3600, offset=3600, jid="hourly")
    visit.expect("status of 404")  # of the page of what is deleted
    page = visit("jobs/hourly")
    click(page, "Move, priority, tags…")
    dialog = page.locator("dialog[open]")
    for label, value in (("Queue", "other"), ("Priority", "9"), ("Tags", "a, b")):
        dialog.get_by_label(label).fill(value)
    confirm(page, "Change this recurring job")
    toast(page, "hourly")
    found = client.jobs["hourly"]
    assert found is not None
    assert (found.queue_name, found.priority, list(found.tags)) == ("other", 9, ["a", "b"])
    go(page, f"{address}jobs/hourly")
    click_twice(page, "Delete")
    until(lambda: client.jobs["hourly"] is None, "it is deleted")


def test_a_dependency_is_removed_in_both_directions(visit: Visits, client: Client, address: str) -> None:
    [parent] = put(client, 1)
    first, second = [put(client, 1, depends=[parent])[0] for _ in range(2)]
    page = visit(f"jobs/{first}")
    click_twice(page, "Remove dependency")
    toast(page, "waits for")
    assert one_job(client, first) == "waiting"
    go(page, f"{address}jobs/{parent}")
    click_twice(page, "Remove dependency")
    toast(page, "waits for")
    assert one_job(client, second) == "waiting"


def test_a_failed_job_is_retried_in_its_queue(visit: Visits, client: Client) -> None:
    [jid] = fail(client, 1)
    page = visit(f"jobs/{jid}")
    click(page, "Retry")
    expect(page.locator("h1 .pill")).to_have_text("waiting")
    assert client.jobs[jid].queue_name == "mail"  # type: ignore[union-attr]


def test_a_group_is_retried_and_another_one_cancelled(visit: Visits, client: Client) -> None:
    fail(client, 3)
    fail(client, 2, "mail-KeyError")
    page = visit("failed")
    rows = page.locator("#failed tbody tr[id]")
    expect(rows).to_have_count(2)
    for group, verb, count in (("mail-ValueError", "Retry", 3), ("mail-KeyError", "Cancel", 2)):
        row = rows.filter(has_text=group)
        if verb == "Cancel":
            row.locator("summary").click()
        row.get_by_role("button", name=re.compile(f"^{verb}")).first.click()
        confirm(page, f"{verb} {count} jobs?")
        page.mouse.move(0, 0)
        expect(rows.filter(has_text=group)).to_have_count(0)
    counts = client.queues["mail"].counts
    assert (counts["waiting"], counts["failed"]) == (3, 0)


def test_everything_that_failed_is_retried_at_once(visit: Visits, client: Client) -> None:
    fail(client, 3)
    fail(client, 2, "mail-KeyError")
    page = visit("failed")
    page.locator(".head").get_by_role("button", name=re.compile("^Retry")).click()
    confirm(page, "Retry 5 jobs?")
    expect(page.locator("main")).to_contain_text("No failed jobs")
    assert client.queues["mail"].counts["waiting"] == 5


@pytest.mark.parametrize("label", ["Cancel", "Delete"])
def test_a_job_is_deleted_after_a_second_click(visit: Visits, client: Client, label: str) -> None:
    [jid] = put(client, 1) if label == "Cancel" else fail(client, 1)
    visit.expect("status of 404")  # of the job, which is gone
    page = visit(f"jobs/{jid}")
    more(page)
    click(page, label)
    expect(page.get_by_role("button", name=f"{label}?")).to_have_count(
        0
    )  # after three seconds it asks no more
    assert client.jobs[jid] is not None
    click_twice(page, label)
    expect(page.locator("main")).to_contain_text("doesn't exist, was canceled, or expired")
    assert client.jobs[jid] is None


def test_a_job_that_others_depend_on_is_not_deleted(visit: Visits, client: Client) -> None:
    [parent] = put(client, 1)
    put(client, 1, depends=[parent])
    page = visit(f"jobs/{parent}")
    more(page)
    click_twice(page, "Cancel")
    confirm(page, "1 other job waits for them")
    toast(page, "cancelled in 10 s")
    console = Console(client)
    until(lambda: [one.state for one in console.operations()] == ["done"], "the ten seconds are over")
    assert [one.refused for one in console.operations()] == [1]
    expect(page.locator("h1 .pill")).to_have_text("waiting")
    assert client.jobs[parent] is not None


def limit(client: Client) -> tuple[int, bool]:
    found = client.throttles["api"].facts()
    return found.maximum, found.ttl_ms is not None and found.ttl_ms > 0


def at_a_throttle(page: Page, address: str, jid: str) -> None:
    go(page, address + "throttles")


def at_a_job(page: Page, address: str, jid: str) -> None:
    go(page, f"{address}jobs/{jid}")


@pytest.mark.parametrize("open_page", [at_a_throttle, at_a_job])
def test_a_throttle_gets_a_maximum_and_a_time_and_is_reset(
    visit: Visits, client: Client, address: str, open_page: Callable[[Page, str, str], None]
) -> None:
    client.throttles["api"].set_maximum(2)
    [jid] = put(client, 1, throttles=["api"])
    page = visit("about")
    open_page(page, address, jid)
    field = page.get_by_label("Maximum of api").first
    field.fill("5")
    field.press("Enter")
    until(lambda: limit(client) == (5, False), "the maximum is set")
    open_page(page, address, jid)
    page.locator("main [name=seconds]").first.fill("600")
    page.keyboard.press("Enter")
    until(lambda: limit(client) == (5, True), "it ends after a time")
    open_page(page, address, jid)
    click_twice(page, "Reset")
    until(lambda: limit(client)[0] == 0, "there is no limit")


def test_patterns_and_priorities_are_saved(visit: Visits, client: Client, address: str) -> None:
    put(client, 1, "mail-fast")
    page = visit("config?tab=patterns")
    page.get_by_placeholder("New name").fill("critical")
    page.get_by_label("Patterns of the new name").fill("mail-*, !mail-slow")
    click(page, "Save patterns")
    toast(page, "attern")
    assert client.queue_patterns.get_queue_identifier_patterns()["critical"] == ["mail-*", "!mail-slow"]
    go(page, f"{address}config?tab=patterns")
    expect(page.locator("#patterns tbody tr", has=page.locator("[value=critical]"))).to_contain_text(
        "mail-fast"
    )
    expect(page.locator("#patterns [name=name]").nth(-2)).to_have_value("default")  # before the empty row
    go(page, f"{address}config?tab=priorities")
    page.get_by_placeholder("Patterns of a new rule").fill("mail-*")
    page.locator("#priorities [name=fairly]").last.check()
    click(page, "Save priorities")
    toast(page, "riorit")
    rules = client.queue_patterns.get_queue_priority_patterns()
    assert [(list(one.pattern), one.should_distribute_fairly) for one in rules] == [(["default"], False), (["mail-*"], True)]  # fmt: skip
