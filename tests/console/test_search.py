"""Searches: the sets that are read, page by page and with both clients, and the jobs that are found."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import AsyncClient, Client
from holdfast.commands.jobs import JobGet
from holdfast.console.filters import parse
from holdfast.console.handles import AsyncConsole, Console
from holdfast.console.operations.spec import Spec
from holdfast.console.search.search import row_of, search
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
        ("group:~value", 4, "state failed"),
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
        (f"tag:{'é' * 200}", 0, "by tag"),
        (r'tag:"\ud800"', 0, "by tag"),
        (r'jid:"\n"', 0, "by jid"),
    ],
)
def test_a_search_finds_its_jobs_in_the_smallest_set(
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


def test_a_retried_job_is_in_no_failure_group(console: Console) -> None:
    [jid, *_] = found(console, "group:mail-ValueError")
    console.act("retry", jid)
    for text in ("group:mail-ValueError", "group:~valueerror", "group:mail-*"):
        assert jid not in found(console, text)
    assert jid in found(console, "-group:~valueerror")


def test_a_job_found_by_jid_is_read_alone(console: Console, client: Client) -> None:
    jid = client.queues["mail"].put("jobs.send", {})
    page = console.jobs(f"jid:{jid},nowhere")
    assert [row.jid for row in page.jobs] == [jid]
    assert page.looked == page.candidates == 2


def test_a_scan_agrees_with_the_whole_facts_of_a_job(console: Console, client: Client) -> None:
    for row in everything(console, ""):
        [facts] = client.run(JobGet((row.jid,)))
        assert facts is not None
        whole = row_of(facts, 0)
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


def test_a_page_continues_behind_a_queue_that_was_emptied_meanwhile(client: Client) -> None:
    console = Console(client)
    for name in ("a", "b", "c"):
        client.queues[name].put_many([("k.K", {}) for _ in range(5)])
    first = console.jobs("state:waiting", limit=5)
    assert {row.queue for row in first.jobs} == {"a"}
    for job in client.queues["b"].pop(5):
        job.complete()
    rest = console.jobs("state:waiting", limit=100, after=first.cursor)
    assert [row.queue for row in rest.jobs] == ["c"] * 5
    client.queues["forgotten"].put("k.K", {})
    for name in ("a", "c", "forgotten"):
        for job in client.queues[name].pop(9):
            job.fail(f"{name}-Error", "no luck")
    first = console.jobs("group:*-Error", limit=5)
    assert {row.group for row in first.jobs} == {"a-Error"}
    console.act("cancel", *[row.jid for row in console.jobs("group:a-Error,c-Error").jobs])
    assert [row.queue for row in console.jobs("group:*-Error", after=first.cursor).jobs] == ["forgotten"]


def test_a_job_is_found_by_the_worker_that_ran_it_last(console: Console) -> None:
    [failed, *_] = [row for row in everything(console, "") if row.state == "failed"]
    assert failed.worker
    assert failed.jid in found(console, f"state:failed worker:{failed.worker}")
    assert found(console, f"jid:{failed.jid} worker:{failed.worker}") == [failed.jid]


# ---- random names and data, and jobs that change while they are listed ----

HOSTILE = [
    "é",
    "漢字",
    "a b",
    '"',
    "\\",
    "'",
    "{",
    "}",
    "[*]",
    "?",
    "*",
    "a,b",
    "(x)",
    "and",
    "-x",
    "..",
    "x" * 150,
    "\u202e",
    "\U0001f600",
    "%s",
    "$1",
]
NAMES = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20
).filter(str.strip)
DATA_TEXTS = st.sampled_from(
    [
        *HOSTILE,
        "",
        "\x00",
        "\x1b[31m",
        "a\nb",
        "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    ]
) | st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
NUMBERS = st.sampled_from(
    [0, -1, 2**53, 2**53 + 1, -(2**63), 10**30, 1.5, -0.5, 1e300, 5e-324]
) | st.integers(-5, 5)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | DATA_TEXTS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(DATA_TEXTS, values, max_size=3),
    max_leaves=6,
)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(f"{chr(92)}u{ord(one):04x}" if one < " " else one for one in escaped)}"'


class Put(NamedTuple):
    queue: str
    klass: str
    tag: str
    data: Any
    priority: int


PUTS = st.lists(
    st.builds(Put, NAMES, NAMES, NAMES.map(lambda name: name.replace(",", "")).filter(str.strip), VALUES.map(lambda value: {"in": value}), st.sampled_from([-4095, -1, 0, 4095])),
    min_size=1,
    max_size=6,
)  # fmt: skip


def paths(value: Any) -> Iterator[tuple[str, Any]]:
    """Each scalar of a value with its path, as a filter names it."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from ((f".{quoted(key)}{rest}", leaf) for rest, leaf in paths(one))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from ((f".{at}{rest}", leaf) for rest, leaf in paths(one))
    else:
        yield "", value


