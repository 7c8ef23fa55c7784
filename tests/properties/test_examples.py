"""Short histories in which core and model once differed, by name: each of them stays a test."""

from typing import Any

import pytest
from compare import compare
from machine import JIDS, QUEUES
from rules_always import CoreAndModel

from holdfast.client.sync import Client
from holdfast.core.library import library
from holdfast.testing.store import ScratchStore
from native_door import Door

PUT = ("new", "q", 0, 1, 0)
HISTORIES: dict[str, list[tuple[str, tuple[Any, ...]]]] = {
    "a job without tags gets one in the same wish": [
        ("put_x", (*PUT, (("a", "k", b"{}", (("untagged", ""), ("tag", "red"))),))),
    ],
    "a completed job that is not kept leaves the index of its tags": [
        ("config_set", ("jobs-history-count", "0")),
        ("put_x", (*PUT, (("a", "k", b"{}", (("tag", "red"),)),))),
        ("pop", ("w", 1, 0, ("q",))),
        ("complete", ("w", (("a", 1_700_000_000_000, b"", 0, b""),))),
    ],
    "a job that is moved goes on waiting for others": [
        ("put_x", (*PUT, (("a", "k", b"{}", ()), ("b", "k", b"{}", (("depends", "a"),))))),
        ("move", ("r", 5_000, "b", b"", None)),
    ],
    "a job that is moved into a full queue is set aside": [
        ("throttle_set", ("r", 1)),
        ("put", ("new", "r", 0, 1, 0, (("a", "k", b"{}"),))),
        ("pop", ("w", 1, 0, ("r",))),
        ("put", (*PUT, (("b", "k", b"{}"),))),
        ("move", ("r", 0, "b", b"", None)),
    ],
    "a job that was set aside and is put again is set aside anew": [
        ("throttle_set", ("r", 1)),
        ("put", ("new", "r", 0, 1, 0, (("a", "k", b"{}"),))),
        ("pop", ("w", 1, 0, ("r",))),
        ("put", ("new", "r", 0, 1, 0, (("b", "k", b"{}"),))),
        ("put", ("move", "r", 0, 1, 0, (("b", "k", b"{}"),))),
    ],
    "a pause that is over is none": [
        ("pause", (True, 3_000, ("q", "r"))),
        ("clock", (1_700_000_003_000,)),
        ("pause", (False, 0, ("q",))),
        ("pause", (True, 0, ("r",))),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", HISTORIES)
def test_core_and_model_agree_after(name: str) -> None:
    with ScratchStore() as store, Client(store.url, namespace="test-examples") as client:
        door = Door(client)
        door.ask("FUNCTION", "LOAD", library().text)
        made: Any = type("Machine", (CoreAndModel,), {"door": door})
        machine = made()
        machine.begin()
        for call in HISTORIES[name]:
            machine.do(call[0], *call[1])
        compare(machine.model, machine.core, JIDS, QUEUES)
