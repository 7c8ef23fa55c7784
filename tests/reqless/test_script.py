"""The script that the store runs anew for every call binds only what the call uses."""

import re

import pytest
from two_doors import Door
from usual_names import CALLS, DOORS, names_missed

from holdfast.core.builder import script
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
