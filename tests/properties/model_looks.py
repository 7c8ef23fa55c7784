"""The state of the reference model, and what it shows to whoever looks without changing anything."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from model_parts import DAY, HOUR, Day, Ending, Job, Queue

DEFAULTS = {"grace-period": "5", "heartbeat": "30", "jobs-history": "604800", "jobs-history-count": "50000"}


class Looks:
    """The state: jobs by jid, queues by name, what completed oldest first, failure groups, days of statistics.

    `release_order` says in which order the core lets the children of a job go, which the pages leave open, `due_seen`
    when a job is due that waits for a moment which they leave open.
    """

    def __init__(self, now: int) -> None:
        self.now = now
        self.number = 0
        self.granted = 0  # the highest token of a job that was granted and is deleted
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.first_used: dict[str, int] = {}
        self.completed: list[str] = []
        self.groups: dict[str, list[str]] = {}
        self.days: dict[tuple[str, int], Day] = {}
        self.settings: dict[str, str] = {}
        self.results: dict[str, bytes] = {}
        self.cancelled: dict[str, tuple[Any, ...]] = {}
        self.endings: dict[tuple[str, str, int], Ending] = {}
        self.release_order: dict[str, list[str]] = {}
        self.due_seen: Callable[[str], int] = int

    def setting(self, key: str) -> int:
        return int(self.settings.get(key, DEFAULTS[key]))

    @property
    def grace(self) -> int:
        return self.setting("grace-period") * 1000

    @property
    def heartbeat_ms(self) -> int:
        return self.setting("heartbeat") * 1000

    @property
    def keep_count(self) -> int:
        return self.setting("jobs-history-count")

    @property
    def keep_ms(self) -> int:
        return self.setting("jobs-history") * 1000

    def next_number(self) -> int:
        self.number += 1
        return self.number

    def hidden_queue(self, name: str) -> Queue:
        """A queue that may not have had a job yet, so that it is not listed."""
        return self.queues.setdefault(name, Queue(name))

    def queue(self, name: str) -> Queue:
        """A queue that was used, and is listed from then on."""
        self.first_used.setdefault(name, self.now)
        return self.hidden_queue(name)

    @property
    def known(self) -> list[str]:
        """In order of first use."""
        return sorted(self.first_used, key=lambda name: self.first_used[name])

    def day(self, queue: str, when: int) -> Day:
        return self.days.setdefault((queue, when // DAY), Day())

    def in_state(self, queue: str, state: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.queue == queue and job.state == state]

    def running(self, queue: str) -> int:
        return len(self.in_state(queue, "running"))

    def templates_of(self, queue: str) -> int:
        """How many recurring jobs a queue has."""
        return 0

    def ready_in(self, queue: str) -> list[Job]:
        return sorted(
            [job for job in self.jobs.values() if job.queue == queue and job.ready], key=lambda j: j.rank
        )

    def aside_in(self, queue: str) -> list[Job]:
        parked = [job for job in self.in_state(queue, "throttled") if not job.ready]
        return sorted(parked, key=lambda job: job.aside)

    def due_in(self, queue: str) -> list[Job]:
        due = [job for job in self.in_state(queue, "scheduled") if job.due <= self.now]
        return sorted(due, key=lambda job: (job.due, job.jid))

    def stalled_in(self, queue: str) -> list[Job]:
        lost = [job for job in self.in_state(queue, "running") if job.end <= self.now]
        return sorted(lost, key=lambda job: (job.end, job.jid))

    def forget(self, count: int) -> int:
        """Drop the completed jobs that ended first."""
        for jid in self.completed[:count]:
            self.delete(jid)
        del self.completed[:count]
        return count

    def delete(self, jid: str) -> None:
        """The job is gone, and with it the memory of how its attempts ended."""
        del self.jobs[jid]
        self.endings = {key: ending for key, ending in self.endings.items() if key[0] != jid}

    def sweep_age(self) -> int:
        return self.forget(sum(self.jobs[jid].ended <= self.now - self.keep_ms for jid in self.completed))

    # --- looking -----------------------------------------------------------------------------------------------

    def row(self, job: Job) -> tuple[Any, ...]:
        """What the holder of a new lease is told."""
        return (
            *(job.jid, job.klass, job.queue, job.data, job.token, job.end, job.priority, job.attempts),
            *(job.retries, job.remaining, job.losses, job.created, job.queued),
            *(tuple(job.tags), job.options, job.spawned_from, job.failure),
        )  # fmt: skip

    def job_get(self, jid: str) -> dict[str, Any] | None:
        job = self.jobs.get(jid)
        if job is None:
            return None
        running, over = job.state == "running", job.state in ("complete", "failed")
        scheduled = job.state == "scheduled"
        return {
            "klass": job.klass, "queue": job.queue, "data": job.data, "priority": job.priority,
            "state": "waiting" if scheduled and job.due <= self.now else job.state,
            "worker": job.worker if running else "", "token": job.token if running else 0,
            "expires_ms": job.end if running else 0, "due_ms": job.due if scheduled else 0,
            "retries": job.retries, "remaining": job.remaining, "attempts": job.attempts, "losses": job.losses,
            "created_ms": job.created, "queued_ms": job.queued, "popped_ms": job.popped,
            "ended_ms": job.ended if over else 0, "failure": job.failure, "history": job.history,
            "result": self.results.get(jid), "tags": tuple(job.tags),
            "dependencies": job.parents, "dependents": self.children(jid), "options": job.options,
            "spawned_from": job.spawned_from, "progress": job.progress, "log": tuple(job.tail),
            "throttles": (*job.throttles, f"ql:q:{job.queue}"),
        }  # fmt: skip

    def counts(self) -> list[tuple[Any, ...]]:
        return [self.counts_of(name) for name in self.known]

    def counts_of(self, name: str) -> tuple[Any, ...]:
        due, lost = len(self.due_in(name)), len(self.stalled_in(name))
        return (
            name, len(self.ready_in(name)) + due, self.running(name) - lost, lost, len(self.aside_in(name)),
            len(self.in_state(name, "scheduled")) - due, len(self.in_state(name, "depends")), self.templates_of(name), self.queues[name].is_paused(self.now),
            len(self.in_state(name, "failed")), self.queues[name].limit,
            self.queues[name].heartbeat or self.heartbeat_ms,
            self.queues[name].paused_until if self.queues[name].is_paused(self.now) else 0,
        )  # fmt: skip

    def peek(self, queue: str, offset: int, count: int) -> list[str]:
        seen = [*self.stalled_in(queue), *self.ready_in(queue), *self.due_in(queue)]
        return [job.jid for job in seen[offset : offset + count]]

    def tagged(self, tag: str) -> list[tuple[str, int]]:
        """(jid, since when) of the jobs with a tag, by time and jid."""
        found = [(job.jid, job.tags[tag]) for job in self.jobs.values() if tag in job.tags]
        return sorted(found, key=lambda one: (one[1], one[0]))

    def tag_counts(self) -> dict[str, int]:
        return dict(Counter(tag for job in self.jobs.values() for tag in job.tags))

    def children(self, parent: str) -> set[str]:
        return {job.jid for job in self.jobs.values() if parent in job.parents}

    def failed(self, group: str) -> list[str]:
        """Newest first; of one moment, by jid backwards."""
        jobs = [self.jobs[jid] for jid in self.groups.get(group, [])]
        return [job.jid for job in sorted(jobs, key=lambda job: (job.ended, job.jid), reverse=True)]

    def failures(self) -> dict[str, int]:
        return {group: len(jids) for group, jids in self.groups.items() if jids}

    def stats(self, queue: str, when: int) -> tuple[Any, ...]:
        day = self.days.get((queue, when // DAY), Day())
        return day.retries, day.failed, day.failures, day.retried, day.wait.figures(), day.run.figures()

    def note_cancelled(self, jobs: list[Job]) -> None:
        """A cancelled job that ran or is awaited leaves a mark, for an hour; old marks go when new ones come, and by a sweep."""
        marks = {
            job.jid: ("", self.now, job.queue, job.klass, job.state, self.worker_of(job), job.attempts)
            for job in jobs
            if job.attempts or job.awaited
        }
        if marks:
            self.cancelled |= marks
            self.drop_marks()

    def drop_marks(self) -> None:
        """Marks of cancelled jobs are kept for an hour."""
        self.cancelled = {jid: mark for jid, mark in self.cancelled.items() if mark[1] > self.now - HOUR}

    def worker_of(self, job: Job) -> str:
        return job.worker if job.state == "running" else ""

    def outcome(self, jid: str) -> tuple[str, Any]:
        """What `await` answers."""
        job = self.jobs.get(jid)
        if job is None:
            return ("done", self.results[jid]) if jid in self.results else ("gone", self.cancelled.get(jid))
        if job.state == "complete":
            return "done", self.results.get(jid)
        if job.state == "failed":
            assert job.failure is not None
            return "failed", job.failure[:2]
        job.awaited = True
        return "open", None

    def next_due(self, queues: tuple[str, ...]) -> int | None:
        """The earliest moment at which one of these queues has something due that a pop would look at."""
        return min(self.due_times(queues), default=None)

    def due_times(self, queues: tuple[str, ...]) -> list[int]:
        ends = [self.queues[name].paused_until for name in queues if name in self.queues]
        coming = [
            job.end if job.state == "running" else job.due
            for job in self.jobs.values()
            if job.queue in queues
            and job.state in ("running", "scheduled")
            and not self.queues[job.queue].is_paused(self.now)
        ]
        return coming + [when for when in ends if when > self.now]
