"""What people do with one job, with the search and by the keyboard, in a real browser."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import Visits, confirm, expect, fail, go, is_same, put, stay, toast
from playwright.sync_api import Page

from holdfast import Client
from holdfast.commands.leases import CompleteMany, Done
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.console.page_paths import segment
from waiting import until

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]


def test_the_data_of_a_failed_job_are_changed_after_a_look_at_the_difference_and_it_runs_with_them(
    visit: Visits, client: Client, address: str
) -> None:
    client.config.set("keep-data", 1)
    [jid] = fail(client, 1)
    visit.expect("status of 400")
    page = visit(f"/jobs/{jid}")
    page.get_by_role("button", name="Edit and requeue…").click()
    dialog = page.locator("dialog[open]")
    expect(dialog.get_by_label("Data")).to_have_value('{\n  "n": 0\n}')
    dialog.get_by_label("Data").fill('{"n": 1,')
    dialog.get_by_role("button", name="Show the difference…").click()
    toast(page, "expected JSON")
    dialog.get_by_label("Data").fill('{"n": 42}')
    dialog.get_by_role("button", name="Show the difference…").click()
    question = page.locator("#dialog[open]")
    expect(question.locator(".diff .del")).to_contain_text('"n": 0')
    expect(question.locator(".diff .add")).to_contain_text('"n": 42')
    question.get_by_role("button", name="Save and requeue").click()
    toast(page, "the job waits again")
    expect(page.locator("h1 .pill")).to_have_text("waiting")
    job = client.queues["mail"].pop()
    assert job is not None
    assert json.loads(job.data) == {"n": 42}
    go(page, f"{address}jobs/{jid}?first=1&second=2")
    expect(page.locator("#compare .del")).to_contain_text('"n": 0')  # the attempt before still has its own
    expect(page.locator("#compare .add")).to_contain_text('"n": 42')
    page.locator("#history").get_by_role("link", name="The job at this moment").last.click()
    expect(page.locator("#moment .del")).to_contain_text('"n": 0')


# Why a job is not running: each verdict, and its button.


def scheduled(client: Client) -> str:
    [jid] = put(client, 1, delay=600)
    return jid


def paused(client: Client) -> str:
    [jid] = put(client, 1)
    client.queues["mail"].pause(why="no reason")
    return jid


def failed(client: Client) -> str:
    [jid] = fail(client, 1)
    return jid


def running(client: Client) -> str:
    [jid] = put(client, 1)
    client.queues["mail"].pop()
    return jid


def lost(client: Client) -> str:
    client.queues["mail"].heartbeat = 1
    jid = running(client)
    until(lambda: client.queues["mail"].counts["stalled"] == 1, "its lease has ended")
    return jid


def released(client: Client) -> str:
    client.throttles["api"].set_maximum(1)
    [_, jid] = put(client, 2, throttles=["api"])
    client.queues["mail"].pop(2)
    Console(client).release_throttle("api", jid)
    return jid


def report(client: Client, busy: int = 0) -> None:
    """Report a worker of the queue mail with one slot, as workers do."""
    facts = {"queues": '["mail"]', "slots": "1", "busy": str(busy), "host": "here", "pool": "thread"}
    client.run(WorkerSeen("here-1", facts))


def of_quiet_workers(client: Client) -> str:
    [jid] = put(client, 1)
    report(client)
    Console(client).quiet("here-1")
    return jid


@pytest.mark.parametrize(
    ("make", "text", "button"),
    [
        (scheduled, "due in", "Run now"),
        (paused, "paused", "Resume mail"),
        (failed, "It failed", "Retry"),
        (lost, "its lease ended", "Time out"),
        (of_quiet_workers, "are quiet", "Resume its workers"),
        (released, "slot of a throttle was released", "Put it again"),
    ],
)
def test_the_page_of_a_job_says_why_it_does_not_run_and_a_button_helps(
    visit: Visits, client: Client, make: Callable[[Client], str], text: str, button: str
) -> None:
    page = visit(f"/jobs/{make(client)}")
    why = page.locator("#why")
    expect(why.locator(".blocks", has_text=text)).to_have_count(1)
    stay(page)
    why.get_by_role("button", name=button, exact=True).click()
    expect(why.locator(".blocks", has_text=text)).to_have_count(0)
    state = "throttled" if make is released else "waiting"
    expect(page.locator("h1 .pill")).to_have_text(state)
    assert is_same(page)


def test_the_page_of_a_job_says_that_no_worker_takes_it_that_all_are_busy_and_how_many_are_before_it(
    visit: Visits, client: Client
) -> None:
    [*_, jid] = put(client, 3)
    page = visit(f"/jobs/{jid}")
    why = page.locator("#why")
    expect(why.locator(".blocks")).to_have_text(re.compile("No worker is known for queue mail"))
    expect(why.get_by_role("button", name="Copy the command")).to_be_visible()  # that starts one
    expect(why).to_contain_text("2 jobs are ahead of it")
    stay(page)
    report(client, busy=1)
    expect(why.locator(".blocks")).to_have_text(
        re.compile("1 worker works for queue mail, with 0 free slots")
    )
    page.locator("#facts").get_by_role("button", name="High 25").click()
    expect(why).to_contain_text("It is the next job of queue mail.")
    report(client)
    put(client, 1)  # a worker with a free slot changes no number: the next event does
    page.keyboard.press("r")
    expect(why.locator(".blocks")).to_have_count(0)
    assert is_same(page)


def test_what_a_job_waits_for_ends_and_the_page_of_the_job_follows(visit: Visits, client: Client) -> None:
    [parent] = put(client, 1)
    [child] = put(client, 1, depends=[parent])
    client.throttles["api"].set_maximum(1)
    [_, throttled] = put(client, 2, "api", throttles=["api"])
    client.queues["api"].pop(2)
    context = visit.context()
    first, second = visit(f"/jobs/{child}", context=context), visit(f"/jobs/{throttled}", context=context)
    for page in (first, second):
        expect(page.locator("#chip")).to_have_text("Live")
        stay(page)
    expect(first.locator("#why .blocks").first).to_contain_text("waits for 1 other job")
    expect(second.locator("#why .blocks").first).to_contain_text("Throttle api is full: 1 of 1")
    [job] = client.queues["mail"].pop(1)
    job.complete()
    Console(client).set_throttle("api", 2)
    expect(first.locator("h1 .pill")).to_have_text("waiting")
    expect(second.locator("#why")).to_contain_text("waits again in queue api")
    for page in (first, second):
        expect(page.locator("#why .blocks", has_text=re.compile("waits for|is full"))).to_have_count(0)
        assert is_same(page)


def test_the_page_of_a_job_names_what_it_waits_for(visit: Visits, client: Client, address: str) -> None:
    [parent] = put(client, 1)
    [child] = put(client, 1, depends=[parent])
    client.throttles["api"].set_maximum(1)
    [_, throttled] = put(client, 2, "api", throttles=["api"])
    client.queues["api"].pop(2)
    page = visit(f"/jobs/{child}")
    expect(page.locator("#why .blocks").first).to_contain_text("waits for")
    page.locator("#why").get_by_role("link", name="Open the job it waits for").click()
    page.wait_for_url(f"**/{parent}")
    go(page, f"{address}jobs/{throttled}")
    expect(page.locator("#why .blocks").first).to_contain_text("api")
    page.locator("#why").get_by_role("link", name="Open the throttle").click()
    expect(page.locator("h1")).to_have_text("api")


def test_a_running_job_and_one_that_is_complete_or_cancelled_are_explained(
    visit: Visits, client: Client, address: str
) -> None:
    jid = running(client)
    page = visit(f"/jobs/{jid}")
    expect(page.locator("#why")).to_contain_text("its lease has")
    client.jobs[jid].complete()  # type: ignore[union-attr]
    expect(page.locator("#why")).to_contain_text("The job is complete")
    [other] = put(client, 1)
    go(page, f"{address}jobs/{other}")
    visit.expect("status of 404")
    page.locator(".head .menu summary").click()
    page.locator(".head .menu[open] [data-verb=cancel]").click()
    page.locator(".head .menu[open] [data-verb=cancel]").click()
    expect(page.locator("main")).to_contain_text("doesn't exist, was canceled, or expired")


def test_earlier_moments_and_two_attempts_of_a_job_are_compared(
    visit: Visits, client: Client, address: str
) -> None:
    client.config.set("keep-data", 1)
    [jid] = put(client, 1)
    for name, group in (("first", "ConnectError"), ("second", "ReadTimeout")):
        with Client(client.store_url, namespace=client.settings.namespace, hostname=name) as worker:
            job = worker.queues["mail"].pop()
            assert job is not None
            message = f"{group}: no luck of {name}"
            job.retry(group=group, message=message) if name == "first" else job.fail(group, message)
        if name == "first":
            Console(client).edit(jid, {"n": 1}, seen=b'{"n":0}')
    page = visit(f"/jobs/{jid}")
    page.locator("#history").get_by_role("link", name="The job at this moment").last.click()
    moment = page.locator("#moment")
    for state in ("waiting", "running", "waiting", "running", "failed"):
        expect(moment.locator(".pill")).to_have_text(state)
        if state != "failed":
            moment.get_by_role("link", name="Later").click()
    moment.get_by_role("link", name="Earlier").click()
    expect(moment).to_contain_text("on second, attempt 2")
    page.keyboard.press("[")
    expect(moment).to_contain_text("in mail")
    expect(moment.locator(".pill")).to_have_text("waiting")
    expect(page.locator("#chip")).to_have_text("Live")  # the script of the page is there
    page.keyboard.press("]")
    expect(moment.locator(".pill")).to_have_text("running")
    slider = moment.get_by_label("Moment of the history")
    slider.fill("1")
    expect(moment.locator(".del")).to_contain_text('"n": 0')
    expect(moment.get_by_label("Moment of the history")).to_have_value("1")
    expect(page.locator("#chip")).to_have_text("Live")
    moment.get_by_label("Moment of the history").focus()
    page.keyboard.press("End")
    expect(moment.locator(".pill")).to_have_text("failed")
    moment.get_by_role("link", name="Back to now").click()
    expect(moment).to_have_count(0)
    states = [one["state"] for one in page.request.get(f"{address}api/v1/jobs/{jid}").json()["moments"]]
    assert states == ["waiting", "running", "waiting", "running", "failed"]
    page.locator("#attempts").get_by_role("link", name="Compare").first.click()
    rows = page.locator("#compare tbody tr")
    expect(rows.filter(has_text="Worker")).to_contain_text("firstsecond")
    expect(rows.filter(has_text="Group")).to_contain_text("ConnectErrorReadTimeout")
    for text in ("no luck of first", "no luck of second"):
        expect(rows.filter(has_text="Message")).to_contain_text(text)
    expect(page.locator("#compare .del")).to_contain_text('"n": 0')
    expect(page.locator("#compare .add")).to_contain_text('"n": 1')


def test_the_graph_shows_a_diamond_whose_nodes_lead_to_their_jobs_and_follow_the_store(
    visit: Visits, client: Client
) -> None:
    queue = client.queues["mail"]
    queue.put("jobs.Fetch", {}, jid="top")
    for side in ("left", "right"):
        queue.put("jobs.Parse", {}, jid=side, depends=["top"])
    queue.put("jobs.Store", {}, jid="end", depends=["left", "right"])
    page = visit("/jobs/left")
    graph = page.locator("#graph svg")
    expect(graph.locator("a")).to_have_count(4)
    page.locator(".head .menu summary").click()
    expect(graph.locator("a", has_text="jobs.Fetch")).to_contain_text("waiting")
    queue.pop()
    expect(graph.locator("a", has_text="jobs.Fetch")).to_contain_text("running")
    expect(page.locator(".head .menu[open]")).to_be_visible()  # it is not closed by what comes
    page.keyboard.press("Escape")
    graph.locator("a", has_text="jobs.Store").click()
    page.wait_for_url("**/jobs/end")
    expect(page.locator("h1")).to_contain_text("jobs.Store")


def test_a_chain_of_fifty_is_walked_by_its_nodes(visit: Visits, client: Client) -> None:
    queue = client.queues["mail"]
    for number in range(50):
        queue.put("jobs.Step", {}, jid=f"step-{number}", depends=[f"step-{number - 1}"] if number else [])
    page = visit("/jobs/step-0")
    seen = {"step-0"}
    for _ in range(50):
        nodes = page.locator("#graph svg a").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('href').split('/').pop())"
        )
        assert len(nodes) >= 2
        seen |= set(nodes)
        if "step-49" in seen:
            break
        last = max(nodes, key=lambda node: int(node.removeprefix("step-")))
        page.locator(f'#graph svg a[href$="/{last}"]').click()
        page.wait_for_url(f"**/{last}")
    assert seen == {f"step-{number}" for number in range(50)}
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440


def test_a_fan_of_three_hundred_is_collapsed(visit: Visits, client: Client) -> None:
    client.queues["mail"].put("jobs.Fetch", {}, jid="top")
    put(client, 300, depends=["top"])
    page = visit("/jobs/top")
    expect(page.locator("#graph")).to_contain_text("further links are not shown")
    assert page.locator("#graph svg a").count() < 100


def test_a_tracked_job_is_followed_to_its_end_and_dismissed(
    visit: Visits, client: Client, address: str
) -> None:
    [jid] = put(client, 1)
    page = visit(f"/jobs/{jid}")
    page.get_by_role("button", name="Track", exact=True).click()
    expect(page.get_by_role("button", name="Untrack", exact=True)).to_be_visible()
    go(page, address + "tracked")
    pill = page.locator("#tracked tbody .pill")
    expect(pill).to_have_text("waiting")
    stay(page)
    job = client.queues["mail"].pop()
    assert job is not None
    expect(pill).to_have_text("running")
    job.complete()
    expect(pill).to_have_text("complete")
    assert is_same(page)
    page.locator("#tracked [data-verb=untrack]").click()
    page.mouse.move(0, 0)
    expect(page.locator("main")).to_contain_text("No tracked jobs")


def test_a_job_is_tagged_with_odd_characters_and_found_by_its_tag(visit: Visits, client: Client) -> None:
    [jid] = put(client, 1)
    page = visit(f"/jobs/{jid}")
    field = page.get_by_label("Add tag")
    for tag in ("a/b c", "50 %"):
        field.fill(tag)
        field.press("Enter")
        expect(page.locator("#tags .tag", has_text=tag)).to_be_visible()
    page.locator("#tags .tag", has_text="50 %").click()
    expect(page.locator("h1")).to_have_text("50 %")
    expect(page.locator("#jobs tbody tr")).to_have_count(1)
    page.go_back()
    page.get_by_role("button", name="Remove the tag a/b c").click()
    expect(page.locator("#tags .tag", has_text="a/b c")).to_have_count(0)
    assert list(client.jobs[jid].tags) == ["50 %"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("state:failed", 2),
        ("state:failed queue:mail", 2),
        ("queue:ma*", 5),
        ("not queue:mail", 6),
        ("tag:vip", 3),
        ("tag:vip or state:failed", 5),
        ("group~ValueErr", 2),
        ("data.n=1", 3),
        ("priority>5", 4),
        ("created<1h (queue:sms or tag:vip)", 7),
        ('"no luck"', 2),
        ("class:jobs.Se*", 10),
        ("klass:jobs.Send -tag:vip", 7),
        ("is:tracked", 1),
        ("is:late", 0),
        ("worker:WORKER", 3),
        ("message~luck", 2),
        ("retries>=5 queue:sms", 4),
        ("remaining<5 or remaining=5", 11),
        ("attempts>0 state:failed", 2),
        ("losses:0 queue:mail", 5),
        ("size>3 size<=8", 10),
        ("queued<1h popped<1h", 3),
        ("started<1h not state:failed", 1),
        ("ended<1h", 3),
        ("done>1h", 0),
        ("failed<1h", 2),
        ("due>0s", 1),
        ("priority:1..9", 4),
        ("priority=9,0 queue:sms,mail", 9),
        ("data.name:odd*", 1),
        ("JID", 1),
    ],
)
def test_a_search_finds_what_its_filter_says(visit: Visits, client: Client, query: str, count: int) -> None:
    fail(client, 2)
    [jid, *_] = put(client, 3, tags=["vip"])
    put(client, 4, "sms", priority=9)
    client.queues["over"].put("shop.Over", {"name": "oddly named"})
    client.queues["over"].pop(1)[0].complete()
    put(client, 1, "late", delay=600)
    Console(client).act("track", jid)
    query = query.replace("JID", f"jid:{jid[:-1]}*" if count > 1 else f"jid:{jid}").replace(
        "WORKER", Console(client).workers().rows[0].name
    )
    page = visit("/")
    expect(page.locator("#chip")).to_have_text("Live")
    page.keyboard.press("/")
    page.keyboard.type(query)
    page.keyboard.press("Enter")
    expect(page.locator("#jobs tbody tr[id]")).to_have_count(count)
    expect(page.locator("main [name=q]").first).to_have_value(query)


def test_a_search_says_how_far_it_looked_and_goes_on(visit: Visits, client: Client) -> None:
    put(client, 6000)
    [jid] = put(client, 1, klass="jobs.Rare")
    page = visit("/jobs?q=queue:mail klass:jobs.Rare")
    expect(page.locator(".effort")).to_contain_text(" of 6\u202f001 searched")
    expect(page.locator("#jobs tbody tr[id]")).to_have_count(0)
    page.get_by_role("link", name="Search the next").click()
    expect(page.locator("#jobs tbody a.mono").first).to_have_attribute("title", jid)


def test_a_filter_that_is_wrong_is_explained_at_its_place(visit: Visits) -> None:
    visit.expect("status of 400")
    page = visit("/jobs?q=state:failed%20quue:mail")
    expect(page.locator("[role=alert]")).to_contain_text("quue")
    expect(page.locator("[role=alert] mark")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Examples")


def test_the_palette_goes_to_a_queue_and_a_job_and_acts_on_the_selection(
    visit: Visits, client: Client
) -> None:
    [jid] = fail(client, 1)
    page = visit("/")
    expect(page.locator("#chip")).to_have_text("Live")
    choose(page, "mail")
    page.wait_for_url("**/queues/mail")
    choose(page, jid)
    page.wait_for_url(f"**/jobs/{jid}")
    choose(page, "Failed")
    page.wait_for_url("**/failed")
    page.locator("#failed tbody a").first.click()
    page.wait_for_url("**/failed/*")
    page.locator("#jobs-of-group [data-pick]").check()
    visit.expect("status of 404")  # of the group, which is gone
    choose(page, "retry")
    toast(page, "retried.")


def choose(page: Page, text: str) -> None:
    page.keyboard.press("Control+k")
    expect(page.locator("#palette input")).to_be_focused()
    page.keyboard.type(text)
    expect(page.locator("#palette li").first).to_contain_text(re.compile(re.escape(text), re.IGNORECASE))
    page.keyboard.press("Enter")


def test_a_group_is_retried_from_the_overview_by_the_keyboard_alone(visit: Visits, client: Client) -> None:
    fail(client, 3)
    visit.expect("status of 404")  # of the group, which is gone
    page = visit("/")
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.wait_for_url("**/failed")
    page.keyboard.press("j")
    assert has_visible_focus(page)
    page.keyboard.press("Enter")
    page.wait_for_url("**/failed/mail-ValueError")
    for _ in range(60):
        page.keyboard.press("Tab")
        assert has_visible_focus(page)
        if page.evaluate("document.activeElement.innerText").startswith("Retry all"):
            break
    page.keyboard.press("Enter")
    expect(page.locator("#dialog[open]")).to_contain_text("Retry 3 jobs?")
    expect(page.locator("#dialog [data-close]")).to_be_focused()
    page.keyboard.press("Tab")
    assert has_visible_focus(page)
    page.keyboard.press("Enter")
    toast(page, "3 jobs: retried.")
    assert client.queues["mail"].counts["waiting"] == 3


def has_visible_focus(page: Page) -> bool:
    """Return whether the element with the focus has an outline, or something else that shows it."""
    return bool(
        page.evaluate(
            """() => {
              const style = getComputedStyle(document.activeElement);
              return document.activeElement !== document.body && (parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none");
            }"""
        )
    )


NAMES = ("a/b", "a.b:c", "..", "two words", "%2F", "🦑", "?x=1", "#top", "'\"", "{{7*7}}")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_characters_have_pages_that_links_lead_to_and_actions_change(
    visit: Visits, client: Client, address: str, name: str
) -> None:
    visit.expect("status of 404")  # of the group, which is gone
    fail(client, 1, name, name, tags=[name], throttles=[name])
    client.throttles[name].set_maximum(3)
    client.topics[name].put("m", "x", delay=600)
    page = visit("/queues")
    page.locator("#queue").get_by_role("link", name=name, exact=True).first.click()
    expect(page.locator("h1")).to_have_text(name)
    page.get_by_role("button", name="Pause…").click()
    confirm(page, f"Pause {name}?")
    expect(page.locator("h1 .pill")).to_have_text("paused")
    for path in ("failed", "throttles", "topics", "tags"):
        go(page, address + path)
        page.locator("main").get_by_role("link", name=name, exact=True).first.click()
        expect(page.locator("h1")).to_have_text(name)
        assert page.url == f"{address}{path}/{segment(name)}"
    go(page, f"{address}failed/{segment(name)}")
    page.locator("#jobs-of-group [data-verb=retry]").click()
    toast(page, "retried.")
    until(lambda: not Console(client).failures(), "the group is gone")


@pytest.mark.parametrize("name", NAMES)
def test_workers_tags_throttles_and_topics_of_any_names_are_changed_from_their_pages(
    visit: Visits, client: Client, address: str, name: str
) -> None:
    [jid] = put(client, 1, name, tags=[name], throttles=[name])
    client.throttles[name].set_maximum(3)
    client.topics[name].put(name, "x", delay=600)
    client.run(WorkerSeen(name, {"queues": json.dumps([name]), "slots": "1"}))
    page = visit("/workers")
    page.locator("#workers").get_by_role("link", name=name, exact=True).first.click()
    expect(page.locator("h1")).to_have_text(name)
    page.get_by_role("button", name="Quiet").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    go(page, f"{address}throttles/{segment(name)}")
    field = page.get_by_label("Maximum").first
    field.fill("7")
    field.press("Enter")
    until(lambda: client.throttles[name].facts().maximum == 7, "the maximum is set")
    go(page, f"{address}topics/{segment(name)}")
    page.get_by_role("button", name="Deliver now").click()
    until(lambda: client.topics[name].pull(), "the message is ready")
    go(page, f"{address}tags/{segment(name)}")
    page.locator("#jobs tbody a.mono").first.click()
    page.get_by_role("button", name=f"Remove the tag {name}").click()
    until(lambda: not client.jobs[jid].tags, "the tag is removed")  # type: ignore[union-attr]


def test_completed_jobs_are_listed_with_their_results_and_exported_without_formulas(
    visit: Visits, client: Client
) -> None:
    client.config.set("jobs-history-count", 1234)
    jids = put(client, 2)
    first, second = client.queues["mail"].pop(2)
    kept = Done(first.jid, first.facts.token, keep_ms=600_000, result=b'{"total":41}')
    client.run(CompleteMany(first.worker_name, [kept]))
    second.complete()
    client.queues["mail"].put("=SUM(A1)", {}, jid="@formula")
    client.queues["mail"].pop(1)[0].complete()
    page = visit("/completed")
    expect(page.locator(".head")).to_contain_text("or 1\u202f234 jobs")
    expect(page.locator(".head")).to_contain_text("the oldest ended")
    rows = page.locator("#completed tbody tr[id]")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("=SUM(A1)")  # the latest
    expect(page.locator("#completed tr", has=page.locator(f'[title="{first.jid}"]'))).to_contain_text(
        '{"total":41}'
    )
    page.get_by_label("Export completed jobs").click()
    with page.expect_download() as found:
        page.get_by_role("link", name=re.compile("^CSV")).click()
    lines = list(csv.reader(Path(found.value.path()).read_text(encoding="utf-8-sig").splitlines()))
    cells = [cell for line in lines[1:] for cell in line]
    assert len(lines) == 4
    assert {"'=SUM(A1)", "'@formula", *jids} <= set(cells)
    assert not [cell for cell in cells if cell[:1] in ("=", "@")]
