"""The reference model: what people and running jobs write on jobs, failed jobs that go back to work, and jobs that
put others when they are done."""

from typing import Any

from model_parts import Job
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
