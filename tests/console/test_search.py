"""Searching: which sets are looked through, page by page, by both clients, and what is found."""

import asyncio

import pytest

from holdfast import AsyncClient, Client
from holdfast.commands.jobs import JobGet
from holdfast.console.filters import parse
from holdfast.console.handles import AsyncConsole, Console
from holdfast.console.search import row_of
from holdfast.errors import FilterError, UsageError


@pytest.fixture
def console(client: Client) -> Console:
    """Jobs in every state, in two queues."""
    mail, other = client.queues["mail"], client.queues["mail-two"]
    for number in range(20):
        mail.put("jobs.send", {"order": {"id": number}}, tags=["vip"] if number % 5 == 0 else [])
    for number in range(5):
        other.put("jobs.other", {"order": {"id": number}})
    other.put("jobs.later", {}, delay=600)
    parent = other.put("jobs.parent", {})
    other.put("jobs.child", {}, depends=[parent])
    for job in mail.pop(4):
        job.fail("mail-ValueError", "Traceback\nValueError: no luck")
    mail.pop().complete()  # type: ignore[union-attr]
    mail.pop()
    return Console(client)


def found(console: Console, text: str, limit: int = 100) -> list[str]:
    return [row.jid for row in everything(console, text, limit)]


def everything(console: Console, text: str, limit: int = 100) -> list:  # type: ignore[type-arg]
    rows, after = [], ""
    while True:
        page = console.jobs(text, limit=limit, after=after, wants="dte")
        rows += page.jobs
        after = page.cursor
        if not after:
            return rows


def test_an_empty_filter_finds_every_job_once(console: Console) -> None:
    jids = found(console, "")
    assert len(jids) == len(set(jids)) == 28


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("text", ["", "state:waiting", "queue:mail*", "state:waiting,failed data.order.id<9"])
def test_pages_of_any_size_find_the_same(console: Console, text: str, limit: int) -> None:
    assert found(console, text, limit) == found(console, text)


@pytest.mark.parametrize(
    ("text", "count", "index"),
    [
        ("state:failed", 4, "state failed"),
        ("state:complete", 1, "state complete"),
        ("state:running", 1, "state running"),
        ("state:scheduled", 1, "state scheduled"),
        ("state:depends", 1, "state depends"),
        ("queue:mail state:waiting", 14, "1 queue"),
        ("tag:vip", 4, "by tag"),
        ("group:mail-*", 4, "1 group"),
        ("group:~value", 4, "any state"),
        ("klass:jobs.o*", 5, "any state"),
        ("class:jobs.send state:waiting", 14, "state waiting"),
        ("data.order.id=3", 2, "any state"),
        ('"no luck"', 4, "any state"),
        ("not state:waiting and queue:mail", 6, "1 queue"),
        ("tag:vip or state:scheduled", 5, "any state"),
        ("attempts>0 state:failed", 4, "state failed"),
        ("created<1h", 28, "any state"),
        ("created>1h", 0, "any state"),
        ("queue:nowhere", 0, ""),
    ],
)
def test_what_is_found_and_where_it_is_looked_for(
    console: Console, text: str, count: int, index: str
) -> None:
    assert len(found(console, text)) == count
    assert index in console.jobs(text).index


@pytest.mark.parametrize(
    ("text", "count"),
    [("group:mail-*", 4), ("group:mail-* tag:v*", 1), ("tag:vip group:mail-*", 1), ('group:mail-* "no luck"', 4),
     ("group:mail-* -group:mail-ValueError", 0)],
)  # fmt: skip
def test_jobs_of_a_group_are_of_that_group_whatever_else_is_read(
    console: Console, text: str, count: int
) -> None:
    assert len(console.jobs(text).jobs) == count


def test_a_job_found_by_jid_is_read_alone(console: Console, client: Client) -> None:
    jid = client.queues["mail"].put("jobs.send", {})
    page = console.jobs(f"jid:{jid},nowhere")
    assert [row.jid for row in page.jobs] == [jid]
    assert page.looked == page.candidates == 2


def test_a_scan_agrees_with_the_whole_facts_of_a_job(console: Console, client: Client) -> None:
    for row in everything(console, ""):
        [facts] = client.run(JobGet((row.jid,)))
        assert facts is not None
        whole = row_of(facts)
        assert (row.klass, row.queue, row.state, row.tags, row.group, row.message, row.data) == (
            whole.klass, whole.queue, whole.state, whole.tags, whole.group, whole.message, whole.data
        )  # fmt: skip
        assert parse(f"klass:{row.klass} state:{row.state}").matcher(0)(row)


def test_a_page_ends_after_five_thousand_jobs_and_says_how_far_it_is(client: Client) -> None:
    console = Console(client)
    client.queues["big"].put_many([("jobs.send", {"n": n}) for n in range(6000)])
    page = console.jobs("data.n=5999 queue:big")
    assert (page.jobs, page.candidates) == ((), 6000)
    assert 5000 <= page.looked < 6000
    following = console.jobs("data.n=5999 queue:big", after=page.cursor)
    assert len(following.jobs) == 1
    assert following.cursor == ""


def test_jobs_that_come_and_go_meanwhile_hide_no_other(client: Client) -> None:
    console, queue = Console(client), client.queues["q"]
    stay = [queue.put("k.K", {}) for _ in range(30)]
    first = console.jobs("queue:q state:waiting", limit=10)
    client.bulk_cancel(stay[:5])
    client.bulk_cancel([stay[10]])
    queue.put("k.K", {}, priority=9)
    rest = console.jobs("queue:q state:waiting", limit=100, after=first.cursor)
    assert [row.jid for row in rest.jobs] == stay[11:]


@pytest.mark.parametrize("cursor", ["nonsense", "[1,2]", '["waiting"]', '["waiting","q","x"]'])
def test_a_cursor_that_is_none_is_refused(console: Console, cursor: str) -> None:
    with pytest.raises(UsageError):
        console.jobs("", after=cursor)


def test_a_filter_that_cannot_be_read_shows_the_place(console: Console) -> None:
    with pytest.raises(FilterError, match=r"did you mean \"state\"") as caught:
        console.jobs("queue:a sate:failed")
    assert caught.value.position == 8


def test_an_async_console_finds_the_same(console: Console, aclient: AsyncClient) -> None:
    async def search() -> list[str]:
        page = await AsyncConsole(aclient).jobs("queue:mail*", limit=100)
        await aclient.close()
        return [row.jid for row in page.jobs]

    assert asyncio.run(search()) == found(console, "queue:mail*")
