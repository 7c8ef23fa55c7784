"""workers.md 7: strategies, which yield queues to reservers: orders, sources, filters."""

import os
import threading

import pytest

from holdfast import UsageError
from holdfast.queue_resolvers import QueuePriorityPattern
from holdfast.reservers import Ordered, RoundRobin, strategies
from holdfast.reservers import __all__ as public
from holdfast.workers import ForkingWorker
from waiting import until

ordering, sources, filtering = strategies.ordering, strategies.sources, strategies.filtering


def test_the_public_names_of_reservers_are_these():
    assert set(public) == {
        "Delegating", "Ordered", "Reserver", "RoundRobin", "ShuffledRoundRobin", "strategies",
    }  # fmt: skip


@pytest.mark.full
def test_shuffled_yields_a_fresh_order_each_time():
    numbers = list(range(50))
    shuffled = ordering.shuffled(numbers)
    first, second = list(shuffled), list(shuffled)
    assert sorted(first) == sorted(second) == numbers
    assert first != second
    assert numbers == list(range(50))


@pytest.mark.full
def test_sampled_yields_some_others_each_time():
    sampled = ordering.sampled(range(1000))
    first, second = list(sampled), list(sampled)
    assert len(set(first)) == len(set(second)) == 5
    assert first != second
    assert len(list(ordering.sampled(range(1000), n=7))) == 7
    assert sorted(ordering.sampled([1, 2])) == [1, 2]
    with pytest.raises(UsageError, match="n must"):
        ordering.sampled([1], n=0)


def names(queues):
    return sorted(queue.name for queue in queues)


@pytest.mark.full
def test_direct_yields_the_queues_with_work_to_come(client):
    client.queues["waiting"].put("K", {})
    client.queues["scheduled"].put("K", {}, delay=60)
    client.queues["depends"].put("K", {}, depends=[client.queues["waiting"].put("K", {})])
    client.queues["recurring"].recur("K", {}, interval=60, offset=60)
    client.queues["running"].put("K", {})
    client.queues["running"].pop()
    client.throttles["one"].maximum = 1
    for _ in range(2):
        client.queues["throttled"].put("K", {}, throttles=["one"])
    client.queues["throttled"].pop(2)
    client.queues["empty"].put("K", {})
    client.queues["empty"].pop().complete()
    direct = sources.direct(client)
    assert names(direct) == ["depends", "recurring", "scheduled", "waiting"]
    client.queues["empty"].put("K", {})
    assert "empty" in names(direct)


class Fickle:
    """A source that counts how often it was gone through, and raises when it is told to."""

    def __init__(self):
        self.times = 0
        self.is_broken = False

    def __iter__(self):
        self.times += 1
        if self.is_broken:
            raise OSError("away")
        return iter([self.times])


@pytest.mark.full
def test_a_source_in_the_background_is_loaded_at_once_and_again_and_survives_errors(caplog):
    source = Fickle()
    background = sources.Background(source, 0.01)
    thread = background.start()
    assert thread.is_alive()
    assert list(background) == [source.times]
    until(lambda: next(iter(background)) > 2, "it was looked at again")
    source.is_broken = True
    seen = source.times
    until(lambda: source.times > seen + 2, "it goes on in spite of errors")
    assert len(list(background)) == 1
    source.is_broken = False
    until(lambda: next(iter(background)) > seen, "it got over them")
    background.stop()
    assert not thread.is_alive()
    assert len([record for record in caplog.records if "cannot be looked up" in record.message]) == 1


@pytest.mark.full
def test_a_source_that_was_not_started_is_asked_without_a_thread_when_what_is_kept_is_old(client):
    """D22: the parent of workers looks at the queues too, and must have no thread while it forks."""
    source, before = Fickle(), threading.active_count()
    background = sources.Background(source, 0.05)
    assert list(background) == [1]
    assert list(background) == [1]
    until(lambda: list(background) == [2], "it is old enough")
    background.stop()
    assert source.times == 2
    direct = ordering.shuffled(sources.Background(sources.direct(client), 1))
    assert ForkingWorker(RoundRobin(direct), client).count == 1
    assert threading.active_count() == before


@pytest.mark.full
def test_a_source_in_the_background_goes_on_in_a_forked_process():
    source = Fickle()
    background = sources.Background(source, 0.01)
    background.start()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            list(background)
            seen = source.times
            until(lambda: source.times > seen + 1, "it was looked at in the child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    background.stop()


@pytest.mark.full
def test_the_default_filter_yields_what_matches_in_the_order_of_the_rules(client):
    queues = [client.queues[name] for name in ("low.a", "mid", "top", "other")]
    rules = [QueuePriorityPattern(["top"]), QueuePriorityPattern(["default"]), QueuePriorityPattern(["low*"])]
    found = filtering.default(queues, ["@mine", "top", "gone"], {"mine": ["low*", "mid"]}, rules)
    assert [queue.name for queue in found] == ["top", "mid", "low.a"]
    assert [queue.name for queue in filtering.default(queues, ["*", "!mid"])] == ["low.a", "top", "other"]


@pytest.mark.full
def test_a_filter_is_lazy_and_may_ask_the_store_each_time(client):
    asked = []

    class Queues:
        def __iter__(self):
            asked.append(1)
            return iter([client.queues["b"], client.queues["a"]])

    patterns = client.queue_patterns
    found = filtering.default(
        Queues(), ["@all"], patterns.get_queue_identifier_patterns, patterns.get_queue_priority_patterns
    )
    assert not asked
    patterns.set_queue_identifier_patterns({"all": ["*"]})
    assert [queue.name for queue in found] == ["b", "a"]
    patterns.set_queue_priority_patterns([QueuePriorityPattern(["a"])])
    assert [queue.name for queue in found] == ["a", "b"]
    client.queues["b"].put("K", {})
    reserver = Ordered(filtering.default(sources.direct(client), ["*"]))
    assert reserver.reserve().queue_name == "b"
    assert reserver.reserve() is None
