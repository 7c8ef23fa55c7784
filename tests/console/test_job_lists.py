"""Completed and tracked jobs, relatives, dependencies that are removed, and terms of any text."""

import asyncio

import pytest

from holdfast import AsyncClient, Client
from holdfast.commands.leases import CompleteMany, Done
from holdfast.console.filters import parse, term
from holdfast.console.handles import AsyncConsole, Console
from holdfast.console.read.job_queries import attempts_of
from holdfast.errors import JobNotFound, UsageError, WrongState
from holdfast.models.job import HistoryEntry


@pytest.fixture
def console(client: Client) -> Console:
    return Console(client, "ada@box")


def test_completed_jobs_come_latest_first_with_their_results(console: Console, client: Client) -> None:
    assert console.completed().rows == ()
    jids = [client.queues["q"].put("k.K", {"n": n}) for n in range(5)]
    for number in range(5):
        [job] = client.queues["q"].pop(1)
        done = Done(job.jid, job.facts.token, keep_ms=60_000, result=b'{"n":%d}' % number)
        client.run(CompleteMany(job.facts.worker, [done]))
    first = console.completed(limit=3)
    second = console.completed(limit=3, after=first.next)
    assert [one.job.jid for one in (*first.rows, *second.rows)] == jids[::-1]
    assert first.rows[0].result == b'{"n":4}'
    assert (first.total, first.kept_seconds, first.kept_count, second.next) == (5, 604_800, 50_000, "")
    assert first.oldest_ms == second.rows[-1].job.ended_ms > 0
    with pytest.raises(UsageError):
        console.completed(after="nonsense")


def test_tracked_jobs_are_counted_by_state_and_marks_outlive_their_jobs(
    console: Console, client: Client
) -> None:
    jids = [client.queues["q"].put("k.K", {}) for _ in range(4)]
    console.act("track", *jids)
    client.queues["q"].pop()
    console.act("cancel", jids[3])
    found = console.tracked()
    assert dict(found.counts) == {"running": 1, "waiting": 2, "expired": 1}
    assert [one.job.jid for one in found.rows] == jids[::-1]
    assert [one.job.jid for one in console.tracked("expired").rows] == [jids[3]]
    page = console.tracked("waiting", limit=1)
    assert len(page.rows) == 1
    assert len(console.tracked("waiting", limit=1, after=page.next).rows) == 1
    with pytest.raises(UsageError, match="state"):
        console.tracked("nowhere")
    assert console.act("untrack", jids[3]) == [(jids[3], True)]
    assert console.tracked("expired").rows == ()


def test_more_tracked_jobs_than_one_call_reads_are_all_listed(console: Console, client: Client) -> None:
    jids = [client.queues["q"].put("k.K", {}) for _ in range(600)]
    console.act("track", *jids)
    console.act("cancel", *jids[::7])
    found = console.tracked(limit=512)
    rest = console.tracked(limit=512, after=found.next)
    assert len({one.job.jid for one in (*found.rows, *rest.rows)}) == found.total == 600
    assert found.counts["expired"] == len(jids[::7])


def test_the_jobs_of_tags_are_counted_by_state(console: Console, client: Client) -> None:
    for number in range(70):
        client.queues["q"].put("k.K", {}, tags=["vip"], delay=0 if number < 3 else 60)
    assert console.tag_states("vip", "none") == {"vip": {"waiting": 3, "scheduled": 61}, "none": {}}


def test_the_relatives_of_a_job_are_found_over_several_steps(console: Console, client: Client) -> None:
    queue = client.queues["q"]
    top = queue.put("k.Top", {})
    sides = [queue.put("k.Side", {}, depends=[top]) for _ in range(2)]
    last = queue.put("k.Last", {}, depends=sides)
    found = console.family(top)
    assert {one.job.jid: set(one.depends) for one in found.members} == {
        top: set(),
        sides[0]: {top},
        sides[1]: {top},
        last: set(sides),
    }
    assert (found.members[0].job.jid, found.hidden) == (top, 0)
    few = console.family(top, most=2)
    assert len(few.members) == 2
    assert few.hidden > 0
    assert console.family("unknown").members == ()


def test_a_dependency_can_be_removed(console: Console, client: Client) -> None:
    parent = client.queues["q"].put("k.K", {})
    child = client.queues["q"].put("k.K", {}, depends=[parent])
    console.undepend(child, parent)
    assert client.jobs[child].state == "waiting"
    assert console.audit().rows[0].what == "undepend"
    with pytest.raises(WrongState):
        console.undepend(child, parent)
    with pytest.raises(JobNotFound):
        console.undepend("unknown", parent)


def test_data_of_some_jobs_are_patched_each_by_itself(console: Console, client: Client) -> None:
    jids = [client.queues["q"].put("k.K", {"n": n, "old": 1}) for n in range(2)]
    client.queues["q"].pop()
    running, changed, unknown = console.act("data", *jids, "unknown", value='{"old": null}')
    assert isinstance(running[1], WrongState)
    assert changed == (jids[1], True)
    assert isinstance(unknown[1], JobNotFound)
    assert client.jobs[jids[1]].facts.data == b'{"n":1}'


@pytest.mark.parametrize("text", ["vip", "a b", 'q"uo\\te', "a*b", "or", "ünï \n", "1,2"])
def test_a_term_of_any_text_matches_exactly_that(text: str) -> None:
    assert parse(term("tag", text)).required("tag") == (text,) or "*" in text
    assert str(parse(term("tag", text))) == term("tag", text)


def test_an_async_console_has_the_same_lists(aclient: AsyncClient, client: Client) -> None:
    async def lists() -> list[object]:
        console = AsyncConsole(aclient)
        found: list[object] = [
            await console.completed(),
            await console.tracked(),
            await console.family("x"),
        ]
        await aclient.close()
        return found

    sync = Console(client)
    assert asyncio.run(lists()) == [sync.completed(), sync.tracked(), sync.family("x")]


def test_a_run_whose_lease_ended_in_an_outage_and_was_renewed_ended_as_its_worker_reported() -> None:
    lines = [("put", 0), ("popped", 1), ("timed-out", 2), ("done", 3)]
    [run] = attempts_of(HistoryEntry(what, when_ms) for what, when_ms in lines)
    assert (run.outcome, run.start_ms, run.end_ms) == ("done", 1, 3)
    lines = [("put", 0), ("popped", 1), ("failed", 2), ("put", 3), ("failed", 4)]
    [run] = attempts_of(HistoryEntry(what, when_ms) for what, when_ms in lines)
    assert (run.outcome, run.end_ms) == ("failed", 2)
    lines = [("put", 0), ("popped", 1), ("timed-out", 2), ("popped", 3), ("done", 4)]
    runs = attempts_of(HistoryEntry(what, when_ms) for what, when_ms in lines)
    assert [one.outcome for one in runs] == ["timed-out", "done"]
