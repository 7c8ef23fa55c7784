"""Taking over the topics of an older scheduler, for both clients."""

import time

import pytest

from holdfast import Client, UsageError
from holdfast.wire.plans import Step

NOW = time.time()
LONG = 10_000  # seconds: a whole run of tests is shorter


@pytest.fixture
def older(url, namespace):
    """Plain commands, as the older programs send them, on keys of a prefix of this test's own."""
    with Client(url, namespace=namespace) as made:

        def ask(*words):
            [reply] = made.link.send(Step([words]))
            return reply

        yield ask


@pytest.fixture
def prefix(namespace):
    return f"{namespace}_SCHED_"


def keep(older, prefix, id, body, when, where="QUEUED", topic="t"):
    if body is not None:
        older("HSET", f"{prefix}JOBS__{topic}", id, body)
    older("ZADD", f"{prefix}{where}__{topic}", when, id)


def left(older, prefix, topic="t"):
    return {
        part: older("EXISTS", f"{prefix}{part}__{topic}")
        for part in ("JOBS", "QUEUED", "RESERVED")
        if older("EXISTS", f"{prefix}{part}__{topic}")
    }


def adopt(do, prefix, topic="t"):
    return do(lambda: do.client.topics.adopt(topic, prefix=prefix))


def test_messages_move_with_body_and_time_in_seconds_or_milliseconds(do, older, prefix):
    keep(older, prefix, "ms", "from node", round((NOW + LONG) * 1000))
    keep(older, prefix, "s", "two words", round(NOW + 2 * LONG))
    keep(older, prefix, "due", "ü", 5)
    assert adopt(do, prefix) == 3
    topic = do.client.topics["t"]
    assert do(topic.reserve).body == "ü"
    assert do(lambda: topic.get("ms")).when_ms == round((NOW + LONG) * 1000)
    assert do(lambda: topic.get("s")).ready == round(NOW + 2 * LONG)
    assert left(older, prefix) == {}
    assert adopt(do, prefix) == 0


def test_what_somebody_holds_stays_unless_the_time_for_it_is_over(do, older, prefix):
    keep(older, prefix, "held", "x", round(NOW + LONG), "RESERVED")
    keep(older, prefix, "lost", "y", round(NOW - LONG), "RESERVED")
    assert adopt(do, prefix) == 1
    assert do(do.client.topics["t"].pull).id == "lost"
    assert older("HGETALL", f"{prefix}JOBS__t") == [b"held", b"x"]
    assert older("ZRANGE", f"{prefix}RESERVED__t", 0, -1) == [b"held"]


def test_a_message_that_was_put_here_before_a_crash_is_removed_there(do, older, prefix):
    keep(older, prefix, "a", "x", round(NOW + LONG))
    do(lambda: do.client.topics["t"].put("a", "x", delay=100))
    assert adopt(do, prefix) == 1
    assert left(older, prefix) == {}
    assert do(do.client.topics["t"].length) == 1


def test_what_cannot_move_stays_where_it_is_and_is_told(do, older, prefix, caplog):
    keep(older, prefix, "x" * 201, "long id", 1)
    keep(older, prefix, b"\xff", "no text", 2)
    keep(older, prefix, "a", "another body", 3)
    keep(older, prefix, "bodiless", None, 4)
    keep(older, prefix, "fine", "x", 5)
    do(lambda: do.client.topics["t"].put("a", "x", delay=100))
    assert adopt(do, prefix) == 1
    assert older("ZRANGE", f"{prefix}QUEUED__t", 0, -1) == [b"x" * 201, b"\xff", b"a"]
    assert caplog.text.count("was not moved") == 3
    assert do(do.client.topics["t"].pull).id == "fine"


def test_many_messages_move(do, older, prefix):
    for number in range(250):
        keep(older, prefix, f"m{number}", f"body {number}", 1000 + number)
    keep(older, prefix, "y" * 300, "long id", 1)
    assert adopt(do, prefix) == 250
    assert do(do.client.topics["t"].ready_count) == 250


def test_keys_that_hold_something_else_are_an_error_and_nothing_moves(do, older, prefix):
    older("SET", f"{prefix}QUEUED__t", "x")
    with pytest.raises(Exception, match="WRONGTYPE"):
        adopt(do, prefix)
    with pytest.raises(UsageError):
        adopt(do, prefix, topic="")
    assert do(do.client.topics.names) == []
