"""Each verb of the machine in both tongues: the words the core is sent, and how its reply reads like the model's."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.commands.leases import FOUND, WILL_NOT_WAIT
from holdfast.models import JobFacts
from native_door import Door, StoreMessage, rows

Call = tuple[str, tuple[Any, ...]]
"""A method of the model and its arguments."""


def flat(groups: Sequence[Sequence[Any]]) -> list[Any]:
    return [word for group in groups for word in group]


def wished(job: Any) -> list[Any]:
    """One job of `put_x`, as words."""
    jid, klass, data, options = job
    return [jid, klass, data, len(options), *flat(options)]


def word(code: bytes) -> str:
    return code.decode().partition(" ")[0]


def row(facts: JobFacts) -> tuple[Any, ...]:
    return (
        *(facts.jid, facts.klass, facts.queue, facts.data, facts.token, facts.expires_ms, facts.priority),
        *(facts.attempts, facts.retries, facts.remaining, facts.losses, facts.created_ms, facts.queued_ms),
        *(facts.tags, dict(facts.options), facts.spawned_from, failure_of(facts)),
    )  # fmt: skip


def mode_of(worker: str) -> int:
    """How a worker pops: one of the two is a worker of many queues, which keeps the index in order."""
    return FOUND if worker == "v" else WILL_NOT_WAIT


def failure_of(facts: JobFacts) -> tuple[str, str, int, str] | None:
    failure = facts.failure
    return (failure.group, failure.message, failure.when_ms, failure.worker) if failure else None


class Core:
    """The core under the model's calls. `due` is what the last pop said of the time until something is due."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.due = -1

    def call(self, call: Call) -> Any:
        """Answer as the model would. A refused call answers its code word."""
        name, args = call
        try:
            return getattr(self, name)(*args)
        except StoreMessage as said:
            # Only a refusal is an answer; anything else is a defect and says so in full.
            return said.code if said.code.startswith("HF_") else str(said)

    def once(self, line: str, number: int, verb: str, *args: Any) -> Any:
        return getattr(self, verb)(*args, line=line, number=number)

    def clock(self, now: int) -> None:
        self.door("clock", now)

    def put(
        self,
        mode: str,
        queue: str,
        priority: int,
        retries: int,
        delay: int,
        jobs: Any,
        line: str = "",
        number: int = 0,
    ) -> Any:
        reply = self.door("put", line, number, mode, queue, priority, retries, delay, *flat(jobs))
        return reply[0], {reply[i]: word(reply[i + 1]) for i in range(1, len(reply), 2)}

    def put_x(
        self,
        mode: str,
        queue: str,
        priority: int,
        retries: int,
        delay: int,
        jobs: Any,
        line: str = "",
        number: int = 0,
    ) -> Any:
        words = [word for job in jobs for word in wished(job)]
        reply = self.door("put_x", line, number, mode, queue, priority, retries, delay, *words)
        return reply[0], {reply[i]: word(reply[i + 1]) for i in range(1, len(reply), 2)}

    def move(
        self,
        queue: str,
        delay: int,
        jid: str,
        data: bytes,
        priority: int | None,
        klass: str = "",
        retries: int | None = None,
        options: Any = (),
        line: str = "",
        number: int = 0,
    ) -> Any:
        words = (line, number, queue, delay, jid, data, "" if priority is None else priority)
        more = (klass, "" if retries is None else retries, len(options), *flat(options))
        return self.door("move", *words, *more).decode()

    def cancel(self, jids: tuple[str, ...], line: str = "", number: int = 0) -> Any:
        return self.door("cancel", line, number, *jids)

    def pop(
        self, worker: str, n: int, lease: int, queues: tuple[str, ...], line: str = "", number: int = 0
    ) -> Any:
        modes = flat([(name, mode_of(worker)) for name in queues])
        reply = self.door("pop", worker, line, number, n, lease, *modes)
        self.due = reply[0]
        return [row(facts) for facts in rows(reply, worker)]

    def pop_once(self, line: str, number: int, worker: str, *args: Any) -> Any:
        return self.pop(worker, *args, line=line, number=number)

    def complete(self, worker: str, done: Any) -> Any:
        return self.settled(self.door("complete", worker, *flat(done)))

    def complete_pop(
        self, worker: str, n: int, lease: int, queues: Any, done: Any, line: str = "", number: int = 0
    ) -> Any:
        pairs = flat([(name, mode_of(worker)) for name in queues])
        words = (worker, line, number, n, lease, len(queues), *pairs, *flat(done))
        reply = self.door("complete_pop", *words)
        at = 1 + 2 * reply[0]
        self.due = reply[at]
        _, codes = self.settled(reply[:at])
        return codes, [row(facts) for facts in rows(reply, worker, at)]

    def complete_pop_once(self, line: str, number: int, *args: Any) -> Any:
        return self.complete_pop(*args, line=line, number=number)

    def advance(self, worker: str, queue: str, delay: int, held: Any) -> Any:
        return self.settled(self.door("advance", worker, queue, delay, *flat(held)))

    def fail(self, worker: str, group: str, message: str, held: Any) -> Any:
        return self.settled(self.door("fail", worker, group, message, *flat(held)))

    @staticmethod
    def settled(reply: Any) -> Any:
        """(how many, [(jid, code)])."""
        return reply[0], [(reply[i].decode(), word(reply[i + 1])) for i in range(1, len(reply), 2)]

    def retry(self, worker: str, delay: int, group: str, message: str, held: Any) -> Any:
        reply = self.door("retry", worker, delay, group, message, *flat(held))
        return [word(answer) if isinstance(answer, bytes) else answer for answer in reply]

    def heartbeat(self, lease: int, held: Any) -> Any:
        return self.door("heartbeat", lease, *flat(held))

    def expire(self, held: Any) -> Any:
        return self.door("expire", *flat(held))

    def release(self, how: str, cause: str, held: Any) -> Any:
        return self.door("release", "", 0, how, cause, "", *flat(held))

    def timeout(self, jids: tuple[str, ...], line: str = "", number: int = 0) -> Any:
        return self.door("timeout", line, number, *jids)

    def priority(self, priority: int, jids: tuple[str, ...]) -> Any:
        return self.door("priority", priority, *jids)

    def pause(self, on: bool, length: int, queues: tuple[str, ...]) -> Any:
        return self.door("pause", "", 0, int(on), "me", "because", length, *queues)

    def queue_forget(self, queues: tuple[str, ...], line: str = "", number: int = 0) -> Any:
        return self.door("queue_forget", line, number, *queues)

    def throttle_set(self, queue: str, limit: int) -> Any:
        return self.door("throttle_set", "", 0, f"ql:q:{queue}", limit, 0)

    def config_set(self, key: str, value: str) -> Any:
        return self.door("config_set", key, value)

    def sweep(self) -> Any:
        return self.door("sweep", "", 0)

    def outcome(self, jid: str) -> Any:
        status, payload = self.door("await", jid)
        if status == b"failed":
            failure = JobFacts.from_job_row(self.door.look("job_get", jid)[0]).failure
            assert failure is not None
            assert failure.group.encode() in payload
            return "failed", (failure.group, failure.message)
        if status == b"gone" and payload is not None:
            return "gone", tuple(msgspec.msgpack.decode(payload))
        return status.decode(), payload
