"""The words of qless: a door that is called by them, and how calls of today are said in them."""

import json
import re
from collections.abc import Callable
from typing import Any

from reference import older_reference_text
from speech import Speech
from two_doors import Door, Refused

RAW = {"put", "requeue", "complete", "fail", "recur", "jobs", "throttle.locks", "throttle.pending"}
"""Commands whose reply is a plain text, or texts one by one; any other bulk reply is JSON, but for a setting."""


class Older(Door):
    """One script of the older names in one database."""

    def call(self, command: str, now: float, *words: object) -> Any:
        reply = self.raw(command, repr(now), *words)
        if isinstance(reply, str) and command not in RAW and not (command == "config.get" and words):
            return json.loads(reply)
        return reply

    def put(
        self, now: float, jid: str, queue: str = "q", delay: float = 0, *more: object, worker: str = "w"
    ) -> Any:
        return self.call("put", now, worker, queue, jid, "klass", "{}", delay, *more)

    def popped(self, now: float, queue: str = "q", worker: str = "w", limit: int = 10) -> list[Any]:
        """(jid, remaining, expires) of what a pop answers."""
        jobs = self.call("pop", now, queue, worker, limit)
        return [(job["jid"], job["remaining"], job["expires"]) for job in jobs]

    def meant(self) -> list[tuple[str, Any]]:
        """The messages since the last time. In which order the reference writes keys depends on its server."""
        return [
            (channel, json.loads(text) if text.startswith("{") else text) for channel, text in self.messages()
        ]

    def states(self, now: float, *jids: str) -> list[str]:
        return [self.call("get", now, jid)["state"] for jid in jids]

    def run(self, *jids: str) -> None:
        """Put at 1, popped by `w` at 2."""
        for jid in jids:
            self.put(1, jid)
        self.popped(2)
        self.messages()


TODAY = {
    "queue.put": ("put",), "job.requeue": ("requeue",), "queue.pop": ("pop",), "queue.peek": ("peek",),
    "job.complete": ("complete",), "job.fail": ("fail",), "job.retry": ("retry",), "job.heartbeat": ("heartbeat",),
    "job.timeout": ("timeout",), "job.cancel": ("cancel",), "job.get": ("get",), "job.getMulti": ("multiget",),
    "job.log": ("log",), "job.setPriority": ("priority",), "job.addTag": ("tag", "add"),
    "job.removeTag": ("tag", "remove"), "jobs.tagged": ("tag", "get"), "tags.top": ("tag", "top"),
    "job.track": ("track", "track"), "job.untrack": ("track", "untrack"), "jobs.tracked": ("track",),
    "failureGroups.counts": ("failed",), "jobs.failedByGroup": ("failed",), "queue.unfail": ("unfail",),
    "jobs.completed": ("jobs", "complete"), "queue.jobsByState": ("jobs",), "queues.counts": ("queues",),
    "queue.counts": ("queues",), "queue.length": ("length",), "queue.stats": ("stats",), "queue.pause": ("pause",),
    "queue.unpause": ("unpause",), "queue.forget": ("queue.forget",), "workers.counts": ("workers",),
    "worker.jobs": ("workers",), "worker.forget": ("worker.deregister",), "recurringJob.cancel": ("unrecur",),
    "recurringJob.get": ("recur.get",), "recurringJob.update": ("recur.update",), "recurringJob.addTag": ("recur.tag",),
    "recurringJob.removeTag": ("recur.untag",), "config.getAll": ("config.get",), "config.set": ("config.set",),
    "config.unset": ("config.unset",), "throttle.set": ("throttle.set",), "throttle.get": ("throttle.get",),
    "throttle.delete": ("throttle.delete",), "throttle.locks": ("throttle.locks",),
    "throttle.pending": ("throttle.pending",), "throttle.release": ("throttle.release",),
    "queue.throttle.get": ("queue.throttle.get",), "queue.throttle.set": ("queue.throttle.set",),
}  # fmt: skip
"""What stands for a command of today, if its words stay as they are."""


LISTS = {
    "queue.pop", "queue.peek", "queues.counts", "queue.counts", "workers.counts", "job.getMulti", "tags.top", "job.addTag",
    "job.removeTag", "recurringJob.addTag",
}  # fmt: skip
"""Commands that answer a list today where an empty one was `{}`."""
VERBS = "does|is|not|has|running|given"
NAMED = re.compile(rf"\(\): Job (?!(?:{VERBS}) ).+? (?=(?:{VERBS}) )")
"""How a refusal begins that names a job."""


class OlderSpeech(Speech):
    """Calls of today in the words of qless, to our door of it and to its reference."""

    door = "doors.qless"
    unspoken = frozenset({"queues.names"})
    text = staticmethod(older_reference_text)

    def words(self, command: str, now: float, words: tuple[object, ...]) -> tuple[object, ...] | None:
        if command in TODAY:
            if command == "queue.unfail" and words[2:] == (0,):
                return None  # the reference lists jobs as failed that it put back
            if command == "queue.peek" and len(words) == 2:
                return None  # a whole call there, which is one without an offset here
            name, *action = TODAY[command]
            return (name, repr(now), *action, *words)
        special = SPECIAL.get(command)
        said = special(words) if special else None
        return said and (said[0], repr(now), *said[1:])

    def meaning(self, command: str, reply: Any) -> Any:
        """Lists as today, empty or not, and a refusal without the name of the job, which ours tells and the reference
        leaves out."""
        if isinstance(reply, Refused):
            return Refused(NAMED.sub("(): Job ", reply.text))
        assert reply != "[]", f"{command} answers an empty list"
        return [] if reply == "{}" and command in LISTS else super().meaning(command, reply)

    def heard(self, command: str, messages: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Only ours tells a last retry to those who track the job, as qless did."""
        return [one for one in messages if command != "job.retry" or one[0] != "ql:failed"]


def _advance(words: tuple[object, ...]) -> tuple[object, ...] | None:
    if words[4:5] == ("next",):
        return None  # the form of some clients of today, which is this one
    return ("complete", *words[:4], *(("next",) if len(words) > 4 else ()), *words[4:])


SPECIAL: dict[str, Callable[[tuple[object, ...]], tuple[object, ...] | None]] = {
    "job.completeAndRequeue": _advance,
    "job.addDependency": lambda words: ("depends", *words[:1], *(("on",) if words else ()), *words[1:]),
    "job.removeDependency": lambda words: ("depends", *words[:1], *(("off",) if words else ()), *words[1:]),
    "queue.recurAtInterval": lambda words: (
        "recur",
        *words[:4],
        *(("interval",) if len(words) > 3 else ()),
        *words[4:],
    ),
    "config.get": lambda words: ("config.get", *words) if words else None,
}
