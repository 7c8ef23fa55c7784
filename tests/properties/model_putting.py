"""The reference model, first part: how jobs come into queues and leave them.

Written from the protocol page and the design pages, never from the Lua. A refusal of a whole call is raised as
`No`; one of a job in a batch is a code word in the answer.
"""

from collections.abc import Iterable
from typing import Any

from model_parts import Job
from model_throttles import Throttling
from model_wishes import ExtraOptions, JobWithOptions, Options, parents_first


class No(Exception):
    """The core refuses the whole call: its code word."""


def budgets(paid: int | str) -> tuple[int, int | None]:
    """Retries, and how many losses a job may have that does not pay for them with retries."""
    retries, own, losses = str(paid).partition("/")
    return int(retries), int(losses) if own else None


class Putting(Throttling):
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
        plain = tuple([(*one, ()) for one in jobs])
        answer = self.put_x(mode, queue, priority, retries, delay, plain)
        if mode in ("new", "move"):
            self.queue(queue)
        return answer

    def put_x(
        self, mode: str, queue: str, priority: int, retries: int, delay: int, jobs: tuple[JobWithOptions, ...]
    ) -> Any:
        codes: dict[int, str] = {}
        moved: dict[int, str] = {}
        order, circles = parents_first(jobs)
        refused: set[str] = set()
        for index in order:
            jid, klass, data, options = jobs[index]
            job, wish = self.jobs.get(jid), ExtraOptions.of(options)
            if index in circles or any(one in refused and one not in self.jobs for one in wish.depends):
                codes[index] = "HF_DEPENDENCY_REFUSED"
            elif job is None and mode == "old":
                codes[index] = "HF_JOB_NOT_FOUND"
            elif job is not None and mode in ("new", "only"):
                same = job.klass == klass and job.data == data
                codes[index] = "again" if mode == "new" or same else "HF_JOB_EXISTS"
            elif self.is_circle(jid, wish.depends):
                codes[index] = "HF_DEPENDENCY_REFUSED"
            else:
                self.put_one(job, queue, (priority, retries, delay), (jid, klass, data), wish)
                if job is not None:
                    moved[index] = "again"
            if codes.get(index, "again") != "again":
                refused.add(jid)
        return len(jobs) - len(codes), codes | moved

    def put_one(
        self,
        job: Job | None,
        queue: str,
        wanted: tuple[int, int, int],
        what: tuple[str, str, bytes],
        wish: ExtraOptions,
    ) -> None:
        """A job that is new, or begins a new life."""
        (priority, paid, delay), (jid, klass, data) = wanted, what
        retries, max_losses = budgets(paid)
        if job is None:
            job = Job(jid, klass, data, queue, priority, retries, retries, self.now, self.now)
            self.jobs[jid] = job
        else:
            self.withdraw(job)
        job.klass, job.data, job.priority, job.retries = klass, data, priority, retries
        job.max_losses = max_losses
        self.begin_life(job, queue)
        self.dress(job, wish)
        self.settle_in(job, delay)

    def dress(self, job: Job, wish: ExtraOptions) -> None:
        """Dependencies stay as they are unless others are named; tags and the deadline belong to this put."""
        job.tags = dict.fromkeys(wish.tags or [], self.now)
        self.wait_for(job, wish)
        kept = {key: job.options[key] for key in ("backoff", "limit", "keep") if key in job.options}
        job.options, job.started = kept | wish.options, False
        if job.max_losses not in (None, 3):
            job.options["losses"] = job.max_losses
        job.progress, job.tail = None, []
        job.throttles = list(wish.throttles)
        if "expires" in wish.options:
            job.options["expires"] += self.now

    # --- dependencies ------------------------------------------------------------------------------------------

    def wait_for(self, job: Job, wish: ExtraOptions) -> None:
        if wish.depends:
            job.parents = {jid for jid in wish.depends if self.is_open(jid)}

    def is_open(self, jid: str) -> bool:
        return jid in self.jobs and self.jobs[jid].state != "complete"

    def is_circle(self, jid: str, parents: Iterable[str]) -> bool:
        """Whether a job would wait for itself, at once or over others."""
        ahead, seen = [parent for parent in parents if parent == jid or self.is_open(parent)], set[str]()
        while ahead:
            one = ahead.pop()
            if one == jid:
                return True
            if one not in seen:
                seen.add(one)
                ahead += self.jobs[one].parents
        return False

    def release_children(self, parent: str) -> None:
        """A job is complete: those that waited for it alone may go. In which order is left open."""
        children = self.children(parent)
        order = self.release_order.get(parent, [])
        for jid in sorted(children, key=lambda jid: (order.index(jid) if jid in order else len(order), jid)):
            job = self.jobs[jid]
            job.parents.discard(parent)
            if job.parents:
                continue
            if job.due_then:
                job.state, job.due, job.due_then = "scheduled", job.due_then, 0
            else:
                self.place(job, 0)

    # --- placing -----------------------------------------------------------------------------------------------

    def settle_in(self, job: Job, delay: int) -> None:
        """A job that was put goes where it belongs, which is aside where its queue is full."""
        job.due_then = 0
        full = next((name for name in self.ids(job) if self.free(name) < 1), None)
        if job.parents:
            job.state, job.due_then = "depends", self.now + delay if delay > 0 else 0
        elif delay <= 0 and full is not None:
            self.park(job, full)
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
            self.waits_since(job, self.now)
            self.make_ready(job)

    def withdraw(self, job: Job) -> None:
        """Take a job out of wherever it is."""
        if job.state == "running":
            self.end_lease(job)
        elif job.state == "failed":
            self.leave_group(job)
        elif job.state == "complete":
            self.completed.remove(job.jid)
        job.ready = False
        if job.state == "throttled":
            self.step_aside_no_more(job)

    def leave_group(self, job: Job) -> None:
        assert job.failure is not None
        self.groups[job.failure[0]].remove(job.jid)
        day = self.day(job.queue, job.failure[2])
        day.failed = max(day.failed - 1, 0)

    def move(
        self,
        queue: str,
        delay: int,
        jid: str,
        data: bytes,
        priority: int | None,
        klass: str = "",
        retries: int | None = None,
        options: Options = (),
    ) -> Any:
        """What is not said stays as it was."""
        job, wish = self.jobs.get(jid), ExtraOptions.of(options)
        if job is None:
            raise No("HF_JOB_NOT_FOUND")
        if self.is_circle(jid, wish.depends):
            raise No("HF_DEPENDENCY_REFUSED")
        self.withdraw(job)
        job.priority = job.priority if priority is None else priority
        job.retries = job.retries if retries is None else retries
        job.data, job.klass = data or job.data, klass or job.klass
        if wish.tags is not None:
            job.tags = dict.fromkeys(wish.tags, self.now)
        if any(option in ("throttle", "unthrottled") for option, _ in options):
            job.throttles = list(wish.throttles)
        self.wait_for(job, wish)
        job.progress, job.tail = None, []
        self.begin_life(job, queue)
        self.settle_in(job, delay)
        return jid

    def cancel(self, jids: tuple[str, ...]) -> list[int]:
        """All or nothing: whoever waits for one of these has to be among them."""
        if any(self.children(jid) - set(jids) for jid in jids):
            raise No("HF_DEPENDENCY_REFUSED")
        answers = []
        found = [self.jobs[jid] for jid in jids if jid in self.jobs]
        self.note_cancelled([job for job in found if job.state != "complete"])
        for jid in jids:
            job = self.jobs.get(jid)
            gone = job is not None and job.state != "complete"
            if job is not None and gone:
                was_running = job.state == "running"
                if job.attempts:
                    self.granted = max(self.granted, job.token)
                self.withdraw(job)
                if not was_running:
                    self.give_back(job)
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
        """The job runs no longer; its slots go to those that were set aside."""
        job.state, job.noticed = "ended", False
        self.give_back(job)
