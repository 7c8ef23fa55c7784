"""The reference model: what a search sees when it scans a set of jobs."""

from typing import Any

from model_operators import OperatorModel
from model_parts import Job


class ScannedModel(OperatorModel):
    def sets(self, queues: list[str]) -> list[tuple[str, str]]:
        """All sets of jobs with the names of their owners."""
        of_queues = ("waiting", "running", "stalled", "scheduled", "depends", "throttled", "failed")
        found = [(kind, queue) for queue in queues for kind in of_queues]
        found += [("group", name) for name in self.groups] + [("tagged", name) for name in self.tag_counts()]
        found += [(kind, name) for name in self.limits for kind in ("holders", "pending")]
        return [*found, ("completed", ""), ("tracked", "")]

    def members(self, kind: str, name: str) -> list[str]:
        """The jids of a set, in its order. Those of a moment whose order is left open are by jid."""
        if kind == "waiting":
            return [job.jid for job in [*self.ready_in(name), *self.due_in(name)]]
        if kind == "running":
            held = [job for job in self.in_state(name, "running") if job.end > self.now]
            return [job.jid for job in sorted(held, key=lambda job: (job.end, job.jid))]
        if kind == "stalled":
            return [job.jid for job in self.stalled_in(name)]
        if kind == "scheduled":
            later = [job for job in self.in_state(name, "scheduled") if job.due > self.now]
            return [job.jid for job in sorted(later, key=lambda job: (job.due, job.jid))]
        if kind == "failed":
            failed = sorted(self.in_state(name, "failed"), key=lambda job: (job.ended, job.jid), reverse=True)
            return [job.jid for job in failed]
        if kind == "throttled":
            return sorted(job.jid for job in self.aside_in(name))
        if kind == "depends":
            return sorted(job.jid for job in self.in_state(name, "depends"))
        return self.members_beside_queues(kind, name)

    def members_beside_queues(self, kind: str, name: str) -> list[str]:
        if kind == "group":
            return self.failed(name)
        if kind == "tagged":
            return [jid for jid, _ in self.tagged(name)]
        if kind == "holders":
            return sorted(job.jid for job in self.jobs.values() if name in job.holds)
        if kind == "pending":
            return [job.jid for job in self.pending(name)]
        if kind == "tracked":
            return [jid for jid, *_ in reversed(self.tracked())]
        assert kind == "completed"
        return self.completed[::-1]

    @staticmethod
    def is_ordered(kind: str) -> bool:
        """Whether the pages say in which order jobs of one moment stand in a set."""
        return kind not in ("depends", "throttled", "holders")

    def placed(self, job: Job) -> tuple[str, int]:
        """The state of a job as the counts of its queue have it, and when it is due or its lease ends."""
        if job.state == "running":
            return "stalled" if job.end <= self.now else "running", job.end
        if job.state == "scheduled":
            return "waiting" if job.due <= self.now else "scheduled", job.due
        if job.state == "stalled" or (job.state == "throttled" and job.ready):
            return "waiting", 0
        return job.state, 0

    def scanned(self, jid: str) -> dict[str, Any]:
        job = self.jobs[jid]
        state, due = self.placed(job)
        over = state in ("complete", "failed") and job.attempts > 0
        group, message, when, _ = job.failure or ("", "", 0, "")
        return {
            "jid": jid, "klass": job.klass, "queue": job.queue, "state": state, "priority": job.priority, "retries": job.retries,
            "remaining": job.remaining, "attempts": job.attempts, "losses": job.losses, "created_ms": job.created, "queued_ms": job.queued,
            "popped_ms": job.popped, "ended_ms": job.ended if over else 0, "due_ms": due, "worker": job.worker if job.state == "running" else "",
            "tags": tuple(job.tags), "group": group, "message": message, "failed_ms": when, "data": job.data,
        }  # fmt: skip
