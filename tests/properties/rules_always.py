"""The rules that hold for all verbs: time passes, calls come again, answers are lost; and all of them together."""

from typing import Any

from compare import compare
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from machine import JIDS, QUEUES, pick, steps_of_time
from rules import UsualRules
from rules_operators import OperatorRules
from rules_people import DependencyRules, FailureRules, FollowRules, LabelRules
from rules_rare import RareRules
from rules_recurring import TEMPLATES, RecurringRules
from rules_throttles import ALL, ThrottleRules
from rules_wishes import WishRules
from step_laws import index_holds, operations_add_up, slots_hold, states_agree

MOST_SPAWNED = 20


class CoreAndModel(
    RareRules,
    ThrottleRules,
    LabelRules,
    FollowRules,
    DependencyRules,
    FailureRules,
    OperatorRules,
    RecurringRules,
    WishRules,
    UsualRules,
):
    @rule(by=steps_of_time)
    def time_passes(self, by: int) -> None:
        self.apply(("clock", (self.model.now + by,)))

    @rule()
    def the_next_timer_ends(self) -> None:
        due = self.model.next_due(tuple(QUEUES))
        if due is not None:
            self.apply(("clock", (max(due, self.model.now),)))

    @precondition(lambda self: self.calls)
    @rule()
    def the_last_call_comes_again(self) -> None:
        self.apply(self.calls[-1])

    @precondition(lambda self: self.calls)
    @rule(pick=pick)
    def an_earlier_call_comes_again(self, pick: Any) -> None:
        self.apply(pick.draw(st.sampled_from(self.calls)))

    @precondition(lambda self: self.calls)
    @rule(pick=pick)
    def an_answer_is_lost_and_the_call_repeated(self, pick: Any) -> None:
        call = pick.draw(st.sampled_from(self.calls[-5:]))
        self.both(call)
        self.apply(call)

    def apply(self, call: Any) -> None:
        if call[0] != "recur_cancel":
            self.calm(call[1][0] if call[0] == "clock" else self.model.now)
        super().apply(call)

    def calm(self, moment: int) -> None:
        """A call that meets more occurrences than it may put shares them out by weight, which stories tell."""
        templates = [one for one in self.model.templates.values() if not one.paused]
        late = [max(0, moment - one.next) / one.interval for one in templates]
        if sum(late) > MOST_SPAWNED:
            self.do("recur_cancel", tuple(TEMPLATES))

    def tidy(self) -> None:
        """A long pause makes a template put many jobs at once, which only makes the rest slow."""
        spawned = [
            job.jid for job in self.model.jobs.values() if job.spawned_from and job.state != "complete"
        ]
        if len(spawned) > MOST_SPAWNED:
            self.do("recur_cancel", tuple(TEMPLATES))
            self.do("cancel", tuple(spawned))

    @invariant()
    def the_laws_hold(self) -> None:
        self.tidy()
        jids = {*JIDS, *self.model.jobs}
        over = states_agree(self.door, sorted(jids))
        self.ledger.forget(set(self.model.jobs))
        self.ledger.looked(over)
        slots_hold(self.door, ALL, self.slots)
        index_holds(self.door)

    @rule()
    def look_at_everything(self) -> None:
        operations_add_up(self.door)
        compare(self.model, self.core, JIDS, QUEUES)

    def teardown(self) -> None:
        operations_add_up(self.door)
        compare(self.model, self.core, JIDS, QUEUES)
