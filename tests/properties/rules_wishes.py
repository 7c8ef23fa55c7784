"""Rules for jobs that are put with wishes: tags, dependencies, options."""

from typing import Any

from compare import same_job
from hypothesis import strategies as st
from hypothesis.stateful import rule
from machine import JIDS, Machine, data, delays, jids, lines, modes, paid, pick, priorities, queues, retries

TAGS = ["red", "blue", "7"]

THROTTLES = ["lamp", "printer"]

tags = st.sampled_from(TAGS)
throttles = st.sampled_from(THROTTLES)
spans = st.sampled_from([1_000, 5_000, 60_000])
backoffs = st.sampled_from(["exponential:1000:60000:0", "fixed:2000:60000:0", "exponential:500:700:50"])
options = st.one_of(
    st.tuples(st.just("tag"), tags),
    st.tuples(st.just("depends"), jids),
    st.tuples(st.just("depends"), jids),
    st.just(("untagged", "")),
    st.tuples(st.just("throttle"), throttles),
    st.tuples(st.sampled_from(["expires", "limit", "keep"]), spans),
    st.tuples(st.just("backoff"), backoffs),
)
wishes = st.lists(options, max_size=4).map(tuple)
changes = st.one_of(
    st.tuples(st.just("tag"), tags),
    st.tuples(st.just("depends"), jids),
    st.tuples(st.just("throttle"), throttles),
    st.sampled_from([("untagged", ""), ("unthrottled", "")]),
)
moved = st.lists(changes, max_size=3).map(tuple)
wished = st.lists(st.tuples(jids, st.sampled_from(["k", "other"]), data, wishes), min_size=1, max_size=3).map(
    tuple
)


class WishRules(Machine):
    @rule(mode=modes, queue=queues, priority=priorities, retries=paid, delay=delays, jobs=wished)
    def put_x(self, mode: str, queue: str, priority: int, retries: int, delay: int, jobs: Any) -> None:
        self.do("put_x", mode, queue, priority, retries, delay, jobs)

    @rule(line=lines, queue=queues, priority=priorities, retries=paid, delay=delays, jobs=wished)
    def put_x_numbered(
        self, line: str, queue: str, priority: int, retries: int, delay: int, jobs: Any
    ) -> None:
        self.do("once", line, self.next_number(line), "put_x", "move", queue, priority, retries, delay, jobs)

    @rule(
        queue=queues,
        delay=delays,
        jid=jids,
        klass=st.sampled_from(["", "other"]),
        priority=st.one_of(st.none(), priorities),
        retries=st.one_of(st.none(), retries),
        options=moved,
    )
    def move_changed(
        self, queue: str, delay: int, jid: str, klass: str, priority: Any, retries: Any, options: Any
    ) -> None:
        self.do("move", queue, delay, jid, b"", priority, klass, retries, options)

    @rule(queue=queues, parent=jids, pick=pick, delay=delays)
    def some_wait_for_one(self, queue: str, parent: str, pick: Any, delay: int) -> None:
        """Chance alone seldom makes several wait for the same job, which then comes to its end."""
        children = pick.draw(st.lists(st.sampled_from(JIDS), min_size=1, max_size=3, unique=True))
        jobs = [(jid, "k", b"{}", (("depends", parent),)) for jid in children]
        self.do("put", "new", queue, 0, 1, 0, ((parent, "k", b"{}"),))
        self.do("put_x", "move", queue, 0, 1, delay, tuple(jobs or [(parent, "k", b"{}", ())]))

    @rule(pick=pick, keep=st.booleans())
    def one_that_others_wait_for_is_done(self, pick: Any, keep: bool) -> None:
        waited_for = sorted({parent for job in self.model.jobs.values() for parent in job.parents})
        running = [jid for jid in waited_for if self.model.jobs[jid].state == "running"]
        if running:
            job = self.model.jobs[pick.draw(st.sampled_from(running))]
            self.do("complete", job.worker, ((job.jid, job.token, b"", 0, b""),))
        elif waited_for:
            queue = self.model.jobs[pick.draw(st.sampled_from(waited_for))].queue
            self.do("pop", "w", 4, 0, (queue,))

    @rule(queue=queues, jid=jids, backoff=backoffs, times=st.integers(2, 3))
    def a_job_backs_off_again_and_again(self, queue: str, jid: str, backoff: str, times: int) -> None:
        """Chance alone seldom takes the same job twice and gives it back both times without saying for how long."""
        self.do("put_x", "move", queue, 4095, times, 0, ((jid, "k", b"{}", (("backoff", backoff),)),))
        for _ in range(times):
            self.do("pop", "w", 1, 0, (queue,))
            job = self.model.jobs.get(jid)
            if job is None or job.state != "running":
                return
            self.do("retry", job.worker, -1, "", "", ((jid, job.token, b""),))
            same_job(self.model, jid, self.door.look("job_get", jid)[0])
            self.apply(("clock", (max(self.model.jobs[jid].due, self.model.now),)))

    @rule(queue=queues, jid=jids, late=st.booleans(), worker=st.sampled_from(["w", "v"]))
    def a_deadline_passes(self, queue: str, jid: str, late: bool, worker: str) -> None:
        self.do("put_x", "move", queue, 0, 1, 0, ((jid, "k", b"{}", (("expires", 1_000),)),))
        if late:
            self.apply(("clock", (self.model.now + 1_000,)))
        self.do("pop", worker, 4, 0, (queue,))
