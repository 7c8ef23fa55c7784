"""Rules for throttles that any job may name."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from machine import JIDS, Machine, lines, pick, queues, several
from rules_wishes import THROTTLES, throttles

ALL = [*THROTTLES, "ql:q:q", "ql:q:r"]


class ThrottleRules(Machine):
    @rule(name=throttles, maximum=st.integers(0, 2), expires=st.sampled_from([0, 0, 3_000]))
    def limit(self, name: str, maximum: int, expires: int) -> None:
        self.do("throttle_named", name, maximum, expires)

    @rule(line=lines, name=throttles, maximum=st.integers(0, 2))
    def limit_numbered(self, line: str, name: str, maximum: int) -> None:
        self.do("once", line, self.next_number(line), "throttle_named", name, maximum, 0)

    @rule(name=throttles)
    def delete_a_limit(self, name: str) -> None:
        self.do("throttle_delete", name)

    @rule(name=st.sampled_from(ALL), jids=several)
    def free_slots(self, name: str, jids: Any) -> None:
        self.do("throttle_release", name, jids)

    @rule(name=throttles)
    def state_of_a_throttle(self, name: str) -> None:
        self.do("throttle_get", name)

    @rule(name=throttles, maximum=st.integers(1, 2), queue=queues, n=st.integers(1, 4), pick=pick)
    def some_jobs_share_a_throttle(self, name: str, maximum: int, queue: str, n: int, pick: Any) -> None:
        """Chance alone seldom fills one up to its limit."""
        self.do("throttle_named", name, maximum, pick.draw(st.sampled_from([0, 3_000])))
        options = (
            (("throttle", name),) if pick.draw(st.booleans()) else (("throttle", name), ("throttle", "lamp"))
        )
        self.do("put_x", "move", queue, 0, 1, 0, tuple([(jid, "k", b"{}", options) for jid in JIDS[:4]]))
        self.do("pop", "w", n, 0, (queue,))
        if pick.draw(st.booleans()):
            if pick.draw(st.booleans()):
                self.apply(("clock", (self.model.now + 3_000,)))
            self.do("put_x", "new", queue, 0, 1, 0, tuple([(jid, "k", b"{}", options) for jid in JIDS]))
            self.do("pop", "w", n, 0, (queue,))
