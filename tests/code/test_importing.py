"""python-api.md 6: what a dotted name stands for, and when its module is loaded again."""

import logging
import os
import sys
import types
from pathlib import Path

import pytest

from holdfast import UsageError
from holdfast.code import importing
from holdfast.code.allowed import AllowList
from holdfast.code.calling import CannotRun
from holdfast.code.importing import Importer, import_class
from holdfast.code.resolver import Resolver

SHOP = """
class Parcel:
    version = {version}
    class Label:
        text = "fragile"
class Letter:
    version = {version}
def ship(job): ...
"""


def save(file: Path, source: str) -> None:
    """Save a module so that its time differs, whatever the file system's clock."""
    before = file.stat().st_mtime_ns
    file.write_text(source)
    os.utime(file, ns=(before + 1_000_000, before + 1_000_000))


@pytest.fixture
def shop(project, tmp_path) -> tuple[str, Path]:
    name = project(SHOP.format(version=1))
    return name, tmp_path / f"{name}.py"


@pytest.mark.parametrize("find", [Importer.import_class, import_class])
def test_a_class_a_nested_class_a_function_and_a_module_are_found(shop, find):
    name, _ = shop
    assert find(f"{name}.Parcel").version == 1
    assert find(f"{name}.Parcel.Label").text == "fragile"
    assert find(f"{name}.ship") is sys.modules[name].ship
    assert find(name) is sys.modules[name]


@pytest.mark.parametrize("find", [Importer.import_class, import_class])
def test_the_longest_front_that_is_a_module_is_imported(project, find):
    project("class post:\n    class Parcel: where = 'class'\n", "depot.__init__")
    project("class Parcel: where = 'module'\n", "depot.post")
    assert find("depot.post.Parcel").where == "module"


def test_a_module_that_was_only_made_in_memory_is_found(monkeypatch):
    made = types.ModuleType("made_in_memory")
    made.__dict__["Parcel"] = int
    monkeypatch.setitem(sys.modules, "made_in_memory", made)
    assert Importer.import_class("made_in_memory.Parcel") is int


@pytest.mark.parametrize("find", [Importer.import_class, import_class])
def test_what_is_nowhere_raises_as_an_import_does(shop, find):
    name, _ = shop
    for missing in ("no_such_shop", "no_such_shop.Parcel", "", ".Parcel", "shop..Parcel"):
        with pytest.raises(ModuleNotFoundError):
            find(missing)
    with pytest.raises(AttributeError):
        find(f"{name}.Crate")
    with pytest.raises(UsageError, match="name"):
        find(7)


def test_a_module_that_misses_another_one_is_not_taken_for_missing_itself(project):
    project("x = 1\n", "depot2.__init__")
    project("import nothing_of_this_name\n", "depot2.post")
    with pytest.raises(ModuleNotFoundError) as caught:
        Importer.import_class("depot2.post.Parcel")
    assert caught.value.name == "nothing_of_this_name"


def test_an_edited_module_is_loaded_again_by_the_next_import_and_only_by_that(shop):
    name, file = shop
    assert Importer.import_class(f"{name}.Parcel").version == 1
    save(file, SHOP.format(version=2))
    assert import_class(f"{name}.Parcel").version == 1
    second = Importer.import_class(f"{name}.Parcel")
    assert second.version == 2
    assert Importer.import_class(f"{name}.Parcel") is second
    assert Importer.import_class(f"{name}.Letter").version == 2


def test_a_marked_name_is_loaded_again_once_though_its_file_is_the_same(shop):
    name, _ = shop
    first = Importer.import_class(f"{name}.Parcel")
    Importer.mark_for_reload_on_next_import(f"{name}.Parcel")
    second = Importer.import_class(f"{name}.Parcel")
    assert second is not first
    assert Importer.import_class(f"{name}.Parcel") is second


def test_a_broken_save_raises_at_each_import_until_the_next_save(shop):
    name, file = shop
    Importer.import_class(f"{name}.Parcel")
    save(file, "class Parcel(:\n")
    for _ in range(2):
        with pytest.raises(SyntaxError):
            Importer.import_class(f"{name}.Parcel")
    save(file, SHOP.format(version=3))
    assert Importer.import_class(f"{name}.Parcel").version == 3


def test_a_file_that_cannot_be_looked_at_is_warned_of_once_and_the_loaded_code_used(shop, caplog):
    name, file = shop
    first = Importer.import_class(f"{name}.Parcel")
    file.unlink()
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert Importer.import_class(f"{name}.Parcel") is first
        assert Importer.import_class(f"{name}.Parcel") is first
    assert [record.message for record in caplog.records if str(file) in record.message] == [
        f"{file} cannot be read, so the code that was loaded stays in use: "
        f"[Errno 2] No such file or directory: '{file}'"
    ]


def test_a_module_without_a_file_is_never_loaded_again():
    assert Importer.import_class("sys") is sys
    assert importing.watch(sys) is None


def test_who_had_found_a_class_before_learns_of_what_another_loaded_again(shop, tmp_path):
    name, file = shop
    source = "class Parcel:\n    @staticmethod\n    def process(job): return {}\n"
    file.write_text(source.format(1))
    worker = Resolver(AllowList(roots=[tmp_path]))
    assert worker.resolve(f"{name}.Parcel", "q").call(None) == 1
    save(file, source.format(2))
    Importer.import_class(f"{name}.Parcel")
    assert worker.resolve(f"{name}.Parcel", "q").call(None) == 2


def test_a_save_that_one_asker_found_broken_is_broken_for_all(shop, tmp_path, monkeypatch):
    name, file = shop
    file.write_text("class Parcel:\n    @staticmethod\n    def process(job): ...\n")
    worker = Resolver(AllowList(roots=[tmp_path]))
    worker.resolve(f"{name}.Parcel", "q")
    monkeypatch.setattr(importing, "CHECK_INTERVAL", 3600.0)
    save(file, "class Parcel(:\n")
    with pytest.raises(SyntaxError):
        Importer.import_class(f"{name}.Parcel")
    with pytest.raises(CannotRun, match="SyntaxError"):
        worker.resolve(f"{name}.Parcel", "q")


def test_a_module_that_took_the_place_of_another_is_watched_by_its_own_file(shop, project, tmp_path):
    name, _ = shop
    assert Importer.import_class(f"{name}.Parcel").version == 1
    del sys.modules[name]
    project(SHOP.format(version=2), name, under="second")
    second = Importer.import_class(f"{name}.Parcel")
    assert second.version == 2
    assert Importer.import_class(f"{name}.Parcel") is second
    save(tmp_path / "second" / f"{name}.py", SHOP.format(version=3))
    assert Importer.import_class(f"{name}.Parcel").version == 3
