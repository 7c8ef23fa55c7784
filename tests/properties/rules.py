"""The rules of the usual verbs: putting, taking, settling, setting."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from machine import (
    JIDS,
    QUEUES,
    Machine,
    data,
    delays,
    jids,
    jobs,
    leases,
    limits,
    lines,
    modes,
    new_data,
    paid,
    pick,
    priorities,
    queues,
    settings_of_root,
    several,
    some_queues,
    workers,
)


class UsualRules(Machine):
    @rule(mode=modes, queue=queues, priority=priorities, retries=paid, delay=delays, jobs=jobs)
    def put(self, mode: str, queue: str, priority: int, retries: int, delay: int, jobs: Any) -> None:
        self.do("put", mode, queue, priority, retries, delay, jobs)

    @rule(line=lines, queue=queues, priority=priorities, retries=paid, delay=delays, jobs=jobs)
    def put_numbered(self, line: str, queue: str, priority: int, retries: int, delay: int, jobs: Any) -> None:
        self.do("once", line, self.next_number(line), "put", "move", queue, priority, retries, delay, jobs)

    @rule(worker=workers, n=limits, lease=leases, names=some_queues)
    def pop(self, worker: str, n: int, lease: int, names: Any) -> None:
        self.do("pop", worker, n, lease, names)

    @rule(line=lines, worker=workers, n=limits, lease=leases, names=some_queues)
    def pop_numbered(self, line: str, worker: str, n: int, lease: int, names: Any) -> None:
        self.do("pop_once", line, self.next_number(line), worker, n, lease, names)

    @rule(pick=pick)
    def complete(self, pick: Any) -> None:
        self.do("complete", *self.some_done(pick))

    @rule(pick=pick, line=lines, n=st.integers(0, 3), lease=leases, names=some_queues)
    def complete_pop(self, pick: Any, line: str, n: int, lease: int, names: Any) -> None:
        worker, done = self.some_done(pick)
        self.do("complete_pop_once", line, self.next_number(line), worker, n, lease, names, done)

    @rule(pick=pick, queue=queues, delay=delays)
    def advance(self, pick: Any, queue: str, delay: int) -> None:
        worker, held = self.several_held(pick)
        self.do("advance", worker, queue, delay, held)

    @rule(
        pick=pick,
        delay=st.one_of(delays, st.just(-1)),
        group=st.sampled_from(["", "g"]),
        message=st.sampled_from(["", "why"]),
    )
    def retry(self, pick: Any, delay: int, group: str, message: str) -> None:
        worker, held = self.several_held(pick)
        self.do("retry", worker, delay, group, message, held)

    @rule(pick=pick)
    def a_second_try(self, pick: Any) -> None:
        """A job is given back and taken again, and goes on from there."""
        worker, jid, token = self.held(pick)
        self.do("retry", worker, 0, "", "", ((jid, token, b""),))
        if jid in self.model.jobs:
            self.do("pop", worker, 2, 0, (self.model.jobs[jid].queue,))
            again = self.model.jobs.get(jid)
            if again is not None and pick.draw(st.booleans()):
                self.do("advance", worker, "s", 0, ((jid, again.token, b""),))

    @rule(pick=pick, group=st.sampled_from(["g", "h"]))
    def fail(self, pick: Any, group: str) -> None:
        worker, held = self.several_held(pick)
        self.do("fail", worker, group, "because", held)

    @rule(pick=pick, lease=leases, data=new_data)
    def heartbeat(self, pick: Any, lease: int, data: bytes) -> None:
        first, second = self.held(pick), self.held(pick)
        held = [first] if first[1] == second[1] else [first, second]
        self.do("heartbeat", lease, tuple([(*one, data) for one in held]))

    @rule(pick=pick)
    def a_silent_worker_comes_back_in_its_grace_period(self, pick: Any) -> None:
        running = [job for job in self.model.jobs.values() if job.state == "running"]
        if not running:
            return
        job = pick.draw(st.sampled_from(running))
        other = "v" if job.worker == "w" else "w"
        for _ in range(2):
            self.apply(("clock", (max(job.end, self.model.now),)))
            self.do("pop", other, 1, 0, (job.queue,))
            self.do("heartbeat", 0, ((job.worker, job.jid, job.token, b""),))

    @rule(pick=pick)
    def expire(self, pick: Any) -> None:
        self.do("expire", (self.held(pick), self.held(pick)))

    @rule(pick=pick, how=st.sampled_from([("preempted", "TERM"), ("crashed", "SIGSEGV"), ("lost", "")]))
    def release(self, pick: Any, how: tuple[str, str]) -> None:
        self.do("release", *how, (self.held(pick), self.held(pick)))

    @rule(
        pick=pick,
        verb=st.sampled_from(
            ["complete", "complete", "complete", "fail", "retry", "advance", "heartbeat", "expire"]
        ),
    )
    def a_wrong_hand(self, pick: Any, verb: str) -> None:
        """Somebody without the lease of a running job tries to end it or to keep it."""
        running = [job for job in self.model.jobs.values() if job.state == "running"]
        if not running:
            return
        job = pick.draw(st.sampled_from(running))
        other = "v" if job.worker == "w" else "w"
        wrong = [(other, job.token), (job.worker, job.token + 1), (job.worker, job.token - 1)]
        worker, token = pick.draw(st.sampled_from(wrong))
        if verb == "complete":
            self.do(verb, worker, ((job.jid, token, b"", 0, b""),))
        elif verb == "heartbeat":
            self.do(verb, 0, ((worker, job.jid, token, b""),))
        elif verb == "expire":
            self.do(verb, ((worker, job.jid, token),))
        else:
            words = {"fail": ("g", "because"), "retry": (0, "", ""), "advance": ("s", 0)}[verb]
            self.do(verb, worker, *words, ((job.jid, token, b""),))

    @rule(queue=queues, jid=jids, off=st.sampled_from([-1, 0, 0, 1]))
    def a_plain_job_meets_a_wrong_hand(self, queue: str, jid: str, off: int) -> None:
        """On the usual path, which knows no features: a wrong token, or the right one in the hand of somebody else."""
        self.do("put", "new", queue, 4095, 1, 0, ((jid, "k", b"{}"),))
        self.do("pop", "w", 1, 0, (queue,))
        job = self.model.jobs.get(jid)
        if job is not None and job.state == "running":
            hand = job.worker if off else "v" if job.worker == "w" else "w"
            self.do("complete", hand, ((jid, job.token + off, b"", 0, b""),))

    @rule(jids=several)
    def timeout(self, jids: Any) -> None:
        self.do("timeout", jids)

    @rule(pick=pick)
    def timeout_one_that_was_granted(self, pick: Any) -> None:
        self.do("timeout", (self.held(pick)[1],))

    @rule(line=lines, jid=jids)
    def timeout_numbered(self, line: str, jid: str) -> None:
        self.do("once", line, self.next_number(line), "timeout", (jid,))

    @rule(jids=several)
    def cancel(self, jids: Any) -> None:
        self.do("cancel", jids)

    @rule(queue=queues, delay=delays, jid=jids, data=st.one_of(new_data, data))
    def move(self, queue: str, delay: int, jid: str, data: bytes) -> None:
        self.do("move", queue, delay, jid, data, None)

    @rule(line=lines, queue=queues, jid=jids, priority=priorities)
    def move_numbered(self, line: str, queue: str, jid: str, priority: int) -> None:
        self.do("once", line, self.next_number(line), "move", queue, 0, jid, b"", priority)

    @rule(priority=priorities, jids=several)
    def set_priority(self, priority: int, jids: Any) -> None:
        self.do("priority", priority, jids)

    @rule(on=st.booleans(), length=st.sampled_from([0, 0, 3_000]), names=some_queues)
    def pause(self, on: bool, length: int, names: Any) -> None:
        self.do("pause", on, length, names)

    @rule(names=some_queues)
    def forget(self, names: Any) -> None:
        self.do("queue_forget", names)

    @rule(queue=queues, limit=st.integers(0, 2))
    def throttle(self, queue: str, limit: int) -> None:
        self.do("throttle_set", queue, limit)

    @rule(queue=queues, limit=st.integers(1, 2), worker=workers, n=limits)
    def a_full_queue(self, queue: str, limit: int, worker: str, n: int) -> None:
        """Chance alone seldom fills a queue up to its limit."""
        self.do("throttle_set", queue, limit)
        self.do("pop", worker, n, 0, (queue,))
        self.do("put", "move", queue, 0, 1, 0, tuple([(jid, "k", b"{}") for jid in JIDS[:3]]))
        self.do("pop", worker, n, 0, (queue,))
        self.do("put", "new", queue, 0, 1, 0, tuple([(jid, "k", b"{}") for jid in JIDS]))

    @rule(setting=settings_of_root)
    def configure(self, setting: tuple[str, str]) -> None:
        self.do("config_set", *setting)

    @rule()
    def sweep(self) -> None:
        self.do("sweep")

    @rule(jid=jids, worker=workers, how=st.sampled_from(["ran", "awaited", "neither"]))
    def a_cancelled_job_is_asked_for(self, jid: str, worker: str, how: str) -> None:
        """Chance alone seldom asks for one that is gone."""
        if how == "ran":
            self.do("pop", worker, 4, 0, tuple(QUEUES))
        elif how == "awaited":
            self.do("outcome", jid)
        self.do("cancel", (jid,))
        self.do("outcome", jid)

    @rule(jid=jids)
    def wait_for(self, jid: str) -> None:
        self.do("outcome", jid)
