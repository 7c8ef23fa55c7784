"""The reference model, first part: how jobs come into queues and leave them.

Written from the protocol page and the design pages, never from the Lua. A refusal of a whole call is raised as
`No`; one of a job in a batch is a code word in the answer.
"""

from typing import Any

from model_looks import Looks
from model_parts import Job, Queue

RELEASED_AT_ONCE = 100


class No(Exception):
    """The core refuses the whole call: its code word."""


class Putting(Looks):
    """Verbs that put, move and delete jobs."""

    def clock(self, now: int) -> None:
        self.now = now

    # --- putting -----------------------------------------------------------------------------------------------

    def put(
        self,
        mode: str,
        queue: str,
        priority: int,
        retries: int,
        delay: int,
        jobs: tuple[tuple[str, str, bytes], ...],
    ) -> Any:
        count, codes = 0, {}
        for index, (jid, klass, data) in enumerate(jobs):
            job = self.jobs.get(jid)
            if job is None:
                self.put_fresh(queue, priority, retries, delay, jid, klass, data)
            elif mode == "move":
                self.withdraw(job)
                job.klass, job.data, job.priority, job.retries = klass, data, priority, retries
                self.begin_life(job, queue)
                self.settle_in(job, delay)
            else:
                same = job.klass == klass and job.data == data
                codes[index] = "again" if mode == "new" or same else "HF_JOB_EXISTS"
                continue
            count += 1
        if mode != "only" or count:
            self.queue(queue)
        return count, codes

    def put_fresh(
        self, queue: str, priority: int, retries: int, delay: int, jid: str, klass: str, data: bytes
    ) -> None:
        job = Job(jid, klass, data, queue, priority, retries, retries, self.now, self.now)
        self.jobs[jid] = job
        job.history.append(("put", self.now, queue))
        self.settle_in(job, delay)

    def settle_in(self, job: Job, delay: int) -> None:
        """A job that was put goes where it belongs, which is aside where its queue is full."""
        line = self.queue(job.queue)
        if delay <= 0 and line.limit and self.running(job.queue) >= line.limit:
            job.state, job.aside = "throttled", self.now
            job.history.append(("throttled", self.now, job.queue))
        else:
            self.place(job, delay)

    def begin_life(self, job: Job, queue: str) -> None:
        job.history.append(("put", self.now, queue))
        job.queue, job.queued, job.remaining, job.losses = queue, self.now, job.retries, 0
        self.queue(queue)

    def place(self, job: Job, delay: int) -> None:
        if delay > 0:
            job.state, job.due, job.ready = "scheduled", self.now + delay, False
        else:
            job.state = "waiting"
            self.make_ready(job)

    def make_ready(self, job: Job) -> None:
        job.ready, job.rank = True, (1, -job.priority, 1, self.next_number())

    def withdraw(self, job: Job) -> None:
        """Take a job out of wherever it is."""
        if job.state == "running":
            self.end_lease(job)
        elif job.state == "failed":
            self.leave_group(job)
        elif job.state == "complete":
            self.completed.remove(job.jid)
        job.ready = False

    def leave_group(self, job: Job) -> None:
        assert job.failure is not None
        self.groups[job.failure[0]].remove(job.jid)
        day = self.day(job.queue, job.failure[2])
        day.failed = max(day.failed - 1, 0)

    def move(self, queue: str, delay: int, jid: str, data: bytes, priority: int | None) -> Any:
        job = self.jobs.get(jid)
        if job is None:
            raise No("HF_JOB_NOT_FOUND")
        self.withdraw(job)
        job.priority = job.priority if priority is None else priority
        job.data = data or job.data
        self.begin_life(job, queue)
        self.place(job, delay)
        return jid

    def cancel(self, jids: tuple[str, ...]) -> list[int]:
        answers = []
        for jid in jids:
            job = self.jobs.get(jid)
            gone = job is not None and job.state != "complete"
            if job is not None and gone:
                self.withdraw(job)
                self.delete(jid)
            answers.append(int(gone))
        return answers

    def priority(self, priority: int, jids: tuple[str, ...]) -> list[int]:
        for jid in jids:
            job = self.jobs.get(jid)
            if job is not None:
                job.priority = priority
                if job.ready:
                    job.rank = (1, -priority, 0, job.rank[-1])
        return [int(jid in self.jobs) for jid in jids]

    def end_lease(self, job: Job) -> None:
        """The job runs no longer; a slot it held goes to those that were set aside."""
        job.state, job.noticed = "ended", False
        slot, job.slot = job.slot, False
        line = self.queue(job.queue)
        if slot and line.limit:
            self.promote_aside(line, line.limit - self.running(job.queue))

    def promote_aside(self, line: Queue, free: int) -> None:
        if free >= 1:
            for job in self.aside_in(line.name)[: min(free, RELEASED_AT_ONCE)]:
                self.make_ready(job)
