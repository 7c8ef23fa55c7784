"""What the overview finds about jobs that wait for failed ones, and about paused recurring jobs."""

import re

import pytest

from command_line import holdfast
from holdfast import Client, group
from holdfast.commands.flows import Edge, FlowForget, FlowJob, FlowPut
from holdfast.commands.options import JobWithOptions
from holdfast.commands.recurring import CalendarFacts, DeclaredFacts, Recur, RecurUpdate
from holdfast.console.handles import Console
from holdfast.console.health.attention import Attention
from holdfast.testing.clock import START_MS, StoppedClock


@pytest.fixture
def clock(client: Client) -> StoppedClock:
    clock = StoppedClock(client, START_MS)
    clock.start()
    return clock


def found(client: Client, kind: str) -> Attention | None:
    return next((one for one in Console(client).overview().attention if one.kind == kind), None)


def test_a_job_that_waits_for_a_failed_one_is_a_finding_which_becomes_urgent(
    client: Client, clock: StoppedClock, url: str, namespace: str
) -> None:
    parts = [client.queues["parts"].put("k.Part", jid=f"part-{number}") for number in range(3)]
    client.queues["sums"].put("k.Sum", depends=parts, jid="sum")
    assert found(client, "depends-failed") is None
    for job in client.queues["parts"].pop(2):
        if job.jid == "part-1":
            job.fail("parts-Error", "no luck")
        else:
            job.complete()
    clock.advance(minutes=1)
    seen = found(client, "depends-failed")
    assert seen is not None
    assert (seen.severity, seen.subject, seen.jobs) == ("warning", "sums", 1)
    assert "such as sum for part-1, which failed 60 s ago" in seen.text
    clock.advance(minutes=9)
    seen = found(client, "depends-failed")
    assert seen is not None
    assert seen.severity == "urgent"
    place = ("--url", url, "--namespace", namespace)
    why = holdfast("jobs", "why", "sum", *place).stdout
    assert "part-1 has failed, so it waits until that job is retried" in why
    assert f"holdfast jobs retry{client.settings.flags} part-1" in why
    assert seen.command == f"holdfast jobs retry{client.settings.flags} part-1"
    assert "depends" not in holdfast("jobs", "retry", "part-1", *place).stderr
    assert found(client, "depends-failed") is None


def put_flow(client: Client, flow: str, count: int) -> None:
    """Put a flow of one job, and `count` others that follow it."""
    first = FlowJob("q", JobWithOptions("k.First", b"{}", f"{flow}-0"))
    others = [
        FlowJob("q", JobWithOptions("k.Next", b"{}", f"{flow}-{n}"), edges=[Edge(f"{flow}-0")])
        for n in range(1, count)
    ]
    last = FlowJob("q", JobWithOptions("k.Last", b"{}", f"{flow}-{count}"), edges=[Edge(f"{flow}-1")])
    client.run(FlowPut(flow, "Last", [first, *others, last]))


def test_a_flow_of_which_many_jobs_failed_is_one_finding(
    client: Client, clock: StoppedClock, url: str, namespace: str
) -> None:
    place = ("--url", url, "--namespace", namespace)
    put_flow(client, "nightly", 100)
    assert found(client, "flow-failed") is None
    why = holdfast("jobs", "why", "nightly-3", *place).stdout
    assert "It is job 4 of the 101 of flow nightly." in why
    assert "It waits for 1 other job: nightly-0." in why
    job = client.queues["q"].pop()
    assert job is not None
    job.fail("q-Broken", "it broke\nat last")
    clock.advance(minutes=1)
    seen = Console(client).overview().attention
    assert [(one.kind, one.subject, one.jobs, one.severity) for one in seen] == [
        ("flow-failed", "nightly", 101, "warning")
    ]
    [one] = seen
    assert one.text == "nightly-0 did not complete: q-Broken: at last; 101 of its 101 jobs failed"
    assert one.sentence.startswith("flow nightly: nightly-0")
    assert one.command == f"holdfast flows retry{client.settings.flags} nightly"
    why = holdfast("jobs", "why", "nightly-100", *place).stdout
    assert "because nightly-0 did not complete" in why
    assert f"holdfast flows retry{client.settings.flags} nightly" in why
    holdfast("flows", "retry", "nightly", *place)
    assert found(client, "flow-failed") is None


def test_failed_flows_are_named_together_and_a_forgotten_one_is_none(
    client: Client, clock: StoppedClock
) -> None:
    for flow in ("one", "two", "three"):
        put_flow(client, flow, 2)
    for job in client.queues["q"].pop(3):
        job.fail("q-Broken", "it broke")
    both = [one for one in Console(client).overview(each=True).attention if one.kind == "flow-failed"]
    assert {one.subject for one in both} == {"one", "two", "three"}
    client.run(FlowForget(["one"]))
    both = [one for one in Console(client).overview(each=True).attention if one.kind == "flow-failed"]
    assert {one.subject for one in both} == {"two", "three"}


