"""`holdfast demo`, as a person runs it."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import programs
from holdfast import Client
from holdfast import store as embedded
from holdfast.cli.demo import source_files

PROGRAM = [sys.executable, "-m", "holdfast.cli.main", "demo"]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for number in range(300):
        path = tmp_path / "sources" / f"part{number % 7}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n" * (number % 50) + "#" * number + "\n")
    return tmp_path / "sources"


def run(*words: object, timeout: float = 60, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *map(str, words)]
    return programs.run(command, timeout=timeout, cwd=cwd)


@pytest.mark.full
def test_every_job_is_done_although_a_worker_was_killed_and_it_works_a_second_time(
    sources: Path, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    for _ in range(2):
        ended = run("../sources", "--dir", "../store", "--json", cwd=tmp_path / "here")
        assert ended.returncode == 0, ended.stderr
        result = json.loads(ended.stdout)
        assert (result["put"], result["done"], result["failed"]) == (300, 300, 0)
        assert result["lost"] == result["returned"] >= 1
        assert result["twice"] >= result["lost"]
        assert min(result["engine_rate"], result["thread_rate"]) > 0
        assert not result["kept"]
        assert result["report"]["files"] == 300
        assert result["report"]["longest"][0]["longest"] == 299
    assert embedded.status(tmp_path / "store").state == "stopped"
    assert list((tmp_path / "here").iterdir()) == []
    assert not (tmp_path / "store" / "demo").exists()


@pytest.mark.full
def test_of_a_single_file_a_worker_is_killed_too_and_what_is_kept_is_named(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "module.py").write_text("x = 1\n")
    ended = run(tmp_path / "one", "--dir", tmp_path / "store", "--keep")
    assert ended.returncode == 0, ended.stderr
    assert "while it held 1 job:" in ended.stderr
    lines = dict(line.split(maxsplit=1) for line in ended.stdout.splitlines() if line[:1].isalpha())
    assert lines["lost"] == "1 job with the killed worker, 1 returned; 1 step ran twice"
    assert lines["speed"].startswith("0 files/s in ")
    assert lines["rate"].endswith("with --pool process --workers 2: two at a time, each waiting for the disk")
    assert "jobs/s that do nothing, with --pool thread --workers 2: twenty at a time" in ended.stdout
    kept = re.fullmatch(
        r"kept: (\S+) and the namespace demo of the store in (\S+); to look at it: (.*)", lines["data"]
    )
    assert kept is not None
    shown = programs.run(
        ["sh", "-c", kept[3].replace("holdfast", f"{sys.executable} -m holdfast")], timeout=60
    )
    assert (shown.returncode, "samples" in shown.stdout) == (0, True), shown.stderr
    assert (Path(kept[1]) / "diary.jsonl").exists()
    for log in Path(kept[1]).glob("*.log"):
        assert "uses the embedded store" not in log.read_text(), log
    with Client(embedded.ensure(tmp_path / "store").url, namespace="demo") as client:
        assert len(client.jobs.complete()) > 1
    embedded.stop(tmp_path / "store")


@pytest.mark.full
def test_a_directory_that_cannot_be_used_is_named_and_the_exit_code_is_2(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.py").write_text("")
    for name in ("missing", "empty", "file.py"):
        ended = run(tmp_path / name, "--dir", tmp_path / "store")
        assert ended.returncode == 2
        assert name in ended.stderr
        assert "Traceback" not in ended.stderr
    assert not (tmp_path / "store").exists()


def test_files_whose_names_are_no_text_are_left_out(tmp_path: Path) -> None:
    for name in (b"plain.py", b"half\xff.py", b"two\nlines.py"):
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("")
    assert [path.name for path in source_files(tmp_path)] == ["plain.py"]


def children_of(session: int) -> set[int]:
    """Every process whose command line names the store of this test."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and b"ctrl-c-store" in words and int(entry.name) != session:
            found.add(int(entry.name))
    return found


@pytest.mark.full
def test_ctrl_c_on_a_terminal_ends_everything_it_started(sources: Path, tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [*PROGRAM, str(sources), "--dir", str(tmp_path / "ctrl-c-store")])
    shown = b""
    deadline = time.monotonic() + 60
    while b"killed worker" not in shown and time.monotonic() < deadline:
        shown += os.read(terminal, 65536)
    assert b"waiting" in shown, shown
    assert children_of(pid), "the store and the workers run"
    os.write(terminal, b"\x03")
    while True:
        try:
            if not os.read(terminal, 65536):
                break
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    deadline = time.monotonic() + 60
    while (left := children_of(pid)) and time.monotonic() < deadline:
        signal.sigtimedwait([signal.SIGCHLD], 0.05)
    assert not left
