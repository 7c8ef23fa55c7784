"""What people do with recurring jobs, topics, workers, throttles and settings, in a real browser."""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from browsing import Visits, confirm, expect, go, put, toast

import programs
from holdfast import Client
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.testing.clock import START_MS, StoppedClock
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
CODE = """
import json
import time

class Send:
    @staticmethod
    def process(job):
        time.sleep(json.loads(job.data).get("seconds", 0))
        job.complete()
"""


@contextmanager
def worker(client: Client, folder: Path, name: str, *flags: str) -> Iterator[Any]:
    """Run `holdfast worker` for the queue mail with a class of jobs."""
    (folder / "chores.py").write_text(CODE)
    words = ["worker", "--url", str(client.store_url), "--namespace", client.settings.namespace]
    words += [
        "--queue",
        "mail",
        "--path",
        str(folder),
        "--import",
        "chores",
        "--name",
        name,
        "--concurrency",
        "1",
        *flags,
    ]
    process = programs.popen([sys.executable, "-m", "holdfast.cli.main", *words])
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def test_a_recurring_job_is_made_run_changed_paused_and_deleted(
    visit: Visits, client: Client, address: str
) -> None:
    put(client, 1, "reports")
    page = visit("/recurring?new=1")
    form = page.locator("#new form")
    form.get_by_label("Class or function").fill("shop.Nightly")
    form.get_by_label("Queue").fill("reports")
    form.get_by_label("Interval in seconds").fill("3600")
    form.get_by_label("Id").fill("nightly")
    form.get_by_label("First job in seconds").fill("600")
    form.get_by_label("It is a class or module").check()
    form.get_by_role("button", name="Add").click()
    toast(page, "nightly")
    go(page, address + "recurring")
    page.locator("#recurring").get_by_role("link", name="nightly").click()
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#recent tbody tr[id]")).to_have_count(1)
    page.locator("#change").get_by_label("Interval in seconds").fill("7200")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".head")).to_contain_text("2 hours")
    page.get_by_role("button", name="Pause…", exact=True).click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_label("Reason").fill("the printer is broken")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("h1 .pill")).to_have_text("paused")
    expect(page.locator("main")).to_contain_text("the printer is broken")
    page.get_by_role("button", name="Delete", exact=True).click()
    visit.expect("status of 404")
    page.get_by_role("button", name="Delete?").click()
    until(lambda: not Console(client).recurring().rows, "it is deleted")


def test_while_somebody_types_a_calendar_its_next_moments_appear_in_both_zones_or_what_is_wrong(
    visit: Visits, client: Client
) -> None:
    page = visit("/recurring?new=1", timezone_id="America/New_York")
    form, shown = page.locator("#new form"), page.locator("#preview")
    expect(shown).to_contain_text("America/New_York")
    form.get_by_label("By a cron expression").check()
    expect(form.get_by_label("Interval in seconds")).to_be_hidden()
    form.get_by_role("textbox", name="Cron expression").press_sequentially("30 2 * *", delay=20)
    expect(shown).to_have_text(
        "cron: expected five fields (minute, hour, day, month, weekday) such as '0 3 * * *', got '30 2 * *'"
    )
    form.get_by_role("textbox", name="Cron expression").press_sequentially(" *", delay=20)
    expect(shown.locator("tbody tr")).to_have_count(5)
    form.get_by_label("Time zone").fill("Europe/Berlni")
    expect(shown).to_contain_text("did you mean 'Europe/Berlin'?")
    form.get_by_label("Time zone").fill("Europe/Berlin")
    expect(shown.locator("thead")).to_contain_text("America/New_York")
    form.get_by_label("Start").fill("2027-03-28T00:00")
    expect(shown.locator("tbody tr").first).to_contain_text("Sun 28 Mar 2027, 03:00 UTC+2")
    expect(shown.locator("tbody tr").first).to_contain_text("Sat 27 Mar 2027, 21:00 UTC-4")
    expect(shown.locator("tbody tr").first).to_contain_text("clock set forward by 1 h")
    visit.expect("status of 400")
    form.get_by_label("Class or function").fill("shop.nightly")
    form.get_by_label("Queue").fill("reports")
    form.get_by_role("textbox", name="End").fill("2027-03-27T00:00")
    form.get_by_role("button", name="Add").click()
    toast(page, "end must be later than start")
    expect(form.get_by_label("Class or function")).to_have_value("shop.nightly")
    assert not Console(client).recurring().rows
    form.get_by_role("textbox", name="End").fill("")
    form.get_by_label("Overlap").select_option("skip")
    form.get_by_role("button", name="Add").click()
    toast(page, "added")
    [facts] = Console(client).recurring().rows
    assert facts.calendar is not None
    assert (facts.calendar.zone, facts.calendar.overlap) == ("Europe/Berlin", "skip")
    expect(page.locator("main")).to_contain_text("30 2 * * *")


