"""Files of right and wrong calls, proved with mypy and pyright: every wrong line is reported, and no right one."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = sorted([*HERE.glob("right_*.py"), *HERE.glob("wrong_*.py")])


def run(*words: str) -> str:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def found_by_mypy(files: Sequence[Path] = FILES, *more: str) -> set[tuple[str, int]]:
    words = [sys.executable, "-m", "mypy", "--strict", *more, "--output", "json", *map(str, files)]
    rows = [json.loads(line) for line in run(*words).splitlines() if line.startswith("{")]
    return {(Path(row["file"]).name, row["line"]) for row in rows if row["severity"] == "error"}


def found_by_pyright() -> set[tuple[str, int]]:
    pyright = str(Path(sys.executable).parent / "pyright")
    if subprocess.run([pyright, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pyright could not be started (it fetches node.js)")
    words = [pyright, "--pythonpath", sys.executable, "--outputjson"]
    rows = json.loads(run(*words, *map(str, FILES)))["generalDiagnostics"]
    return {
        (Path(row["file"]).name, row["range"]["start"]["line"] + 1)
        for row in rows
        if row["severity"] == "error"
    }


def marked(mark: str = "# wrong: ") -> set[tuple[str, int]]:
    return {
        (file.name, number)
        for file in FILES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if mark in line
    }


@pytest.mark.full  # `make types` runs it
@pytest.mark.parametrize("find", [found_by_mypy, found_by_pyright], ids=["mypy", "pyright"])
def test_a_type_checker_reports_every_wrong_line_and_no_other(find, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1")
    monkeypatch.setenv("MYPYPATH", "src")
    found, wanted = find(), marked()
    assert sorted(found - wanted) == []
    assert sorted(wanted - found) == []


@pytest.mark.full
def test_mypy_finds_a_missing_await_of_futures_too_with_unused_awaitable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MYPYPATH", "src")
    file = HERE / "wrong_awaits.py"
    found = found_by_mypy([file], "--enable-error-code", "unused-awaitable")
    wanted = {one for one in marked() | marked("# unused-awaitable: ") if one[0] == file.name}
    assert sorted(found) == sorted(wanted)


def test_right_files_are_right_and_wrong_ones_wrong() -> None:
    assert {name.partition("_")[0] for name, _ in marked()} == {"wrong"}
    assert {file.name.partition("_")[0] for file in FILES} == {"right", "wrong"}
