"""Patterns, the audit log, pauses with an end and forgotten queues, for both clients."""

import time
from collections.abc import Iterator

import pytest
import redis
from sync_async import Async, Sync

from holdfast import QueueNotEmpty, Refused, UsageError
from holdfast.commands.admin import ConfigSet
from holdfast.queue_resolvers import QueuePriorityPattern


@pytest.fixture(params=[Sync, Async], ids=["sync", "async"])
def do(request, url: str, namespace: str) -> Iterator[Sync | Async]:
    made = request.param(url, namespace)
    yield made
    made.close()


def test_identifiers_are_lists_of_patterns(do):
    patterns = do.client.queue_patterns
    assert do(patterns.get_queue_identifier_patterns) == {"default": ["*"]}
    do(lambda: patterns.set_queue_identifier_patterns({"mail": ["m*", "!mx"], "none": []}))
    assert do(patterns.get_queue_identifier_patterns) == {"default": ["*"], "mail": ["m*", "!mx"]}
    do(lambda: patterns.set_queue_identifier_patterns({}))
    assert do(patterns.get_queue_identifier_patterns) == {"default": ["*"]}
    with pytest.raises(UsageError):
        do(lambda: patterns.set_queue_identifier_patterns({"mail": "m*"}))


def test_rules_of_priority_compare_by_patterns_and_fairness(do):
    patterns, last = do.client.queue_patterns, QueuePriorityPattern(["default"])
    assert do(patterns.get_queue_priority_patterns) == [last]
    rules = [QueuePriorityPattern(["a", "b"], True), QueuePriorityPattern(["c"])]
    do(lambda: patterns.set_queue_priority_patterns(rules))
    assert do(patterns.get_queue_priority_patterns) == [*rules, last]
    assert "should_distribute_fairly=True" in repr(rules[0])


def test_the_audit_log_is_written_and_read(do):
    do.client.worker_name = "ann"
    first = do(lambda: do.client.audit.add("pause", "mail", "for a deploy"))
    do(lambda: do.client.audit.add("unpause", "mail", who="eve"))
    lines = do(do.client.audit.newest)
    assert [(line.who, line.what, line.target) for line in lines] == [
        ("eve", "unpause", "mail"),
        ("ann", "pause", "mail"),
    ]
    assert do(lambda: do.client.audit.newest(before=first)) == []


def test_an_empty_queue_can_be_forgotten(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K"))
    with pytest.raises(QueueNotEmpty):
        do(queue.forget)
    do(lambda: do.client.jobs.cancel(jid))
    assert do(queue.forget) == 1
    assert do(lambda: do.client.queues.names) == []


def test_a_pause_may_have_an_end(do):
    queue = do.client.queues["mail"]
    assert do(lambda: queue.pause(why="deploy", seconds=60)) == 1
    assert do(lambda: queue.paused) is True
    with pytest.raises(UsageError):
        do(lambda: queue.pause(seconds=-1))


def test_a_lease_length_that_is_no_number_reads_as_the_default(do):
    # Our clients refuse such a value; programs in other languages may write it.
    do(lambda: do.client.run(ConfigSet("mail-heartbeat", "soon")))
    do(lambda: do.client.run(ConfigSet("heartbeat", "31")))
    assert do(lambda: do.client.queues["mail"].heartbeat) == 31


def test_settings_that_are_no_configuration_keys_are_read_and_written(do):
    upkeep = do.client.upkeep
    assert do(upkeep.settings) == {
        "keep-data": 0,
        "max-data": 1 << 20,
        "max-history-bytes": 262_144,
        "max-queues": 1_000_000,
        "stats-days": 400,
        "unknown-for": 600,
    }
    do(lambda: upkeep.set("keep-data", 1))
    assert do(upkeep.settings)["keep-data"] == 1
    do(lambda: upkeep.set("keep-data", None))
    assert do(upkeep.settings)["keep-data"] == 0
    with pytest.raises(UsageError, match="value"):
        do(lambda: upkeep.set("keep-data", "1"))
    with pytest.raises(Refused, match="stats-days"):
        do(lambda: upkeep.set("stats-days", 0))


def test_chores_can_be_asked_for(do):
    upkeep, queue = do.client.upkeep, do.client.queues["mail"]
    do(lambda: queue.put("K"))
    assert do(lambda: upkeep.tick("mail", queue)) == 2
    assert do(upkeep.sweep) == 0
    with pytest.raises(UsageError, match="tick"):
        do(lambda: upkeep.tick())


def test_changes_are_told_while_somebody_watches(do, url):
    listener = redis.Redis.from_url(url).pubsub()
    listener.subscribe(f"{do.client.root}e:c")
    assert listener.get_message(timeout=30)["type"] == "subscribe"
    assert do(lambda: do.client.upkeep.watch(5)) > time.time()
    do(lambda: do.client.queues["mail"].pause())
    message = listener.get_message(timeout=30)
    assert b"queue:mail" in message["data"]
    listener.close()
    with pytest.raises(UsageError, match="seconds"):
        do(lambda: do.client.upkeep.watch(61))