def test_the_missed_turns_of_a_recurring_job_are_counted_until_a_worker_asks(
    visit: Visits, client: Client
) -> None:
    clock = StoppedClock(client, START_MS)
    clock.start()
    client.queues["reports"].recur("shop.Hourly", {}, 3600, jid="hourly", offset=3600, backlog=1)
    clock.advance(hours=3, minutes=1)
    page = visit("/recurring")
    expect(page.locator("#recurring tbody tr", has_text="hourly")).to_contain_text("3 missed")
    page.locator("#recurring").get_by_role("link", name="hourly").click()
    expect(page.locator("main")).to_contain_text("Missed runs: 3.")
    assert len(client.queues["reports"].pop(5)) == 1  # of the backlog, the latest
    expect(page.locator("main")).not_to_contain_text("Missed runs")
    expect(page.locator("#recent tbody tr[id]")).to_have_count(1)


def test_messages_are_scheduled_counted_down_delivered_and_cancelled(
    visit: Visits, client: Client, address: str
) -> None:
    visit.expect("status of 40[09]")
    client.topics["mail"].put("first", "Do you need a hand?", delay=900)
    page = visit("/topics/mail")
    rows = page.locator("#pending tbody tr[id]")
    left = rows.locator("time")
    before = left.inner_text()
    expect(left).not_to_have_text(before)
    form = page.locator("[data-topic-form]")
    form.get_by_label("Ready in seconds").fill("600")
    form.get_by_label("Body").fill("See you tomorrow")
    own = form.get_by_label("Id").input_value()
    form.get_by_role("button", name="Schedule").click()
    expect(rows).to_have_count(2)
    expect(form.get_by_label("Id")).not_to_have_value(own)
    form.get_by_label("Id").fill("first")
    form.get_by_role("button", name="Schedule").click()
    toast(page, "first")
    expect(page.locator(".toast").last).to_have_attribute("data-toast", "failed")
    page.mouse.move(0, 0)
    page.locator("tr", has_text=own).get_by_role("button", name="Deliver now").click()
    expect(page.locator("tr", has_text=own)).to_contain_text("ready")
    page.locator("tr", has_text="first").get_by_role("button", name="Cancel").click()
    expect(page.locator("#finished li")).to_contain_text("first")
    page.reload()
    expect(rows).to_have_count(1)
    expect(page.locator("#finished li")).to_contain_text("cancelled")
    message = client.topics["mail"].pull()
    assert message is not None
    assert message.id == own


