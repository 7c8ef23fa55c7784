"""Rules for what people do with jobs: labels, marks, notes, dependencies, failures that get another chance."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from machine import Machine, jids, lines, pick, queues, several
from rules_wishes import tags

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
        self.do("unfail", pick.draw(queues), "g", count)


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
