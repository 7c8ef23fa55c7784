"""How a klass is found: which method runs, what is said when it cannot, and reloading."""

import importlib
import os
from pathlib import Path

import pytest

from holdfast.code import importing
from holdfast.code.allowed import AllowList
from holdfast.code.calling import CannotRun
from holdfast.code.resolver import Resolver


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch):
    monkeypatch.setattr(importing, "CHECK_INTERVAL", 0.0)


def make(root: Path, *queues: str, auto_complete: bool = False) -> Resolver:
    return Resolver(AllowList(roots=[root]), plain_queues=queues, auto_complete=auto_complete)


def save(name: str, root: Path, source: str) -> None:
    """Save a module and make sure that its time differs, whatever the file system's clock."""
    file = root / f"{name}.py"
    before = file.stat().st_mtime_ns
    file.write_text(source)
    os.utime(file, ns=(before + 1_000_000, before + 1_000_000))


THREE = """
class Parcel:
    @staticmethod
    def pack(job): return "pack"
    @classmethod
    def process(cls, job): return "process"
class Older:
    @staticmethod
    def perform(job): return "perform"
class Outer:
    class Inner:
        @staticmethod
        def process(job): return "inner"
def pack(job): return "module"
"""


def test_the_queues_method_goes_before_process(project, tmp_path):
    name = project(THREE)
    found = make(tmp_path, "pack", "ship")
    assert found.resolve(f"{name}.Parcel", "pack").call(None) == "pack"
    assert found.resolve(f"{name}.Parcel", "ship").call(None) == "process"


def test_under_a_pattern_the_queue_does_not_choose_the_method(project, tmp_path):
    name = project(THREE)
    assert make(tmp_path).resolve(f"{name}.Parcel", "pack").call(None) == "process"


def test_nested_classes_and_modules_are_found(project, tmp_path):
    name = project(THREE)
    found = make(tmp_path, "pack")
    assert found.resolve(f"{name}.Outer.Inner", "q").call(None) == "inner"
    assert found.resolve(name, "pack").call(None) == "module"


def test_only_perform_and_auto_complete_complete_by_returning(project, tmp_path):
    name = project(THREE)
    assert make(tmp_path).resolve(f"{name}.Older", "q").completes
    assert not make(tmp_path).resolve(f"{name}.Parcel", "q").completes
    assert make(tmp_path, auto_complete=True).resolve(f"{name}.Parcel", "q").completes


def refusal(found: Resolver, klass: str) -> CannotRun:
    with pytest.raises(CannotRun) as caught:
        found.resolve(klass, "q")
    return caught.value


@pytest.mark.parametrize(
    ("source", "attribute", "reason"),
    [
        ("import nothing_of_this_name\n", "Parcel", "ModuleNotFoundError"),
        ("def broken(:\n", "Parcel", "SyntaxError"),
        ("1 / 0\n", "Parcel", "ZeroDivisionError"),
        ("raise SystemExit(3)\n", "Parcel", "SystemExit"),
        ("x = 1\n", "Parcel", "AttributeError"),
    ],
)
def test_what_cannot_be_imported_keeps_its_message_and_traceback(
    project, tmp_path, source, attribute, reason
):
    name = project(source)
    refused = refusal(make(tmp_path), f"{name}.{attribute}")
    assert refused.reason == reason
    assert refused.message.startswith(f"Failed to import {name}.{attribute}\n")
    assert "Traceback (most recent call last)" in refused.message
    assert reason in refused.message


def test_a_module_that_is_nowhere_fails_as_not_found(tmp_path):
    refused = refusal(make(tmp_path), "no_such_shop.Parcel")
    assert refused.reason == "ModuleNotFoundError"
    assert refused.message.startswith("Failed to import no_such_shop.Parcel")


VERSION = "class Job:\n    @staticmethod\n    def process(job): return {}\n"


def test_an_edited_module_is_loaded_again_once(project, tmp_path):
    name = project(VERSION.format(1))
    found = make(tmp_path)
    assert found.resolve(f"{name}.Job", "q").call(None) == 1
    save(name, tmp_path, VERSION.format(2))
    target = found.resolve(f"{name}.Job", "q")
    assert target.call(None) == 2
    assert found.resolve(f"{name}.Job", "q") is target


FUNCTION = """
import holdfast

app = holdfast.Client("redis://127.0.0.1:1")

@app.job(queue="q"{1})
def {0}() -> str:
    return "{0}"
"""


def test_a_function_that_was_renamed_is_unknown_under_its_old_name_after_a_reload(project, tmp_path):
    name = project(FUNCTION.format("before", ""))
    found = make(tmp_path)
    assert found.resolve(f"{name}.before", "q").call() == "before"
    save(name, tmp_path, FUNCTION.format("after", ""))
    assert refusal(found, f"{name}.before").reason == "AttributeError"
    assert found.resolve(f"{name}.after", "q").call() == "after"


def test_another_function_may_take_a_name_by_a_reload(project, tmp_path):
    name = project(FUNCTION.format("before", ", name='reloaded'"))
    found = make(tmp_path)
    importlib.import_module(name)
    assert found.resolve("reloaded", "q").call() == "before"
    save(name, tmp_path, FUNCTION.format("after", ", name='reloaded'"))
    assert found.resolve("reloaded", "q").call() == "after"
    save(name, tmp_path, "def broken(:")
    assert refusal(found, "reloaded").reason == "SyntaxError"
    save(name, tmp_path, FUNCTION.format("after", ", name='reloaded'"))
    assert found.resolve("reloaded", "q").call() == "after"


def test_a_broken_save_fails_each_job_until_the_next_save(project, tmp_path):
    name = project(VERSION.format(1))
    found = make(tmp_path)
    found.resolve(f"{name}.Job", "q")
    save(name, tmp_path, "def broken(:\n")
    assert refusal(found, f"{name}.Job").reason == "SyntaxError"
    assert refusal(found, f"{name}.Job").reason == "SyntaxError"
    save(name, tmp_path, VERSION.format(3))
    assert found.resolve(f"{name}.Job", "q").call(None) == 3


def test_a_file_that_is_gone_leaves_the_loaded_code_in_use(project, tmp_path):
    name = project(VERSION.format(1))
    found = make(tmp_path)
    found.resolve(f"{name}.Job", "q")
    (tmp_path / f"{name}.py").unlink()
    assert found.resolve(f"{name}.Job", "q").call(None) == 1