def test_what_programs_do_with_messages_over_http_is_seen_as_it_happens(
    visit: Visits, client: Client, address: str
) -> None:
    """Also that the countdown and the buttons are in view beside an id and a body of any length."""
    long = "y" * 190
    page = visit("/topics/mail")
    pending, finished = page.locator("#pending tbody tr[id]"), page.locator("#finished")
    with httpx.Client(base_url=address) as program:
        for id, delay in ((long, 900), ("soon", 0)):
            fields = {"id": id, "contents": "x" * 1000, "delay": delay}
            assert program.post("schedule/mail", json=fields).json() == {"success": True, "created": True}
        expect(pending).to_have_count(2)
        expect(page.locator("#pending time")).to_be_in_viewport()
        expect(pending.last.get_by_role("button", name="Cancel")).to_be_in_viewport()
        assert program.post("cancel/mail", json={"id": long}).json() == {"success": True, "removed": True}
        assert program.post("cancel/mail", json={"id": long}).json() == {"success": True, "removed": False}
        expect(finished.locator("li", has_text=long)).to_contain_text("cancelled")
        assert program.post("reserve/mail").json()["id"] == "soon"
        expect(page.locator("#reserved tbody tr[id]")).to_contain_text("soon")
        assert program.post("release/mail", json={"id": "soon"}).json()["released"]
        expect(finished.locator("li", has_text="soon")).to_contain_text("completed")
    finished.get_by_role("button", name="Remove soon from this list").click()
    expect(finished.locator("li")).to_have_count(1)


def test_messages_that_end_are_listed_also_where_the_page_does_not_show_them(
    visit: Visits, client: Client
) -> None:
    mail = client.topics["mail"]
    for number in range(40):
        mail.put(f"m-{number}", "{}", delay=900 + number)
    page = visit("/topics/mail")
    expect(page.locator("#pending tbody tr[id]")).to_have_count(25)
    expect(page.locator("#chip")).to_have_text("Live")
    mail.put("m-first", "{}")
    expect(page.locator("#pending tbody tr[id]").first).to_contain_text(
        "m-first"
    )  # the stream reports what happens
    mail.delete("m-39")
    assert mail.pull() is not None
    finished = page.locator("#finished")
    expect(finished.locator("li", has_text="m-39")).to_contain_text("cancelled")
    expect(finished.locator("li", has_text="m-first")).to_contain_text("completed")
    expect(finished.locator("li")).to_have_count(2)


def test_a_worker_that_was_killed_is_silent_and_its_jobs_run_elsewhere_when_its_leases_are_timed_out(
    visit: Visits, client: Client, tmp_path: Path
) -> None:
    client.queues["mail"].heartbeat = 600
    jid = client.queues["mail"].put("chores.Send", {"seconds": 600})
    page, overview = visit("/workers"), visit("/")
    with worker(client, tmp_path, "left") as process:
        until(lambda: client.jobs[jid].state == "running", "it runs")  # type: ignore[union-attr]
        page.get_by_role("link", name=client.jobs[jid].worker_name, exact=True).click()  # type: ignore[union-attr]
        expect(page.locator("#slots tbody tr[id]")).to_have_count(1)
        name = page.locator("h1").inner_text()
        os.killpg(process.pid, signal.SIGKILL) if os.getpgid(process.pid) == process.pid else process.kill()
        process.wait(30)
    expect(page.locator("main")).to_contain_text("This worker is silent.", timeout=90_000)  # no heartbeat
    expect(overview.locator(".wants")).to_contain_text(name)
    overview.context.close()
    page.locator(".nav").get_by_role("link", name="Workers").click()
    row = page.locator("#workers tbody tr", has_text=name)
    expect(row.locator(".pill")).to_have_text("silent")
    expect(row.locator("td").nth(8)).to_contain_text("ago")
    page.go_back()
    page.get_by_role("button", name="Time out its leases…").click()
    confirm(page, "Time out 1 job?")
    toast(page, "timed out.")
    with worker(client, tmp_path, "right"):
        expect(page.locator("main")).to_contain_text("Idle")
        until(lambda: client.jobs[jid].worker_name != name, "another worker has it")  # type: ignore[union-attr]


def until_it_reports(client: Client) -> None:
    """Wait for the next reports of a worker, which it sends every ten seconds."""
    before = Console(client).now_ms()
    until(lambda: any(one.seen_ms > before for one in Console(client).workers().rows), "it reports")


