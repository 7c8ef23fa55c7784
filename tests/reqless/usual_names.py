"""Writes down which names the usual commands use: `make usual`.

They are run in a real store with a script that has every name in a cell of its own and notes which it fills.
"""

import sys
from pathlib import Path

from two_doors import Connection

from holdfast.core import script as package
from holdfast.core.script import missed
from holdfast.core.script.usual import FILLED
from holdfast.testing import ScratchStore

CALLS = {
    "queue.put": ("w", "q", "j", "klass", '{"a":1}', 0),
    "queue.pop": ("q", "w", 1),
    "job.heartbeat": ("j", "w"),
    "job.get": ("j",),
    "job.complete": ("j", "w", "q", '{"a":1}'),
}
OLDER = {
    "queue.put": "put",
    "queue.pop": "pop",
    "job.heartbeat": "heartbeat",
    "job.get": "get",
    "job.complete": "complete",
}
DOORS = {"doors.reqless": {name: name for name in CALLS}, "doors.qless": OLDER}
LIFE = [
    ("queue.put", "w", "q", "first", "klass", "1", 0),
    ("queue.pop", "q", "w", 1),
    ("job.complete", "first", "w", "q", "1"),
]
FILE = Path(package.__file__).with_name("usual.py")
TEXT = '''"""The cells that the commands which every job needs fill before they miss them. Written by `make usual`."""

FILLED = frozenset(
    {{
{filled}    }}
)
'''


def names_missed(path: Path, door: str, filled: frozenset[str] = FILLED) -> dict[str, list[str]]:
    """For each usual call of a queue that had jobs before, which cells it filled because they were missed."""
    text, names = missed(door, filled)
    connection = Connection(path)
    connection.ask("SELECT", 3)
    connection.ask("FLUSHDB")
    sha = connection.ask("SCRIPT", "LOAD", text)
    found: dict[str, list[str]] = {}
    connection.ask(
        "EVALSHA", sha, 0, "config.set", 1, "jobs-history-count", 1
    )  # a completion drops another job
    for command, *words in LIFE:
        connection.ask("EVALSHA", sha, 0, DOORS[door][str(command)], 1, *words)
    for command, words in CALLS.items():
        connection.ask("DEL", "missed")
        connection.ask("EVALSHA", sha, 0, DOORS[door][command], 2, *words)
        found[command] = [names[int(number) - 1] for number in connection.ask("LRANGE", "missed", 0, -1)]
    connection.close()
    return found


def all_missed(path: Path) -> frozenset[str]:
    found = [names_missed(path, door, frozenset()).values() for door in DOORS]
    return frozenset(name for door in found for names in door for name in names)


def rows(names: frozenset[str]) -> str:
    return "".join(f'        "{name}",\n' for name in sorted(names))


def main() -> None:
    with ScratchStore("valkey") as store:
        filled = all_missed(store.socket_path)
    FILE.write_text(TEXT.format(filled=rows(filled)), encoding="utf-8")
    print(f"{len(filled)} names in {FILE}")


if __name__ == "__main__":
    sys.exit(main())
