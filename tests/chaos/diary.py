"""Append-only diaries, one a process: one write a line, so that a killed process leaves at most a torn last line."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any


class Diary:
    """Where one process writes down what it does; a fork opens a file of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._mine = (0, -1)

    def note(self, what: str, **more: Any) -> None:
        pid, file = self._mine
        if pid != os.getpid():
            # Two threads may both come here; then one of them has opened the same file once too often.
            pid = os.getpid()
            name = self._directory / f"diary-{pid}.jsonl"
            file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._mine = (pid, file)
        entry = {"what": what, "pid": pid, "at": monotonic(), **more}
        os.write(file, json.dumps(entry).encode() + b"\n")


def entries(directory: Path, pid: int | None = None) -> Iterator[dict[str, Any]]:
    """What all processes (or one) wrote down, without torn lines."""
    names = directory.glob("diary-*.jsonl") if pid is None else [directory / f"diary-{pid}.jsonl"]
    for name in names:
        if not name.exists():
            continue
        for line in name.read_bytes().split(b"\n"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def under_way(directory: Path, pids: list[int]) -> list[tuple[str, int]]:
    """The (jid, token) that these processes began and did not end."""
    open_now: set[tuple[str, int]] = set()
    for pid in pids:
        for entry in entries(directory, pid):
            if entry["what"] == "begin":
                open_now.add((entry["jid"], entry["token"]))
            elif entry["what"] == "end":
                open_now.discard((entry["jid"], entry["token"]))
    return sorted(open_now)
