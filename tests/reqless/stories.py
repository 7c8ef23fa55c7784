"""Helpers of the stories: shorter words for what every one of them says."""

from typing import Any

from two_doors import Door, Refused


def put(
    door: Door, now: float, jid: str, queue: str = "q", delay: float = 0, *more: object, worker: str = "w"
) -> Any:
    return door.call("queue.put", now, worker, queue, jid, "klass", "{}", delay, *more)


def popped(door: Door, now: float, queue: str = "q", worker: str = "w", limit: int = 10) -> list[Any]:
    """(jid, remaining, expires) of what a pop answers."""
    jobs = door.call("queue.pop", now, queue, worker, limit)
    return [(job["jid"], job["remaining"], job["expires"]) for job in jobs]


def peeked(door: Door, now: float, queue: str = "q") -> list[str]:
    return [job["jid"] for job in door.call("queue.peek", now, queue, 0, 100)]


def refusal(reply: object) -> str:
    assert isinstance(reply, Refused)
    return reply.text


def history(job: dict[str, Any]) -> list[tuple[str, int]]:
    return [(line["what"], line["when"]) for line in job["history"]]


def recur(
    door: Door, now: float, jid: str, interval: float, offset: float = 0, *more: object, queue: str = "q"
) -> Any:
    return door.call("queue.recurAtInterval", now, queue, jid, "klass", "{}", interval, offset, *more)


def fail(door: Door, now: float, jid: str, group: str = "g", queue: str = "q", worker: str = "w") -> None:
    """Puts a job, pops it and lets it fail, in one moment."""
    put(door, now, jid, queue)
    assert popped(door, now, queue, worker, 1)[0][0] == jid
    assert door.call("job.fail", now, jid, worker, group, "mess") == jid
