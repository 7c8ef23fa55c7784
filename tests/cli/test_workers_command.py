"""`holdfast workers`, through the command itself."""

import json
import socket
from typing import Any

import pytest

from command_line import holdfast
from holdfast import Client
from holdfast.commands.workers import WorkerSeen
from holdfast.testing.clock import START_MS, StoppedClock


@pytest.fixture
def ask(url: str, namespace: str) -> Any:
    return lambda *words: holdfast("workers", *words, "--url", url, "--namespace", namespace)


def seen(client: Client, *names: str, **facts: str) -> None:
    for name in names:
        client.run(WorkerSeen(name, {"host": "box", "pid": "7", "pool": "process", **facts}))


@pytest.mark.full
def test_the_list_shows_what_workers_say_of_themselves_and_lives_with_nonsense(
    client: Client, ask: Any
) -> None:
    now = round(client.store_time() * 1000)
    seen(client, "w-0", queues='["mail", "news"]', busy="1", slots="4", started=str(now - 7_200_000))
    client.run(WorkerSeen("odd", {"queues": "{", "busy": "many", "started": "\x1b[31m"}))
    client.run(WorkerSeen("deep", {"queues": "[" * 4000, "started": "9" * 400}))
    client.workers.quiet("odd")
    rows = json.loads(ask("list", "--json").stdout)
    deep, odd, first = sorted(rows, key=lambda row: row["name"])
    assert (deep["queues"], deep["up"]) == ([], None)
    assert (odd["queues"], odd["busy"], odd["up"], odd["quiet"]) == ([], None, None, True)
    assert (first["queues"], first["busy"], first["seats"], first["pid"]) == (["mail", "news"], 1, 4, 7)
    assert 7200 <= first["up"] < 7300
    head, *lines = ask("list").stdout.splitlines()
    assert head.split("\t")[:5] == ["worker", "host", "pid", "pool", "queues"]
    assert any(line.startswith("w-0\tbox\t7\tprocess\tmail, news\t1\t4\t2 h\t") for line in lines)


@pytest.mark.full
def test_a_check_tells_by_its_exit_code_whether_a_worker_of_that_name_or_machine_lives(
    client: Client, ask: Any
) -> None:
    seen(client, "w-0", "w-1", "w-x")
    said = ask("check", "w")
    assert (said.returncode, said.stdout) == (0, "w: 2 alive: w-1, w-0\n")
    assert ask("check", "w-0", "w-x").returncode == 0
    said = ask("check", "w", "nobody", "--json")
    assert said.returncode == 1
    assert json.loads(said.stdout) == {"alive": False, "workers": {"w": ["w-1", "w-0"], "nobody": []}}
    assert ask("check", "--host", "box").returncode == 0
    here = ask("check")
    assert (here.returncode, here.stdout) == (1, f"{socket.gethostname()}: no worker is known\n")
    assert ask("check", "w", "--max-age", "0").returncode == 2


def test_a_check_fails_for_a_worker_that_was_silent_for_too_long(client: Client, ask: Any) -> None:
    clock = StoppedClock(client, START_MS)
    clock.advance(seconds=0)
    seen(client, "w-0")
    clock.advance(seconds=30)
    assert ask("check", "w").returncode == 0
    clock.advance(seconds=0.1)
    said = ask("check", "w")
    assert (said.returncode, said.stdout) == (1, "w: silent for 30.1 s, longer than 30 s\n")


@pytest.mark.full
def test_workers_are_told_to_be_quiet_and_to_go_on_by_the_name_their_command_was_given(
    client: Client, ask: Any
) -> None:
    seen(client, "w-0", "w-1", "other")
    said = ask("quiet", "w")
    assert (said.returncode, sorted(said.stdout.splitlines())) == (
        0,
        ["w-0 is quiet: it takes no more jobs", "w-1 is quiet: it takes no more jobs"],
    )
    assert {worker.name: worker.quiet for worker in client.workers.all()} == {
        "w-0": True,
        "w-1": True,
        "other": False,
    }
    said = ask("resume", "w-0", "nobody")
    assert (said.returncode, said.stdout) == (1, "w-0 takes jobs again\n")
    assert said.stderr == "holdfast: no worker nobody is known\n"


def test_a_store_that_cannot_be_reached_has_an_exit_code_of_its_own() -> None:
    said = holdfast("workers", "check", "--url", "unix:///nowhere.sock", "--timeout", "0.1")
    assert (said.returncode, said.stderr.count("\n")) == (3, 1)
