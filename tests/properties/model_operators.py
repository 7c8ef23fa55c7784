"""The reference model: what operators do with many jobs, the operations that keep track of it, and the audit log."""

from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any

from model_parts import DAY, Job
from model_people import PeopleModel
from model_putting import No

DIGEST = 40
MOST_REFUSALS = 100
Result = tuple[int | str, str]
"""1 (changed), 0 (the same) or a refusal; and what undoes it."""


@dataclass
class Operation:
    """What an operator ordered, who runs it until when, and how far that is."""

    spec: str
    runner: str
    lease: int
    created: int
    updated: int
    state: str = "running"
    cursor: str = ""
    looked: int = 0
    matched: int = 0
    changed: int = 0
    same: int = 0
    refused: int = 0
    parts: list[tuple[tuple[str, str], ...]] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)

    @property
    def facts(self) -> tuple[Any, ...]:
        return (
            *(self.spec, self.state, self.runner, self.lease, self.created, self.updated, self.cursor),
            *(self.looked, self.matched, self.changed, self.same, self.refused),
        )


class OperatorModel(PeopleModel):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.operations_by_id: dict[str, Operation] = {}
        self.audit: list[tuple[int, str, str, str, str]] = []

    # --- jobs ---------------------------------------------------------------------------------------------------

    def act(self, action: str, common: str, jobs: tuple[tuple[str, Any], ...]) -> list[int | str]:
        """Each job is changed (1), stays the same (0), or is refused by itself."""
        return [result for result, _ in self.act_all(action, common, jobs)]

    def act_all(self, action: str, common: str, jobs: tuple[tuple[str, Any], ...]) -> list[Result]:
        return [self.act_one(action, jid, value or common) for jid, value in jobs]

    def act_one(self, action: str, jid: str, value: Any) -> Result:
        try:
            undo = getattr(self, f"act_{action.replace('-', '_')}")(self.job(jid), value)
        except No as no:
            return str(no), ""
        return (0, "") if undo is None else (1, undo)

    @staticmethod
    def expect(job: Job, *states: str) -> None:
        if job.state not in states:
            raise No("HF_WRONG_STATE")

    @staticmethod
    def expect_open(job: Job) -> None:
        if job.state == "complete":
            raise No("HF_WRONG_STATE")

    def act_retry(self, job: Job, queue: str) -> str:
        self.expect(job, "failed")
        before = job.queue
        self.revive(job, queue or job.queue)
        return before

    def act_fail(self, job: Job, queue: str) -> str:
        """A job that was put to work again and did not run fails as it did before, and counts for that day."""
        if job.state == "running":
            return self.fail_stalled(job)
        self.expect(job, "waiting", "throttled")
        if job.failure is None or not self.failed_last(job):
            raise No("HF_WRONG_STATE")
        group, _, when, _ = job.failure
        before = job.queue
        self.queue(queue or job.queue)
        self.withdraw(job)
        job.queue = queue or job.queue
        job.history.append(("failed", self.now, group))
        job.state, job.ended, job.awaited = "failed", when, False
        self.groups.setdefault(group, []).append(job.jid)
        day = self.days.get((job.queue, when // DAY))
        if day and day.failures:
            day.failed += 1
        return before

    def fail_stalled(self, job: Job) -> str:
        """A job whose lease has ended fails where it is, as if that loss were one too many; nothing is paid for it."""
        if job.end > self.now:
            raise No("HF_WRONG_STATE")
        by = f"(worker {job.worker}, attempt {job.attempts})"
        self.end_lease(job)
        message = f"lease expired {by}; failed by an operator"
        self.fail_job(job, "failed", f"{job.queue}-Lost", message, "")
        return job.queue

    @staticmethod
    def failed_last(job: Job) -> bool:
        for what, _, _ in reversed(job.history):
            if what in ("failed", "failed-retries"):
                return True
            if what not in ("put", "throttled", "looked at it"):
                return False
        return False

    def act_move(self, job: Job, queue: str) -> str:
        before = job.queue
        self.move(queue or job.queue, 0, job.jid, b"", None)
        return f"{job.queued} {job.attempts} {before}"

    def act_move_back(self, job: Job, value: str) -> str:
        """A job goes back to the queue it was in, unless anything happened to it since it was moved."""
        queued, attempts, queue = value.split(" ", 2)
        self.expect(job, "waiting", "throttled", "depends")
        if (str(job.queued), str(job.attempts)) != (queued, attempts):
            raise No("HF_WRONG_STATE")
        self.move(queue, 0, job.jid, b"", None)
        return ""

    def act_cancel(self, job: Job, _: str) -> str:
        self.expect_open(job)
        self.cancel((job.jid,))
        return ""

    def act_delete(self, job: Job, _: str) -> str:
        """As cancel, but what a worker runs is left to it."""
        if job.state == "running":
            raise No("HF_WRONG_STATE")
        return self.act_cancel(job, _)

    def act_expire(self, job: Job, _: str) -> str:
        self.timeout((job.jid,))
        return ""

    def act_run(self, job: Job, _: str) -> str:
        self.expect(job, "scheduled")
        self.place(job, 0)
        return ""

    def act_delay(self, job: Job, length: str) -> str:
        self.expect(job, "waiting", "scheduled", "stalled")
        self.withdraw(job)
        self.place(job, int(length))
        return ""

    def act_priority(self, job: Job, priority: str) -> str | None:
        before = job.priority
        if before == int(priority):
            return None
        self.expect_open(job)
        self.priority(int(priority), (job.jid,))
        return str(before)

    def act_retries(self, job: Job, retries: str) -> str | None:
        """What was used up stays used up."""
        before = job.retries
        if before == int(retries):
            return None
        self.expect_open(job)
        job.retries, job.remaining = int(retries), max(job.remaining + int(retries) - before, 0)
        return str(before)

    def act_data(self, job: Job, value: bytes) -> str | None:
        """New data behind the digest of those that the operator saw."""
        self.expect_open(job)
        if job.state == "running":
            raise No("HF_WRONG_STATE")
        digest, data = value[:DIGEST].decode(), value[DIGEST:]
        if data == job.data:
            return None
        if digest != sha1(job.data).hexdigest():
            raise No("HF_WRONG_STATE")
        job.data = data
        return ""

    def act_tag(self, job: Job, names: str) -> str | None:
        """Only a tag that is new counts, and has the time of now."""
        new = [name for name in dict.fromkeys(names.split("\n")) if name not in job.tags]
        job.tags |= dict.fromkeys(new, self.now)
        return "\n".join(new) if new else None

    def act_untag(self, job: Job, names: str) -> str | None:
        gone = [name for name in dict.fromkeys(names.split("\n")) if name in job.tags]
        for name in gone:
            del job.tags[name]
        return "\n".join(gone) if gone else None

    def act_track(self, job: Job, _: str) -> str | None:
        return "" if self.track(True, job.jid) else None

    def act_untrack(self, job: Job, _: str) -> str | None:
        return "" if self.track(False, job.jid) else None

    # --- operations ---------------------------------------------------------------------------------------------

    def operation_of(self, id: str) -> Operation:
        if id not in self.operations_by_id:
            raise No("HF_OPERATION_NOT_FOUND")
        return self.operations_by_id[id]

    def run_by(self, id: str, runner: str) -> Operation:
        found = self.operation_of(id)
        if found.state != "running" or found.runner != runner:
            raise No("HF_WRONG_STATE")
        return found

    def operation_start(self, id: str, runner: str, length: int, spec: str) -> int:
        if id in self.operations_by_id:
            raise No("HF_WRONG_STATE")
        self.operations_by_id[id] = Operation(spec, runner, self.now + length, self.now, self.now)
        return 1

    def operation_take(self, id: str, runner: str, length: int) -> int:
        """Another runner takes over what was stopped, or what its runner keeps no longer."""
        found = self.operation_of(id)
        is_kept = found.runner != runner and found.lease > self.now
        if found.state not in ("running", "stopped") or (found.state == "running" and is_kept):
            raise No("HF_WRONG_STATE")
        found.state, found.runner = "running", runner
        found.lease, found.updated = self.now + length, self.now
        return 1

    def operation_finish(self, id: str, runner: str, state: str) -> int:
        """What has ended can only be undone."""
        found = self.run_by(id, runner) if runner else self.operation_of(id)
        is_over = found.state not in ("running", "stopped")
        if found.state == state or (is_over and state != "undone"):
            return 0
        found.state, found.updated = state, self.now
        return 1

    def act_in(
        self, progress: tuple[str, str, int, str, int, int], action: str, common: str, jobs: Any
    ) -> list[int | str]:
        """A step of an operation: what it did is noted with what it did."""
        id, runner, length, cursor, looked, matched = progress
        found = self.run_by(id, runner)
        results = self.act_all(action, common, jobs)
        done = tuple(
            (jid, undo) for (jid, _), (result, undo) in zip(jobs, results, strict=True) if result == 1
        )
        if done:
            found.parts.append(done)
        refused = [
            (jid, one) for (jid, _), (one, _) in zip(jobs, results, strict=True) if isinstance(one, str)
        ]
        found.refusals = [*found.refusals, *refused][:MOST_REFUSALS]
        found.changed, found.refused = found.changed + len(done), found.refused + len(refused)
        found.same += len(results) - len(done) - len(refused)
        found.cursor, found.lease, found.updated = cursor, self.now + length, self.now
        found.looked, found.matched = found.looked + looked, found.matched + matched
        return [result for result, _ in results]

    def operations(self, offset: int, count: int) -> list[tuple[str, tuple[Any, ...]]]:
        """Newest first."""
        newest = list(reversed(self.operations_by_id.items()))
        return [(id, found.facts) for id, found in newest[offset : offset + count]]

    def operation_get(self, id: str, offset: int, count: int) -> Any:
        """Its facts, refusals and changes, and in how many parts these are kept."""
        found = self.operations_by_id.get(id)
        if found is None:
            return None
        changed = [pair for part in found.parts[offset : offset + count] for pair in part]
        return found.facts, found.refusals, changed, len(found.parts)

    # --- the audit log ------------------------------------------------------------------------------------------

    def audited(self, who: str, what: str, target: str, verb: str, *args: Any) -> Any:
        """The line is written with the change, or neither is."""
        answer = getattr(self, verb)(*args)
        self.audit.append((self.now, who, what, target, ""))
        return answer
