"""The files of CI, of hooks and of templates: each can be read, has the shape that its program asks for, and its commands do what they should.

A command runs in a copy of the checkout's Makefile whose programs only note how they were called: `make` and the shell are real.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from source_tree import PACKAGE, ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = {
    "actions/checkout", "actions/setup-python", "actions/upload-artifact", "actions/download-artifact",
    "pypa/gh-action-pypi-publish",
}  # fmt: skip

NOT_RUN: Final = {
    "Install luacheck": "it installs packages of Ubuntu as root",
    "Install Redis 7.0": "it installs packages of Ubuntu as root",
    "Build the store": "it clones from GitHub",
}
"""Steps that run on GitHub alone, and why. Their syntax is checked here."""

CALLS: Final = {
    "Check": ["ruff format --check", "ruff check", "mypy", "pytest tests/typing", "pytest tests/architecture"],
    "Test": ["pytest -n 4 --dist worksteal"],
    "Report": ["coverage run -m pytest", "coverage combine", "coverage html", "coverage report"],
    "Build and check the packages": [
        "python -m build --no-isolation", "python tests/architecture/distribution.py dist v9.9.9",
    ],
    "Put it first on PATH, under the name that tests look for": ["redis-server --version"],
    "Install the wheel into a bare environment and run the demo": [
        "python3 -m venv", "python -m pip install --quiet dist/holdfast_jobs-9.9.9-py3-none-any.whl",
        "holdfast --version", "holdfast demo",
    ],
}  # fmt: skip
"""What each step calls, in order; more may be called between."""


class Step(NamedTuple):
    """A step with a command, as it is for one cell of its job's matrix."""

    workflow: str
    job: str
    name: str
    command: str


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def cells(job: dict[str, Any]) -> list[dict[str, str]]:
    """Return the members of a job's matrix; one without values if it has none."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    included = matrix.pop("include", None)
    if included:
        return [{name: str(value) for name, value in cell.items()} for cell in included]
    return [dict(zip(matrix, map(str, row), strict=True)) for row in product(*matrix.values())]


def filled(text: str, cell: dict[str, str]) -> str:
    """Put the values of a cell into the expressions of a command, which are names, or `A == 'b' && 'c' || 'd'`."""

    def value(match: re.Match[str]) -> str:
        choice = re.fullmatch(r"matrix\.(\w+) == '(.*?)' && '(.*?)' \|\| '(.*?)'", match[1])
        if choice:
            return choice[3] if cell[choice[1]] == choice[2] else choice[4]
        return cell[match[1].removeprefix("matrix.")]

    return re.sub(r"\$\{\{ (.+?) \}\}", value, text)


def steps() -> Iterator[Step]:
    seen: set[str] = set()
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            for step, cell in product(job["steps"], cells(job)):
                if "run" in step:
                    command = filled(step["run"], cell)
                    if command not in seen:
                        seen.add(command)
                        yield Step(path.stem, name, step["name"], command)


STEPS = list(steps())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_the_shape_that_github_asks_for(path: Path) -> None:
    workflow = read(path)
    # `on` is a word for true in YAML 1.1, which is what pyyaml reads; GitHub reads it as text.
    assert set(workflow) <= {"name", True, "permissions", "concurrency", "jobs"}
    assert workflow["name"]
    assert workflow[True]
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert set(job) <= {
            "name", "needs", "runs-on", "timeout-minutes", "strategy", "steps", "environment", "permissions"
        }, name  # fmt: skip
        assert job["runs-on"] == "ubuntu-24.04"
        assert 0 < job["timeout-minutes"] <= 180
        assert set([job["needs"]] if "needs" in job else []) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert set(step) <= {"name", "if", "uses", "with", "run"}, step
            assert ("uses" in step) != ("run" in step), step
            assert "run" not in step or step["name"], step
            if "uses" in step:
                action, _, version = step["uses"].partition("@")
                assert action in ACTIONS
                assert re.fullmatch(r"v\d+|release/v1", version)


def test_ci_tests_each_python_and_each_kind_of_store() -> None:
    jobs = read(GITHUB / "workflows" / "ci.yml")["jobs"]
    pythons = ["3.11", "3.12", "3.13", "3.14"]
    assert [cell["python"] for cell in cells(jobs["check"])] == pythons
    assert [cell["python"] for cell in cells(jobs["test"])] == pythons
    stores = {(cell["store"], cell["branch"].partition(".")[0]) for cell in cells(jobs["store"])}
    assert stores == {("valkey", "8"), ("valkey", "9"), ("redis", "7"), ("redis", "8")}


def test_the_nights_run_each_shard_once() -> None:
    commands = [
        step.command for step in STEPS if (step.workflow, step.job, step.name) == ("nightly", "all", "Test")
    ]
    assert [re.findall(r"SHARD=(\S+)", command) for command in commands] == [["1/3"], ["2/3"], ["3/3"]]


def test_only_the_job_that_publishes_may_ask_for_an_identity_and_it_runs_no_code_of_ours() -> None:
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            if name == "publish":
                assert job["permissions"] == {"id-token": "write"}
                assert job["environment"] == "pypi"
                assert [step.get("run") for step in job["steps"]] == [None, None]
            else:
                assert "permissions" not in job
    release = read(GITHUB / "workflows" / "release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}
    assert release["jobs"]["publish"]["needs"] == "build"


def test_no_command_has_an_expression_that_somebody_else_can_write() -> None:
    """A branch or a title in `${{ … }}` would be part of the command: only the matrix is."""
    for path in WORKFLOWS:
        for job in read(path)["jobs"].values():
            for step in job["steps"]:
                found = re.findall(r"\$\{\{ (\S+)", step.get("run", ""))
                assert [one for one in found if not one.startswith("matrix.")] == []


NOTED = """#!/bin/sh
name=$(basename "$0")
shown="$name $*"
echo "$shown" >> "$CALLS"
case "$shown" in
    "python3 -m venv "*) mkdir -p "$3/bin" && for one in python holdfast; do cp "$0" "$3/bin/$one"; done ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that is set up, with programs that note how they were called."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    here = tmp_path / "checkout"
    programs = here / ".venv" / "bin"
    programs.mkdir(parents=True)
    paths = [
        programs / name for name in ("python", "pytest", "ruff", "mypy", "pyright", "coverage", "holdfast")
    ]
    paths += [tmp_path / "path" / name for name in ("python3", "luacheck")]
    paths += [tmp_path / "temp" / "store" / "src" / f"{name}-server" for name in ("redis", "valkey")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTED)
        path.chmod(0o755)
    (here / "dist").mkdir()
    (here / "dist" / "holdfast_jobs-9.9.9-py3-none-any.whl").touch()
    shutil.copy(ROOT / "Makefile", here)
    for moment, name in enumerate(("pyproject.toml", "constraints.txt", ".venv/.usable", ".venv/.ready")):
        (here / name).touch()
        os.utime(here / name, (10**9 + moment,) * 2)
    return here


