"""The script that the store runs anew for every call binds only what the call uses."""

import re
import subprocess
import sys

import pytest
from two_doors import Connection, Door
from usual_names import CALLS, DOORS, names_missed

from holdfast.core.script import missed, script
from holdfast.testing import ScratchStore

DOOR = "doors.reqless"


@pytest.mark.parametrize("spoken", DOORS)
@pytest.mark.parametrize("command", CALLS)
def test_a_usual_command_fills_no_cell_by_a_miss(command: str, spoken: str, store: ScratchStore) -> None:
    """A name that appears here is missing in core/script/usual.py, which `make usual` writes."""
    assert names_missed(store.socket_path, spoken)[command] == []


@pytest.mark.parametrize("spoken", DOORS)
def test_a_script_asks_the_keys_it_makes_for_nothing_that_they_lack(spoken: str) -> None:
    """What is fixed is written where it is used: a name that appears here is not in keys.FIXED, or was passed on."""
    assert re.findall(r"\.keys\b(?!\.by_queue|\.queue_count| = ).*", script(spoken)) == []


def test_a_script_leaves_out_what_its_door_never_uses() -> None:
    text = script(DOOR)
    assert "BLPOP" not in text
    assert "register_function" not in text
    assert "hf:{" not in text.replace("ql:hf:", "")


def test_a_script_says_which_command_it_does_not_know(door: Door) -> None:
    assert "user_script:" in str(door.connection.ask("EVALSHA", door.sha, 0, "queue.fly", 1))


LIFE: tuple[tuple[object, ...], ...] = (
    ("throttle.set", 1, "t", 1),
    ("queue.put", 2, "w", "q", "plain", "k", "{}", 0),
    ("queue.put", 3, "w", "q", "long", "k", '"' + 600 * "x" + '"', 0, "priority", -2.5, "retries", 2),
    ("queue.put", 4, "w", "q", "late", "k", "1", 30, "tags", '["a"]'),
    ("queue.put", 5, "w", "q", "bound", "k", "1", 0, "throttles", '["t"]'),
    ("queue.put", 6, "w", "q", "stopped", "k", "1", 0, "throttles", '["t"]', "depends", '["plain"]'),
    ("queue.put", 7, "w", "q", "wrong", "k", "{", 0),
    ("queue.pop", 8, "q", "w", 2.5),
    ("queue.pop", 9, "q", "w", 3),
    ("queue.put", 10, "w", "q", "aside", "k", "1", 0, "throttles", '["t"]'),
    ("job.heartbeat", 11, "long", "other"),
    ("job.heartbeat", 12, "long", "w", "[1]"),
    ("job.complete", 13, "plain", "w", "elsewhere", "{}"),
    ("job.complete", 14, "plain", "w", "q", "{}"),
    ("job.complete", 15, "bound", "w", "q", '{"done":1}'),
    ("queue.put", 16, "w", "r", "long", "k", "2", 0),
    ("queue.pop", 40, "q", "w", 9),
    ("queue.pop", 41, "r", "w", 9),
    ("job.complete", 42, "long", "w", "r", "2"),
    *(("job.get", 43, jid) for jid in ("plain", "long", "late", "bound", "stopped", "aside", "none")),
    ("queue.stats", 44, "q", 44),
    ("queues.counts", 45),
)


def test_a_command_that_fills_its_cells_first_does_what_it_does_without(store: ScratchStore) -> None:
    connection = Connection(store.socket_path)
    connection.ask("SELECT", 3)
    said: list[list[str]] = []
    for text in (script(DOOR), missed(DOOR, frozenset())[0]):
        connection.ask("FLUSHDB")
        sha = connection.ask("SCRIPT", "LOAD", text)
        replies = [connection.ask("EVALSHA", sha, 0, *words) for words in LIFE]
        said.append([re.sub(r"user_script:\d+|script: \w+.*|f_\w+", "", str(reply)) for reply in replies])
    connection.close()
    assert said[0] == said[1]
    assert sum("state" in reply for reply in said[0]) >= 8


def test_a_client_of_ours_does_not_load_what_makes_scripts() -> None:
    asked = (
        "import sys, holdfast.core.library as l; l.library(); print('holdfast.core.script' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout == "False\n"
