"""The reference model: what people and running jobs write on jobs, failed jobs that go back to work, and jobs that
put others when they are done."""

from typing import Any

from model_parts import DAY, Job
from model_putting import No
from model_recurring import RecurringModel
from model_wishes import beyond, parents_first


class PeopleModel(RecurringModel):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.marks: dict[str, int] = {}

    def job(self, jid: str) -> Any:
        if jid not in self.jobs:
            raise No("HF_JOB_NOT_FOUND")
        return self.jobs[jid]

    # --- labels ------------------------------------------------------------------------------------------------

    def tag(self, mode: str, jid: str, tags: tuple[str, ...]) -> tuple[str, ...]:
        """Adding a tag that is there refreshes its time."""
        job = self.job(jid)
        for tag in tags:
            if mode == "add":
                job.tags[tag] = self.now
            else:
                job.tags.pop(tag, None)
        return tuple(job.tags)

    def job_get(self, jid: str) -> Any:
        shown = super().job_get(jid)
        # A minted jid is taken for a new one: a mark that an earlier job of its name left is not looked for.
        unknown = shown and jid in self.marks and self.jobs[jid].created >= self.marks[jid]
        return shown and shown | {"tracked": None if unknown else jid in self.marks}

    def tags(self, least: int, offset: int, count: int) -> list[tuple[str, int]]:
        """Most used first; of equal ones, the later name."""
        found = sorted(
            [(number, tag) for tag, number in self.tag_counts().items() if number >= least], reverse=True
        )
        return [(tag, number) for number, tag in found[offset : offset + count]]

    def track(self, on: bool, jid: str) -> int:
        if on:
            self.job(jid)
            changed = jid not in self.marks
            self.marks.setdefault(jid, self.now)
            return int(changed)
        return int(self.marks.pop(jid, None) is not None)

    def tracked(self) -> list[tuple[str, int, int]]:
        found = [(jid, since, int(jid in self.jobs)) for jid, since in self.marks.items()]
        return sorted(found, key=lambda one: (one[1], one[0]))

    def log(self, jid: str, message: str) -> int:
        self.job(jid).history.append((message, self.now, ""))
        return 1

    def report(
        self, worker: str, jid: str, token: int, progress: str, note: str, lines: tuple[str, ...]
    ) -> Any:
        job = self.held(worker, jid, token)
        if job is None:
            return "HF_LEASE_LOST"
        if progress:
            job.progress = (float(progress), note, self.now)
        if lines:
            job.tail = [*job.tail, *lines]
        return 1

    # --- failures ----------------------------------------------------------------------------------------------

    def unfail(self, queue: str, group: str, count: int) -> int:
        """A new life for those that failed first; priority and the noted failure stay, and so does the time from
        which a wait is counted."""
        oldest = self.failed(group)[::-1][:count]
        for jid in oldest:
            self.revive(self.jobs[jid], queue)
        return len(oldest)

    def revive(self, job: Job, queue: str) -> None:
        self.leave_group(job)
        queued = job.queued
        self.begin_life(job, queue)
        job.queued, job.progress, job.tail = queued, None, []
        self.place(job, 0)

    # --- what an operator does with many jobs ------------------------------------------------------------------

    def act(self, action: str, common: str, jobs: tuple[tuple[str, str], ...]) -> list[int | str]:
        """Each job is changed (1), stays the same (0), or is refused by itself."""
        return [self.act_one(action, jid, value or common) for jid, value in jobs]

    def act_one(self, action: str, jid: str, value: str) -> int | str:
        try:
            return int(getattr(self, f"act_{action}")(self.job(jid), value))
        except No as no:
            return str(no)

    @staticmethod
    def expect(job: Job, *states: str) -> None:
        if job.state not in states:
            raise No("HF_WRONG_STATE")

    def act_retry(self, job: Job, queue: str) -> bool:
        self.expect(job, "failed")
        self.revive(job, queue or job.queue)
        return True

    def act_fail(self, job: Job, queue: str) -> bool:
        """A job that was put to work again and did not run fails as it did before, and counts for that day."""
        self.expect(job, "waiting", "throttled")
        if job.failure is None or not self.failed_last(job):
            raise No("HF_WRONG_STATE")
        group, _, when, _ = job.failure
        self.queue(queue or job.queue)
        self.withdraw(job)
        job.queue = queue or job.queue
        job.history.append(("failed", self.now, group))
        job.state, job.ended, job.awaited = "failed", when, False
        self.groups.setdefault(group, []).append(job.jid)
        day = self.days.get((job.queue, when // DAY))
        if day and (day.retries or day.failures or day.retried):
            day.failed += 1
        return True

    @staticmethod
    def failed_last(job: Job) -> bool:
        for what, _, _ in reversed(job.history):
            if what in ("failed", "failed-retries"):
                return True
            if what not in ("put", "throttled", "looked at it"):
                return False
        return False

    def act_move(self, job: Job, queue: str) -> bool:
        self.move(queue or job.queue, 0, job.jid, b"", None)
        return True

    def act_cancel(self, job: Job, _: str) -> bool:
        if job.state == "complete":
            raise No("HF_WRONG_STATE")
        self.cancel((job.jid,))
        return True

    def act_expire(self, job: Job, _: str) -> bool:
        self.timeout((job.jid,))
        return True

    def act_run(self, job: Job, _: str) -> bool:
        self.expect(job, "scheduled")
        self.place(job, 0)
        return True

    def act_delay(self, job: Job, length: str) -> bool:
        self.expect(job, "waiting", "scheduled", "stalled")
        self.withdraw(job)
        self.place(job, int(length))
        return True

    def act_priority(self, job: Job, priority: str) -> bool:
        if job.priority == int(priority):
            return False
        if job.state == "complete":
            raise No("HF_WRONG_STATE")
        self.priority(int(priority), (job.jid,))
        return True

    # --- dependencies ------------------------------------------------------------------------------------------

    def depend(self, mode: str, jid: str, parents: tuple[str, ...]) -> int:
        job = self.job(jid)
        if job.state != "depends":
            raise No("HF_WRONG_STATE")
        if mode == "add":
            if self.is_circle(jid, parents):
                raise No("HF_DEPENDENCY_REFUSED")
            job.parents |= {parent for parent in parents if self.is_open(parent)}
            return 1
        job.parents -= job.parents if mode == "all" else set(parents)
        if not job.parents:
            job.due_then = 0
            self.place(job, 0)
        return 1

    # --- follow-ups --------------------------------------------------------------------------------------------

    def complete_x(
        self, worker: str, jid: str, token: int, end: tuple[bytes, int, bytes], on: tuple[Any, ...], jobs: Any
    ) -> Any:
        """`end` is data, keep and result; `on` the next queue ("": none), delay and parents; `jobs` are queue,
        priority, retries and delay, and what `put_x` takes. All or nothing."""
        (data, keep, result), (queue, delay, parents) = end, on
        job = self.held(worker, jid, token)
        if job is None:
            return self.refused(jid, worker, token, "advanced" if queue else "done")
        order, circles = parents_first(tuple([one[1] for one in jobs]))
        if circles or self.is_circle(jid, beyond(tuple([one[1] for one in jobs]), parents)):
            return "HF_DEPENDENCY_REFUSED"
        for (name, *_), one in jobs:
            if one[0] not in self.jobs:
                self.queue(name)
        if queue:
            self.leave_for(job, queue, data)
        else:
            self.complete_one(job, data, keep, result)
            self.retire()
        for (name, *numbers), one in [jobs[index] for index in order]:
            self.put_x("new", name, *numbers, (one,))
        if queue:
            job.parents = {parent for parent in parents if self.is_open(parent)}
            if job.parents:
                self.settle_in(job, delay)
            else:
                self.place(job, delay)
        return job.state
