"""Both clients can do the same, and every verb says what it does and where it is written."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import AsyncClient, Client
from holdfast.client import (
    config,
    handles,
    recurring,
    sync,
    tables,
    throttles,
    upkeep,
    workers,
)
from holdfast.client.descriptors import AsyncMethods, CoroutineHandle, SyncMethods
from holdfast.commands import COMMANDS

BLOCKING_ONLY = {"batch"}
"""An async client sends the calls of one iteration of its loop together in any case."""
INNER = {
    "audited",
    "cancel",
    "clock",
    "complete_pop",
    "describe",
    "end_with_flow",
    "expire",
    "find_work",
    "flow_forget",
    "flow_list",
    "flow_steps",
    "operation_get",
    "operation_set",
    "operations",
    "put_x",
    "release",
    "resume",
    "scan",
    "worker_answer",
}
"""Verbs of tests, of workers, of the console and of releases before, and one that is worn as PutWished."""


def handles_of(base: type) -> dict[str, type]:
    """The sync or async handles, by the name they share."""
    found: dict[str, type] = {}
    for module in (handles, config, tables, recurring, throttles, upkeep, workers):
        for kind in vars(module).values():
            if inspect.isclass(kind) and issubclass(kind, base) and kind not in (base, CoroutineHandle):
                found[kind.__name__.removeprefix("Async")] = kind
    return found


def shown(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


PAIRS = [(kind, handles_of(AsyncMethods)[name]) for name, kind in handles_of(SyncMethods).items()]


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_help_tells_what_a_method_does_and_takes(client: type) -> None:
    made = client("redis://127.0.0.1:1")
    job = holdfast.Job(made, jid="j", klass="K")
    for method, name, first, takes in (
        (made.queues["q"].put, "put", "Put a job", ["klass", "data"]),
        (made.jobs.complete, "complete", "The jids", ["offset", "count"]),
        (job.complete, "complete", "Complete the job", ["next_queue", "delay"]),
        (job.set_priority, "set_priority", "Change the priority", ["priority"]),
        (made.jobs.cancel, "cancel", "Delete jobs", ["args", "kwargs"]),
    ):
        assert method.__name__ == name
        assert inspect.getdoc(method).startswith(first)
        assert list(inspect.signature(method).parameters)[:2] == takes


def test_every_handle_is_sync_and_async() -> None:
    assert handles_of(SyncMethods).keys() == handles_of(AsyncMethods).keys()


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS, ids=lambda kind: kind.__name__)
def test_a_handle_has_a_twin_that_can_do_the_same(blocking: type, awaited: type) -> None:
    if blocking is config.Config:
        # The rest of a mapping, which asks without being awaited.
        assert shown(blocking) - shown(awaited) == {"items", "keys", "popitem", "values"}
        assert shown(awaited) <= shown(blocking)
    else:
        assert shown(blocking) == shown(awaited)


def test_both_clients_have_the_same_members() -> None:
    blocking, awaited = Client("redis://localhost:1"), AsyncClient("redis://localhost:1")
    assert shown(Client) - shown(AsyncClient) == BLOCKING_ONLY
    assert shown(AsyncClient) <= shown(Client)
    assert {name for name in vars(blocking) if name[0] != "_"} == {
        name for name in vars(awaited) if name[0] not in "_" and name != "run"
    }


def members() -> Iterator[tuple[str, Any]]:
    for kind in (Client, AsyncClient, *(kind for pair in PAIRS for kind in pair)):
        for name in sorted(shown(kind)):
            yield f"{kind.__name__}.{name}", inspect.getattr_static(kind, name)


def test_every_member_says_what_it_is_and_every_verb_which_file_does_it() -> None:
    silent = []
    for name, member in members():
        if name.startswith("Config."):
            continue  # mostly a mapping of Python's own
        said = inspect.getdoc(member) or ""
        if not said.strip() or (hasattr(member, "make") and "Core: " not in said):
            silent.append(name)
    assert silent == []


def test_every_verb_of_the_core_is_worn_by_a_handle() -> None:
    package = Path(sync.__file__).parents[1]
    files = [*(package / "client").rglob("*.py"), *(package / "wire").glob("*.py")]
    said = "\n".join(file.read_text(encoding="utf-8") for file in files)
    unworn = {verb for verb, kind in COMMANDS.items() if not re.search(rf"\b{kind.__name__}\(", said)}
    assert unworn == INNER