def test_a_quiet_worker_finishes_and_takes_nothing_more(
    visit: Visits, client: Client, tmp_path: Path
) -> None:
    jid = client.queues["mail"].put("chores.Send", {"seconds": 15})
    with worker(client, tmp_path, "calm", "--workers", "1"):
        page = visit("/workers")
        row = page.locator("#workers tbody tr", has_text="calm").first
        expect(row.locator("td").nth(2)).to_have_text("1")  # it runs
        row.get_by_role("button", name="Quiet").click()
        expect(row.locator(".pill")).to_have_text("quiet")
        assert client.jobs[jid].state == "running"  # type: ignore[union-attr]
        until(lambda: client.jobs[jid].state == "complete", "it has finished", 60)  # type: ignore[union-attr]
        until(lambda: any(one.quiet for one in Console(client).workers().rows), "the store knows")
        until_it_reports(client)  # it has heard of it
        put(client, 1, klass="chores.Send")
        until_it_reports(client)
        assert client.queues["mail"].counts["waiting"] == 1
        page.get_by_role("button", name="Resume", exact=True).first.click()
        until(lambda: client.queues["mail"].counts["waiting"] == 0, "it takes jobs again")


def test_a_second_version_of_workers_is_named_and_marked_on_charts(visit: Visits, client: Client) -> None:
    put(client, 3)
    client.queues["mail"].pop().complete()  # type: ignore[union-attr]
    client.run(WorkerSeen("a", {"version": "1.0", "queues": '["mail"]'}))
    page = visit("/")
    expect(page.locator(".tiles").first).to_be_visible()
    assert not page.locator(".wants li", has_text="versions of workers").count()
    client.run(WorkerSeen("b", {"version": "1.1<script>", "queues": '["mail"]'}))
    expect(page.locator(".wants li", has_text="2 versions of workers")).to_contain_text(
        "1.0 (1), 1.1<script> (1)"
    )
    page.reload()
    chart = page.locator("hf-chart").first
    expect(chart).to_have_attribute("aria-label", re.compile("version 1.1<script> at "))
    marks = json.loads(str(chart.get_attribute("data-chart")))["marks"]
    assert [one["label"] for one in marks] == ["version 1.1<script>"]
    page.locator(".wants li", has_text="2 versions of workers").get_by_role("link", name="Open").click()
    expect(page.locator(".wants")).to_contain_text("2 versions are running: 1.0 (1), 1.1<script> (1)")
    expect(page.locator("#workers")).to_contain_text("1.1<script>")


def test_a_raised_maximum_lets_jobs_start_and_a_second_save_is_told_of_the_first(
    visit: Visits, client: Client
) -> None:
    visit.expect("status of 409")
    client.throttles["api"].set_maximum(1)
    put(client, 4, throttles=["api"])
    client.queues["mail"].pop(4)
    context = visit.context()
    first, second = visit("/throttles", context=context), visit("/throttles", context=context)
    expect(first.locator("#named tbody tr")).to_contain_text("1 / 1")
    second.evaluate("document.querySelector('[data-keys]').removeAttribute('data-keys')")
    first.bring_to_front()
    field = first.get_by_label("Maximum of api")
    field.fill("3")
    field.blur()
    toast(first, "Throttle api: at most 3 at once.")
    until(lambda: client.queues["mail"].counts["waiting"] == 2, "two more may start")
    second.bring_to_front()
    field = second.get_by_label("Maximum of api")
    field.fill("9")
    field.blur()
    toast(second, 'the maximum of api was changed meanwhile: it is "3" now, not "1"')
    expect(second.locator("#named .fault").first).to_contain_text('it is "3" now')
    assert client.throttles["api"].facts().maximum == 3


