"""The reference model: throttles, their slots and who waits for one (core-protocol 5, core-performance 9)."""

from model_looks import Looks
from model_parts import Job, Queue

RELEASED_AT_ONCE = 100
NEVER = float("inf")


class Throttling(Looks):
    """`limits` are those of named throttles: maximum and when it ends. A queue's own limit lies with the queue."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.limits: dict[str, tuple[int, float]] = {}

    @staticmethod
    def own(queue: str) -> str:
        return f"ql:q:{queue}"

    def ids(self, job: Job) -> list[str]:
        """A job's own throttles, then its queue's."""
        return [*job.throttles, self.own(job.queue)]

    def limit_of(self, name: str) -> int:
        if name.startswith("ql:q:"):
            queue = name.removeprefix("ql:q:")
            return self.queues.get(queue, Queue(queue)).limit
        maximum, ends = self.limits.get(name, (0, NEVER))
        return maximum if ends > self.now else 0

    def used(self, name: str) -> int:
        """A queue's leases hold the slots of its own throttle, but for those that were freed by hand."""
        if name.startswith("ql:q:"):
            running = self.in_state(name.removeprefix("ql:q:"), "running")
            return sum(not job.freed for job in running)
        return sum(name in job.holds for job in self.jobs.values())

    def free(self, name: str) -> float:
        limit = self.limit_of(name)
        return limit - self.used(name) if limit else NEVER

    def has_room(self, queue: str) -> bool:
        return self.free(self.own(queue)) >= 1

    def pending(self, name: str) -> list[Job]:
        waiting = [job for job in self.jobs.values() if job.pends == name]
        return sorted(waiting, key=lambda job: job.aside)

    # --- taking and giving back --------------------------------------------------------------------------------

    def park(self, job: Job, name: str) -> None:
        """A job that finds a throttle full is set aside, which is told once."""
        if job.state != "throttled":
            job.history.append(("throttled", self.now, job.queue))
        job.state, job.ready, job.aside, job.pends = "throttled", False, self.next_number(), name

    def take_slots(self, job: Job) -> bool:
        """All of its named slots or none: then it is set aside. One that had been let go lets others go."""
        full = next((name for name in job.throttles if self.free(name) < 1), None)
        if full is None:
            job.holds = set(job.throttles)
            return True
        was_let_go = job.state == "throttled"
        self.park(job, full)
        for name in self.ids(job) if was_let_go else ():
            if name != full:
                self.offer(name)
        return False

    def let_go(self, name: str, count: float) -> None:
        for job in self.pending(name)[: int(min(max(count, 0), RELEASED_AT_ONCE))]:
            job.pends = ""
            self.make_ready(job)

    def offer(self, name: str) -> None:
        """As many pending jobs become ready as slots are free; the slot itself is taken at a pop."""
        self.let_go(name, self.free(name))

    def give_back(self, job: Job) -> None:
        """The slots of a job go to others."""
        had, job.slot, job.freed = job.slot, False, False
        if not had and not job.throttles:
            return
        for name in job.throttles:
            job.holds.discard(name)
            self.offer(name)
        if self.limit_of(self.own(job.queue)):
            self.offer(self.own(job.queue))

    def step_aside_no_more(self, job: Job) -> None:
        """A job set aside is put elsewhere or deleted; it may have been let go in the place of another."""
        job.state, job.pends = "ended", ""
        for name in self.ids(job):
            self.offer(name)

    def waits_since(self, job: Job, when: int) -> None:
        """A job that was popped before is ready again; one that was not waits from its put on."""
        if job.attempts:
            job.since = when

    def make_ready(self, job: Job) -> None:
        job.ready, job.rank = True, (1, -job.priority, 1, self.next_number())

    # --- the verbs ---------------------------------------------------------------------------------------------

    def throttle_set(self, queue: str, limit: int) -> int:
        line = self.hidden_queue(queue)
        line.limit = limit
        if limit:
            for job in self.in_state(queue, "running"):
                job.slot = True  # what ran before there was a limit holds a slot too
        self.offer(self.own(queue))
        return 1

    def throttle_named(self, name: str, maximum: int, expires: int) -> int:
        """`expires` in ms, 0 leaves the end as it is."""
        _, ends = self.limits.get(name, (0, NEVER))
        self.limits[name] = maximum, self.now + expires if expires else ends if ends > self.now else NEVER
        self.offer(name)
        return 1

    def throttle_delete(self, name: str) -> int:
        known = self.limits.pop(name, None) is not None
        self.offer(name)
        return int(known)

    def throttle_release(self, name: str, jids: tuple[str, ...]) -> int:
        return sum(self.release_one(name, jid) for jid in jids)

    def release_one(self, name: str, jid: str) -> bool:
        """A holder runs on without its slot. Who only waits for one is stranded, until it is put again."""
        job, freed = self.jobs.get(jid), False
        if job is not None and name in job.holds:
            job.holds.discard(name)
            freed = True
        elif job is not None and name == self.own(job.queue) and job.state == "running" and not job.freed:
            freed = job.freed = job.slot = True
        elif job is not None and job.pends == name:
            job.pends = ""
        self.offer(name)
        return freed

    def throttle_get(self, name: str) -> tuple[int, int, int, int]:
        """Maximum, used, pending, and ms until the limit ends (-1: it has no end, -2: there is none)."""
        maximum, ends = self.limits.get(name, (0, 0))
        is_over = ends <= self.now
        left = -2 if is_over else -1 if ends == NEVER else int(ends - self.now)
        return 0 if is_over else maximum, self.used(name), len(self.pending(name)), left

    def afterwards(self) -> None:
        """A changing call looks after one limit that came to its end."""
        over = sorted((ends, name) for name, (_, ends) in self.limits.items() if ends <= self.now)
        for _, name in over[:1]:
            del self.limits[name]
            self.offer(name)
