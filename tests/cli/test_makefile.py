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
    for name in ("pyproject.toml", "constraints.txt", ".venv/.ready"):
        (here / name).touch()
    return here


@pytest.mark.parametrize(
    ("task", "store", "words"),
    [
        (["demo"], "demo", ["demo"]),
        (["demo", "DIR=my files"], "demo", ["demo", "my files"]),
        (["bench", "ARGS=put"], "bench", ["-m", "benchmarks", "put"]),
        (["test"], "store", ["-n", "4", "--dist", "worksteal", "-m", "not slow"]),
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
