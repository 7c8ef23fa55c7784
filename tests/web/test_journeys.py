"""What people do on the overview, with queues, and with many jobs at once, in a real browser."""

import re

import pytest
from browsing import Visits, confirm, expect, fail, go, is_same, put, served, stay, tile, toast
from journeys import follow_the_numbers, pause_for_a_reason, retry_one
from starlette.requests import HTTPConnection

from holdfast import Client
from holdfast.console.handles import Console
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.web import User, create_app
from holdfast.web.pages import TABLE
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
EMPTY = {
    "/": "No queues", "/queues": "No queues", "/jobs": "No jobs yet", "/failed": "No failed jobs", "/recurring": "No recurring jobs",
    "/topics": "No messages in any topic", "/workers": "No workers", "/throttles": "No named throttles", "/tracked": "No tracked jobs", "/tags": "No tags",
    "/completed": "No completed jobs yet", "/operations": "No operations yet", "/audit": "No changes yet", "/config": "jobs-history", "/about": "holdfast",
}  # fmt: skip


def test_every_page_of_an_empty_store_says_what_would_be_there(visit: Visits, address: str) -> None:
    page = visit("/")
    for view in TABLE.views:
        if "{name}" in view.path:
            continue
        assert go(page, address.rstrip("/") + view.path).status == 200
        expect(page.locator("h1")).to_have_count(1)
        expect(page.locator("main")).to_contain_text(EMPTY.get(view.path, ""))
    assert set(EMPTY) <= {view.path for view in TABLE.views}


def test_numbers_of_the_overview_are_those_of_the_api_and_follow_the_store(
    visit: Visits, client: Client
) -> None:
    follow_the_numbers(visit, client)


def test_a_pause_with_its_reason_is_seen_in_another_tab_and_in_the_audit_log(
    visit: Visits, client: Client
) -> None:
    pause_for_a_reason(visit, client)


def test_a_queue_paused_for_a_time_resumes_by_itself(visit: Visits, client: Client) -> None:
    put(client, 1)
    page = visit("/queues/mail")
    page.get_by_role("button", name="Pause…").click()
    dialog = page.locator("dialog[open]")
    end = dialog.get_by_label("Resume")
    end.evaluate("select => select.options[1].value = '6'")  # six seconds, not a quarter of an hour
    end.select_option(label="in 15 minutes")
    confirm(page, "Pause mail?")
    expect(page.locator("h1 .pill")).to_have_text("paused")
    expect(page.locator("main")).to_contain_text("resumes in")
    stay(page)
    expect(page.locator("h1 .pill")).to_have_count(0)
    assert is_same(page)
    assert not client.queues["mail"].paused


def test_each_tab_of_a_queue_lists_its_jobs_and_its_address_shows_it_in_another_browser(
    visit: Visits, client: Client, address: str
) -> None:
    states = a_job_in_each_state(client)
    counts = client.queues["mail"].counts
    page = visit("/queues/mail")
    for state, jid in states.items():
        assert counts[state] == 1
        page.locator(".tabs").get_by_role("link", name=re.compile(f"^{state}", re.IGNORECASE)).click()
        expect(page.locator('.tabs [aria-current="page"] [data-live]')).to_have_text("1")
        rows = f"#{'recurring' if state == 'recurring' else 'jobs'} tbody tr"
        expect(page.locator(rows)).to_have_count(1)
        expect(page.locator(f"{rows} a.mono").first).to_have_attribute("title", jid)
        fresh = visit(page.url.removeprefix(address))
        expect(fresh.locator(f"{rows} a.mono").first).to_have_attribute("title", jid)
        fresh.context.close()


def a_job_in_each_state(client: Client) -> dict[str, str]:
    queue = client.queues["mail"]
    clock = StoppedClock(client, START_MS)
    clock.start()
    client.throttles["api"].set_maximum(1)
    [failed] = fail(client, 1)
    [stalled] = put(client, 1)
    queue.pop(1)
    [running, throttled] = put(client, 2, throttles=["api"])
    [held] = queue.pop(2)
    [waiting] = put(client, 1)
    [depends], [scheduled] = put(client, 1, depends=[waiting]), put(client, 1, delay=600)
    recurring = queue.recur("jobs.Digest", {}, interval=3600, offset=3600)
    clock.advance(seconds=20)
    held.heartbeat()
    clock.advance(seconds=15)  # the lease of the other one has ended
    return {"running": running, "waiting": waiting, "throttled": throttled, "scheduled": scheduled, "stalled": stalled, "depends": depends,
            "recurring": recurring, "failed": failed}  # fmt: skip


