"""`client(command, …)` answers on a native root as the script answers on the shared one, at the same time."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from two_doors import RAW, Door, Refused

import holdfast
from holdfast.commands.admin import ConfigSet
from holdfast.commands.base import LOOKS, Call
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
    "templates": [
        ("queue.recurAtInterval", "q", "r", "k", '{"a":1}', 60, 0, "priority", 3, "retries", 2, "throttles", '["t"]'),
        ("recurringJob.get", "r"), ("queue.jobsByState", "recurring", "q"), 121, ("queue.counts", "q"), ("queue.pop", "q", "w", 10),
        ("recurringJob.get", "r"), ("recurringJob.update", "r", "interval", 30, "priority", 1, "klass", "L", "data", "[1]", "backlog", 2),
        ("recurringJob.get", "r"), ("recurringJob.update", "r", "tags", "[]"), ("recurringJob.update", "r", "interval", 0),
        ("recurringJob.update", "none", "interval", 10), ("recurringJob.addTag", "r", "a", "b"), ("recurringJob.removeTag", "r", "a"),
        ("recurringJob.removeTag", "r", "b"), ("recurringJob.update", "r", "queue", "p"), ("recurringJob.get", "r"), ("queues.names",),
        ("recurringJob.update", "r", "throttles", '["x"]'), ("recurringJob.get", "r"), 61, ("queue.peek", "p", 0, 10),
        ("recurringJob.cancel", "r"), ("recurringJob.cancel", "r"), ("recurringJob.get", "r"),
        ("queue.recurAtInterval", "q", "x", "k", "{}", 0, 0), ("queue.recurAtInterval", "q", "x", "k", "{}", 5),
        ("queue.recurAtInterval", "q", "x", "k", "{}", 1.5, 0.25), 2, ("queue.peek", "q", 0, 9), ("recurringJob.get", "x"),
    ],
    "workers": [
        *[(*PUT, f"j{n}", "k", "1", 0) for n in range(4)], ("queue.pop", "q", "w", 2), 1, ("queue.pop", "q", "v", 1), 1,
        ("queue.pop", "q", "v", 1), ("queue.pop", "empty", "idle", 1), ("workers.counts",), ("worker.jobs", "w"), ("worker.jobs", "v"),
        ("worker.jobs", "nobody"), ("worker.jobs",), 58, ("workers.counts",), 5, ("worker.jobs", "v"), ("worker.forget", "w", "none"),
        ("workers.counts",), ("worker.forget",), 86_400, ("workers.counts",), ("worker.jobs",),
    ],
    "patterns": [
        ("queueIdentifierPatterns.getAll",), ("queueIdentifierPatterns.setAll", "a", '["x"]'), ("queueIdentifierPatterns.getAll",),
        ("queueIdentifierPatterns.setAll", "a"), ("queueIdentifierPatterns.setAll",), ("queueIdentifierPatterns.getAll",),
        ("queuePriorityPatterns.getAll",), ("queuePriorityPatterns.setAll", '{"fairly":true,"pattern":["a"]}'),
        ("queuePriorityPatterns.getAll",), ("queuePriorityPatterns.setAll", "7"), ("queuePriorityPatterns.setAll",),
        ("queuePriorityPatterns.getAll",),
    ],
    "back to work": [
        *[(*PUT, f"j{n}", "k", "1", 0) for n in range(3)], ("queue.pop", "q", "w", 3), 1, ("job.fail", "j0", "w", "g", "m"), 1,
        ("job.fail", "j1", "w", "g", "m"), 1, ("job.fail", "j2", "w", "g", "m"), ("queue.unfail", "again", "g", 2),
        ("failureGroups.counts",), ("queue.peek", "again", 0, 5), ("queue.unfail", "again", "g"), ("queue.unfail", "again", "g", 0),
        ("queue.unfail", "again"), ("queue.unfail", "again", "none"), ("queues.names",), ("queue.forget", "q", "none"),
        ("queues.names",), ("queue.forget",),
    ],
    "going on": [
        *[(*PUT, f"j{n}", "k", "1", 0) for n in range(4)], (*PUT, "after", "k", "1", 0, "depends", '["j0"]'), 2,
        ("queue.pop", "q", "w", 4), 1, ("job.completeAndRequeue", "j0", "w", "q", "[2]", "next"), ("job.get", "j0"),
        ("job.completeAndRequeue", "j1", "w", "q", "[2]", "later", "delay", 10), ("job.get", "j1"),
        ("job.completeAndRequeue", "j2", "w", "q", "[2]", "next", "named", "delay", 0, "depends", '["j0","gone"]'), ("job.get", "j2"),
        ("job.completeAndRequeue", "j3", "w", "q", "[2]"), ("job.get", "j3"), ("job.get", "after"), ("queues.names",),
        ("job.completeAndRequeue", "j3", "w", "q", "[2]", "later"), ("job.completeAndRequeue", "j0", "w", "next", "1", "x", "delay", "y"),
        ("queue.pop", "next", "w", 1), ("job.complete", "j0", "w", "next", "1"), ("job.get", "after"), ("job.get", "j2"),
    ],
    "dependencies": [
        (*PUT, "a", "k", "1", 0), (*PUT, "b", "k", "1", 0), (*PUT, "c", "k", "1", 30, "depends", '["a","none"]'), ("job.get", "c"),
        ("job.get", "a"), ("queue.jobsByState", "depends", "q"), ("job.addDependency", "c", "b"), ("job.cancel", "a"), 1,
        ("job.removeDependency", "c", "a"), ("job.get", "c"), ("job.addDependency", "b", "a"), ("job.addDependency", "c", "c"),
        ("job.removeDependency", "c", "all"), ("job.get", "c"), ("job.removeDependency", "c", "all"), (*PUT, "c", "k", "1", 0, "depends", '["a"]'),
        ("job.addDependency", "none", "a"), ("job.cancel", "c", "a"), ("queue.peek", "q", 0, 5), (*PUT, "s", "k", "1", 0, "depends", '["s"]'),
    ],
    "tags": [
        (*PUT, "a", "k", "1", 0, "tags", '["red",7]'), 1, (*PUT, "b", "k", "1", 0), ("job.get", "a"), ("job.addTag", "b", "red", "blue", "red"),
        ("jobs.tagged", "red"), ("jobs.tagged", "7"), ("tags.top",), ("job.removeTag", "a", "red", "none"), ("tags.top",), ("job.removeTag", "b", "red", "blue"),
        ("jobs.tagged", "red"), ("job.addTag", "none", "x"), ("job.addTag",), ("job.get", "b"), ("jobs.tagged",),
    ],
    "lines and marks": [
        (*PUT, "a", "k", "1", 0), ("job.log", "a", "halfway", '{"rows":7,"when":1}'), 1, ("job.log", "a", "later"), ("job.get", "a"),
        ("job.log", "none", "x"), ("job.log", "a"), ("job.log", "a", "x", "7"), ("job.track", "a"), ("jobs.tracked",), ("job.cancel", "a"),
        ("jobs.tracked",), ("job.untrack", "a"), ("jobs.tracked",),
    ],
    "odd ends": [
        ("config.set", "max-job-history", 3), (*PUT, "j", "k", "1", 0), 1, (*PUT, "j", "k", "2", 0), 1, (*PUT, "j", "k", "3", 0), 1,
        (*PUT, "j", "k", "[]", 0), ("job.get", "j"), ("queue.pop", "q", "w", 1), ("job.heartbeat", "j", "w", '{"n":12345678901234567890}'),
        ("job.get", "j"), ("config.set", "jobs-history", -1), ("job.complete", "j", "w", "q", "{}"), ("job.get", "j"), ("job.cancel",),
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
    """A reply as what it means. The two have applications of their own names, and the script lists queues of one moment by name."""
    meant = json.loads(reply) if isinstance(reply, str) and command not in RAW else reply
    if command == "queues.names":
        return sorted(meant)
    return sorted(meant, key=lambda queue: queue["name"]) if command == "queues.counts" else meant


OLDER_SETTINGS = {"heartbeat": "60", "grace-period": "10"}
"""What the script begins with; a native root has shorter ones."""


def native(clock: StoppedClock, words: tuple[Any, ...]) -> Any:
    try:
        return clock.core(Call(words[0], [str(word) for word in words[1:]]))
    except No as refused:
        return Refused(str(refused))


@pytest.mark.full
@pytest.mark.parametrize("life", LIVES)
def test_a_call_answers_as_the_script_does(life: str, door: Door, clock: StoppedClock) -> None:
    for name, seconds in OLDER_SETTINGS.items():
        clock.core(ConfigSet(name, seconds))
    for step in LIVES[life]:
        if isinstance(step, (int, float)):
            clock.advance(seconds=step)
            continue
        theirs = door.raw(step[0], repr(clock.now), *step[1:])
        assert said(step[0], native(clock, step)) == said(step[0], theirs), step


LUA = Path(holdfast.__file__).parent / "core" / "lua" / "doors"


def test_every_command_says_what_its_arguments_are_or_only_looks() -> None:
    """So that native limits hold for all that changes something, and a repeat of it is known as one."""
    texts = [path.read_text() for path in (LUA / "protocol").glob("*.lua")]
    known = {name for text in texts for name in re.findall(r'^M\["([\w.]+)"\] = ', text, re.M)}
    said = set(re.findall(r'\["([\w.]+)"\] = (?:"|PUT)', (LUA / "native_limits.lua").read_text()))
    assert known - LOOKS <= said
