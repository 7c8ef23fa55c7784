"""Rules for recurring jobs."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from machine import Machine, data, lines, pick, priorities, queues, retries
from rules_wishes import tags

TEMPLATES = ["t", "u"]

templates = st.sampled_from(TEMPLATES)
intervals = st.sampled_from([1_000, 5_000, 60_000, 86_400_000])
offsets = st.sampled_from([0, 0, 2_000, 60_000, -3_500])
backlogs = st.sampled_from([0, 0, 1, 2])
numbers = st.tuples(priorities, retries, backlogs)
some_tags = st.lists(tags, max_size=2).map(tuple)
changes = st.fixed_dictionaries(
    {},
    optional={
        "queue": queues, "klass": st.just("other"), "data": data, "interval": intervals, "backlog": backlogs,
        "priority": priorities, "retries": retries,
    },
)  # fmt: skip


class RecurringRules(Machine):
    @rule(
        queue=queues,
        jid=templates,
        times=st.tuples(intervals, offsets),
        numbers=numbers,
        names=some_tags,
        mode=st.sampled_from(["set", "set", "keep"]),
    )
    def recur(self, queue: str, jid: str, times: Any, numbers: Any, names: Any, mode: str) -> None:
        options = tuple([("tag", name) for name in names])
        self.do("recur", queue, jid, "k", b"{}", times, numbers, options, mode)

    @rule(line=lines, queue=queues, jid=templates, times=st.tuples(intervals, offsets), numbers=numbers)
    def recur_numbered(self, line: str, queue: str, jid: str, times: Any, numbers: Any) -> None:
        self.do("once", line, self.next_number(line), "recur", queue, jid, "k", b"{}", times, numbers, ())

    @rule(jid=templates, changes=changes)
    def update(self, jid: str, changes: Any) -> None:
        self.do("recur_update", jid, changes)

    @rule(mode=st.sampled_from(["add", "remove"]), jid=templates, names=some_tags)
    def tag_a_template(self, mode: str, jid: str, names: Any) -> None:
        self.do("recur_tag", mode, jid, names)

    @rule(jid=templates, on=st.booleans())
    def pause_a_template(self, jid: str, on: bool) -> None:
        self.do("recur_pause", on, jid)

    @rule(jid=templates)
    def run_a_template_now(self, jid: str) -> None:
        self.do("recur_run", jid)

    @rule(line=lines, jid=templates)
    def run_a_template_now_numbered(self, line: str, jid: str) -> None:
        self.do("once", line, self.next_number(line), "recur_run", jid)

    @rule(jid=templates)
    def cancel_a_template(self, jid: str) -> None:
        self.do("recur_cancel", (jid,))

    @rule(pick=pick, jid=templates, n=st.integers(1, 3))
    def its_turn_comes(self, pick: Any, jid: str, n: int) -> None:
        """A few occurrences later, its queue is popped."""
        template = self.model.templates.get(jid)
        if template is not None:
            steps = pick.draw(st.integers(0, 3))
            when = max(template.next + steps * min(template.interval, 60_000), self.model.now)
            self.apply(("clock", (when,)))
            self.do("pop", "w", n, 0, (template.queue,))

    @rule()
    def templates_look_the_same(self) -> None:
        self.do("recur_get", *TEMPLATES)
