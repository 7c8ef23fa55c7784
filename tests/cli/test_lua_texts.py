"""`holdfast lua` prints texts that a store takes as they are."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast import Client
from holdfast.cli.main import holdfast
from holdfast.testing import ScratchStore
from holdfast.testing.store import Engine
from holdfast.wire.plans import ErrorReply, Step


def lua(*words: str) -> Result:
    return CliRunner().invoke(holdfast, ["lua", *words])


def ask(client: Client, *words: str | int) -> Any:
    [reply] = client.link.send(Step([words]))
    return reply


@pytest.fixture
def at_store(engine: Engine, namespace: str) -> Iterator[Client]:
    """The scripts of the older protocols use keys without a namespace: this store is theirs alone."""
    with ScratchStore(engine) as store, Client(store.url, namespace=namespace) as client:
        yield client


@pytest.mark.full
def test_the_script_of_the_reqless_protocol_runs_as_it_is_printed(at_store: Client) -> None:
    sha = ask(at_store, "SCRIPT", "LOAD", lua("reqless").output)
    assert ask(at_store, "EVALSHA", sha, 0, "queue.put", 1, "w", "q", "j", "klass", "{}", 0) == b"j"
    assert json.loads(ask(at_store, "EVALSHA", sha, 0, "job.get", 2, "j"))["state"] == "waiting"


@pytest.mark.full
def test_the_script_of_the_qless_protocol_speaks_of_the_same_jobs(at_store: Client) -> None:
    sha = ask(at_store, "SCRIPT", "LOAD", lua("qless").output)
    assert ask(at_store, "EVALSHA", sha, 0, "put", 1, "w", "q", "older", "klass", "{}", 0) == b"older"
    sha = ask(at_store, "SCRIPT", "LOAD", lua("reqless").output)
    assert json.loads(ask(at_store, "EVALSHA", sha, 0, "job.get", 2, "older"))["state"] == "waiting"


def test_the_library_loads_as_it_is_printed(at_store: Client) -> None:
    assert ask(at_store, "FUNCTION", "LOAD", "REPLACE", lua("native").output) == b"holdfast1"
    assert ask(at_store, "FCALL", "hf1_info", 1, at_store.root, "make", 0)


def run_behind_lib(client: Client, tail: str, keys: list[str], *words: str) -> Any:
    return ask(client, "EVAL", lua("lib").output + tail, len(keys), *keys, *words)


@pytest.mark.full
def test_a_script_of_ones_own_goes_behind_the_lib(at_store: Client) -> None:
    """The example of the documentation, on a native root."""
    at_store.config["heartbeat"] = "30"
    tail = "return Holdfast.config.get(ARGV[1]) * ARGV[2]"
    assert run_behind_lib(at_store, tail, [at_store.root], "heartbeat", "2") == 60


@pytest.mark.full
def test_a_script_behind_the_lib_finds_jobs(at_store: Client) -> None:
    jid = at_store.queues["mail"].put("Welcome", {"id": 7}, priority=3, tags=["new"])
    tail = """
      local job = Holdfast.job.get(ARGV[1])
      return { job.jid, job.klass, job.queue, job.state, job.data, job.priority, #job.history }
    """
    found = run_behind_lib(at_store, tail, [at_store.root], jid)
    assert found == [jid.encode(), b"Welcome", b"mail", b"waiting", b'{"id":7}', 3, 1]
    assert run_behind_lib(at_store, "return Holdfast.job.get(ARGV[1]) == nil", [at_store.root], "nobody") == 1


@pytest.mark.full
def test_the_lib_looks_at_the_shared_root_without_keys(at_store: Client) -> None:
    sha = ask(at_store, "SCRIPT", "LOAD", lua("reqless").output)
    ask(at_store, "EVALSHA", sha, 0, "queue.put", 1, "w", "q", "mine", "klass", "[1]", 0)
    ask(at_store, "EVALSHA", sha, 0, "config.set", 1, "double", "21")
    tail = "return { Holdfast.job.get(ARGV[1]).data, Holdfast.config.get(ARGV[2]) * 2 }"
    assert run_behind_lib(at_store, tail, [], "mine", "double") == [b"[1]", 42]


@pytest.mark.full
def test_a_script_behind_the_lib_is_told_what_it_forgot(at_store: Client) -> None:
    at_store.queues["mail"].put("K")
    said = run_behind_lib(at_store, "return Holdfast.job.get()", [at_store.root])
    assert isinstance(said, ErrorReply)
    assert "no jid provided" in said.text


def test_the_lib_leaves_the_names_of_a_script_alone() -> None:
    """It binds one name, so that the script behind it has all of Lua's locals."""
    lines = lua("lib").output.splitlines()
    assert lines[0] == "local Holdfast = (function()"
    assert lines[-1] == "end)()"


@pytest.mark.parametrize("name", ["reqless", "qless", "native", "lib"])
def test_a_text_comes_with_its_sha1_as_json(name: str) -> None:
    found = json.loads(lua(name, "--json").output)
    assert found["text"] == lua(name).output
    assert found["sha1"] == hashlib.sha1(found["text"].encode()).hexdigest()
    assert Path(found["file"]).suffix == ".lua"


def test_a_text_that_nobody_knows_is_refused_with_those_there_are() -> None:
    said = lua("cobol")
    assert said.exit_code == 2
    assert "'reqless'" in said.output


@pytest.mark.full
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_text_that_finds_no_room_is_told_in_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast.cli.main", "lua", "native"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (1, "holdfast: No space left on device\n")