@pytest.mark.few(40)
@pytest.mark.parametrize(
    "step",
    [step for step in STEPS if step.name not in NOT_RUN],
    ids=lambda step: f"{step.workflow}-{step.job}-{step.name}",
)
def test_a_command_calls_what_it_should(step: Step, checkout: Path) -> None:
    calls = checkout.parent / "calls"
    calls.touch()
    given = {
        "PATH": f"{checkout.parent / 'path'}:{os.environ['PATH']}", "CALLS": str(calls),
        "GITHUB_REF_NAME": "v9.9.9", "GITHUB_PATH": str(checkout.parent / "added"),
        "RUNNER_TEMP": str(checkout.parent / "temp"),
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-e", "-c", step.command],
        cwd=checkout,
        env=given,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    noted = iter(calls.read_text().splitlines())
    for call in CALLS[step.name]:
        assert any(line.startswith(call) for line in noted), (call, calls.read_text())


def test_a_command_that_runs_on_github_alone_is_listed_and_is_shell() -> None:
    left_out = [step for step in STEPS if step.name in NOT_RUN]
    assert {step.name for step in left_out} == set(NOT_RUN)
    assert {step.name for step in STEPS} == set(NOT_RUN) | set(CALLS)
    for step in left_out:
        done = subprocess.run(["bash", "-n", "-c", step.command], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), step


def test_what_was_never_run_on_github_is_stated_in_the_page_of_releases() -> None:
    page = (ROOT / "docs" / "releasing.md").read_text()
    assert "Not tried yet" in page
    assert [name for name in NOT_RUN if name not in page] == []


def test_hooks_are_those_of_the_checks_and_need_no_other_repository() -> None:
    repositories = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [one["repo"] for one in repositories] == ["local"]
    hooks = {hook["id"]: hook for hook in repositories[0]["hooks"]}
    assert set(hooks) == {"ruff-format", "ruff-check", "mypy"}
    for hook in hooks.values():
        assert hook["language"] == "system"
        assert hook["name"]
        program, *arguments = hook["entry"].split()
        assert program.startswith(".venv/bin/")
        mine = Path(sys.executable).parent / Path(program).name
        if not mine.exists():
            pytest.skip("the tools of the extra dev-lint are not installed")
        words = [str(mine), *arguments, "--help"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_a_form_for_issues_has_the_shape_that_github_asks_for(name: str) -> None:
    form = read(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert set(form) == {"name", "description", "labels", "body"}
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
    for part in form["body"]:
        assert part["type"] in ("markdown", "textarea", "input")
        assert "value" in part["attributes"] if part["type"] == "markdown" else part["attributes"]["label"]


def test_a_weakness_is_reported_in_private() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert "Report a vulnerability" in text
    assert re.search(r"\S+@\S+\.\S+", text) is None
    assert "SECURITY.md" in (GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text()
    assert (GITHUB / "pull_request_template.md").exists()


def test_the_table_of_symptoms_names_files_that_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("## From symptom to file") : text.index("## Your first change")]
    rows = [line.split("|")[2:4] for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 15
    named = [(PACKAGE, path) for files, _ in rows for path in re.findall(r"`([\w/]+(?:\.\w+|/))`", files)]
    named += [(ROOT, path) for _, tests in rows for path in re.findall(r"`([\w/.]+)`", tests)]
    assert [path for base, path in named if not (base / path).exists()] == []


def test_ci_runs_nothing_twice_until_it_passes() -> None:
    script = ROOT / ".ci" / "run"
    assert subprocess.run(["bash", "-n", str(script)], timeout=60).returncode == 0
    text = script.read_text()
    assert re.findall(r"^make test\b", text, re.MULTILINE) == ["make test"]
    assert [option for option in ("--last-failed", "--lf", "--reruns", "UNSTEADY") if option in text] == []
