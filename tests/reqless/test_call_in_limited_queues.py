"""`client("queue.put", …)` in native queues that hold or run so many jobs only: nothing is counted that was refused."""

import pytest

from holdfast import Client
from holdfast.errors import Refused


def put(client: Client, jid: str, *more: object) -> object:
    return client("queue.put", "w", "q", jid, "k", "{}", 0, *more)


@pytest.mark.full
def test_a_full_queue_takes_no_more_and_counts_none_of_them(url: str, namespace: str) -> None:
    with Client(url, namespace=namespace) as client:
        client.queues["q"].set_bound("max-waiting", 2)
        for jid in ("a", "b"):
            assert put(client, jid) == jid
        for more in ((), ("tags", '["x"]'), ("depends", '["a"]')):
            with pytest.raises(Refused, match="c has no room: queue q is full"):
                put(client, "c", *more)
        assert put(client, "a", "tags", '["x"]') == "a"
        assert client("jobs.tagged", "x") == '{"total":1,"jobs":["a"]}'
        assert client.queues["q"].tallies()["put"] == 3


def test_a_job_that_is_set_aside_is_counted_once(url: str, namespace: str) -> None:
    with Client(url, namespace=namespace) as client:
        client("queue.throttle.set", "q", 1)
        for jid in ("a", "b"):
            put(client, jid)
            client("queue.pop", "q", "w", 1)
        put(client, "c")
        assert client("throttle.pending", "ql:q:q") == '["b","c"]'
        assert client.queues["q"].tallies()["put"] == 3
