"""Who keeps leases, a parent for its children or a thread beside a serial worker: no job is missed that begins while it looks."""

import socket
from math import inf
from time import monotonic
from types import SimpleNamespace

import pytest
from worker_kit import until

from holdfast.client.sync import Client
from holdfast.commands.recurring import CalendarFacts, Recur
from holdfast.wire.plans import Step
from holdfast.worker.in_process import RenewalThread
from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.supervisor.calls import StoreCalls
from holdfast.worker.supervisor.child import ChildPlace
from holdfast.worker.supervisor.upkeep import ChildUpkeep, _extend_plans


@pytest.fixture
def guard(client):
    calls = StoreCalls(client)
    calls.start_thread()
    yield ChildUpkeep(calls, WorkerSettings(queues=["q"], pool="asyncio"))
    calls.close()


def test_a_child_tells_its_parent_of_a_shorter_lease_once_and_not_at_each_job(guard):
    lease_table = LeaseTable(2)
    assert lease_table.hold(0, "a", 1, 30_000, monotonic())
    guard.learn(SimpleNamespace(lease_table=lease_table))
    assert not lease_table.hold(0, "b", 1, 30_000, monotonic())
    assert not lease_table.hold(1, "c", 1, 60_000, monotonic())
    assert lease_table.hold(1, "d", 1, 29_000, monotonic())


@pytest.mark.full
def test_the_next_child_on_a_page_tells_its_parent_of_its_lease_whatever_was_promised_to_the_one_before(
    guard,
):
    lease_table = LeaseTable()
    lease_table.hold(0, "a", 1, 1_000, monotonic())
    guard.learn(SimpleNamespace(lease_table=lease_table))
    assert not lease_table.hold(0, "b", 1, 1_000, monotonic())
    lease_table.wipe()  # the child has died, and while there is none its parent looks less often
    assert lease_table.hold(0, "c", 1, 1_000, monotonic())


def test_a_recurring_job_that_cannot_be_planned_is_logged_once_until_the_reason_changes(
    guard, client, caplog
):
    soon = round(client.store_time() * 1000) + 60_000
    for cron in ("61 * * * *", "61 * * * *", "* 61 * * *"):
        facts = CalendarFacts(cron)
        client.run(Recur("q", "K", 60_000, jid="bad", calendar=facts, plan=[(soon, soon)]))
        for _ in range(2):
            guard._note_unplanned(_extend_plans(False, client))
    assert caplog.text.count("recurring job bad is not planned on") == 2


class Late(LeaseTable):
    """A lease table whose child begins a job between its parent's look and what the parent promises after that."""

    was_told = None

    def set_pace(self, lease):
        if self.was_told is None:
            super().set_pace(3.0)
            self.was_told = self.hold(0, "late", 1, 3_000, monotonic(), inf)
        super().set_pace(lease)


@pytest.mark.full
def test_a_job_that_begins_while_its_parent_looks_is_looked_after_in_time(guard):
    lease_table = Late()
    child = SimpleNamespace(lease_table=lease_table, pid=1, name="w", poke=lambda: None)
    guard.notify([])  # there is a message: look now
    guard.attend([child])
    assert lease_table.was_told is False
    assert not lease_table.hold(0, "next", 1, 3_000, monotonic())  # it is looked after already


class Granting(LeaseTable):
    """The lease table of one process: a job with a short lease is granted while the thread reads it for the `at`-th time."""

    def __init__(self, at):
        super().__init__()
        self.at, self.looks = at, 0
        self.ours, self.theirs = socket.socketpair()

    def read_all(self):
        self.looks += 1
        seen = super().read_all()
        if self.looks == self.at and self.hold(0, "late", 1, 1_000, monotonic()):
            self.theirs.send(b"\0")
        return seen


@pytest.mark.full
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_job_that_is_granted_while_its_keeper_looks_is_renewed(client, url, namespace, monkeypatch, at):
    monkeypatch.setattr("holdfast.worker.leases.keeper.LONGEST_PERIOD", 3600.0)
    table, renewed = Granting(at), []
    settings = WorkerSettings(queues=("q",), pool="serial").checked()
    place = ChildPlace("w", 0, table, table.theirs, 0, settings, None)

    def run(command):
        leases = getattr(command, "leases", ())
        renewed.extend(leases)
        return [1] * len(leases)

    monkeypatch.setattr(client, "run", run)
    with table.ours, table.theirs, RenewalThread(client, place, table.ours):
        with Client(url, namespace=namespace) as other:
            for _ in range(at):  # each has it look once
                looked = table.looks
                other.link.send(Step([("PUBLISH", other.shard.worker_channel("w"), '{"event":"x"}')]))
                until(lambda before=looked: table.looks > before, "it has looked")
        until(lambda: [lease.jid for lease in renewed] and renewed[0].jid == "late", "the lease is renewed")


@pytest.mark.full
def test_what_a_dead_child_held_is_given_back_before_the_parent_ends(client, guard):
    client.queues["q"].put("k", {}, jid="a")
    [job] = client.queues["q"].pop(1)
    lease_table = LeaseTable(1)
    lease_table.hold(0, "a", job.facts.token, 30_000, monotonic())
    guard.release(SimpleNamespace(lease_table=lease_table, pid=1, name=job.worker_name), "preempted", "TERM")
    guard.finish()
    found = client.jobs["a"]
    assert (found.state, found.losses) == ("waiting", 0)
