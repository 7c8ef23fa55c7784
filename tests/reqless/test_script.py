"""The script that the store runs anew for every call binds only what the call uses."""

from pathlib import Path

import pytest
from two_doors import Connection, Door

from holdfast.core.builder import script
from holdfast.core.script import missed
from holdfast.testing import ScratchStore

DOOR = "doors.reqless"
CALLS = {
    "queue.put": ("queue.put", 2, "w", "q", "j", "klass", '{"a":1}', 0),
    "queue.pop": ("queue.pop", 3, "q", "w", 1),
    "job.heartbeat": ("job.heartbeat", 3, "j", "w"),
    "job.get": ("job.get", 3, "j"),
    "job.complete": ("job.complete", 4, "j", "w", "q", '{"a":1}'),
}
LIFE = [("queue.put", 1, "w", "q", "first", "klass", "1", 0), ("queue.pop", 1, "q", "w", 1),
        ("job.complete", 1, "first", "w", "q", "1")]  # fmt: skip


def names_missed(path: Path) -> dict[str, list[str]]:
    """For each usual call, what it had to bind by itself: its own cell, and what its group lacks."""
    text, names = missed(DOOR)
    connection = Connection(path)
    connection.ask("SELECT", 3)
    connection.ask("FLUSHDB")
    sha = connection.ask("SCRIPT", "LOAD", text)
    found: dict[str, list[str]] = {}
    for words in LIFE:
        connection.ask("EVALSHA", sha, 0, *words)
    for command, words in CALLS.items():
        connection.ask("DEL", "missed")
        connection.ask("EVALSHA", sha, 0, *words)
        found[command] = [names[int(number) - 1] for number in connection.ask("LRANGE", "missed", 0, -1)]
    connection.close()
    return found


@pytest.mark.parametrize("command", CALLS)
def test_a_usual_call_binds_its_names_together(command: str, store: ScratchStore) -> None:
    """A name that appears here is missing in core/usual.py."""
    found = names_missed(store.socket_path)[command]
    assert [name for name in found if not name.endswith(f":M.{command}")] == []


def test_a_script_leaves_out_what_its_door_never_uses() -> None:
    text = script(DOOR)
    assert "BLPOP" not in text
    assert "register_function" not in text
    assert "hf:{" not in text.replace("ql:hf:", "")


def test_a_script_says_which_command_it_does_not_know(door: Door) -> None:
    assert "user_script:" in str(door.connection.ask("EVALSHA", door.sha, 0, "queue.fly", 1))
