"""What operators see of failure groups, recurring jobs, topics and throttles, and what they do to messages."""

import asyncio

import pytest

from holdfast import AsyncClient, Client
from holdfast.commands.failures import FailureGroup
from holdfast.console.handles import AsyncConsole, Console
from holdfast.console.read.failure_list import failed_of, growth, hours_of
from holdfast.errors import UnknownName, UsageError


@pytest.fixture
def console(client: Client) -> Console:
    return Console(client, "ada@box")


def fail(client: Client, group: str, count: int, queue: str = "q") -> None:
    for n in range(count):
        client.queues[queue].put(f"k.{group[:1].upper()}", {"n": n})
    for job in client.queues[queue].pop(count):
        job.fail(group, f"Traceback\n  line\nError: no {group}")


def test_a_list_of_failure_groups_has_the_latest_message_and_the_queues_of_each(
    console: Console, client: Client
) -> None:
    fail(client, "a", 3)
    fail(client, "b", 1, "other")
    found = console.failure_list(sort="name")
    [first, second] = found.page.rows
    assert (first.group.name, first.klass, first.message, first.queues) == ("a", "k.A", "Error: no a", ("q",))
    assert second.queues == ("other",)
    assert (found.jobs, found.groups, [one.name for one in found.busiest]) == (4, 2, ["a", "b"])


def test_failure_groups_are_sorted_filtered_and_paged(console: Console, client: Client) -> None:
    for name, count in (("mail-A", 1), ("mail-B", 3), ("web-C", 2)):
        fail(client, name, count, name[:3])

    def names(pattern: str = "*", **more: object) -> list[str]:
        return [one.group.name for one in console.failure_list(pattern, **more).page.rows]  # type: ignore[arg-type]

    assert names(sort="-jobs") == ["mail-B", "web-C", "mail-A"]
    assert names(sort="-growth") == ["mail-B", "web-C", "mail-A"]
    assert names(sort="-name") == ["web-C", "mail-B", "mail-A"]
    assert names("mail-*", sort="name") == ["mail-A", "mail-B"]
    assert names(queue="web") == ["web-C"]
    assert len(names(within=60)) == 3
    page = console.failure_list(sort="name", limit=2).page
    assert (page.next, page.total) == ("2", 3)
    assert names(sort="name", limit=2, after=page.next) == ["web-C"]
    for bad in ({"sort": "size"}, {"after": "x"}, {"within": -1.0}, {"limit": 0}):
        with pytest.raises(UsageError):
            console.failure_list(**bad)  # type: ignore[arg-type]


def test_growth_compares_the_last_two_hours_with_the_hours_before() -> None:
    group = FailureGroup("g", 9, 0, 0, "", 0, (2,) * 46 + (10, 20))
    assert growth(group) == 26
    assert hours_of(group)[-1] == (47 * 3_600_000, 20)


def test_the_filter_of_a_group_names_that_group_alone(console: Console, client: Client) -> None:
    fail(client, 'a "b" *', 1)
    fail(client, 'a "b" c', 1)
    [row] = console.jobs(failed_of('a "b" *')).jobs
    assert row.klass == "k.A"
    assert len(console.jobs('group:"a \\"b\\" "*').jobs) == 2


def test_a_recurring_job_is_added_and_shows_the_jobs_that_it_put(console: Console, client: Client) -> None:
    jid = console.add_recurring(
        "q", "jobs.Sweep", {"n": 1}, 60, {"jid": "sweep", "offset": 3600, "retries": 2}
    )
    assert jid == "sweep"
    assert console.recurring_detail("sweep").recent == ()
    jids = [console.run_recurring("sweep") for _ in range(3)]
    client.jobs[jids[0]].cancel()
    found = console.recurring_detail("sweep", 2)
    assert (found.facts.klass, found.facts.interval_ms, found.facts.retries) == ("jobs.Sweep", 60_000, 2)
    assert [row.jid for row in found.recent] == jids[:0:-1]
    assert [row.state for row in console.last_jobs(found.facts)["sweep"]] == ["waiting", "waiting", "gone"]
    with pytest.raises(UsageError, match="interval"):
        console.add_recurring("q", "jobs.Sweep", {}, 0)
    with pytest.raises(UnknownName):
        console.recurring_detail("unknown")


