"""The words of qless: a door that is called by them."""

import json
from typing import Any

from two_doors import Door

RAW = {"put", "requeue", "complete", "fail", "recur"}
"""Commands whose bulk reply is a plain text; any other bulk reply is JSON, but for a setting."""


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
