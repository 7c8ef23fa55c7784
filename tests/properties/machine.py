"""Core and model driven by the same calls in random orders."""

from typing import Any, Final

from calls import Call
from calls_later import WholeCore
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize
from model_lines import NumberedModel
from model_putting import No
from step_laws import Ledger

from holdfast.models import JobFacts
from holdfast.testing.clock import START_MS
from native_door import Door

QUEUES: Final = ["q", "r", "s"]
JIDS: Final = ["a", "b", "c", "d", "e", "f"]
WORKERS: Final = ["w", "v"]
LINES: Final = ["l", "m"]
DATA: Final = [b"{}", b'{"n":1}', b'"' + b"x" * 600 + b'"']

READS: Final = {"clock", "recur_get", "tags", "tracked", "throttle_get", "operation_get"}
"""What changes nothing; `clock` is no call of the core's callers."""

queues = st.sampled_from(QUEUES)
jids = st.sampled_from(JIDS)
workers = st.sampled_from(WORKERS)
several = st.lists(jids, min_size=1, max_size=3, unique=True).map(tuple)
some_queues = st.lists(queues, min_size=1, max_size=2, unique=True).map(tuple)
data = st.sampled_from(DATA)
new_data = st.sampled_from([b"", b"", *DATA])
delays = st.sampled_from([0, 0, 0, 5_000, 60_000])
priorities = st.sampled_from([0, 0, 0, 3, -7, 4095, -4095])
leases = st.sampled_from([0, 0, 3_000])
limits = st.integers(1, 4)
jobs = st.lists(st.tuples(jids, st.sampled_from(["k", "other"]), data), min_size=1, max_size=4).map(tuple)
settings_of_root = st.sampled_from(
    [
        ("grace-period", "0"), ("grace-period", "10"), ("heartbeat", "5"), ("heartbeat", "60"), ("q-heartbeat", "2"),
        ("jobs-history-count", "0"), ("jobs-history-count", "50000"), ("jobs-history", "0"), ("jobs-history", "604800"),
    ]
)  # fmt: skip
lines = st.sampled_from(LINES)
modes = st.sampled_from(["new", "move", "only", "old"])
retries = st.integers(0, 2)
paid = st.one_of(retries, st.sampled_from(["0/0", "1/1", "0/3"]))  # also with budgets of a job's own
pick = st.data()
steps_of_time = st.sampled_from([1, 1_000, 2_000, 3_000, 5_000, 10_000, 60_000, 70_000, 86_400_000])


class Machine(RuleBasedStateMachine):
    """`door` is set by whoever runs it, on a store with a core that nobody else uses."""

    door: Door

    def __init__(self) -> None:
        super().__init__()
        self.core = WholeCore(self.door)
        self.model = NumberedModel(START_MS)
        self.calls: list[Call] = []
        self.grants: list[tuple[str, str, int]] = []
        self.ledger = Ledger()
        self.slots: dict[str, int] = {}
        self.numbers = dict.fromkeys(LINES, 0)
        self.looked_at = 0

    @initialize()
    def begin(self) -> None:
        self.door.ask("FLUSHALL")
        self.door("info", "test", START_MS)
        # The model keeps every line; that long histories are cut is told in a story.
        self.door("config_set", "max-job-history", "0")

    # --- the one way to make a call ----------------------------------------------------------------------------

    def do(self, name: str, *args: Any) -> None:
        self.calls.append((name, args))
        self.apply((name, args))

    def apply(self, call: Call) -> None:
        answer, expected = self.both(call)
        assert answer == expected, f"{call}: the core says {answer!r}, the model {expected!r}"
        if call[0].startswith(("pop", "complete_pop")):
            self.took(call, answer)

    def both(self, call: Call) -> tuple[Any, Any]:
        """What the core answers, and the model."""
        self.model.release_order = self.children_in_the_core()
        answer = self.core.call(call)
        self.ledger.heard(call, answer, self.model.now)
        self.model.due_seen = self.due_in_the_core
        name, args = call
        try:
            expected = getattr(self.model, name)(*args)
            if name not in READS:
                self.model.afterwards()
            return answer, expected
        except No as no:
            return answer, str(no)

    def due_in_the_core(self, jid: str) -> int:
        [row] = self.door.look("job_get", jid)
        return JobFacts.from_job_row(row).due_ms

    def children_in_the_core(self) -> dict[str, list[str]]:
        """Who waits for each job, in the order in which the core lets them go: the pages leave it open."""
        parents = sorted({parent for job in self.model.jobs.values() for parent in job.parents})
        rows = self.door.look("job_get", *parents) if parents else []
        return {job.jid: list(job.dependents) for job in map(JobFacts.from_job_row, filter(None, rows))}

    def took(self, call: Call, answer: Any) -> None:
        """Remember new grants; the due time is never said too late."""
        name, args = call
        if isinstance(answer, str):
            return
        numbered = name.endswith("_once")
        worker, names = (args[2], args[5]) if numbered else (args[0], args[3])
        for row in answer[1] if name.startswith("complete") else answer:
            grant = (worker, row[0], row[4])
            if grant not in self.grants:
                self.grants.append(grant)
        due = self.model.next_due(names)
        # A worker of many queues does not look into all of them, so it is told of those that it popped from only.
        if due is not None and not numbered and worker != "v":
            assert 0 <= self.core.due <= max(due - self.model.now, 0)

    def next_number(self, line: str) -> int:
        self.numbers[line] += 1
        return self.numbers[line]

    def held(self, pick: Any, made_up: bool = True) -> tuple[str, str, int]:
        """A lease: one that was granted (perhaps long lost), one of somebody else, or one nobody ever had."""
        kind = pick.draw(st.integers(0, 9))
        running = [
            (job.worker, job.jid, job.token) for job in self.model.jobs.values() if job.state == "running"
        ]
        if kind > 4 and running:
            return pick.draw(st.sampled_from(running))
        if not self.grants or (kind == 0 and made_up):
            return pick.draw(workers), pick.draw(jids), pick.draw(st.sampled_from([0, 1, START_MS]))
        recent = self.grants[-4:] if kind > 2 else self.grants
        worker, jid, token = pick.draw(st.sampled_from(recent))
        if kind == 1:
            return pick.draw(workers), jid, token
        return worker, jid, token + 1 if kind == 2 else token

    def several_held(self, pick: Any) -> tuple[str, tuple[tuple[str, int, bytes], ...]]:
        worker, jid, token = self.held(pick)
        found = [(jid, token, pick.draw(new_data))]
        for _ in range(pick.draw(st.integers(0, 2))):
            _, jid, token = self.held(pick)
            found.append((jid, token, pick.draw(new_data)))
        return worker, tuple(found)

    def some_done(self, pick: Any) -> tuple[str, tuple[Any, ...]]:
        worker, held = self.several_held(pick)
        kept = pick.draw(st.sampled_from([(0, b""), (3_600_000, b'"good"')]))
        return worker, tuple([(*one, *kept) for one in held])