def literal(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else json.dumps(value)


@pytest.mark.full
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PUTS, st.integers(1, 4))
def test_hostile_names_and_data_are_found_by_what_they_are(
    client: Client, puts: list[Put], limit: int
) -> None:
    empty(client)
    console = Console(client)
    put: dict[str, Put] = {}
    for one in puts:
        jid = client.queues[one.queue].put(one.klass, one.data, tags=[one.tag], priority=one.priority)
        put[jid] = one
    for one in puts:
        asked: list[tuple[str, Callable[[Put], bool]]] = [
            (f"queue:{quoted(one.queue)}", lambda other, one=one: other.queue == one.queue),
            (f"klass:{quoted(one.klass)}", lambda other, one=one: other.klass == one.klass),
            (f"tag:{quoted(one.tag)}", lambda other, one=one: other.tag == one.tag),
            (
                f"queue~{quoted(one.queue)}",
                lambda other, one=one: one.queue.casefold() in other.queue.casefold(),
            ),
            (f"priority>={one.priority}", lambda other, one=one: other.priority >= one.priority),
        ]
        for path, value in paths(one.data):
            same = dict(paths(one.data))
            asked.append(
                (
                    f"data{path}:{literal(value)}",
                    lambda other, same=same, path=path: (
                        dict(paths(other.data)).get(path, NOWHERE) == same[path]
                    ),
                )
            )
        for text, matches in asked:
            shown = found(console, text, limit)
            assert len(shown) == len(set(shown)), text
            expected = {jid for jid, other in put.items() if matches(other)}
            if text.startswith("data"):
                assert {jid for jid, other in put.items() if other is one} <= set(shown), text
            else:
                assert set(shown) == expected, text


NOWHERE = object()


def empty(client: Client) -> None:
    console = Console(client)
    jids = found(console, "", 512)
    if jids:
        console.act("cancel", *jids)


CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "high", "complete", "fail", "retry", "cancel", "delay", "move", "pop"]), st.integers(0, 3)),
    max_size=5,
)  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("text", ["state:waiting", "queue:a,b,c", "state:waiting,scheduled queue:*", "tag:t"])
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 7), changes=st.lists(CHANGES, min_size=1, max_size=8))
def test_pages_show_each_job_that_nobody_touches_once(
    client: Client, text: str, limit: int, changes: list[list[tuple[str, int]]]
) -> None:
    empty(client)
    console, queues = Console(client), ("a", "b", "c")
    still = {
        client.queues[name].put("k.Still", {}, tags=["t"], priority=-1) for name in queues for _ in range(4)
    }
    for name in queues:
        client.queues[name].put_many([("k.Moving", {}) for _ in range(3)], priority=1, tags=["t"])
    shown: Counter[str] = Counter()
    after, turns = "", iter(changes)
    while True:
        page = console.jobs(text, limit=limit, after=after)
        shown.update(row.jid for row in page.jobs)
        after = page.cursor
        if not after:
            break
        for what, at in next(turns, []):
            disturb(client, console, what, queues[at % 3])
    assert {jid: shown[jid] for jid in still} == dict.fromkeys(still, 1)


def disturb(client: Client, console: Console, what: str, name: str) -> None:
    """Change jobs of a queue, but those of the klass k.Still."""
    queue = client.queues[name]
    if what in ("put", "high"):
        queue.put("k.Moving", {}, priority=9 if what == "high" else 0, tags=["t"])
        return
    if what == "retry":
        console.act("retry", *[row.jid for row in console.jobs(f"state:failed queue:{name}", limit=9).jobs])
        return
    if what in ("cancel", "delay", "move"):
        moving = [row.jid for row in console.jobs(f"queue:{name} state:waiting klass:k.Moving", limit=2).jobs]
        value = {"delay": "60", "move": "c", "cancel": ""}[what]
        console.act(what, *moving, value=value)  # type: ignore[arg-type]
        return
    if not console.jobs(f"queue:{name} state:waiting klass:k.Moving", limit=1).jobs:
        return
    job = queue.pop()
    if job is not None and what == "complete":
        job.complete()
    elif job is not None and what == "fail":
        job.fail(f"{name}-Error", "no luck")


# What a search costs.

HEAVY = " or ".join(f"zz{at:x}" for at in range(120))


@pytest.fixture
def large(client: Client) -> list[str]:
    """Jobs whose comparing with HEAVY takes longer than the event loop may be kept from other work."""
    text = "lorem ipsum dolor sit amet " * 2000
    return [client.queues["bulk"].put("K", [text, number]) for number in range(40)]


def test_other_work_of_the_event_loop_has_its_turn_while_jobs_are_compared(
    large: list[str], aclient: AsyncClient
) -> None:
    async def steps() -> list[int]:
        plan, sizes = search(aclient._plan_of, parse(HEAVY), 0, 25), list[int]()
        with suppress(StopIteration):
            step = next(plan)
            while True:
                sizes.append(len(step.calls))
                step = plan.send(await aclient.runner.link.send(step))
        await aclient.close()
        return sizes

    sizes = asyncio.run(steps())
    assert sizes.count(0) > 5  # steps without calls, which only give others a turn


@pytest.mark.full
@pytest.mark.parametrize("seconds", [1e-9, 0.001, 0.02])
def test_a_page_that_takes_long_ends_and_the_next_goes_on_there(
    large: list[str], client: Client, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr("holdfast.console.search.search.MOST_SECONDS", seconds)
    monkeypatch.setattr("holdfast.console.search.search._SLICE", -1.0)
    console, seen, after, pages = Console(client), list[str](), "", 0
    while pages == 0 or after:
        page = console.jobs(f"ipsum ({HEAVY} or lorem)", limit=100, after=after)
        assert page.looked <= len(large)
        seen, after, pages = [*seen, *(row.jid for row in page.jobs)], page.cursor, pages + 1
        assert pages <= len(large) + 2
    assert sorted(seen) == sorted(large)
    assert pages > 1
    assert console.dry_run(Spec(action="track", filter=f"queue:bulk ({HEAVY} or lorem)")).matched == len(
        large
    )
