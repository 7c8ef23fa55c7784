"""Rules for what people do with jobs: labels, marks, notes, dependencies, failures that get another chance."""

from typing import Any

from compare import same_day
from hypothesis import strategies as st
from hypothesis.stateful import rule
from machine import QUEUES, Machine, delays, jids, lines, new_data, pick, priorities, queues, retries, several
from model_looks import DAY
from rules_wishes import tags, wished

GROUPS = ["g", "h", "failed-retries-q", "nothing"]

some_tags = st.lists(tags, max_size=3).map(tuple)


class LabelRules(Machine):
    @rule(mode=st.sampled_from(["add", "add", "remove"]), jid=jids, names=some_tags)
    def tag(self, mode: str, jid: str, names: Any) -> None:
        self.do("tag", mode, jid, names)

    @rule(least=st.integers(1, 2), offset=st.integers(0, 2), count=st.integers(0, 3))
    def top_tags(self, least: int, offset: int, count: int) -> None:
        self.do("tags", least, offset, count)

    @rule(on=st.booleans(), jid=jids)
    def track(self, on: bool, jid: str) -> None:
        self.do("track", on, jid)

    @rule()
    def who_is_tracked(self) -> None:
        self.do("tracked")

    @rule(jid=jids, message=st.sampled_from(["looked at it", "put"]))
    def log(self, jid: str, message: str) -> None:
        self.do("log", jid, message)

    @rule(pick=pick, progress=st.sampled_from(["", "0.25", "1"]), lines=st.lists(st.just("x"), max_size=3))
    def report(self, pick: Any, progress: str, lines: Any) -> None:
        worker, jid, token = self.held(pick)
        self.do("report", worker, jid, token, progress, "half way", tuple(lines))


class FailureRules(Machine):
    @rule(queue=queues, group=st.sampled_from(GROUPS), count=st.integers(1, 3))
    def unfail(self, queue: str, group: str, count: int) -> None:
        self.do("unfail", queue, group, count)

    @rule(line=lines, queue=queues, group=st.sampled_from(GROUPS))
    def unfail_numbered(self, line: str, queue: str, group: str) -> None:
        self.do("once", line, self.next_number(line), "unfail", queue, group, 25)

    @rule(pick=pick, queue=queues, count=st.integers(1, 2))
    def some_fail_and_get_another_chance(self, pick: Any, queue: str, count: int) -> None:
        self.do("pop", "w", 3, 0, (queue,))
        running = [job for job in self.model.jobs.values() if job.state == "running"]
        for job in running:
            self.do("fail", job.worker, "g", "because", ((job.jid, job.token, b""),))
        failed_at = self.model.now
        if pick.draw(st.booleans()):
            self.apply(("clock", (failed_at + DAY,)))
        self.do("unfail", pick.draw(queues), "g", count)
        same_day(self.model, self.core, QUEUES, failed_at)


class DependencyRules(Machine):
    @rule(mode=st.sampled_from(["add", "remove"]), jid=jids, parents=several)
    def depend(self, mode: str, jid: str, parents: Any) -> None:
        self.do("depend", mode, jid, parents)

    @rule(pick=pick, mode=st.sampled_from(["add", "remove", "all"]), parents=several, line=lines)
    def depend_of_one_that_waits(self, pick: Any, mode: str, parents: Any, line: str) -> None:
        waiting = sorted(job.jid for job in self.model.jobs.values() if job.state == "depends")
        if waiting:
            words = mode, pick.draw(st.sampled_from(waiting)), () if mode == "all" else parents
            self.do("once", line, self.next_number(line), "depend", *words)

    @rule(jids=st.lists(jids, min_size=1, max_size=6, unique=True).map(tuple))
    def cancel_many(self, jids: Any) -> None:
        self.do("cancel", jids)


followers = st.tuples(st.tuples(queues, priorities, retries, delays), wished.map(lambda jobs: jobs[0]))
goals = st.one_of(
    st.just(("", 0, ())), st.tuples(queues, delays, st.lists(jids, max_size=2, unique=True).map(tuple))
)


def others(jid: str, jobs: Any) -> Any:
    """A job cannot follow itself, nor come twice."""
    named = {job[1][0]: job for job in jobs if job[1][0] != jid}
    return tuple(named.values())


class FollowRules(Machine):
    @rule(
        pick=pick,
        data=new_data,
        keep=st.booleans(),
        on=goals,
        jobs=st.lists(followers, max_size=3).map(tuple),
    )
    def complete_x(self, pick: Any, data: bytes, keep: bool, on: Any, jobs: Any) -> None:
        worker, jid, token = self.held(pick)
        end = (data, 3_600_000, b'"good"') if keep and not on[0] else (data, 0, b"")
        self.do("complete_x", worker, jid, token, end, on, others(jid, jobs))

    @rule(pick=pick, queue=queues, on=goals, jobs=st.lists(followers, min_size=1, max_size=3).map(tuple))
    def a_job_of_this_queue_has_followers(self, pick: Any, queue: str, on: Any, jobs: Any) -> None:
        self.do("pop", "w", 1, 0, (queue,))
        running = [job for job in self.model.jobs.values() if job.state == "running"]
        if running:
            job = pick.draw(st.sampled_from(running))
            words = job.worker, job.jid, job.token, (b"", 0, b""), on
            self.do("complete_x", *words, others(job.jid, jobs))
