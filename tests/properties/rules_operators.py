"""Rules for operators: single actions, operations on many jobs and their undo, calls that are audited."""

from hashlib import sha1
from typing import Any

from compare import same_day
from hypothesis import strategies as st
from hypothesis.stateful import rule
from machine import DATA, QUEUES, Machine, jids, lines, pick, queues, some_queues
from model_looks import DAY
from rules_recurring import templates
from rules_wishes import TAGS

from holdfast.console.operations.spec import INVERSE

MOST_OPERATIONS = 12
LEASE = 5_000
WRONG = sha1(b"something else").hexdigest()
ACTIONS = {
    "retry": ["", "", *QUEUES], "fail": ["", "", *QUEUES], "move": ["", *QUEUES], "cancel": [""], "delete": [""], "expire": [""],
    "run": [""], "delay": ["0", "5000", "60000"], "priority": ["0", "3", "-7"], "retries": ["0", "1", "4"],
    "tag": [*TAGS, "red\nblue", "blue\nblue"], "untag": [*TAGS, "red\nblue"], "track": [""], "untrack": [""], "data": [WRONG + "[1]"],
}  # fmt: skip
UNDONE = ("retry", "move", "priority", "retries", "tag", "untag", "track", "untrack")
"""Actions after whose undo a job is as before, if nobody touched it meanwhile."""
actions = st.sampled_from(sorted(ACTIONS))
several = st.lists(jids, min_size=1, max_size=4).map(tuple)
once_each = st.lists(jids, min_size=1, max_size=4, unique=True).map(tuple)
runners = st.sampled_from(["w", "v"])
lengths = st.sampled_from([1_000, LEASE])
ends = st.sampled_from(["done", "failed", "stopped", "stopped", "undone"])


