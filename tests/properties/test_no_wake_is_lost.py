"""The wake-up protocol in every order: no worker stays blocked beside a job that it could have.

Workers are played step by step, so that each race window is a place where the machine may do something else: after
a short pop and before the block, and between the token and the pop it asks for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from holdfast.client.sync import Client
from holdfast.core.library import library
from holdfast.models import JobFacts
from holdfast.testing.clock import START_MS
from holdfast.testing.store import Engine, ScratchStore
from native_door import Door
from waiting import LONGER

QUEUES = ["q", "r"]
queues = st.sampled_from(QUEUES)
numbers = st.integers(0, 3)
SEARCH = settings(
    max_examples=40,
    stateful_step_count=50,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@dataclass
class Worker:
    """`state` is busy (works, or is about to pop), short (popped too few and will block), blocked, or holds."""

    name: str
    queues: list[str]
    room: int
    state: str = "busy"
    rang: str = ""
    jobs: list[JobFacts] = field(default_factory=list)


class Wakes(RuleBasedStateMachine):
    door: Door

    @initialize()
    def begin(self) -> None:
        self.door.ask("FLUSHALL")
        self.door("info", "test", START_MS)
        self.count = 0
        self.now = START_MS
        self.workers = [Worker("w", ["q"], 1), Worker("v", ["q", "r"], 2), Worker("u", ["r", "q"], 1)]

    def serve_blocked(self) -> None:
        """What the store does when a call has ended: the one who blocked first on a list gets its token."""
        for worker in [worker for worker in self.workers if worker.state == "blocked"]:
            for queue in worker.queues:
                if (
                    worker.state == "blocked"
                    and self.door.ask("LPOP", self.door.key(f"n:{queue}")) is not None
                ):
                    worker.state, worker.rang = "holds", queue

    def pop(self, worker: Worker, n: int) -> None:
        modes = [word for queue in worker.queues for word in (queue, 2 if queue == worker.rang else 1)]
        reply = self.door("pop", worker.name, "", 0, n, 3_600_000, *modes)
        got = [JobFacts.from_row(reply[i : i + 4], worker.name) for i in range(1, len(reply), 4)]
        worker.jobs += got
        worker.state, worker.rang = ("busy" if got or n == 0 else "short"), ""
        self.serve_blocked()

    def block(self, worker: Worker) -> None:
        worker.state = "blocked"
        # Whoever blocks goes to the end of the line.
        self.workers.remove(worker)
        self.workers.append(worker)
        self.serve_blocked()

    @rule(which=st.integers(0, 2))
    def a_worker_goes_on(self, which: int) -> None:
        worker = self.workers[which]
        if worker.state == "short":
            self.block(worker)
        elif worker.state == "holds" or (worker.state == "busy" and len(worker.jobs) < worker.room):
            self.pop(worker, worker.room - len(worker.jobs))

    @rule(which=st.integers(0, 2))
    def a_worker_idles(self, which: int) -> None:
        for _ in range(2):
            self.a_worker_goes_on(min(which, len(self.workers) - 1))

    @rule(
        which=st.integers(0, 2),
        way=st.sampled_from(["complete", "complete", "retry", "timeout", "move", "advance"]),
    )
    def a_lease_ends(self, which: int, way: str) -> None:
        worker = self.workers[which]
        if not worker.jobs:
            return
        job = worker.jobs.pop(0)
        words: dict[str, tuple[Any, ...]] = {
            "complete": (worker.name, job.jid, job.token, "", 0, ""),
            "retry": (worker.name, 0, "", "", job.jid, job.token, ""),
            "timeout": ("", 0, job.jid),
            "move": ("", 0, "r", 0, job.jid, "", ""),
            "advance": (worker.name, "r", 0, job.jid, job.token, ""),
        }
        self.door(way, *words[way])
        self.serve_blocked()

    @rule(which=st.integers(0, 2))
    def a_worker_drains_its_queues(self, which: int) -> None:
        """Else there is always more to do than is done, and nobody ever sleeps."""
        worker = self.workers[which]
        for _ in range(20):
            if worker.state in ("short", "blocked"):
                break
            while worker.jobs:
                self.a_lease_ends(self.workers.index(worker), "complete")
            self.a_worker_goes_on(self.workers.index(worker))

    @rule(queue=queues, number=numbers, delay=st.sampled_from([0, 0, 0, 1000]))
    def put(self, queue: str, number: int, delay: int) -> None:
        jids = [f"j{self.count + i}" for i in range(number)]
        self.count += number
        self.door.put(queue, *jids, delay=delay, retries=1000)
        self.serve_blocked()

    @rule()
    def timers_end(self) -> None:
        """Time passes; a blocked worker pops by its own timer, its wait left outstanding."""
        self.now += 1000
        self.door("clock", self.now)
        for worker in list(self.workers):
            if worker.state == "blocked":
                worker.state = "busy"
                self.pop(worker, worker.room - len(worker.jobs))
                if worker.state == "short":
                    self.block(worker)

    @rule(queue=queues, limit=st.sampled_from([0, 0, 1, 2]))
    def throttle(self, queue: str, limit: int) -> None:
        self.door("throttle_set", "", 0, f"ql:q:{queue}", limit, 0)
        self.serve_blocked()

    @rule(queue=queues, on=st.sampled_from([False, False, True]))
    def pause(self, queue: str, on: bool) -> None:
        self.door("pause", "", 0, int(on), "", "", 0, queue)
        self.serve_blocked()

    @invariant()
    def nobody_sleeps_beside_a_job(self) -> None:
        if not hasattr(self, "workers"):
            return
        for queue in QUEUES:
            tokens = self.door.ask("LLEN", self.door.key(f"n:{queue}"))
            assert tokens <= 1
            blocked = any(worker.state == "blocked" and queue in worker.queues for worker in self.workers)
            if blocked and self.could_pop(queue):
                assert any(worker.rang == queue for worker in self.workers), queue

    def could_pop(self, queue: str) -> bool:
        [[_, waiting, running, stalled, *more]] = self.door.look("counts", queue)
        paused = more[4]
        limit, *_ = self.door.look("throttle_get", f"ql:q:{queue}")
        ready = self.door.ask("ZCARD", self.door.key(f"w:{queue}"))
        return bool(ready and waiting and not paused and (limit == 0 or running + stalled < limit))


@pytest.fixture
def door(engine: Engine) -> Iterator[Door]:
    with ScratchStore(engine) as store, Client(store.url, namespace="test-wakes") as client:
        made = Door(client)
        made.ask("FUNCTION", "LOAD", library().text)
        yield made


@pytest.mark.full
def test_no_worker_sleeps_beside_a_job_it_could_have(door: Door) -> None:
    machine: Any = type("Machine", (Wakes,), {"door": door})
    run_state_machine_as_test(machine, settings=SEARCH)


@pytest.mark.full
def test_no_worker_sleeps_beside_a_job_it_could_have_for_long(door: Door) -> None:
    machine: Any = type("Machine", (Wakes,), {"door": door})
    run_state_machine_as_test(
        machine, settings=settings(SEARCH, max_examples=40 * LONGER, stateful_step_count=120)
    )


MISSING = [
    ("if idle then queues.signal(queue) end", ""),
    ("if added and idle then queues.signal(queue) end", ""),
    ('if call("ZCARD", queue.waiting) > 0', "if false"),
    ("if mode > 0 and got < want then\n    queues.raise_idle(queue)", "if mode > 0 and got < want then"),
    ("if not paused then M.wake(ctx, queue) end", ""),
]


def test_each_step_that_a_search_leaves_out_is_in_the_core() -> None:
    assert [right for right, _ in MISSING if right not in library().text] == []


@pytest.mark.full
@pytest.mark.parametrize(("right", "wrong"), MISSING)
def test_a_missing_signal_is_found(right: str, wrong: str, door: Door) -> None:
    assert right in library().text
    door.ask("FUNCTION", "LOAD", "REPLACE", library().text.replace(right, wrong))
    machine: Any = type("Machine", (Wakes,), {"door": door})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            machine, settings=settings(SEARCH, max_examples=6000, phases=[Phase.generate])
        )
