"""workers.md 8: workers that are given patterns, in every pool; what is read and when."""

import socket
from pathlib import Path

import pytest
from worker_kit import until

from holdfast import UsageError
from holdfast.commands.leases import Popped
from holdfast.errors import ConnectionLost
from holdfast.queue_resolvers import QueuePriorityPattern
from holdfast.wire.outage import ReconnectGate
from holdfast.wire.shards import Shard
from holdfast.worker.queues.route import Route
from holdfast.worker.queues.routing import PatternResolver
from holdfast.worker.settings import WorkerSettings

MENU = """
import chores

class Menu:
    @staticmethod
    def soup(job):
        chores.note(f"soup {job.queue_name}")
        job.complete()

    @staticmethod
    def process(job):
        chores.note(f"process {job.queue_name}")
        job.complete()
"""


@pytest.fixture
def kitchen(shop):
    Path(shop.here, "menu.py").write_text(MENU)
    shop.put = lambda queue: shop.client.queues[queue].put("menu.Menu", {})
    return shop


@pytest.mark.full
def test_a_worker_serves_what_its_patterns_match_and_queues_that_come_later(kitchen, pool):
    for name in ("soup", "main.fish", "main.veal", "mains"):
        kitchen.put(name)
    # No method named like a queue is called where the producer chose the queue.
    kitchen.start(pool, "-q", "main*", "-q", "!*veal", "-q", "s*", "--interval", "0.2")
    until(lambda: len(kitchen.notes()) == 3, "three of the four are served")
    assert sorted(kitchen.notes()) == ["process main.fish", "process mains", "process soup"]
    kitchen.put("main.new")
    until(lambda: "process main.new" in kitchen.notes(), "the new queue was found")
    assert kitchen.client.queues["main.veal"].counts["waiting"] == 1


@pytest.mark.full
def test_a_method_named_like_the_queue_is_called_for_a_plain_name_beside_patterns(kitchen):
    kitchen.put("soup")
    kitchen.start("serial", "-q", "soup", "-q", "s*")
    until(lambda: kitchen.notes() == ["soup soup"], "the method of that name was called")


@pytest.mark.full
@pytest.mark.parametrize("pool", ["serial", "asyncio", "thread"])
def test_a_worker_whose_patterns_match_nothing_waits_until_something_does(kitchen, pool):
    worker = kitchen.start(pool, "-q", "nothing*", "-q", "!q", "--interval", "0.2")
    until(lambda: "nothing*" in worker.said(), "it works")
    kitchen.put("nothing.yet")
    until(lambda: kitchen.notes() == ["process nothing.yet"], "it found the queue")
    assert "error" not in worker.said().lower()


@pytest.mark.full
def test_priorities_that_the_store_keeps_order_what_patterns_found(kitchen):
    rules = [QueuePriorityPattern(["z*"]), QueuePriorityPattern(["default"]), QueuePriorityPattern(["a*"])]
    kitchen.client.queue_patterns.set_queue_priority_patterns(rules)
    for name in ("apple", "milk", "zest", "q"):
        kitchen.put(name)
    worker = kitchen.start("serial", "-q", "*", "--drain")
    assert worker.wait(30) == 0
    assert [line.split()[1] for line in kitchen.notes()] == ["zest", "q", "milk", "apple"]


def meaning(client, *patterns):
    return PatternResolver(client, patterns).resolve()


@pytest.mark.full
def test_keys_of_a_worker_fall_back_to_default_and_that_to_everything(client):
    for name in ("mine", "one", "two"):
        client.queues[name].put("K", {})
    assert meaning(client, "@unknown") == ["mine", "one", "two"]
    patterns = client.queue_patterns
    patterns.set_queue_identifier_patterns({"default": ["t*"], socket.gethostname(): ["mine"], "o": ["o*"]})
    assert meaning(client, "@unknown") == ["two"]
    assert meaning(client, "@") == ["mine"]
    assert meaning(client, "@o", "two") == ["one", "two"]
    assert meaning(client, "*", "!@o") == ["mine", "two"]
    assert meaning(client, "*", "!@unknown") == ["mine", "one"]
    assert meaning(client, "one", "!absent") == ["one"]
    assert meaning(client, "o.e") == ["o.e"]


@pytest.mark.full
def test_patterns_that_only_take_away_are_refused():
    with pytest.raises(UsageError, match="only exclude queues"):
        WorkerSettings(("!a", "!b*")).checked()


class _Resolver:
    def __init__(self, *answers):
        self.answers = list(answers)

    def resolve(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class _Shard(Shard):
    def __init__(self):
        self.root = "hf:{x}:"
        self.gate = ReconnectGate()


def test_a_resolver_is_asked_on_every_pass_and_one_that_fails_leaves_what_was_known(caplog):
    route = Route(_Shard(), ("a*",), _Resolver(["a"], OSError("away"), OSError("away"), ["b"]))
    assert route.asks_store
    assert list(route.keys().values()) == [""]  # it waits where nobody rings
    route.refresh()
    assert route.order() == ("a",)
    assert list(route.keys().values()) == ["a"]
    for _ in range(2):
        route.refresh()
        assert route.order() == ("a",)
        assert route.after(Popped(), 1, 1).due == 1.0  # it looks again soon
    route.refresh()
    assert route.order() == ("b",)
    assert route.after(Popped(), 1, 1).due is None
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


@pytest.mark.full
def test_a_store_that_cannot_be_asked_for_queues_is_warned_of_once_and_without_a_traceback(caplog):
    gate = [ConnectionLost("away") for _ in range(3)]
    route = Route(_Shard(), ("a*",), _Resolver(*gate, ["b"]))
    for _ in range(4):
        route.refresh()
    assert route.order() == ("b",)
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


@pytest.mark.full
def test_what_a_resolver_or_a_reserver_of_ones_own_says_wrongly_stops_no_work(client, caplog):
    class Unsure:
        queues, description = ("a", "b"), "unsure"
        fails = True

        def prep_for_work(self):
            """Nothing to prepare."""

        def order(self, known):
            if self.fails:
                raise LookupError("no order")
            return known[::-1]

    unsure = Unsure()
    said = _Resolver([client.queues["a"], "b", "a"], ["a", "\n"], ["a", 5], [""], ["b", "a"])
    route = Route(_Shard(), ("a",), said, unsure)
    for _ in range(4):
        route.refresh()
        assert route.order() == ("a", "b")
    route.refresh()
    unsure.fails = False
    assert route.order() == ("a", "b")
    # Each of the two is named once.
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR", "WARNING"]