class OperatorRules(Machine):
    def values(self, pick: Any, action: str, jids: Any) -> tuple[str, Any]:
        """The common value of an action, and (jid, own value) pairs."""
        values = st.sampled_from(ACTIONS[action])
        if action == "data":
            return pick.draw(values), tuple([(jid, self.new_data(pick, jid)) for jid in jids])
        return pick.draw(values), tuple(
            [(jid, pick.draw(st.sampled_from(["", *ACTIONS[action]]))) for jid in jids]
        )

    def new_data(self, pick: Any, jid: str) -> bytes:
        """New data behind the digest of those there are, mostly."""
        job = self.model.jobs.get(jid)
        known = job is not None and pick.draw(st.integers(0, 3)) > 0
        digest = sha1(job.data).hexdigest() if job is not None and known else WRONG
        return digest.encode() + pick.draw(st.sampled_from(DATA))

    def operation(self, pick: Any) -> str:
        """A new operation, or one that there was."""
        known = list(self.model.operations_by_id)
        if known and (len(known) >= MOST_OPERATIONS or pick.draw(st.booleans())):
            return pick.draw(st.sampled_from(known))
        return f"o{len(known)}"

    def progress(self, id: str, runner: str, count: int) -> tuple[Any, ...]:
        return id, runner, LEASE, f"behind {count}", count + 1, count

    @rule(pick=pick, action=actions, jids=several)
    def act(self, pick: Any, action: str, jids: Any) -> None:
        self.do("act", action, *self.values(pick, action, jids))

    @rule(pick=pick, line=lines, action=actions, jids=several)
    def act_numbered(self, pick: Any, line: str, action: str, jids: Any) -> None:
        self.do("once", line, self.next_number(line), "act", action, *self.values(pick, action, jids))

    @rule(pick=pick, queue=queues, jids=several, runs=st.booleans())
    def some_fail_and_their_retry_is_undone(self, pick: Any, queue: str, jids: Any, runs: bool) -> None:
        self.do("pop", "w", 3, 0, (queue,))
        running = [job for job in self.model.jobs.values() if job.state == "running"]
        for job in running:
            self.do("fail", job.worker, "g", "because", ((job.jid, job.token, b""),))
        failed_at, failed = self.model.now, tuple([(job.jid, "") for job in running])
        if pick.draw(st.booleans()):
            self.apply(("clock", (failed_at + DAY,)))
        self.do("act", "retry", pick.draw(st.sampled_from(["", *QUEUES])), failed)
        if runs:
            self.do("pop", "w", 1, 0, (queue,))
        self.do(
            "act", "fail", pick.draw(st.sampled_from(["", queue])), (*failed, *[(jid, "") for jid in jids])
        )
        same_day(self.model, self.core, QUEUES, failed_at)

    @rule(pick=pick, length=lengths, runner=runners, spec=st.sampled_from(["{}", '{"a":1}']))
    def start(self, pick: Any, length: int, runner: str, spec: str) -> None:
        self.do("operation_start", self.operation(pick), runner, length, spec)

    @rule(pick=pick, length=lengths, runner=runners)
    def take_over(self, pick: Any, length: int, runner: str) -> None:
        self.do("operation_take", self.operation(pick), runner, length)

    @rule(pick=pick, line=lines, runner=st.sampled_from(["", "", "w", "v"]), state=ends)
    def finish(self, pick: Any, line: str, runner: str, state: str) -> None:
        words = self.operation(pick), runner, state
        if pick.draw(st.booleans()):
            self.do("once", line, self.next_number(line), "operation_finish", *words)
        else:
            self.do("operation_finish", *words)

    @rule(pick=pick, line=lines, runner=runners, action=actions, jids=several)
    def act_in_an_operation(self, pick: Any, line: str, runner: str, action: str, jids: Any) -> None:
        words = (
            self.progress(self.operation(pick), runner, len(jids)),
            action,
            *self.values(pick, action, jids),
        )
        if pick.draw(st.booleans()):
            self.do("once", line, self.next_number(line), "act_in", *words)
        else:
            self.do("act_in", *words)

    @rule(pick=pick, late=st.booleans(), action=actions, jids=several)
    def an_operation_is_taken_over_between_two_steps(
        self, pick: Any, late: bool, action: str, jids: Any
    ) -> None:
        id = f"o{len(self.model.operations_by_id)}"
        self.do("operation_start", id, "w", LEASE, "{}")
        values = self.values(pick, action, jids)
        self.do("act_in", self.progress(id, "w", 1), action, *values)
        self.apply(("clock", (self.model.now + LEASE - (not late),)))
        self.do("operation_take", id, "v", LEASE)
        for runner in ("w", "v"):
            self.do("act_in", self.progress(id, runner, 2), action, *values)
        self.do("operation_get", id, 0, 9)

    @rule(
        pick=pick, action=st.sampled_from(sorted(INVERSE)), jids=once_each, by=st.sampled_from([0, 0, 1_000])
    )
    def an_operation_is_undone(self, pick: Any, action: str, jids: Any, by: int) -> None:
        count = len(self.model.operations_by_id)
        before = {jid: self.kept(jid, action) for jid in jids}
        for id in (f"o{count}", f"o{count + 1}"):
            self.do("operation_start", id, "w", LEASE, "{}")
        words = action, *self.values(pick, action, jids)
        self.do("act_in", self.progress(f"o{count}", "w", len(jids)), *words)
        if by:
            self.apply(("clock", (self.model.now + by,)))
        for part in self.model.operations_by_id[f"o{count}"].parts:
            self.do("act_in", self.progress(f"o{count + 1}", "w", len(part)), INVERSE[action], "", part)
        self.do("operation_finish", f"o{count}", "", "undone")
        if action in UNDONE:
            assert {jid: self.kept(jid, action) for jid in jids} == before

    @rule(pick=pick, queue=queues, action=st.sampled_from(["delete", "delete", "cancel", "data", "expire"]))
    def an_operator_meets_a_job_that_runs(self, pick: Any, queue: str, action: str) -> None:
        self.do("pop", "w", 1, 0, (queue,))
        running = [job.jid for job in self.model.jobs.values() if job.state == "running"]
        if running:
            self.do("act", action, *self.values(pick, action, (pick.draw(st.sampled_from(running)),)))

    @rule(queue=queues, other=queues)
    def an_undo_is_undone(self, queue: str, other: str) -> None:
        self.do("pop", "w", 1, 0, (queue,))
        running = [job for job in self.model.jobs.values() if job.state == "running"]
        for job in running:
            self.do("fail", job.worker, "g", "because", ((job.jid, job.token, b""),))
        id = f"o{len(self.model.operations_by_id)}"
        self.do("operation_start", id, "w", LEASE, "{}")
        jobs: Any = tuple([(job.jid, other) for job in running if job.state == "failed"])
        for action in ("retry", "fail", "retry"):
            self.do("act_in", self.progress(id, "w", len(jobs)), action, "", jobs)
            parts = self.model.operations_by_id[id].parts
            jobs = parts[-1] if parts else ()
        self.do("operation_get", id, 0, 9)

    @rule(first=ends, second=ends)
    def an_operation_ends_twice(self, first: str, second: str) -> None:
        id = f"o{len(self.model.operations_by_id)}"
        self.do("operation_start", id, "w", LEASE, "{}")
        for state in (first, second):
            self.do("operation_finish", id, "", state)

    def kept(self, jid: str, action: str) -> Any:
        """What an action and its undo leave as it was, by the core."""
        [row] = self.door.look("job_get", jid)
        if not row:
            return None
        tracked, tags, queue, priority, retries = row[30], set(row[19]), row[3], row[5], row[6]
        shown = {
            "retry": (row[2] == b"failed", queue),
            "move": queue,
            "priority": priority,
            "retries": retries,
        }
        return {**shown, "tag": tags, "untag": tags, "track": tracked, "untrack": tracked}.get(action)

    @rule(pick=pick, line=lines, who=st.sampled_from(["ann", "bob"]))
    def an_operator_is_noted(self, pick: Any, line: str, who: str) -> None:
        """Each verb of operators with its line of the audit log, refused ones without."""
        verb = pick.draw(
            st.sampled_from(["act", "cancel", "pause", "unfail", "recur_pause", "recur_run", "priority"])
        )
        args: tuple[Any, ...]
        if verb == "act":
            action = pick.draw(actions)
            args = action, *self.values(pick, action, pick.draw(several))
        elif verb == "pause":
            args = pick.draw(st.booleans()), 0, pick.draw(some_queues)
        elif verb == "unfail":
            args = pick.draw(queues), "g", 2
        elif verb == "recur_pause":
            args = pick.draw(st.booleans()), pick.draw(templates)
        elif verb == "recur_run":
            args = (pick.draw(templates),)
        else:
            args = (pick.draw(once_each),) if verb == "cancel" else (3, pick.draw(once_each))
        words = who, f"did {verb}", "that", verb, *args
        if pick.draw(st.booleans()):
            self.do("once", line, self.next_number(line), "audited", *words)
        else:
            self.do("audited", *words)
