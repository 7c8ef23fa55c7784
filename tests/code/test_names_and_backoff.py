"""The stored name of a job, and the wait before its next try."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.code.backoff import DEFAULT_WORDS, backoff_text, code_backoff
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


def test_the_backoff_of_a_function_is_what_the_core_writes_or_the_function():
    assert code_backoff(None) == ""
    assert code_backoff(3) == "fixed:3000:3000:0"
    assert code_backoff("exponential") == "exponential:1000:600000:25" == DEFAULT_WORDS
    assert code_backoff(rising) is rising
    with pytest.raises(UsageError, match="backoff"):
        code_backoff(-1.0)


def rising(attempt, error):
    return attempt * 2.0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("fixed:1500:1500:0", "1.5 s"),
        ("exponential:1000:600000:25", "1 s to 600 s"),
        (DEFAULT_WORDS, "1 s to 600 s"),
    ],
)
def test_a_backoff_is_shown_in_seconds(words, text):
    assert backoff_text(words) == text


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