def test_a_list_is_turned_to_its_last_page_and_back_and_a_page_of_it_is_opened_by_its_address(
    visit: Visits, client: Client, address: str
) -> None:
    put(client, 60)
    page = visit("/queues/mail?tab=waiting")
    pager = page.locator(".pager").first
    expect(pager).to_contain_text("1–25 of 60")
    expect(page.get_by_role("link", name="Previous")).to_have_count(0)
    page.get_by_role("link", name="Next").click()
    expect(pager).to_contain_text("26–50 of 60")
    middle, first = page.url, page.locator("#jobs tbody a.mono").first.get_attribute("title")
    expect(page.locator("#chip")).to_have_text("Live")  # the script of the page is there
    page.keyboard.press("]")
    expect(pager).to_contain_text("51–60 of 60")
    expect(page.locator("#jobs tbody tr")).to_have_count(10)
    expect(page.get_by_role("link", name="Next")).to_have_count(0)
    expect(page.locator("#chip")).to_have_text("Live")
    page.keyboard.press("[")
    expect(pager).not_to_contain_text("51–60")
    fresh = visit(middle.removeprefix(address))  # the cursor is in the address
    expect(fresh.locator(".pager").first).to_contain_text("26–50 of 60")
    assert fresh.locator("#jobs tbody a.mono").first.get_attribute("title") == first


def test_a_list_is_sorted_and_a_column_that_is_hidden_stays_hidden(visit: Visits, client: Client) -> None:
    for queue, count in (("few", 1), ("many", 9), ("some", 4)):
        put(client, count, queue)
    page = visit("/queues")
    names, heads = page.locator("#queue tbody td.k > a"), page.locator("#queue thead")
    heads.get_by_role("link", name="Wait", exact=True).click()
    expect(names).to_have_text(["many", "some", "few"])
    expect(page.locator('#queue th[aria-sort="descending"]')).to_have_text("Wait")
    heads.get_by_role("link", name="Wait", exact=True).click()
    expect(names).to_have_text(["few", "some", "many"])
    page.locator("[data-columns] summary").click()
    page.locator("[data-columns] label", has_text="Oldest").click()
    head = page.locator("#queue th", has_text="Oldest")
    expect(head).to_be_hidden()
    page.reload()
    expect(head).to_be_hidden()
    expect(names).to_have_text(["few", "some", "many"])


def test_rows_are_selected_singly_by_range_and_all_that_match(visit: Visits, client: Client) -> None:
    put(client, 40)
    page = visit("/queues/mail?tab=waiting")
    picks, bar = page.locator("[data-pick]"), page.locator(".bulk")
    for at in (0, 2, 4):
        picks.nth(at).check()
    expect(bar.locator("[data-count]")).to_have_text("3")
    picks.nth(9).click(modifiers=["Shift"])
    expect(bar.locator("[data-count]")).to_have_text("8")
    bar.locator("[data-matching]").click()
    expect(bar.locator("[data-count]")).to_have_text("All 40")
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()


def test_a_failed_job_that_is_retried_leaves_the_list_and_the_filter_stays(
    visit: Visits, client: Client
) -> None:
    retry_one(visit, client)


def test_a_group_of_five_thousand_is_retried_as_an_operation(
    visit: Visits, client: Client, address: str
) -> None:
    fail(client, 5000)
    page = visit("/failed/mail-ValueError")
    page.locator("main .head [data-verb=retry]").last.click()
    confirm(page, "Retry 5\u202f000 jobs?")
    page.wait_for_url("**/operations/*")
    expect(page.locator("main .pill").first).to_have_text("done")
    expect(page.locator(".tile", has_text="Changed").first).to_contain_text("5\u202f000")
    assert client.queues["mail"].counts["waiting"] == 5000
    visit.expect("status of 404")
    assert go(page, address + "failed/mail-ValueError").status == 404
    expect(page.locator("main")).to_contain_text("mail-ValueError")


def test_a_probe_shows_how_it_ended_and_offers_the_rest(visit: Visits, client: Client) -> None:
    fail(client, 3)
    visit.expect("status of 404")  # of the group, which is gone
    page = visit("/failed/mail-ValueError")
    page.get_by_role("button", name="Retry one as a probe").click()
    expect(page.locator(".wants")).to_contain_text("The probe")
    job = until(lambda: client.queues["mail"].pop(), "the probe waits")
    job.complete()
    expect(page.locator(".wants")).to_contain_text("The others may now be retried.")
    page.locator(".wants [data-verb=retry]").click()
    confirm(page, "Retry 2 jobs?")
    toast(page, "2 jobs: retried.")


def test_a_probe_that_fails_again_says_so(visit: Visits, client: Client) -> None:
    fail(client, 3)
    page = visit("/failed/mail-ValueError")
    page.get_by_role("button", name="Retry one as a probe").click()
    job = until(lambda: client.queues["mail"].pop(), "the probe waits")
    job.fail("mail-ValueError", "ValueError: no luck again")
    expect(page.locator(".wants")).to_contain_text("failed again; the cause is still there")
    expect(page.locator(".head p")).to_contain_text("3 jobs")


