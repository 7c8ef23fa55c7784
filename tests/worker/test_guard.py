"""Who keeps leases, a parent for its children or a thread beside a serial worker: no job is missed that begins while it looks."""

from math import inf
from time import monotonic
from types import SimpleNamespace

import pytest
from worker_kit import until

from holdfast.client.sync import Client
from holdfast.wire.plans import Step
from holdfast.work.keeper import Held
from holdfast.work.parent.lease_table import LeaseTable
from holdfast.work.parent.renewal import LeaseRenewal
from holdfast.work.pools.holding import BeatingThread
from holdfast.work.settings import WorkerSettings


@pytest.fixture
def guard(client):
    return LeaseRenewal(client, WorkerSettings(queues=["q"], pool="asyncio"))


def test_a_child_tells_its_parent_of_a_shorter_lease_once_and_not_at_each_job(guard):
    lease_table = LeaseTable(2)
    assert lease_table.hold(0, "a", 1, 30_000, monotonic())
    guard.learn(SimpleNamespace(lease_table=lease_table))
    assert not lease_table.hold(0, "b", 1, 30_000, monotonic())
    assert not lease_table.hold(1, "c", 1, 60_000, monotonic())
    assert lease_table.hold(1, "d", 1, 29_000, monotonic())


def test_the_next_child_on_a_page_tells_its_parent_of_its_lease_whatever_was_promised_to_the_one_before(
    guard,
):
    lease_table = LeaseTable()
    lease_table.hold(0, "a", 1, 1_000, monotonic())
    guard.learn(SimpleNamespace(lease_table=lease_table))
    assert not lease_table.hold(0, "b", 1, 1_000, monotonic())
    lease_table.wipe()  # the child has died, and while there is none its parent looks less often
    assert lease_table.hold(0, "c", 1, 1_000, monotonic())


class Late(LeaseTable):
    """A lease table whose child begins a job between its parent's look and what the parent promises after that."""

    was_told = None

    def set_pace(self, lease):
        if self.was_told is None:
            super().set_pace(3.0)
            self.was_told = self.hold(0, "late", 1, 3_000, monotonic(), inf)
        super().set_pace(lease)


def test_a_job_that_begins_while_its_parent_looks_is_looked_after_in_time(guard):
    lease_table = Late()
    child = SimpleNamespace(lease_table=lease_table, pid=1, name="w", poke=lambda: None)
    guard.hear([])  # there is news: look now
    guard.attend([child])
    assert lease_table.was_told is False
    assert not lease_table.hold(0, "next", 1, 3_000, monotonic())  # it is looked after already


class Hand:
    """What a serial worker holds: a job with a short lease is granted while its keeper looks for the `at`-th time."""

    def __init__(self, at):
        self.at, self.looks, self.held = at, 0, []
        self.thread = None

    def __call__(self):
        self.looks += 1
        seen = list(self.held)
        if self.looks == self.at:
            self.held = [Held("late", 1, "w", 1.0)]
            self.thread.learn(1.0, monotonic())
        return seen


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_job_that_is_granted_while_its_keeper_looks_is_renewed(client, url, namespace, monkeypatch, at):
    monkeypatch.setattr("holdfast.work.keeper.LONGEST_PERIOD", 3600.0)
    hand, renewed = Hand(at), []
    monkeypatch.setattr(client, "run", lambda command: renewed.append(command) or [1] * len(command.leases))
    hand.thread = BeatingThread(client, "w", hand, lambda: None)
    hand.thread.start()
    try:
        with Client(url, namespace=namespace) as other:
            for _ in range(at):  # each has it look once
                looked = hand.looks
                other.link.send(Step([("PUBLISH", other.shard.worker_channel("w"), '{"event":"x"}')]))
                until(lambda before=looked: hand.looks > before or hand.held, "it has looked")
        until(lambda: renewed, "the lease is renewed")
    finally:
        hand.thread.close()


def test_what_a_dead_child_held_is_given_back_before_the_parent_ends(client, guard):
    client.queues["q"].put("k", {}, jid="a")
    [job] = client.queues["q"].pop(1)
    lease_table = LeaseTable(1)
    lease_table.hold(0, "a", job.facts.token, 30_000, monotonic())
    guard.owe(SimpleNamespace(lease_table=lease_table, pid=1, name=job.worker_name), "preempted", "TERM")
    guard.finish()
    found = client.jobs["a"]
    assert (found.state, found.losses) == ("waiting", 0)
