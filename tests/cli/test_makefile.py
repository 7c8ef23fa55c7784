"""The tasks of the Makefile, in a directory whose name has spaces, with programs that only tell how they were called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"
TELLER = '#!/bin/sh\nprintf "%s|" "$HOLDFAST_DIR" "$@"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that is set up, as far as `make` can see."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    here = tmp_path / "with two  spaces"
    programs = here / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("holdfast", "python", "pytest"):
        (programs / name).write_text(TELLER)
        (programs / name).chmod(0o755)
    shutil.copy(MAKEFILE, here)
    for moment, name in enumerate(("pyproject.toml", "constraints.txt", ".venv/.usable", ".venv/.ready")):
        (here / name).touch()
        os.utime(here / name, (10**9 + moment,) * 2)
    return here


@pytest.mark.full
@pytest.mark.parametrize(
    ("task", "store", "words"),
    [
        (["demo"], "demo", ["demo"]),
        (["demo", "DIR=my files"], "demo", ["demo", "my files"]),
        (["bench", "ARGS=put"], "bench", ["-m", "benchmarks", "put"]),
        (["test"], "store", ["-n", "4", "--dist", "worksteal"]),
        (["test-all", "SHARD=2/3"], "store", ["-n", "4", "--dist", "worksteal"]),
    ],
)
def test_a_task_runs_its_program_with_a_store_in_the_checkout(
    checkout: Path, task: list[str], store: str, words: list[str]
) -> None:
    clean = {"PATH": os.environ["PATH"]}  # without what a `make test` around this one was given
    done = subprocess.run(
        ["make", "--silent", *task], cwd=checkout, env=clean, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("|")[:-1] == [f"{checkout}/.holdfast/{store}", *words]


@pytest.mark.parametrize(
    ("task", "name", "value"),
    [
        (["test"], "TESTS", "everyday"),
        (["test-all"], "TESTS", ""),
        (["test-all", "SHARD=2/3"], "SHARD", "2/3"),
        (["test-all"], "SHARD", ""),
    ],
)
def test_a_run_of_tests_is_named_in_the_environment(
    checkout: Path, task: list[str], name: str, value: str
) -> None:
    (checkout / ".venv" / "bin" / "pytest").write_text(f'#!/bin/sh\nprintf %s "$HOLDFAST_{name}"\n')
    clean = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["make", "--silent", *task], cwd=checkout, env=clean, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, value, "")


WEB, DEV = ".[web]", ".[dev]"


@pytest.mark.full
@pytest.mark.parametrize(
    ("calls", "installed"),
    [
        ([["demo"], ["demo"]], [WEB]),
        ([["demo"], ["test"], ["demo"], ["setup"]], [WEB, DEV]),
        ([["test"], ["demo"]], [WEB, DEV]),
        ([["setup"], ["setup", "demo"]], [WEB, DEV]),
        ([["-j4", "demo", "test", "format-check", "setup"], ["-j4", "demo"]], [WEB, DEV]),
    ],
)
def test_a_task_installs_what_it_needs_once(
    checkout: Path, calls: list[list[str]], installed: list[str]
) -> None:
    for mark in (".usable", ".ready"):
        (checkout / ".venv" / mark).unlink()
    shutil.copy(checkout / ".venv" / "bin" / "pytest", checkout / ".venv" / "bin" / "ruff")
    log = checkout / "installed"
    python = checkout / "python3"
    python.write_text(f'#!/bin/sh\nfor word; do :; done\n[ "$2" != pip ] || echo "$word" >> "{log}"\n')
    python.chmod(0o755)
    clean = {"PATH": os.environ["PATH"]}
    for tasks in calls:
        command = ["make", "--silent", "PYTHON=./python3", *tasks]
        done = subprocess.run(command, cwd=checkout, env=clean, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert log.read_text().split() == installed


def test_what_is_installed_is_installed_again_when_the_packages_change(checkout: Path) -> None:
    (checkout / "pyproject.toml").touch()
    asked = ["make", "--dry-run"]
    for task, installed in (("demo", [WEB]), ("test", [WEB, DEV])):
        done = subprocess.run([*asked, task], cwd=checkout, capture_output=True, text=True, timeout=60)
        assert [extra for extra in (WEB, DEV) if f"--editable '{extra}'" in done.stdout] == installed