def test_the_messages_of_a_topic_are_paged_postponed_and_given_back(console: Console, client: Client) -> None:
    for n in range(5):
        console.put_message("mail", f"m{n}", "text", delay=100 + n)
    first = console.topic("mail", 3)
    assert [one.id for one in first.queued] == ["m0", "m1", "m2"]
    rest = console.topic("mail", 3, after=first.next)
    assert ([one.id for one in rest.queued], rest.next) == (["m3", "m4"], "")
    assert console.reschedule_messages("mail", "m4", "none") == [True, False]
    assert console.topic("mail").counts.ready == 1
    item = client.topics["mail"].reserve()
    assert item.id == "m4"
    assert console.release_messages("mail", "m4", "m0", delay=500) == [True, False]
    assert [one.id for one in console.topic("mail").queued][-1] == "m4"
    assert [line.what for line in console.audit().rows] == ["reschedule messages"]
    with pytest.raises(UsageError):
        console.topic("mail", after="nonsense")


def test_queues_without_a_limit_are_among_the_throttles_of_queues(console: Console, client: Client) -> None:
    for name in ("a", "b", "c"):
        client.queues[name].put("k.K")
    console.set_throttle("ql:q:b", 4)
    console.set_throttle("api", 2, 60)
    page = console.queue_throttles(limit=2)
    assert [(one.queue, one.facts.maximum) for one in page.rows] == [("a", 0), ("b", 4)]
    assert (page.next, page.total) == ("b", 3)
    assert [one.queue for one in console.queue_throttles(after="b").rows] == ["c"]
    [named] = console.named_throttles().rows
    assert (named.id, named.facts.maximum, named.holders) == ("api", 2, ())


def test_pages_of_named_throttles_have_each_of_them_once(console: Console, client: Client) -> None:
    names = [f"api:{number:02d}" for number in range(12)]
    for name in (*names, "mail"):
        console.set_throttle(name, 1)
    client.queues["q"].put("k.K")
    console.set_throttle("ql:q:q", 1)
    pages, after = list[list[str]](), ""
    while not pages or after:
        page = console.named_throttles("api:*", after=after, limit=5)
        pages.append([one.id for one in page.rows])
        after = page.next
        assert len(pages) < 20
    assert sorted(name for page in pages for name in page) == names
    assert max(len(page) for page in pages) == 5
    with pytest.raises(UsageError):
        console.named_throttles(after="nonsense")


def test_a_throttle_shows_the_jobs_that_hold_it_and_those_that_wait(console: Console, client: Client) -> None:
    console.set_throttle("api", 2)
    for n in range(5):
        client.queues["q"].put("k.K", {"n": n}, throttles=["api"])
    held = client.queues["q"].pop(5)
    found = console.throttle_detail("api")
    assert sorted(row.jid for row in found.holders.rows) == sorted(job.jid for job in held)
    assert {row.klass for row in found.waiters.rows} == {"k.K"}
    assert (found.holders.total, found.waiters.total, found.waiters.next) == (2, 3, "")
    page = console.throttle_detail("api", limit=2)
    more = console.throttle_detail("api", limit=2, waiters_after=page.waiters.next)
    assert len(page.waiters.rows) == 2
    assert len(more.waiters.rows) == 1
    [row] = console.named_throttles().rows
    assert row.holders[0][0] in {job.jid for job in held}
    with pytest.raises(UnknownName):
        console.throttle_detail("unknown")


def test_the_async_console_has_the_same(client: Client, aclient: AsyncClient) -> None:
    async def run() -> None:
        console = AsyncConsole(aclient, "ada@box")
        await console.add_recurring("q", "k.K", {}, 60, {"jid": "r"})
        assert (await console.recurring_detail("r")).facts.jid == "r"
        assert await console.put_message("t", "m", "text", 100)
        assert await console.reschedule_messages("t", "m") == [True]
        assert await console.release_messages("t", "m", delay=0) == [False]
        assert (await console.failure_list()).page.rows == ()
        assert [one.queue for one in (await console.queue_throttles()).rows] == ["q"]
        assert (await console.named_throttles()).rows == ()
        assert (await console.throttle_detail("ql:q:q")).holders.rows == ()
        await aclient.close()

    asyncio.run(run())