def test_a_flow_that_was_left_open_is_found_with_how_it_is_closed(
    client: Client, clock: StoppedClock, url: str, namespace: str
) -> None:
    @client.job(name="page", queue="q")
    def page(number: int) -> int:
        return number

    client.put(group([page.call(1)]), jid="crawl", open=True)
    clock.advance(minutes=59)
    assert found(client, "flow-open") is None
    clock.advance(minutes=2)
    one = found(client, "flow-open")
    assert one is not None
    assert one.text.startswith("nothing was added to its group of 1 call for 61 min")
    assert one.command == f"holdfast flows close{client.settings.flags} crawl"
    place = ("--url", url, "--namespace", namespace)
    assert holdfast("flows", "close", "crawl", *place).stdout == "flow crawl is closed\n"
    assert holdfast("flows", "close", "crawl", "--json", *place).stdout == '{"closed": false}\n'
    assert found(client, "flow-open") is None


def test_a_paused_recurring_job_that_missed_its_night_is_found_with_who_and_why(
    client: Client, clock: StoppedClock, url: str, namespace: str
) -> None:
    place = ("--url", url, "--namespace", namespace)
    added = holdfast(
        "recurring", "add", "reports.nightly", "--queue", "reports", "--every", "1d", "--first", "3h", "--jid",
        "nightly", "--tag", "night", *place,
    )  # fmt: skip
    assert added.stdout.strip() == "nightly", added.stderr
    again = holdfast(
        "recurring", "add", "reports.x", "-q", "reports", "--every", "1d", "--jid", "nightly", *place
    )
    assert again.returncode == 2
    assert "there is a recurring job 'nightly' already" in again.stderr
    facts = Console(client).recurring_job("nightly")
    assert (facts.klass, facts.queue, facts.interval_ms, facts.tags) == (
        "reports.nightly", "reports", 86_400_000, ("night",)
    )  # fmt: skip
    Console(client, "ada@box").pause_recurring("nightly", why="the printer is broken")
    assert found(client, "recurring-paused") is None
    clock.advance(hours=9)
    seen = found(client, "recurring-paused")
    assert seen is not None
    assert seen.text.startswith(
        "paused 9 h ago by ada@box: the printer is broken; it has missed 1 run, the first at "
    )
    assert seen.command == f"holdfast recurring resume{client.settings.flags} nightly"
    assert seen.also == f"holdfast recurring run{client.settings.flags} nightly"
    for words in (("list",), ("show", "nightly")):
        shown = " ".join(holdfast("recurring", *words, *place).stdout.split())
        assert "by ada@box: the printer is broken, since " in shown
        assert "1 run missed" in shown
    [line] = [one for one in Console(client).audit().rows if one.what == "pause recurring"]
    assert (line.who, line.detail) == ("ada@box", "the printer is broken")
    Console(client, "ada@box").pause_recurring("nightly", False)
    assert found(client, "recurring-paused") is None
    assert Console(client).recurring_job("nightly").paused_by == ""


def test_a_pause_by_a_program_names_it(client: Client, clock: StoppedClock) -> None:
    client.queues["reports"].recur("k.K", {}, 60, jid="often")
    handle = client.recurring["often"]
    assert handle is not None
    handle.pause(why="too often")
    facts = Console(client).recurring_job("often")
    assert (facts.paused_by, facts.paused_why) == (client.worker_name, "too often")
    assert facts.paused_since_ms == clock.now_ms


def test_a_calendar_whose_plan_ends_and_is_not_extended_is_urgent(
    client: Client, clock: StoppedClock
) -> None:
    def put(jid: str, cron: str, zone: str = "UTC", end: int = 0) -> None:
        moments = [(clock.now_ms + minutes * 60_000,) * 2 for minutes in (10, 20)]
        facts = CalendarFacts(cron, zone, end_ms=end)
        client.run(Recur("q", "K", 60_000, jid=jid, calendar=facts, plan=moments))

    put("short", "*/10 * * * *")
    put("over", "*/10 * * * *", end=clock.now_ms + 21 * 60_000)
    put("odd", "* * * * *", "Mars/Olympus")
    client.queues["q"].recur("K", {}, cron="0 3 * * *", jid="fine")
    seen = {
        one.subject: one for one in Console(client).overview().attention if one.kind == "recurring-unplanned"
    }
    assert set(seen) == {"short", "odd"}
    assert seen["short"].severity == "urgent"
    assert "its plan ends 20 min from now, and then it puts no jobs: no worker computes" in seen["short"].text
    assert seen["short"].command.startswith("holdfast worker -q q")
    assert "no time zone 'Mars/Olympus'" in seen["odd"].text


def test_a_night_that_no_worker_was_there_for_is_found_with_its_moment(
    client: Client, clock: StoppedClock
) -> None:
    client.queues["q"].recur("K", {}, cron="0 3 * * *", zone="Europe/Berlin", jid="nightly")
    assert found(client, "recurring-late") is None
    clock.advance(hours=24)
    seen = found(client, "recurring-late")
    assert seen is not None
    assert seen.subject == "nightly"
    assert re.search(r"^its job for ... \d\d ... 03:00 Europe/Berlin is \d+ h late", seen.text)


def test_what_code_declares_no_more_is_noted(client: Client, clock: StoppedClock) -> None:
    client.run(
        Recur("q", "K", 60_000, jid="old", offset_ms=60_000, declared=DeclaredFacts("shop.reports", "2", "w"))
    )
    assert found(client, "recurring-vanished") is None
    client.run(RecurUpdate("old", vanished=True))
    clock.advance(seconds=30)
    seen = found(client, "recurring-vanished")
    assert seen is not None
    assert (seen.severity, seen.subject) == ("note", "old")
    assert seen.command == f"holdfast recurring prune{client.settings.flags} --module shop.reports"
