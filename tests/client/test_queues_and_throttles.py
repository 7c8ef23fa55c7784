"""python-api 9.1 and 9.4: all queues, and throttles."""

import pytest
from sync_async import Sync

from holdfast import QueueNotEmptyError, Throttle, UsageError


def assign(do, throttle, name: str, value: object) -> None:
    """`throttle.<name> = value`, or its twin where that cannot be awaited."""
    if isinstance(do, Sync):
        setattr(throttle, name, value)
    else:
        with pytest.raises(TypeError, match=f"set_{name}"):
            setattr(throttle, name, value)
        do(lambda: getattr(throttle, f"set_{name}")(value))


def test_naming_a_queue_asks_nobody_and_it_comes_into_being_with_its_first_job(do):
    queue = do.client.queues["mail"]
    assert do(lambda: do.client.queues.counts) == do(lambda: do.client.queues.names) == []
    do(lambda: queue.put("K"))
    assert do(lambda: do.client.queues.names) == ["mail"]


def test_queues_are_counted_in_order_of_first_use_and_stay_listed_when_empty(stopped, do):
    for name in ("z", "a"):
        do(lambda name=name: do.client.queues[name].put("K", jid=name))
        stopped.advance(seconds=1)
    do(lambda: do.client.jobs.cancel("z"))
    do(do.client.queues["a"].pause)
    first, second = do(lambda: do.client.queues.counts)
    states = {"waiting", "running", "stalled", "throttled", "scheduled", "depends", "recurring"}
    assert {"name", "paused", *states} <= set(first)
    assert (first["name"], second["name"]) == ("z", "a")
    assert {name: first[name] for name in states} == dict.fromkeys(states, 0)
    assert (second["waiting"], first["paused"], second["paused"]) == (1, False, True)
    assert all(type(first[name]) is int for name in states)


def test_only_an_empty_queue_can_be_forgotten(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", jid="j"))
    with pytest.raises(QueueNotEmptyError):
        do(queue.forget)
    do(lambda: do.client.jobs.cancel("j"))
    do(queue.forget)
    assert do(lambda: do.client.queues.names) == []


def test_a_throttle_has_a_name_that_is_also_its_id(do):
    throttle = do.client.throttles["db"]
    assert (throttle.name, throttle.id) == ("db", "db")
    assert throttle == do.client.throttles["db"] != do.client.throttles["other"]
    assert len({throttle, do.client.throttles["db"]}) == 1
    assert "db" in repr(throttle)


def test_a_throttle_can_be_made_by_hand(client):
    assert Throttle(client, "db") == client.throttles["db"]


def test_none_keeps_the_maximum_and_no_expiration_keeps_the_end(do):
    throttle = do.client.throttles["db"]
    assert (do(throttle.maximum), do(throttle.ttl)) == (0, -2)
    do(lambda: throttle.set_maximum(5))
    assert (do(throttle.maximum), do(throttle.ttl)) == (5, -1)
    do(lambda: throttle.set_maximum(None, 60))
    do(lambda: throttle.set_maximum(4))
    assert (do(throttle.maximum), do(throttle.ttl)) == (4, 60)


def test_maximum_and_expiration_can_be_assigned(do):
    throttle = do.client.throttles["db"]
    assert do(lambda: throttle.expiration) is None
    assign(do, throttle, "maximum", 5)
    assert (do(throttle.maximum), do(lambda: throttle.expiration)) == (5, None)
    assign(do, throttle, "expiration", 60)
    assert (do(throttle.maximum), do(throttle.ttl)) == (5, 60)
    assert 55 < do(lambda: throttle.expiration) <= 60
    with pytest.raises(UsageError, match="expiration"):
        do(lambda: throttle.set_expiration(0))
    with pytest.raises(UsageError, match="maximum"):
        do(lambda: throttle.set_maximum("5"))
    assert do(throttle.maximum) == 5


def test_a_limit_disappears_when_its_time_is_over(stopped, do):
    throttle = do.client.throttles["db"]
    do(lambda: throttle.set_maximum(5, 60))
    stopped.advance(seconds=59)
    assert (do(throttle.maximum), do(throttle.ttl)) == (5, 1)
    stopped.advance(seconds=1)
    assert (do(throttle.maximum), do(throttle.ttl), do(lambda: throttle.expiration)) == (0, -2, None)


def test_deleting_a_throttle_makes_it_unlimited_again(do):
    throttle = do.client.throttles["db"]
    do(lambda: throttle.set_maximum(1))
    do(throttle.delete)
    assert (do(throttle.maximum), do(throttle.ttl)) == (0, -2)


def test_all_that_hold_a_slot_or_wait_for_one_are_listed_however_many(do):
    queue, throttle = do.client.queues["mail"], do.client.throttles["db"]
    do(lambda: throttle.set_maximum(600))
    jids = [f"j{n:04}" for n in range(1150)]
    jobs = [{"klass": "K", "jid": jid} for jid in jids]
    do(lambda: queue.put_many(jobs[:600], throttles=["db"]))
    while do(lambda: queue.pop(512)):
        pass  # a pop looks at so many throttled jobs only
    do(lambda: queue.put_many(jobs[600:], throttles=["db"]))
    assert sorted(do(throttle.locks)) == jids[:600]
    assert do(throttle.pending) == jids[600:]
    assert do(lambda: throttle.pending(520)) == jids[600:1120]
    assert do(lambda: throttle.locks(0)) == []


def test_the_throttles_of_all_known_queues_are_listed(stopped, do):
    assert do(lambda: do.client.throttles.counts) == []
    for name in ("z", "a"):
        do(lambda name=name: do.client.queues[name].put("K"))
        stopped.advance(seconds=1)
    throttles = do(lambda: do.client.throttles.counts)
    assert throttles == [do.client.queues[name].throttle for name in ("z", "a")]
    assert [throttle.name for throttle in throttles] == ["ql:q:z", "ql:q:a"]
