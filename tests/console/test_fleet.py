"""Workers as operators look at them: what they run, which are silent, and the queues that each asks in its order."""

import asyncio
import json

import pytest

from holdfast import AsyncClient, Client
from holdfast.client.patterns import QueuePriorityPattern as Rule
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import AsyncConsole, Console
from holdfast.errors import UsageError
from holdfast.testing.clock import START_MS, StoppedClock


@pytest.fixture
def console(client: Client) -> Console:
    StoppedClock(client, START_MS).start()
    return Console(client, "ada@box")


def seen(client: Client, name: str, *queues: str, **facts: str) -> None:
    client.run(WorkerSeen(name, {"queues": json.dumps(queues), "slots": "4", "host": "box", **facts}))


def names(console: Console, **options: object) -> list[str]:
    return [one.name for one in console.fleet(**options).workers.rows]  # type: ignore[arg-type]


def test_each_worker_has_the_number_of_its_jobs_and_all_together_are_summed(
    console: Console, client: Client, url: str, namespace: str
) -> None:
    seen(client, "a", "q", busy="2", version="1")
    seen(client, "b", "q", busy="1", version="2")
    for _ in range(3):
        client.queues["q"].put("k.K")
    with Client(url, namespace=namespace, hostname="a") as worker:
        assert len(worker.queues["q"].pop(3)) == 3
    found = console.fleet()
    assert [(one.name, one.running, one.busy) for one in found.workers.rows] == [("a", 3, 2), ("b", 0, 1)]
    assert (found.slots, found.busy, found.running, found.stalled) == (8, 3, 3, 0)
    assert (found.versions, found.hosts, found.is_counted) == ({"1": 1, "2": 1}, {"box": 2}, True)


def test_silent_workers_come_last_and_are_not_counted_as_slots(console: Console, client: Client) -> None:
    clock = StoppedClock(client, START_MS)
    seen(client, "a-gone", "q")
    clock.advance(seconds=31)
    seen(client, "z", "q")
    found = console.fleet()
    assert [(one.name, one.is_silent) for one in found.workers.rows] == [("z", False), ("a-gone", True)]
    assert (found.slots, found.silent, found.count) == (4, 1, 2)


def test_a_filter_by_queue_understands_patterns_identifiers_and_exceptions(
    console: Console, client: Client
) -> None:
    client.queue_patterns.set_queue_identifier_patterns({"slow": ["reports"], "box": ["own"]})
    seen(client, "plain", "mail")
    seen(client, "glob", "m*")
    seen(client, "all-but", "*", "!mail")
    seen(client, "named", "@slow")
    seen(client, "machine", "@")
    assert names(console, queue="mail") == ["glob", "plain"]
    assert names(console, queue="reports") == ["all-but", "named"]
    assert names(console, queue="own") == ["all-but", "machine"]
    assert names(console, name="gl") == ["glob"]


def test_pages_continue_by_their_cursor_and_groups_stay_together(console: Console, client: Client) -> None:
    for number in range(5):
        seen(client, f"w{number}", "q", host="xy"[number % 2])
    first = console.fleet(by="host", limit=3)
    second = console.fleet(by="host", limit=3, after=first.workers.next)
    assert [one.name for one in (*first.workers.rows, *second.workers.rows)] == ["w0", "w2", "w4", "w1", "w3"]
    assert (first.workers.total, second.workers.next) == (5, "")
    with pytest.raises(UsageError):
        console.fleet(after="x")


def test_facts_that_cannot_be_read_are_left_out(console: Console, client: Client) -> None:
    client.run(WorkerSeen("odd", {"queues": "{", "slots": "many", "pid": "9" * 90, "started": "-"}))
    [one] = console.fleet().workers.rows
    assert (one.queues, one.slots, one.started_ms) == ((), 0, 0)


def test_the_queues_of_a_worker_are_in_the_order_of_the_rules(console: Console, client: Client) -> None:
    for name in ("a", "b", "mail", "slow"):
        client.queues[name].put("k.K")
    client.queue_patterns.set_queue_priority_patterns(
        [Rule(["mail"]), Rule(["a", "b"], True), Rule(["default"])]
    )
    steps = console.queue_steps("*")
    assert [(one.rule, one.is_fair, one.queues) for one in steps] == [
        (("mail",), False, ("mail",)), (("a", "b"), True, ("a", "b")), (("default",), False, ("slow",))
    ]  # fmt: skip
    assert [one.waiting for one in steps[0].counts] == [1]


def test_plain_names_keep_their_order_whatever_the_rules(console: Console, client: Client) -> None:
    client.queue_patterns.set_queue_priority_patterns([Rule(["mail"])])
    assert [one.queues for one in console.queue_steps("b", "mail", "b")] == [("b", "mail")]
    assert console.queue_steps() == ()


def test_an_async_console_looks_at_workers_too(
    console: Console, client: Client, aclient: AsyncClient
) -> None:
    seen(client, "a", "q")

    async def look() -> tuple[int, int]:
        other = AsyncConsole(aclient)
        found = (await other.fleet()).count, len(await other.queue_steps("q"))
        await aclient.close()
        return found

    assert asyncio.run(look()) == (1, 1)
