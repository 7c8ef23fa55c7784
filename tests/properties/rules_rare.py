"""Rules for sequences that chance alone seldom makes, each of them where a seeded mistake once escaped the search."""

from typing import Any

from compare import same_job
from hypothesis import strategies as st
from hypothesis.stateful import rule
from machine import JIDS, Machine, jids, lines, pick, queues, workers
from rules_recurring import TEMPLATES
from rules_wishes import tags

FIRST = 4095
"""The priority of a job that the next pop takes."""


class RareRules(Machine):
    def taken(self, queue: str, jid: str, worker: str = "w") -> Any:
        """The job, if the next pop of that queue takes it."""
        self.do("pop", worker, 1, 0, (queue,))
        job = self.model.jobs.get(jid)
        return job if job is not None and job.state == "running" else None

    @rule(pick=pick, line=lines, queue=queues, jid=jids, worker=workers)
    def a_pop_comes_again_when_its_lease_has_ended(
        self, pick: Any, line: str, queue: str, jid: str, worker: str
    ) -> None:
        self.do("put", "new", queue, FIRST, 2, 0, ((jid, "k", b"{}"),))
        pop = line, self.next_number(line), worker, 1, 0, (queue,)
        self.do("pop_once", *pop)
        job = self.model.jobs.get(jid)
        if job is None or job.state != "running":
            return
        held = ((jid, job.token, b""),)
        how = pick.draw(st.sampled_from(["retry", "complete", "fail"]))
        if how == "retry":
            self.do("retry", job.worker, 0, "", "", held)
        elif how == "fail":
            self.do("fail", job.worker, "g", "because", held)
        else:
            self.do("complete", job.worker, ((jid, job.token, b"", 0, b""),))
        self.do("pop_once", *pop)

    @rule(line=lines, queue=queues, jid=jids)
    def a_straggler_comes(self, line: str, queue: str, jid: str) -> None:
        first = self.next_number(line)
        move = "move", queue, 0, jid, b"", 1
        self.do("once", line, first, *move)
        self.do("once", line, self.next_number(line), *move[:-1], 2)
        self.do("once", line, first, *move)

    @rule(queue=queues, jid=st.sampled_from(TEMPLATES), times=st.integers(1, 2))
    def a_template_that_has_put_jobs_is_set_again(self, queue: str, jid: str, times: int) -> None:
        recur = queue, jid, "k", b"{}", (1_000, 0), (0, 1, 0), (), "set"
        self.do("recur", *recur)
        for _ in range(times):
            self.apply(("clock", (max(self.model.templates[jid].next, self.model.now),)))
            self.do("pop", "w", 1, 0, (queue,))
        self.do("recur", *recur)
        self.do("recur_get", jid)

    @rule(queue=queues, jid=jids, tag=tags)
    def a_job_is_marked_and_tagged_twice(self, queue: str, jid: str, tag: str) -> None:
        self.do("put", "new", queue, 0, 1, 0, ((jid, "k", b"{}"),))
        for _ in range(2):
            self.do("track", True, jid)
            self.do("tag", "add", jid, (tag,))
        self.do("tags", 1, 0, 3)
        self.do("track", False, jid)
        self.do("tracked")

    @rule(queue=queues, jid=jids, tag=tags)
    def a_tagged_job_is_forgotten(self, queue: str, jid: str, tag: str) -> None:
        self.do("put_x", "move", queue, FIRST, 1, 0, ((jid, "k", b"{}", (("tag", tag),)),))
        job = self.taken(queue, jid)
        if job is None:
            return
        self.do("complete", job.worker, ((jid, job.token, b"", 0, b""),))
        self.do("config_set", "jobs-history", "0")
        self.apply(("clock", (self.model.now + 1_000,)))
        self.do("sweep")
        self.do("tags", 1, 0, 3)

    @rule(queue=queues, jid=jids)
    def a_job_that_used_up_retries_gets_another_chance(self, queue: str, jid: str) -> None:
        self.do("put", "move", queue, FIRST, 2, 0, ((jid, "k", b"{}"),))
        for last in (False, True):
            job = self.taken(queue, jid)
            if job is None:
                return
            held = ((jid, job.token, b""),)
            if last:
                self.do("fail", job.worker, "h", "because", held)
            else:
                self.do("retry", job.worker, 0, "", "", held)
        self.do("unfail", queue, "h", 3)

    @rule(queue=queues, family=st.permutations(JIDS))
    def one_of_two_that_a_job_waits_for_is_done(self, queue: str, family: Any) -> None:
        child, *parents = family[:3]
        self.do("put", "move", queue, FIRST, 1, 0, tuple((jid, "k", b"{}") for jid in parents))
        wishes = tuple(("depends", jid) for jid in parents)
        self.do("put_x", "move", queue, 0, 1, 0, ((child, "k", b"{}", wishes),))
        job = self.taken(queue, parents[0])
        if job is not None:
            self.do("complete", job.worker, ((job.jid, job.token, b"", 0, b""),))
            same_job(self.model, child, self.door.look("job_get", child)[0])

    @rule(queue=queues, jid=jids)
    def a_job_that_has_no_retry_is_lost(self, queue: str, jid: str) -> None:
        self.do("put", "move", queue, FIRST, 0, 0, ((jid, "k", b"{}"),))
        for _ in range(3):
            job = self.taken(queue, jid)
            if job is None:
                return
            self.apply(("clock", (max(job.end, self.model.now),)))

    @rule(queue=queues, family=st.permutations(JIDS), again=st.sampled_from(["put", "move"]))
    def a_job_that_waits_for_another_is_not_to_be_late_any_more(
        self, queue: str, family: Any, again: str
    ) -> None:
        child, parent = family[:2]
        waiting = ((child, "k", b"{}", (("depends", parent),)),)
        self.do("put", "move", queue, FIRST, 1, 0, ((parent, "k", b"{}"),))
        self.do("put_x", "move", queue, 0, 1, 60_000, waiting)
        if again == "put":
            self.do("put_x", "move", queue, 0, 1, 0, waiting)
        else:
            self.do("move", queue, 0, child, b"", None)
        job = self.taken(queue, parent)
        if job is not None:
            self.do("complete", job.worker, ((parent, job.token, b"", 0, b""),))
            same_job(self.model, child, self.door.look("job_get", child)[0])
