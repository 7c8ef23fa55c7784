"""The guard of a parent: what it promises its children about the leases that they hold."""

from math import inf
from time import monotonic
from types import SimpleNamespace

import pytest

from holdfast.work.parent.guard import Guard
from holdfast.work.parent.slate import Slate
from holdfast.work.settings import WorkerSettings


@pytest.fixture
def guard(client):
    return Guard(client, WorkerSettings(queues=["q"], pool="asyncio"))


def test_a_child_tells_its_parent_of_a_shorter_lease_once_and_not_at_each_job(guard):
    slate = Slate(2)
    assert slate.hold(0, "a", 1, 30_000, monotonic())
    guard.learn(SimpleNamespace(slate=slate))
    assert not slate.hold(0, "b", 1, 30_000, monotonic())
    assert not slate.hold(1, "c", 1, 60_000, monotonic())
    assert slate.hold(1, "d", 1, 29_000, monotonic())


class Late(Slate):
    """A slate whose child begins a job between its parent's look and what the parent promises after that."""

    was_told = None

    def set_pace(self, lease):
        if self.was_told is None:
            super().set_pace(3.0)
            self.was_told = self.hold(0, "late", 1, 3_000, monotonic(), inf)
        super().set_pace(lease)


def test_a_job_that_begins_while_its_parent_looks_is_looked_after_in_time(guard):
    slate = Late()
    child = SimpleNamespace(slate=slate, pid=1, name="w", poke=lambda: None)
    guard.hear([])  # there is news: look now
    guard.attend([child])
    assert slate.was_told is False
    assert not slate.hold(0, "next", 1, 3_000, monotonic())  # it is looked after already
