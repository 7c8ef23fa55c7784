"""The stopped clock that tests of the core and of users' code turn by hand."""

import pytest

from holdfast import Client, LeaseLost, Refused
from holdfast.commands.jobs import Put
from holdfast.commands.leases import Complete, Pop
from holdfast.testing.clock import START_MS, StoppedClock


def test_a_worker_cannot_finish_a_job_it_lost_and_won_again(core, clock):
    core(Put("mail", "Welcome"))
    [lost] = core(Pop("w1", ("mail",), ttl=30))
    clock.advance(seconds=31)
    assert core(Pop("w2", ("mail",))) == []
    clock.advance(seconds=11)
    [won] = core(Pop("w1", ("mail",), ttl=30))
    with pytest.raises(LeaseLost):
        core(Complete("w1", lost))
    assert core(Complete("w1", won)) == "complete"


def test_time_stands_still_and_is_the_same_for_every_client(clock, engine_store, namespace):
    with Client(engine_store.url, namespace=namespace) as other:
        clock.core(Put("mail", "K", jid="j1"))
        clock.advance(seconds=60)
        other.queues["mail"].put("K", jid="j2")
        assert other.jobs["j1"].facts.created_ms == START_MS
        assert other.jobs["j2"].facts.created_ms == START_MS + 60_000


def test_a_clock_cannot_be_stopped_outside_tests(url):
    client = Client(url, namespace="production")
    StoppedClock(client, START_MS)
    with pytest.raises(Refused, match=r"test|production"):
        client.queues["q"].put("K")
    client.close()


def test_a_root_in_use_cannot_become_a_test_root(url, namespace):
    with Client(url, namespace=namespace) as client:
        client.queues["q"].put("K")
        with pytest.raises(Refused):
            StoppedClock(client, START_MS).advance(seconds=1)
