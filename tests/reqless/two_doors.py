"""Two cores behind one protocol: a call, its reply, and the messages it published."""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import hiredis

MARK = "-- end of call --"
"""The channel of messages of our own: what was published before one belongs to the call."""
RAW = {"queue.put", "queue.recurAtInterval", "job.requeue", "job.complete", "job.completeAndRequeue", "job.fail",
       "config.get"}  # fmt: skip
"""Commands whose bulk reply is a plain text; any other bulk reply is JSON."""
PLACE = re.compile(r"^.*?user_script:\d+: *| *script: (?:[0-9a-f]+,)? ?on .*$", re.DOTALL)
CONTENTS = """
local found = {}
for _, key in ipairs(redis.call("KEYS", "*")) do
  local kind, value = redis.call("TYPE", key).ok, nil
  if key ~= "ql:hf:" and key ~= "ql:config" and redis.call("PTTL", key) == -1 then
    if kind == "string" then value = { redis.call("GET", key) }
    elseif kind == "list" then value = redis.call("LRANGE", key, 0, -1)
    elseif kind == "set" then value = redis.call("SMEMBERS", key)
    elseif kind == "zset" then value = redis.call("ZRANGE", key, 0, -1, "WITHSCORES")
    elseif kind == "hash" then value = redis.call("HGETALL", key) end
    if kind == "set" or kind == "hash" then table.sort(value) end
    found[#found + 1] = { key, redis.sha1hex(cmsgpack.pack(value)) }
  end
end
return found
"""
"""Every lasting key with what it holds, but for the root and its guard: the first call of all makes them."""


@dataclass(frozen=True)
class Refused:
    """An error reply, without the place in the script that the store adds."""

    text: str


class Connection:
    """A socket that speaks the store's protocol, and nothing more."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(str(path))
        self._reader = hiredis.Reader(encoding="utf-8")

    def send(self, *words: object) -> None:
        self.send_packed(hiredis.pack_command(tuple(str(word) for word in words)))

    def send_packed(self, packed: bytes) -> None:
        self._socket.sendall(packed)

    def read(self) -> Any:
        while True:
            reply = self._reader.gets()
            if reply is not False:
                return reply
            self._reader.feed(self._socket.recv(1 << 16))

    def ask(self, *words: object) -> Any:
        self.send(*words)
        return self.read()

    def close(self) -> None:
        self._socket.close()


class Door:
    """One script in one database."""

    def __init__(self, path: Path, text: str, database: int) -> None:
        self.connection = Connection(path)
        self.connection.ask("SELECT", database)
        self.sha = self.connection.ask("SCRIPT", "LOAD", text)
        self._listener = Connection(path)
        self._listener.ask("PSUBSCRIBE", "*")

    def raw(self, *words: object) -> Any:
        """The reply as it came over the wire, errors as values."""
        reply = self.connection.ask("EVALSHA", self.sha, 0, *words)
        return Refused(PLACE.sub("", str(reply))) if isinstance(reply, hiredis.ReplyError) else reply

    def call(self, command: str, now: float, *words: object) -> Any:
        """The reply, read as the protocol says: JSON replies as what they mean."""
        reply = self.raw(command, repr(now), *words)
        if isinstance(reply, str) and command not in RAW:
            return json.loads(reply)
        return reply

    def messages(self) -> list[tuple[str, str]]:
        """What was published since the last time, on this server, by anybody."""
        mark = uuid4().hex  # other doors listen to our marks, too
        self.connection.ask("PUBLISH", MARK, mark)
        return list(self._until(mark))

    def _until(self, mark: str) -> Iterator[tuple[str, str]]:
        while True:
            kind, _, channel, text = self._listener.read()
            assert kind == "pmessage"
            if channel == MARK and text == mark:
                return
            if channel != MARK:
                yield channel, text

    def flush(self) -> None:
        self.connection.ask("FLUSHDB")

    def contents(self) -> dict[str, str]:
        """Every lasting key, and what tells two of its values apart."""
        return dict(self.connection.ask("EVAL", CONTENTS, 0))

    def close(self) -> None:
        self.connection.close()
        self._listener.close()
