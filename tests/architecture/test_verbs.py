"""Each verb of the core has a command, a row in the door, a flag and a test, and they agree."""

import re
from functools import cache

import pytest
from source_tree import ROOT

from holdfast.commands import COMMANDS
from holdfast.core.library import PREFIX, library
from holdfast.testing import ScratchStore

VERBS = sorted(name.removeprefix(PREFIX) for name in library().functions)

READS = {
    "await": "",  # marks the jobs as awaited
    "counts": "no-writes", "dependents": "no-writes", "describe": "no-writes", "failed": "no-writes", "failures": "no-writes",
    "job_get": "no-writes", "jobs_complete": "no-writes", "peek": "no-writes", "queues": "no-writes",
    "stats": "no-writes", "config_get": "no-writes", "throttle_get": "no-writes", "list": "no-writes", "recur_get": "no-writes", "minutes": "no-writes",
    "tags": "no-writes", "tagged": "no-writes", "tracked": "no-writes",
    "patterns": "no-writes", "settings": "no-writes", "audit_list": "no-writes", "throttles": "no-writes", "queue_get": "no-writes",
    "failure_groups": "no-writes", "explain": "no-writes", "workers": "no-writes", "worker_jobs": "no-writes",
    "topic_get": "no-writes", "topic_counts": "no-writes",
    "recur_unplanned": "no-writes", "flow_get": "no-writes", "flow_states": "no-writes", "flow_steps": "no-writes", "flow_results": "no-writes", "flow_list": "no-writes",
    "scan": "no-writes", "operations": "no-writes", "operation_get": "no-writes",
}  # fmt: skip
DRAINS = {
    "pop", "find_work", "complete", "complete_pop", "advance", "heartbeat", "resume", "retry", "fail", "expire", "release", "timeout", "cancel", "cancel_by", "pause",
    "await", "sweep", "complete_x", "end_with_flow", "queue_forget", "flow_close", "audit", "watch", "recur_cancel", "recur_pause", "tick",
    "throttle_delete", "throttle_release", "act", "operation_set", "audited", "flow_forget",
    "worker_seen", "worker_quiet", "worker_ask", "worker_answer", "worker_forget",
    "topic_reserve", "topic_pull", "topic_release", "topic_delete", "topic_requeue", "topic_reschedule",
}  # fmt: skip
"""Verbs that end or shrink work, or add what has a fixed size: they run when the memory is full."""


def flag_expected(verb: str) -> set[str]:
    if verb in DRAINS:
        return {"allow-oom"}
    return {"no-writes"} if READS.get(verb) else set()


@pytest.fixture(scope="module")
def flags() -> dict[str, set[str]]:
    """Flags of each function as the store has them."""
    with ScratchStore() as store:
        store.ask("FUNCTION", "LOAD", library().text)
        lines = store.ask("FUNCTION", "LIST").splitlines()
    found: dict[str, set[str]] = {}
    name = ""
    for index, line in enumerate(lines):
        if line == "name" and lines[index + 1].startswith(PREFIX):
            name = lines[index + 1].removeprefix(PREFIX)
            found[name] = set()
        elif (
            line in ("allow-oom", "no-writes", "allow-stale", "no-cluster", "allow-cross-slot-keys") and name
        ):
            found[name].add(line)
    return found


def test_the_library_has_the_verbs_it_says(flags: dict[str, set[str]]) -> None:
    assert sorted(flags) == VERBS


@pytest.mark.parametrize("verb", sorted({*VERBS} - {"info", "clock"}))
def test_a_verb_has_the_flag_of_its_kind(verb: str, flags: dict[str, set[str]]) -> None:
    assert flags[verb] == flag_expected(verb)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_a_command(verb: str) -> None:
    assert verb in COMMANDS


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_a_command_has_a_verb(verb: str) -> None:
    assert verb in VERBS


@cache
def words_of_tests() -> set[str]:
    folders = [ROOT / "tests" / name for name in ("lua", "commands", "wire", "client", "properties", "chaos")]
    texts = [path.read_text() for folder in folders if folder.exists() for path in folder.rglob("*.py")]
    return set(re.findall(r"\w+", "\n".join(texts)))


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_a_verb_has_a_test(verb: str) -> None:
    """Its command, or its function by name, appears in a test of the core or of the commands."""
    assert words_of_tests() & {COMMANDS[verb].__name__, PREFIX + verb}
