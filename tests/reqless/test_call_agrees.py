"""`client(command, …)` answers on a native root as the script answers on the shared one, at the same time."""

import json
from typing import Any

import pytest
from two_doors import RAW, Door, Refused

from holdfast.commands.call import Call
from holdfast.errors import Refused as No
from holdfast.testing.clock import StoppedClock

PUT = ("queue.put", "w", "q")
LIVES: dict[str, list[tuple[Any, ...]]] = {
    "a plain life": [
        (*PUT, "j", "k", '{"a":[1,"x"]}', 0), ("queue.peek", "q", 0, 5), ("job.get", "j"), 3, ("queue.pop", "q", "w", 5),
        1, ("job.heartbeat", "j", "w"), ("job.get", "j"), 2, ("job.complete", "j", "w", "q", '{"b":2}'), ("job.get", "j"),
        ("jobs.completed",), ("queue.counts", "q"), ("queues.names",), ("queues.counts",), ("queue.length", "q"),
    ],
    "order and options": [
        (*PUT, "low", "k", "1", 0, "priority", -3), 1, (*PUT, "high", "k", "2", 0, "priority", 4), 1,
        (*PUT, "later", "k", "3", 60, "retries", 2), (*PUT, "also", "k", "4", 0), ("job.setPriority", "also", 4),
        ("queue.peek", "q", 0, 10), ("queue.jobsByState", "scheduled", "q"), 60, ("queue.counts", "q"),
        ("queue.pop", "q", "w", 10), ("job.getMulti", "low", "nobody", "later"), ("queue.jobsByState", "running", "q", 0, -1),
    ],
    "failures": [
        (*PUT, "a", "k", "1", 0), (*PUT, "b", "k", "1", 0), ("queue.pop", "q", "w", 2), 5,
        ("job.fail", "a", "w", "broken", "no such file", '{"n":1}'), ("job.fail", "b", "w", "broken", "x"),
        ("job.get", "a"), ("failureGroups.counts",), ("jobs.failedByGroup", "broken"), ("jobs.failedByGroup", "none"),
        ("queue.stats", "q", 1_700_000_000), (*PUT, "a", "k", "1", 0), ("job.get", "a"), ("job.cancel", "b", "nobody"),
        ("failureGroups.counts",),
    ],
    "retries": [
        (*PUT, "j", "k", "1", 0, "retries", 1), ("queue.pop", "q", "w", 1), 1, ("job.retry", "j", "q", "w", 30, "g", "m"),
        ("queue.jobsByState", "scheduled", "q"), ("job.get", "j"), 30, ("queue.pop", "q", "w", 1), ("job.retry", "j", "q", "w"),
        ("job.get", "j"), ("jobs.failedByGroup", "failed-retries-q"),
    ],
    "lost leases": [
        (*PUT, "j", "k", "1", 0, "retries", 1), ("queue.pop", "q", "w", 1), 60, ("queue.counts", "q"), ("queue.pop", "q", "v", 1),
        10, ("queue.pop", "q", "v", 1), ("job.complete", "j", "w", "q", "{}"), ("job.timeout", "j"), ("job.get", "j"),
        ("queue.pop", "q", "v", 1),
    ],
    "throttles": [
        ("throttle.set", "db", 1), ("throttle.get", "db"), ("throttle.get", "none"), ("queue.throttle.set", "q", 2),
        ("queue.throttle.get", "q"), (*PUT, "a", "k", "1", 0, "throttles", '["db"]'), 1, (*PUT, "b", "k", "1", 0, "throttles", '["db"]'),
        ("queue.pop", "q", "w", 2), ("throttle.locks", "db"), ("throttle.pending", "db"), ("queue.jobsByState", "throttled", "q"),
        1, ("job.complete", "a", "w", "q", "1"), ("throttle.pending", "db"), ("queue.pop", "q", "w", 2), ("throttle.locks", "ql:q:q"),
        ("throttle.set", "db", 3, 100), ("throttle.delete", "db"), ("throttle.get", "db"),
    ],
    "settings, pauses and marks": [
        ("config.get", "heartbeat"), ("config.set", "heartbeat", 7), ("config.get", "heartbeat"), ("config.get", "none"),
        (*PUT, "j", "k", "1", 0), ("job.track", "j"), ("job.track", "j"), ("job.get", "j"), ("queue.pause", "q"),
        ("queue.pop", "q", "w", 1), ("queue.counts", "q"), ("queue.unpause", "q"), ("queue.pop", "q", "w", 1), ("job.untrack", "j"),
        ("config.unset", "heartbeat"),
    ],
    "refusals": [
        ("queue.fly",), (*PUT, "j", "k", "1", 0), ("job.complete", "j", "w", "q", "1"), ("job.complete", "none", "w", "q", "1"),
        ("job.complete", "j", "w"), ("queue.pop", "q", "w", 1), ("job.complete", "j", "other", "q", "1"),
        ("job.complete", "j", "w", "elsewhere", "1"), ("job.fail", "j", "w", "g"), ("job.heartbeat", "j", "other"),
        (*PUT, "x", "k", "false", 0), (*PUT, "x", "k", "1"), (*PUT, "x", "k", "1", 0, "priority"), ("job.requeue", "w", "q", "x", "k", "1", 0),
        ("queue.jobsByState", "odd", "q"), ("job.track", "none"), ("job.timeout", "none"),
    ],
}  # fmt: skip


def said(command: str, reply: Any) -> Any:
    """A reply as what it means. The two have applications of their own names."""
    return json.loads(reply) if isinstance(reply, str) and command not in RAW else reply


def native(clock: StoppedClock, words: tuple[Any, ...]) -> Any:
    try:
        return clock.core(Call(words[0], [str(word) for word in words[1:]]))
    except No as refused:
        return Refused(str(refused))


@pytest.mark.parametrize("life", LIVES)
def test_a_call_answers_as_the_script_does(life: str, door: Door, clock: StoppedClock) -> None:
    for step in LIVES[life]:
        if isinstance(step, (int, float)):
            clock.advance(seconds=step)
            continue
        theirs = door.raw(step[0], repr(clock.now), *step[1:])
        assert said(step[0], native(clock, step)) == said(step[0], theirs), step