def test_jobs_are_cancelled_together_and_those_that_others_depend_on_are_left_alone(
    visit: Visits, client: Client
) -> None:
    jids = put(client, 20)
    put(client, 1, "later", depends=[jids[0]])
    page = visit("/queues/mail?tab=waiting")
    page.keyboard.press("a")
    page.locator(".bulk [data-verb=cancel]").click()
    confirm(page, "Cancel 20 jobs?")
    toast(page, "20 jobs: cancelled in 10 s.")
    expect(tile(page, "q.mail.waiting")).to_have_text("1")
    assert client.jobs[jids[0]] is not None


def test_more_than_a_thousand_are_cancelled_by_an_administrator_who_types_the_word(
    visit: Visits, client: Client
) -> None:
    put(client, 1001)
    visit.expect("status of 40[03]")
    page = visit("/jobs?q=queue:mail")
    page.keyboard.press("A")
    page.locator(".bulk [data-verb=cancel]").click()
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("Cancel 1\u202f001 jobs?")
    word = dialog.get_by_label("Type cancel to confirm")
    word.fill("yes")
    dialog.locator(".acts .btn").last.click()
    toast(page, 'type "cancel"')
    assert client.queues["mail"].counts["waiting"] == 1001
    with served(create_app(client, auth=operator)) as base:
        other = visit("/queues/mail?tab=waiting", base=base)
        answer = other.request.post(f"{base}api/v1/jobs/cancel", data={"q": "queue:mail"}, headers={"Sec-Fetch-Site": "same-origin"})  # fmt: skip
        assert answer.status == 403
        assert "requires the role admin" in answer.text()
        other.context.close()
    with served(create_app(client, auth=viewer)) as base:
        other = visit("/jobs?q=queue:mail", base=base)
        expect(other.locator("#jobs tbody tr")).to_have_count(25)
        assert other.locator("[data-verb=cancel]").count() == 0
        for kind, fields in (
            ("act", {"form": {"q": "queue:mail"}}),
            ("api/v1", {"data": {"q": "queue:mail"}}),
        ):
            answer = other.request.post(
                f"{base}{kind}/jobs/cancel", **fields, headers={"Sec-Fetch-Site": "same-origin"}
            )  # type: ignore[arg-type]
            assert answer.status == 403
        other.context.close()
    word.fill("cancel")
    dialog.locator(".acts .btn").last.click()
    page.wait_for_url("**/operations/*")
    until(lambda: client.queues["mail"].counts["waiting"] == 0, "all are cancelled")


def viewer(_: HTTPConnection) -> User:
    return User("eve", "viewer")


def operator(_: HTTPConnection) -> User:
    return User("ada", "operator")


def test_jobs_that_are_moved_keep_priority_and_tags(visit: Visits, client: Client) -> None:
    [jid] = put(client, 1, priority=7, tags=["vip"])
    put(client, 1, "other")
    page = visit("/queues/mail?tab=waiting")
    page.keyboard.press("a")
    page.keyboard.press("m")
    page.locator(".bulk .menu[open] input").fill("other")
    page.keyboard.press("Enter")
    toast(page, "moved.")
    job = client.jobs[jid]
    assert (job.queue_name, job.priority, list(job.tags)) == ("other", 7, ["vip"])


def test_a_job_of_higher_priority_is_next(visit: Visits, client: Client) -> None:
    [*_, last] = put(client, 3)
    page = visit("/queues/mail?tab=waiting")
    expect(page.locator("#jobs tbody tr").last).to_contain_text("3")
    page.locator("[data-pick]").last.check()
    page.keyboard.press("p")
    page.locator(".bulk .menu[open] input").fill("9")
    page.keyboard.press("Enter")
    toast(page, "priority set.")
    page.mouse.move(0, 0)
    expect(page.locator("#jobs tbody a.mono").first).to_have_attribute("title", last)


def test_rows_hold_still_under_the_pointer_while_jobs_arrive(visit: Visits, client: Client) -> None:
    put(client, 3)
    page = visit("/queues/mail?tab=waiting")
    expect(page.locator("#chip")).to_have_text("Live")
    page.locator("#jobs tbody tr").first.hover()
    put(client, 12)
    news = page.locator(".news")
    expect(news).to_have_text("12 new · show")
    expect(page.locator("#jobs tbody tr")).to_have_count(3)
    news.click()
    expect(page.locator("#jobs tbody tr")).to_have_count(15)


def test_a_surge_of_failures_needs_attention_and_leads_to_its_group(visit: Visits, client: Client) -> None:
    put(client, 1)
    page = visit("/")
    fail(client, 25)
    line = page.locator(".wants li", has_text="mail-ValueError")
    expect(line).to_contain_text("25 jobs failed in this hour")
    line.get_by_role("link", name="Inspect").click()
    expect(page.locator("h1")).to_have_text("mail-ValueError")
    assert Console(client).failures()[0].count == 25
