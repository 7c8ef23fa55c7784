"""Throttles and bounds of queues, as people use them, for both clients."""

import pytest

from holdfast import QueueFull, UsageError


def test_a_throttle_is_set_looked_at_and_taken_away(do):
    throttle = do.client.throttles["db"]
    assert (do(throttle.maximum), do(throttle.ttl)) == (0, -2)
    do(lambda: throttle.set_maximum(3))
    assert (do(throttle.maximum), do(throttle.ttl)) == (3, -1)
    do(lambda: throttle.set_maximum(expiration=60))
    assert (do(throttle.maximum), do(throttle.ttl)) == (3, 60)
    assert do(lambda: do.client.throttles.names()) == ("0", ["db"])
    assert (do(throttle.delete), do(throttle.delete)) == (True, False)
    with pytest.raises(UsageError):
        do(lambda: throttle.set_maximum(3, expiration=-1))


def test_who_holds_a_slot_and_who_waits(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.throttle.set_maximum(1))
    first = do(lambda: queue.put("K", 1))
    do(lambda: queue.pop())
    second = do(lambda: queue.put("K", 2))
    assert (do(queue.throttle.locks), do(queue.throttle.pending)) == ([first], [second])
    assert do(lambda: queue.throttle.release(first)) == 1
    assert do(lambda: queue.pop()).jid == second


def test_a_queue_that_may_hold_so_many_only(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.set_bound("max-waiting", 1))
    do(lambda: queue.put("K", 1))
    with pytest.raises(QueueFull):
        do(lambda: queue.put("K", 2))
    do(lambda: queue.set_bound("max-waiting", None))
    do(lambda: queue.put("K", 2))
    assert do(queue.bounds) == {}
    with pytest.raises(UsageError):
        do(lambda: queue.set_bound("max-fun", 1))
