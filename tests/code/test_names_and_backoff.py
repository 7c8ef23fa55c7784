"""The stored name of a job, and the wait before its next try."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.code.job_options import exponential, make_backoff
from holdfast.code.naming import klass_name
from holdfast.errors import UsageError


class Outer:
    class Inner: ...


def test_names_are_module_and_qualified_name():
    assert klass_name(Outer.Inner) == f"{__name__}.Outer.Inner"
    assert klass_name(pytest) == "pytest"

    class Local: ...

    assert klass_name(Local) == f"{__name__}.Local"
    with pytest.raises(UsageError, match="not 3"):
        klass_name(3)


SCRIPT = "from holdfast.code.naming import klass_name\nclass Job: ...\nprint(klass_name(Job))\n"


def run(*words: str, cwd: Path, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, input=given, capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_a_script_gives_its_jobs_the_name_under_which_others_import_them(tmp_path):
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "jobs.py").write_text(SCRIPT)
    assert run("-m", "shop.jobs", cwd=tmp_path) == "shop.jobs.Job"
    assert run("jobs.py", cwd=package) == "jobs.Job"
    assert run("shop/jobs.py", cwd=tmp_path) == "jobs.Job"


def test_a_job_from_a_prompt_is_refused_with_advice(tmp_path):
    said = run("-", cwd=tmp_path, given=SCRIPT)
    assert "UsageError" in said
    assert "move it into a module" in said


def test_backoff_grows_from_a_second_to_ten_minutes_with_jitter():
    delay = exponential()
    for attempt, middle in [(1, 1.0), (2, 2.0), (5, 16.0), (9, 256.0)]:
        waits = {delay(attempt, ValueError()) for _ in range(50)}
        assert all(0.75 * middle <= wait <= 1.25 * middle for wait in waits)
        assert len(waits) > 1
    assert delay(50, ValueError()) <= 600
    assert delay(10_000, ValueError()) <= 600


def test_backoff_may_be_a_number_or_a_function():
    assert make_backoff(3)(7, ValueError()) == 3
    assert make_backoff(lambda attempt, error: attempt * 2.0)(4, ValueError()) == 8.0
    with pytest.raises(UsageError, match="backoff"):
        make_backoff(-1.0)


def test_a_program_that_imports_a_class_of_its_own_is_not_run_again(tmp_path):
    program = tmp_path / "own_program.py"
    program.write_text(
        "from holdfast.code.importing import import_class\n"
        "from holdfast.code.naming import klass_name\n"
        "class Own: pass\n"
        "print(klass_name(Own), import_class(klass_name(Own)) is Own)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, str(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == "own_program.Own True\n"
