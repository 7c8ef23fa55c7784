"""The same for workers of many queues: real turns, of which each step to the store is a place where others may go on."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test
from test_no_wake_is_lost import QUEUES, SEARCH, Wakes, door

from holdfast.core.library import library
from holdfast.models import JobFacts
from holdfast.settings import Settings
from holdfast.testing.clock import START_MS
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard
from holdfast.worker.queues.route import Route
from holdfast.worker.session import ANY_QUEUE, StoreSession
from native_door import Door
from waiting import LONGER

__all__ = ["door"]


class _Only:
    """A chooser of the queues that a worker serves."""

    is_old = False

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def renew(self) -> None:
        """Nothing is read."""

    def choose(self, known: Any) -> list[str]:
        return [name for name in self.names if name in known]


class Player:
    """A worker with `room` for jobs. `state` is busy, in a turn, short (found too little and will block) or blocked.

    A wait at the bell stays outstanding (`listening`) when a timer ends; what is heard (`woken`) may find the worker full.
    """

    def __init__(self, door: Door, name: str, queues: list[str], room: int) -> None:
        self.door, self.name, self.queues, self.room = door, name, queues, room
        shard = Shard(Settings("", "test-wakes"))
        shard.met = True
        self.route = Route(shard, queues, slots=room, chooser=_Only(queues))
        self.turns = StoreSession(shard, name, self.route)
        self.state = "busy"
        self.listening = self.woken = False
        self.jobs: list[JobFacts] = []
        self.plan: Plan[Any] | None = None
        self.limit = 0

    @property
    def wake_up(self) -> str:
        [key] = self.route.keys()
        return key

    @property
    def is_told(self) -> bool:
        """Whether it was told, and is going to look or to tell another one."""
        is_going_on = self.state == "turn" or len(self.jobs) < self.room
        return self.woken or (is_going_on and self.route._finding._is_woken)

    def begin(self) -> None:
        self.limit = self.room - len(self.jobs)
        woken, self.woken = ANY_QUEUE if self.woken else None, False
        if woken is None and self.limit == 0:
            return
        self.state = "turn"
        self.plan = self.turns.round_trip(self.limit, woken)
        self.advance(None)

    def advance(self, replies: Any) -> None:
        assert self.plan is not None
        try:
            self.step = self.plan.send(replies)
        except StopIteration as done:
            self.plan = None
            self.jobs += done.value
            waits = len(done.value) < self.limit and done.value.due != 0
            self.state = "short" if waits else "busy"

    def go_on(self) -> None:
        if self.state == "turn":
            self.advance([self.door.ask(*call) for call in self.step.calls])
        else:
            self.begin()


class FleetWakes(Wakes):
    @initialize()
    def begin(self) -> None:
        self.door.ask("FLUSHALL")
        self.door("info", "test", START_MS)
        self.count = 0
        self.now = START_MS
        of = [("w", ["q"], 1), ("v", ["q", "r"], 2), ("u", ["q", "r"], 1), ("t", ["q", "r"], 1)]
        self.workers: list[Any] = [Player(self.door, *one) for one in of]

    def serve_blocked(self) -> None:
        for worker in self.workers:
            if worker.listening and self.door.ask("LPOP", worker.wake_up) is not None:
                worker.listening, worker.woken = False, True
                worker.state = "busy" if worker.state == "blocked" else worker.state

    def block(self, worker: Any) -> None:
        worker.state = "blocked"
        if not worker.listening:
            worker.listening = True
            self.workers.remove(worker)
            self.workers.append(worker)
        self.serve_blocked()

    @rule(which=st.integers(0, 3), steps=st.integers(1, 3))
    def a_worker_goes_on(self, which: int, steps: int = 1) -> None:
        worker = self.workers[which]
        for _ in range(steps):
            if worker.state == "short":
                self.block(worker)
            elif worker.state != "blocked":
                worker.go_on()
                self.serve_blocked()

    @rule(which=st.integers(0, 3))
    def a_worker_idles(self, which: int) -> None:
        for _ in range(9):
            if self.workers[which].state != "blocked":
                self.a_worker_goes_on(which)

    @rule()
    def timers_end(self) -> None:
        """Time passes; a blocked worker looks by its own timer."""
        self.now += 1000
        self.door("clock", self.now)
        for worker in list(self.workers):
            if worker.state == "blocked":
                worker.state, worker.woken = "busy", True

    @invariant()
    def nobody_sleeps_beside_a_job(self) -> None:
        for queue in QUEUES if hasattr(self, "workers") else ():
            for worker in self.workers:
                if worker.state == "blocked" and queue in worker.queues and self.could_pop(queue):
                    fleet = [other for other in self.workers if other.wake_up == worker.wake_up]
                    assert any(other.is_told for other in fleet), (worker.name, queue)

    def teardown(self) -> None:
        """Whoever is left to work alone finds all that it could have."""
        for worker in getattr(self, "workers", ()):
            if worker.plan is not None:
                worker.plan.close()


def search(door: Door, **more: Any) -> None:
    machine: Any = type("Machine", (FleetWakes,), {"door": door})
    run_state_machine_as_test(machine, settings=settings(SEARCH, **more))


@pytest.mark.full
def test_no_worker_of_many_queues_sleeps_beside_a_job_it_could_have(door: Door) -> None:
    search(door)


@pytest.mark.full
def test_no_worker_of_many_queues_sleeps_beside_a_job_it_could_have_for_long(door: Door) -> None:
    search(door, max_examples=40 * LONGER, stateful_step_count=120)


MISSING = [
    ("if ctx.index and raw < INDEXED and count > 0 then ctx.index.enter(ctx, queue) end", ""),
    ("if ctx.index then ctx.index.again(ctx, queue) end", ""),
    ("if mode == M.WILL_WAIT then index.wait(ctx, fleet) end", ""),
    ('if run(ctx, "ZADD", ctx.keys.ready, "NX", place, queue.name) == 1 then wake_all(ctx) end', ""),
    ('if run(ctx, "ZSCORE", ctx.keys.fleets, fleet) then wake(ctx, fleet) end', ""),
    ("if is_empty and queues.is_entered(queue) then", "if false then"),
    ("if is_empty or is_done then", "if true then"),
]


def test_each_step_that_a_search_leaves_out_is_in_the_core() -> None:
    assert [right for right, _ in MISSING if right not in library().text] == []


@pytest.mark.full
@pytest.mark.parametrize(("right", "wrong"), MISSING)
def test_a_missing_step_of_the_index_is_found(right: str, wrong: str, door: Door) -> None:
    assert right in library().text
    door.ask("FUNCTION", "LOAD", "REPLACE", library().text.replace(right, wrong))
    with pytest.raises(AssertionError):
        search(door, max_examples=2000)