def test_settings_are_changed_after_a_look_and_not_over_the_change_of_another(
    visit: Visits, client: Client
) -> None:
    visit.expect("status of 409")
    first, second = visit("/config"), visit("/config")
    for page, value in ((first, "20000"), (second, "30000")):
        page.get_by_label("jobs-history-count", exact=True).fill(value)
        page.get_by_role("button", name="Review changes…").click()
        expect(page.locator("#dialog[open]")).to_contain_text(value)
    first.locator("#dialog .acts .btn").last.click()
    toast(first, "jobs-history-count")
    assert int(str(client.config["jobs-history-count"])) == 20_000
    second.locator("#dialog .acts .btn").last.click()
    expect(second.locator(".toast").last).to_contain_text("it is '20000' now, not '50000'")
    place = second.locator("tr", has=second.get_by_label("jobs-history-count", exact=True)).locator(".fault")
    expect(place).to_contain_text("it is '20000' now, not '50000'")
    assert int(str(client.config["jobs-history-count"])) == 20_000


def test_values_that_settings_cannot_have_are_explained_beside_them(visit: Visits, client: Client) -> None:
    visit.expect("status of 400")
    page = visit("/config")
    history, heartbeat = (
        page.get_by_label("jobs-history-count", exact=True),
        page.get_by_label("heartbeat", exact=True),
    )
    for field in (history, heartbeat):
        field.evaluate("field => field.removeAttribute('pattern')")
    history.fill("many")
    heartbeat.fill("0")
    page.get_by_role("button", name="Review changes…").click()
    for field, text in (
        (history, "expected a whole number"),
        (heartbeat, "expected a number greater than 0"),
    ):
        expect(page.locator("tr", has=field).locator(".fault")).to_contain_text(text)
        assert field.evaluate(
            "field => document.getElementById(field.getAttribute('aria-describedby')).innerText"
        )
    history.fill("20000")
    heartbeat.fill("60")
    page.get_by_role("button", name="Review changes…").click()
    expect(page.locator("#dialog[open]")).to_contain_text("20000")
    expect(page.locator(".fault", has_text="expected")).to_have_count(0)
    page.keyboard.press("Escape")
    assert "heartbeat" not in {one.name for one in Console(client).settings().known if one.is_set}


def test_the_order_of_priorities_is_changed_by_the_keyboard(visit: Visits, client: Client) -> None:
    for queue in ("mail", "reports"):
        put(client, 1, queue)
    page = visit("/config?tab=priorities")
    for text in ("mail", "reports"):
        page.locator("#priorities [name=pattern]").last.fill(text)
        page.keyboard.press("Enter")
        expect(page.locator("#priorities [name=pattern]").last).to_have_value("")
    rules = page.locator("#priorities tbody tr")
    at = [rule.locator("[name=pattern]").input_value() for rule in rules.all()].index("reports")
    up = rules.nth(at).get_by_role("button", name="Up")
    up.focus()
    page.keyboard.press("Enter")
    expect(rules.nth(at - 1).locator("[name=pattern]")).to_have_value("reports")
    kept = [list(rule.patterns) for rule in Console(client).queue_order().rules]
    assert kept.index(["reports"]) < kept.index(["mail"])


def test_patterns_of_queues_are_written_and_tried_by_the_keyboard(visit: Visits, client: Client) -> None:
    for queue in ("mail-fast", "mail-slow", "reports"):
        put(client, 1, queue)
    page = visit("/config?tab=patterns")
    page.get_by_placeholder("New name").focus()
    page.keyboard.type("critical")
    page.keyboard.press("Tab")
    page.keyboard.type("mail-*, !mail-slow")
    page.keyboard.press("Enter")
    row = page.locator("#patterns tbody tr", has=page.locator("[value=critical]"))
    expect(row.locator(".tag")).to_have_text(["mail-fast"])  # what it expands to
    assert client.queue_patterns.get_queue_identifier_patterns()["critical"] == ["mail-*", "!mail-slow"]
    page.get_by_label("Names and patterns of a worker").focus()
    page.keyboard.type("@critical, reports")
    page.keyboard.press("Enter")
    trial = page.locator("table", has_text="Queues, in order").locator(".tag")
    expect(trial).to_have_text(["mail-fast", "reports"])
