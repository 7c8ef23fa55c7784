"""The reference model: what the core promises, in dictionaries and lists.

Written from the protocol page and the design pages, never from the Lua.
"""

from typing import Any

from model_parts import Ending, Job, Queue
from model_putting import No, Putting


class Model(Putting):
    """One root. Every method is a verb, called with the verb's arguments."""

    # --- taking ------------------------------------------------------------------------------------------------

    def pop(self, worker: str, n: int, lease: int, queues: tuple[str, ...]) -> list[Any]:
        rows: list[Any] = []
        for name in queues:
            line = self.queues.get(name, Queue(name))
            if line.is_paused(self.now):
                continue
            want = n - len(rows)
            granted: list[Job] = []
            if want > 0:
                granted = self.lost(name, want)
                for job in granted:
                    self.grant(job, worker, lease, line)
            if len(granted) < want:
                self.bring_due(name, self.has_room(name))
            for job in self.take_ready(name, line, want - len(granted)):
                self.grant(job, worker, lease, line)
                granted.append(job)
            rows += [self.row(job) for job in granted]
        return rows

    def take_ready(self, name: str, line: Queue, want: int) -> list[Job]:
        own = self.own(name)
        want = int(min(want, self.free(own)))
        taken = self.first_ready(name, want)
        if len(taken) < want and line.limit:
            self.let_go(own, want - len(taken))
            taken += self.first_ready(name, want - len(taken))
        return taken

    def first_ready(self, name: str, want: int) -> list[Job]:
        """Up to so many ready jobs, looked at as many at once as are missing. Who comes too late fails, who finds a
        throttle full is set aside."""
        taken: list[Job] = []
        looked_at = self.ready_in(name)[: max(want, 0)]
        while looked_at:
            for job in looked_at:
                if not self.comes_too_late(job) and self.take_slots(job):
                    job.ready = False
                    taken.append(job)
            looked_at = self.ready_in(name)[: want - len(taken)]
        return taken

    def comes_too_late(self, job: Job) -> bool:
        """A job that nobody started in time fails when its turn comes."""
        expires = job.options.get("expires")
        if job.started or expires is None or expires > self.now:
            return False
        self.withdraw(job)
        job.started = True  # whoever puts it to work again wants it done
        self.fail_job(job, "failed", f"expired-{job.queue}", "The job was not started in time", "")
        return True

    def bring_due(self, name: str, has_room: bool) -> None:
        for job in self.due_in(name):
            job.state = "waiting"
            if not self.comes_too_late(job):
                self.waits_since(job, job.due)
                self.make_ready(job)

    def lost(self, name: str, want: int) -> list[Job]:
        """Leases that ended: noticed first, and after the grace period handed out again or failed."""
        again: list[Job] = []
        for job in self.stalled_in(name):
            if not job.noticed and self.grace > 0:
                self.notice(job)
                job.end = self.now + self.grace
            elif len(again) < want or self.is_spent(job):
                if not job.noticed:
                    self.notice(job)
                lapsed = job.end
                if self.pay(job, "lost"):
                    job.since = lapsed
                    again.append(job)
        return again

    def is_spent(self, job: Job) -> bool:
        return job.remaining <= 0 if job.max_losses is None else job.losses >= job.max_losses

    def pay(self, job: Job, what: str, cause: str = "") -> bool:
        """An attempt was lost: its budget pays, or the job fails."""
        by = f"(worker {job.worker}, attempt {job.attempts})"
        told = "lease expired" if what == "lost" else f"process died by {cause}"
        job.losses += 1
        if job.max_losses is None:
            job.remaining -= 1
            job.history.append((what, self.now, "retries"))
            group, message = f"failed-retries-{job.queue}", f'Job exhausted retries in queue "{job.queue}"'
            message += "" if what == "lost" else f": {told} {by}"
            spent = job.remaining < 0
        else:
            job.history.append((what, self.now, "losses"))
            group = f"{job.queue}-{'Lost' if what == 'lost' else 'Crashed'}"
            message = f"{told} {by}; {job.losses} losses, max_losses {job.max_losses}"
            spent = job.losses > job.max_losses
        if spent:
            self.end_lease(job)
            self.fail_job(job, "failed", group, message, "")
        return not spent

    def notice(self, job: Job) -> None:
        job.noticed = True
        job.history.append(("timed-out", self.now, ""))
        self.day(job.queue, self.now).retries += 1

    def grant(self, job: Job, worker: str, lease: int, line: Queue) -> None:
        length = lease or line.heartbeat or self.heartbeat_ms
        waited = self.now - max(job.queued, job.popped, job.since)
        self.day(job.queue, self.now).wait.samples.append(waited / 1000)
        job.state, job.ready, job.noticed, job.worker = "running", False, False, worker
        job.token = max(job.token + 1, self.granted + 1, self.now)
        job.attempts, job.popped, job.started = job.attempts + 1, self.now, True
        job.end = min(self.now + length, job.last_end)
        job.slot = line.limit > 0 or job.slot or bool(job.throttles)
        job.history.append(("popped", self.now, job.queue))

    def heartbeat(self, lease: int, held: tuple[tuple[str, str, int, bytes], ...]) -> list[int]:
        answers = []
        for worker, jid, token, data in held:
            job = self.jobs.get(jid)
            if job is None:
                answers.append(-1)
            elif not job.held_by(worker, token):
                answers.append(0)
            elif job.last_end <= self.now:
                answers.append(0)  # the run has taken all the time that it may
            else:
                length = lease or self.queue(job.queue).heartbeat or self.heartbeat_ms
                job.end = min(self.now + length, job.last_end)
                job.noticed, job.data = False, data or job.data
                answers.append(job.end)
        return answers

    def expire(self, held: tuple[tuple[str, str, int], ...]) -> int:
        count = 0
        for worker, jid, token in held:
            job = self.jobs.get(jid)
            if job is not None and job.held_by(worker, token):
                if not job.noticed:
                    self.notice(job)
                job.end = self.now
                count += 1
        return count

    def release(self, how: str, cause: str, held: tuple[tuple[str, str, int], ...]) -> int:
        count = 0
        for worker, jid, token in held:
            job = self.jobs.get(jid)
            if job is None or not job.held_by(worker, token):
                continue
            count += 1
            if how == "preempted":
                self.end_lease(job)
                job.history.append((how, self.now, ""))
                job.state, job.ready, job.rank = "waiting", True, (1, -job.priority, 0, job.rank[-1])
                job.since = self.now
                continue
            if not job.noticed:
                self.day(job.queue, self.now).retries += 1
            if self.pay(job, how, cause):
                self.end_lease(job)
                job.state, job.ready, job.rank = "waiting", True, (0, self.next_number())
                job.since = self.now
        return count

    def timeout(self, jids: tuple[str, ...]) -> int:
        if any(jid not in self.jobs or self.jobs[jid].state != "running" for jid in jids):
            raise No("HF_WRONG_STATE")
        for jid in dict.fromkeys(jids):
            job = self.jobs[jid]
            self.end_lease(job)
            job.history.append(("timed-out", self.now, ""))
            job.state, job.ready, job.rank = "stalled", True, (0, self.next_number())
            job.since = self.now
        return len(jids)

    # --- ending ------------------------------------------------------------------------------------------------

    def refused(self, jid: str, worker: str, token: int, what: str) -> Any:
        """Why a lease cannot be settled: `again` if this attempt ended that way before."""
        if jid not in self.jobs:
            return "HF_JOB_NOT_FOUND"
        ending = self.endings.get((jid, worker, token))
        return "again" if ending is not None and ending.what == what else "HF_LEASE_LOST"

    def held(self, worker: str, jid: str, token: int) -> Job | None:
        job = self.jobs.get(jid)
        return job if job is not None and job.held_by(worker, token) else None

    def complete(self, worker: str, done: tuple[tuple[str, int, bytes, int, bytes], ...]) -> Any:
        codes = []
        for jid, token, data, keep, result in done:
            job = self.held(worker, jid, token)
            if job is None:
                codes.append((jid, self.refused(jid, worker, token, "done")))
                continue
            self.complete_one(job, data, keep, result)
        if len(codes) < len(done):
            self.retire()
        return len(done) - len(codes), codes

    def complete_one(self, job: Job, data: bytes, keep: int, result: bytes) -> None:
        self.end_lease(job)
        self.run_sample(job)
        self.endings[job.jid, job.worker, job.token] = Ending("done")
        job.history.append(("done", self.now, job.queue))
        job.state, job.ended, job.remaining, job.failure = "complete", self.now, job.retries, None
        job.data, job.awaited = data or job.data, False
        self.completed.append(job.jid)
        if keep:
            self.results[job.jid] = result
        self.release_children(job.jid)

    def complete_pop(
        self, worker: str, n: int, lease: int, queues: tuple[str, ...], done: tuple[Any, ...]
    ) -> tuple[Any, list[Any]]:
        _, codes = self.complete(worker, done)
        return codes, self.pop(worker, n, lease, queues)

    def run_sample(self, job: Job) -> None:
        self.day(job.queue, self.now).run.samples.append((self.now - job.popped) / 1000)

    def retire(self) -> None:
        """Completed jobs beyond a limit of nothing go at once; other limits leave room to trim in steps."""
        if self.keep_count <= 0:
            self.forget(len(self.completed))
        if self.keep_ms <= 0:
            self.sweep_age()

    def advance(self, worker: str, queue: str, delay: int, held: tuple[tuple[str, int, bytes], ...]) -> Any:
        codes = []
        for jid, token, data in held:
            job = self.held(worker, jid, token)
            if job is None:
                codes.append((jid, self.refused(jid, worker, token, "advanced")))
                continue
            self.leave_for(job, queue, data)
            self.place(job, delay)
        return len(held) - len(codes), codes

    def leave_for(self, job: Job, queue: str, data: bytes) -> None:
        """The job is done here and goes on in the next queue."""
        self.end_lease(job)
        self.run_sample(job)
        self.endings[job.jid, job.worker, job.token] = Ending("advanced")
        job.history.append(("done", self.now, job.queue))
        job.failure, job.data = None, data or job.data
        self.begin_life(job, queue)

    def retry(
        self, worker: str, delay: int, group: str, message: str, held: tuple[tuple[str, int, bytes], ...]
    ) -> list[Any]:
        return [self.retry_one(worker, delay, group, message, *one) for one in held]

    def retry_one(
        self, worker: str, delay: int, group: str, message: str, jid: str, token: int, data: bytes
    ) -> Any:
        job = self.held(worker, jid, token)
        if job is None:
            code = self.refused(jid, worker, token, "retried")
            return self.endings[jid, worker, token].answer if code == "again" else code
        self.end_lease(job)
        job.data, given = data or job.data, bool(group and message)
        left = job.remaining - 1
        self.endings[jid, worker, token] = Ending("retried", max(left, -1))
        if left < 0:
            if not given:
                message = f'Job exhausted retries in queue "{job.queue}"'
            group = group or f"failed-retries-{job.queue}"
            job.remaining = -1
            self.fail_job(job, "failed-retries", group, message, worker if given else "")
            return -1
        delay = self.pause_before(job) if delay < 0 else delay
        job.remaining = left
        self.day(job.queue, self.now).retried += 1
        job.history.append(("retried", self.now, group))
        if given:
            job.failure = (group, message, self.now, worker)
        self.place(job, delay)
        return left

    def pause_before(self, job: Job) -> int:
        """How long a job waits before its next try, by its own backoff or the usual one. What jitter adds is not
        written anywhere; the core has to stay within it."""
        kind, first, most, jitter = job.options.get("backoff", "exponential:1000:600000:25").split(":")
        doublings = job.retries - job.remaining if kind == "exponential" else 0
        pause = int(first) * 2**doublings
        if jitter == "0":
            return int(min(pause, int(most)))
        seen = self.due_seen(job.jid) - self.now
        spread = pause * int(jitter) / 100
        assert min(pause - spread, int(most)) - 1 <= seen <= min(pause + spread, int(most)), (job, seen)
        return seen

    def fail(self, worker: str, group: str, message: str, held: tuple[tuple[str, int, bytes], ...]) -> Any:
        codes = []
        for jid, token, data in held:
            job = self.held(worker, jid, token)
            if job is None:
                codes.append((jid, self.refused(jid, worker, token, "failed")))
                continue
            self.end_lease(job)
            self.endings[jid, worker, token] = Ending("failed")
            job.data = data or job.data
            self.fail_job(job, "failed", group, message, worker)
        return len(held) - len(codes), codes

    def fail_job(self, job: Job, what: str, group: str, message: str, worker: str) -> None:
        job.history.append((what, self.now, group))
        job.failure = (group, message, self.now, worker)
        job.state, job.ended, job.awaited = "failed", self.now, False
        self.groups.setdefault(group, []).append(job.jid)
        day = self.day(job.queue, self.now)
        day.failures, day.failed = day.failures + 1, day.failed + 1
