"""`holdfast store`, and what every command has in common, run as people run it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast as package
import programs
from holdfast import Client
from holdfast import store as embedded
from holdfast.cli.main import COMMANDS, holdfast
from holdfast.core.library import library, shown_core
from holdfast.store import processes

Answer = subprocess.CompletedProcess[str]
Run = Callable[..., Answer]


@pytest.fixture
def home() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="hfs-"))
    yield base / "store"
    if (base / "store").is_dir():
        embedded.stop(base / "store")
    shutil.rmtree(base)


@pytest.fixture
def run(home: Path) -> Run:
    """Runs `holdfast` with HOLDFAST_DIR set."""

    def program(*words: str) -> Answer:
        environment = os.environ | {"HOLDFAST_DIR": str(home)}
        return programs.run([sys.executable, "-m", "holdfast.cli.main", *words], env=environment)

    return program


@pytest.mark.full
@pytest.mark.parametrize("command", ["status", "start", "stop", "path"])
def test_a_url_is_refused_where_it_would_be_ignored(run: Run, command: str) -> None:
    done = run("--url", "redis://127.0.0.1:7777/0", "store", command)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--url: holdfast store manages the embedded store of a directory" in done.stderr


@pytest.mark.full
def test_the_status_shows_the_core_and_whether_it_is_of_another_build(run: Run, home: Path) -> None:
    run("store", "start")
    ours = library()
    with Client(f"unix://{home}/socket") as client:
        client.queues["q"].put("K")
        assert f"{shown_core(ours.version, ours.digest)}\n" in run("store", "status").stdout
        other = ours.text.replace(f'digest = "{ours.digest}"', 'digest = "edited-here"')
        client.database.execute_command("FUNCTION", "LOAD", "REPLACE", other)
    said = run("store", "status").stdout
    assert (
        f"{shown_core(ours.version, 'edited-here')}; this program has {shown_core(ours.version, ours.digest)}"
        in said
    )
    assert json.loads(run("store", "status", "--json").stdout)["core_digest"] == "edited-here"


@pytest.mark.full
def test_a_store_is_started_asked_after_and_stopped(run: Run, home: Path) -> None:
    started = run("store", "start")
    assert (started.returncode, started.stderr) == (0, "")
    assert f"unix://{home}/socket" in started.stdout
    status = run("store", "status")
    assert status.returncode == 0
    assert "running" in status.stdout
    assert "runs until it is stopped" in status.stdout
    assert re.search(r"^core +none$", status.stdout, re.MULTILINE)
    assert run("store", "start").stdout.startswith("valkey")
    assert "is already running" in run("store", "start").stdout
    stopped = run("store", "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "stopped\n")
    status = run("store", "status")
    assert status.returncode == 1
    assert "stopped" in status.stdout
    assert run("store", "stop").stdout == f"no store is running in {home}\n"


@pytest.mark.full
def test_programs_get_json(run: Run, home: Path) -> None:
    started = json.loads(run("store", "start", "--json").stdout)
    assert started["started"] is True
    status = json.loads(run("store", "status", "--json").stdout)
    assert (status["state"], status["pid"], status["directory"]) == ("running", started["pid"], str(home))
    assert json.loads(run("store", "path", "--json").stdout) == {
        "directory": str(home),
        "url": started["url"],
    }
    assert json.loads(run("store", "stop", "--json").stdout)["stopped"] is True
    assert json.loads(run("store", "status", "--json").stdout)["state"] == "stopped"


def test_the_path_of_a_store_is_printed_and_nothing_is_made(run: Run, home: Path) -> None:
    answer = run("store", "path")
    assert (answer.returncode, answer.stdout) == (0, f"{home}\n")
    assert not home.exists()


def test_a_directory_can_be_named_and_a_time_to_linger(run: Run, home: Path) -> None:
    other = home.with_name("other")
    try:
        started = json.loads(run("store", "start", "--dir", str(other), "--linger", "30", "--json").stdout)
        status = embedded.status(other)
        assert (status.pid, status.linger) == (started["pid"], 30)
        assert not home.exists()
    finally:
        embedded.stop(other)


def test_a_started_store_outlives_the_command(run: Run, home: Path) -> None:
    pid = json.loads(run("store", "start", "--json").stdout)["pid"]
    assert processes.started(pid)
    assert embedded.ensure(home).pid == pid


def test_a_mistake_is_one_sentence_and_exit_code_2(run: Run, home: Path) -> None:
    home.write_text("mine")
    answer = run("store", "start")
    home.unlink()
    assert answer.returncode == 2
    assert answer.stderr == f"holdfast: {home} is a file: use a directory only for the store\n"
    assert answer.stdout == ""


@pytest.mark.full
def test_what_goes_wrong_without_a_mistake_is_exit_code_1(run: Run, home: Path) -> None:
    run("store", "start")
    run("store", "stop")
    (home / "holdfast.json").write_text('{"format": 1, "engine": "valkey", "version": [99, 0, 0]}')
    answer = run("store", "start")
    assert answer.returncode == 1
    assert "is older: install the newer server again" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    "words",
    [
        ("store", "start", "--linger", "-1"),
        ("store", "start", "--linger", "nan"),
        ("store", "start", "--durability", "always"),
        ("store", "fly"),
        ("fly",),
        ("store", "status", "--no-such-option"),
        ("store", "status", "extra"),
    ],
)
def test_bad_usage_is_exit_code_2(run: Run, home: Path, words: tuple[str, ...]) -> None:
    answer = run(*words)
    assert answer.returncode == 2
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
    assert not home.exists()


@pytest.mark.full
def test_the_program_says_its_version_and_its_commands(run: Run) -> None:
    assert run("--version").stdout == f"holdfast {package.__version__}\n"
    help_text = run("--help").stdout
    assert all(f"  {name} " in help_text for name in COMMANDS)


@pytest.mark.full
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_is_listed_exists_and_helps(run: Run, name: str) -> None:
    answer = run(name, "--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith(f"Usage: holdfast {name}")


@pytest.mark.full
def test_a_command_is_imported_only_when_it_is_named() -> None:
    program = "import sys; from holdfast.cli.main import run; run(['--help']); print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = answer.stdout.splitlines()[-1].split()
    assert not {f"holdfast.cli.{name}" for name in holdfast.list_commands(None)} & set(loaded)  # type: ignore[arg-type]
    assert "rich" not in loaded
