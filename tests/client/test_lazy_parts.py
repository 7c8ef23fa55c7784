"""Parts of a client are loaded when they are first asked for, and are then ordinary attributes."""

import json
import subprocess
import sys

import pytest

from holdfast import AsyncClient, Client
from holdfast.client.descriptors import Part
from holdfast.commands import COMMANDS

LATE = [
    "holdfast.client.config",
    "holdfast.client.events",
    "holdfast.client.patterns",
    "holdfast.client.reasons",
    "holdfast.client.results",
    "holdfast.client.topics.scheduler",
    "holdfast.client.upkeep",
    "holdfast.client.workers",
    "holdfast.code.calling",
    "holdfast.code.failure",
    "holdfast.client.function_jobs",
    "holdfast.code.middleware",
    "holdfast.commands.topics",
    "holdfast.core",
    "difflib",
    "zoneinfo",
    "cronsim",
]


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """What making a client and naming a queue load."""
    program = (
        "import json, sys, holdfast\n"
        "holdfast.Client('redis://box').queues['mail'], holdfast.AsyncClient('redis://box').jobs\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(ended.stdout))


@pytest.mark.parametrize("module", LATE)
def test_making_a_client_does_not_load(module: str, loaded: set[str]) -> None:
    assert module not in loaded


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_part_is_made_once_and_knows_its_client(kind: type) -> None:
    client = kind("redis://box")
    parts = [name for name, value in vars(kind).items() if isinstance(value, Part)]
    assert len(parts) >= 9
    for name in parts:
        assert name not in vars(client)
        made = getattr(client, name)
        assert getattr(client, name) is made
        assert vars(client)[name] is made
        assert vars(made).get("_client", client) is client


def test_a_part_can_be_asked_of_the_class_and_belongs_to_one_client() -> None:
    client = Client("redis://box")
    assert isinstance(Client.config, Part)
    assert Client("redis://box").config is not client.config


def test_the_table_of_all_commands_is_whole() -> None:
    assert {"put", "pop", "complete"} < set(COMMANDS)
    assert all(kind.verb == verb for verb, kind in COMMANDS.items())
