"""Random sequences, sent to the reference and to our door: replies, messages and readable state must agree."""

import json
from collections import Counter
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from two_doors import Door, Refused
from weaknesses import same_job

QUEUES, WORKERS, THROTTLES = ("q", "other"), ("w1", "w2"), ("db", "api")
JIDS = tuple(f"j{n}" for n in range(7))
queues, workers, throttles, jids = map(st.sampled_from, (QUEUES, WORKERS, THROTTLES, JIDS))
STEPS = st.sampled_from((0.25, 1.0, 3.0, 7.5, 11.0, 59.0, 61.0, 4000.0))
SHORT = st.sampled_from((0.25, 0.5, 1.0, 3.0, 11.0))
OTHERS = st.sampled_from((None,) * 7 + ("w1",))
"""Who speaks for a running job: mostly its holder."""
SETTINGS = st.sampled_from([
    ("heartbeat", "60"), ("heartbeat", "10"), ("q-heartbeat", "5"), ("grace-period", "10"), ("grace-period", "0"),
    ("grace-period", "-1"), ("max-pop-retry", "3"), ("other-max-pop-retry", "2"), ("max-job-history", "3"),
    ("max-job-history", "0"), ("jobs-history", "100"), ("jobs-history-count", "2"), ("jobs-history-count", "0"),
    ("jobs-history", "-1"), ("heartbeat", "0"), ("app.colour", "blue"),
])  # fmt: skip
DATA = st.sampled_from(("{}", '{"a":1}', '{"text":"ab"}', "7", '"x"'))


