"""The README's own code, run as its reader would: files, a worker, a program."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
JOBS, WAITING, PARCELS, CLIENT = BLOCKS


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "parcels.py").write_text(PARCELS)
    return tmp_path


@pytest.fixture
def environment(project: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("HOLDFAST_URL", "REDIS_URL")}
    return kept | {"HOLDFAST_DIR": str(project / "store"), "PYTHONPATH": str(project)}


def run(code: str, project: Path, environment: dict[str, str]) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_first_program_gets_the_result_of_its_job(project: Path, environment: dict[str, str]) -> None:
    words = ["worker", "--queue", "mail", "--import", "jobs"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli.main", *words],
        cwd=project,
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert run(WAITING, project, environment) == "welcomed 7 in de\n"
    finally:
        worker.send_signal(signal.SIGQUIT)
        assert worker.wait(30) == 0


def test_the_pipeline_is_put_looked_at_and_worked_empty(project: Path, environment: dict[str, str]) -> None:
    said = run(CLIENT, project, environment).splitlines()
    assert said[0].startswith("waiting [{'what': 'put'")
    assert "'waiting': 999" in said[1]
    words = ["worker", "-q", "pack", "-q", "ship", "--import", "parcels", "--drain"]
    subprocess.run(
        [sys.executable, "-m", "holdfast.cli.main", *words],
        cwd=project,
        env=environment,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=True,
    )
    done = "import holdfast; print(len(holdfast.Client().jobs.complete(0, 2000)))"
    assert run(done, project, environment) == "998\n"