class Machine(RuleBasedStateMachine):
    """`reference` and `ours` are set by the test that runs it."""

    reference: ClassVar[Door]
    ours: ClassVar[Door]
    calls: ClassVar[int] = 0
    seen: ClassVar[Counter[str]] = Counter()
    """How often each command was answered, refused, or answered with nothing."""

    @initialize(throttling=st.booleans(), most=st.integers(0, 2), own=st.integers(0, 3))
    def begin(self, throttling: bool, most: int, own: int) -> None:
        self.now = 1_700_000_000.0
        self.throttling = throttling
        self.priority = 0
        self.retired: set[str] = set()
        self.given_back: set[str] = set()
        for door in (self.reference, self.ours):
            door.flush()
            door.messages()
        if throttling:
            self.limit(1.0, THROTTLES[0], most)
            self.limit(1.0, "ql:q:q", own)
        for number, jid in enumerate(JIDS[:4]):
            self.put(1.0, QUEUES[number % 3 == 2], "w1", jid, "{}", 0, None, [THROTTLES[0]] * (number % 2))
        self.pop(1.0, QUEUES[0], "w1", 2)

    def both(self, command: str, *words: object) -> Any:
        """Send a call to both and compare; returns what both answered."""
        self.reference.messages()
        theirs = self.reference.call(command, self.now, *words)
        their_messages = self.reference.messages()
        self.ours.messages()
        ours = self.ours.call(command, self.now, *words)
        our_messages = self.ours.messages()
        type(self).calls += 1
        type(self).seen[
            f"{command} {'refused' if isinstance(ours, Refused) else 'answered' if ours else 'empty'}"
        ] += 1
        assert same_reply(theirs, ours), (
            f"{command} {self.now} {words}\n  reference {theirs}\n  ours      {ours}"
        )
        said = f"{command} {self.now} {words}\n  reference {their_messages}\n  ours      {our_messages}"
        assert meant(their_messages) == meant(our_messages), said
        return ours

    def later(self, seconds: float) -> None:
        self.now += seconds

    def job(self, jid: str) -> dict[str, Any] | None:
        found = self.ours.call("job.get", self.now, jid)
        assert found is None or isinstance(found, dict)
        return found

    def in_grace(self, job: dict[str, Any]) -> bool:
        return bool(
            job["state"] == "running" and job["history"] and job["history"][-1]["what"] == "timed-out"
        )

    def new_priority(self) -> int:
        """Never the same twice, in no order."""
        self.priority += 1
        return self.priority * 7919 % 1009 - 500

    @rule(step=SHORT, queue=queues, worker=workers, jid=jids, data=DATA, delay=st.sampled_from((0, 0, -1, 5, 30.5)),
          retries=st.sampled_from((None, 0, 1, 5)), named=st.lists(throttles, max_size=2, unique=True))  # fmt: skip
    def put(self, step: float, queue: str, worker: str, jid: str, data: str, delay: float, retries: int | None,
            named: list[str]) -> None:  # fmt: skip
        self.later(step)
        job = self.job(jid)
        if jid in self.retired or (jid in self.given_back and job):
            return
        if job:
            busy = job["state"] == "running" or job["state"] == "throttled"
            if self.in_grace(job) or (self.throttling and busy):
                return
            if job["state"] == "failed":
                queue = job["queue"]
        words: list[object] = ["priority", self.new_priority()]
        if retries is not None:
            words += ["retries", retries]
        if self.throttling and named:
            words += ["throttles", "[" + ",".join(f'"{name}"' for name in named) + "]"]
        self.given_back.discard(jid)
        self.both("queue.put", worker, queue, jid, "klass", data, delay, *words)
        self.look(jid)

    @rule(step=SHORT, queue=queues, worker=workers, limit=st.integers(2, 4))
    def pop_some(self, step: float, queue: str, worker: str, limit: int) -> None:
        self.pop(step, queue, worker, limit)

    @rule(queue=queues, worker=workers, seconds=st.sampled_from((61.0, 71.0)))
    def lose(self, queue: str, worker: str, seconds: float) -> None:
        """Nobody speaks for a while, then somebody asks twice: locks are noticed as lost, and handed out again."""
        self.pop(seconds, queue, worker, 3)
        self.pop(11.0, queue, worker, 3)

    @rule(step=STEPS, queue=queues, worker=workers, limit=st.integers(1, 4))
    def pop(self, step: float, queue: str, worker: str, limit: int) -> None:
        self.later(step)
        for job in self.both("queue.pop", queue, worker, limit):
            self.given_back.discard(job["jid"])

    def running(self, jid: str) -> str:
        """A running job, if there is one and `jid` does not run; which one depends on `jid`."""
        found = [job["jid"] for job in map(self.job, JIDS) if job and job["state"] == "running"]
        return jid if jid in found or not found else str(found[JIDS.index(jid) % len(found)])

    def holder(self, jid: str, other: str | None) -> tuple[str, str]:
        job = self.job(jid)
        if job is None:
            return other or WORKERS[0], QUEUES[0]
        return other or job["worker"], job["queue"]

    @rule(step=SHORT, jid=jids, other=OTHERS, data=DATA)
    def complete(self, step: float, jid: str, other: str | None, data: str) -> None:
        self.later(step)
        jid = self.running(jid)
        worker, queue = self.holder(jid, other)
        self.settle(jid, "job.complete", jid, worker, queue, data)

    @rule(step=SHORT, jid=jids, other=OTHERS, group=st.sampled_from(("g", "h")),
          data=st.none() | DATA)  # fmt: skip
    def fail(self, step: float, jid: str, other: str | None, group: str, data: str | None) -> None:
        self.later(step)
        jid = self.running(jid)
        worker, _ = self.holder(jid, other)
        self.settle(jid, "job.fail", jid, worker, group, 'a "message"', *([data] if data else []))

    def settle(self, jid: str, *call: object) -> None:
        job = self.job(jid)
        if job and self.in_grace(job):
            self.retired.add(jid)
        self.both(str(call[0]), *call[1:])
        self.look(jid)

    @rule(step=SHORT, jid=jids, other=OTHERS, delay=st.sampled_from((0, 0, 20)),
          why=st.sampled_from(((), ("g",), ("g", "m"))))  # fmt: skip
    def retry(self, step: float, jid: str, other: str | None, delay: float, why: tuple[str, ...]) -> None:
        self.later(step)
        jid = self.running(jid)
        job = self.job(jid)
        if job and self.in_grace(job):
            return
        worker, queue = self.holder(jid, other)
        if not isinstance(self.both("job.retry", jid, queue, worker, delay, *why), Refused):
            self.given_back.add(jid)
        self.look(jid)

    @rule(step=SHORT, jid=jids, other=OTHERS, data=st.none() | DATA)
    def heartbeat(self, step: float, jid: str, other: str | None, data: str | None) -> None:
        self.later(step)
        jid = self.running(jid)
        job = self.job(jid)
        if job and self.in_grace(job):
            return
        worker, _ = self.holder(jid, other)
        self.both("job.heartbeat", jid, worker, *([data] if data else []))
        self.look(jid)

    @rule(step=STEPS, jid=jids)
    def timeout(self, step: float, jid: str) -> None:
        self.later(step)
        jid = self.running(jid)
        found = [job for job in map(self.job, JIDS) if job]
        if any(self.in_grace(job) and job["jid"] == jid for job in found):
            return
        if any(job["state"] == "stalled" for job in found):
            return
        self.both("job.timeout", jid)
        self.look(jid)

    @rule(step=STEPS, jid=jids)
    def cancel(self, step: float, jid: str) -> None:
        self.later(step)
        if not self.job(jid) or jid in self.given_back:
            return
        self.both("job.cancel", jid)
        self.look(jid)

    @rule(step=STEPS, jid=jids)
    def reprioritise(self, step: float, jid: str) -> None:
        self.later(step)
        if self.job(jid):
            self.both("job.setPriority", jid, self.new_priority())
            self.look(jid)

    @rule(step=STEPS, jid=jids, on=st.booleans())
    def track(self, step: float, jid: str, on: bool) -> None:
        self.later(step)
        if on or self.job(jid):
            self.both("job.track" if on else "job.untrack", jid)

    @rule(step=STEPS, setting=SETTINGS, unset=st.booleans())
    def configure(self, step: float, setting: tuple[str, str], unset: bool) -> None:
        self.later(step)
        self.both("config.get", setting[0])
        if unset:
            self.both("config.unset", setting[0])
        else:
            self.both("config.set", *setting)

    @precondition(lambda self: self.throttling)
    @rule(step=STEPS, name=st.sampled_from((*THROTTLES, "ql:q:q", "ql:q:other")), most=st.integers(0, 3))
    def limit(self, step: float, name: str, most: int) -> None:
        self.later(step)
        if self.both("throttle.pending", name):
            return
        if name.startswith("ql:q:"):
            self.both("queue.throttle.set", name.removeprefix("ql:q:"), most)
        else:
            self.both("throttle.set", name, most)
        self.both("throttle.get", name)

    @precondition(lambda self: self.throttling)
    @rule(step=STEPS, name=st.sampled_from((*THROTTLES, "ql:q:q")), jid=jids)
    def release(self, step: float, name: str, jid: str) -> None:
        self.later(step)
        self.both("throttle.release", name, jid)
        self.look(jid)

    @rule(step=STEPS, queue=queues, on=st.sampled_from((True, False, False, False)))
    def pause(self, step: float, queue: str, on: bool) -> None:
        self.later(step)
        self.both("queue.pause" if on else "queue.unpause", queue)

    @rule(step=STEPS, queue=queues, offset=st.integers(0, 2), limit=st.integers(0, 3))
    def peek(self, step: float, queue: str, offset: int, limit: int) -> None:
        self.later(step)
        self.both("queue.peek", queue, offset, limit)

    def look(self, jid: str) -> None:
        self.both("job.get", jid)

    def look_at_all(self, step: float) -> None:
        """Everything that can be read."""
        self.later(step)
        for queue in QUEUES:
            self.both("queue.peek", queue, 0, 100)
            self.both("queue.counts", queue)
            self.both("queue.length", queue)
            self.both("queue.throttle.get", queue)
            for state in ("running", "stalled", "scheduled", "throttled", "depends"):
                self.both("queue.jobsByState", state, queue, 0, 10)
            self.both("queue.stats", queue, self.now)
        for command in ("queues.counts", "jobs.completed", "failureGroups.counts", "config.getAll"):
            self.both(command)
        for group in ("g", "h", "failed-retries-q", "failed-retries-other", "none"):
            self.both("jobs.failedByGroup", group)
        self.both("job.getMulti", *JIDS)
        for name in (*THROTTLES, "ql:q:q", "ql:q:other") if self.throttling else ():
            self.both("throttle.locks", name)
            self.both("throttle.pending", name)

    def teardown(self) -> None:
        if hasattr(self, "now"):
            self.look_at_all(1.0)


def meant(messages: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    """What messages mean: in which order the reference writes the keys depends on the server it runs in. Ours is told
    by the stories, byte for byte."""
    return [(channel, json.loads(text) if text.startswith("{") else text) for channel, text in messages]


def same_reply(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(same_reply(*pair) for pair in zip(theirs, ours, strict=True))
    if isinstance(theirs, dict) and "spawned_from_jid" in theirs:
        return same_job(theirs, ours)
    return bool(theirs == ours)
