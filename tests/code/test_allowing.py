"""Which klass names a worker follows, and that nothing is imported before it is allowed."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.code.allowed import AllowList
from holdfast.code.calling import CannotRun
from holdfast.code.resolver import Resolver

JOB = "class Parcel:\n    @staticmethod\n    def process(job): return 'processed'\n"


def resolver(root: Path, *queues: str, **options: Any) -> Resolver:
    return Resolver(AllowList(roots=[root], **options), plain_queues=queues)


def refusal(found: Resolver, klass: str, queue: str = "q") -> CannotRun:
    with pytest.raises(CannotRun) as caught:
        found.resolve(klass, queue)
    return caught.value


def test_an_installed_package_is_refused_and_not_imported(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name == "pip" or name.startswith("pip.")]:
        monkeypatch.delitem(sys.modules, name)
    # The project directory holds the virtual environment, as it usually does.
    refused = refusal(resolver(Path(sys.prefix).parent, "rmtree"), "pip._internal.utils.misc", "rmtree")
    assert refused.reason == "NotAllowed"
    assert "--allow" in refused.message
    assert not any(name == "pip" or name.startswith("pip.") for name in sys.modules)


@pytest.mark.parametrize(
    "klass", ["os.system", "shutil", "builtins.exec", "sys", "holdfast.client.sync.Client"]
)
def test_the_standard_library_and_holdfast_itself_are_never_allowed_by_location(klass):
    assert refusal(resolver(Path("/"), "rmtree", "process"), klass, "rmtree").reason == "NotAllowed"


def test_a_module_outside_every_root_is_refused_and_not_imported(project, tmp_path):
    name = project("raise SystemError('imported')\n" + JOB, under="elsewhere")
    root = tmp_path / "app"
    root.mkdir()
    assert refusal(resolver(root), f"{name}.Parcel").reason == "NotAllowed"
    assert name not in sys.modules


def test_a_package_in_site_packages_below_the_root_is_refused(project, tmp_path):
    name = project(JOB, under="venv/lib/site-packages")
    assert refusal(resolver(tmp_path), f"{name}.Parcel").reason == "NotAllowed"
    assert name not in sys.modules


@pytest.mark.parametrize("how", ["modules", "prefixes"])
def test_a_module_outside_is_allowed_when_it_is_named(project, tmp_path, how):
    name = project(JOB, under="venv/lib/site-packages")
    found = resolver(tmp_path / "none", **{how: [name]})
    assert found.resolve(f"{name}.Parcel", "q").call(None) == "processed"


def test_a_prefix_ends_at_a_dot(project, tmp_path):
    name = project(JOB)
    assert refusal(resolver(tmp_path / "none", prefixes=[name[:-1]]), f"{name}.Parcel").reason == "NotAllowed"


def test_names_that_are_not_identifiers_are_refused(project, tmp_path):
    project(JOB, name="holdfast-workers.sandbox-0.evil")
    assert refusal(resolver(tmp_path), "holdfast-workers.sandbox-0.evil.Parcel").reason == "NotAllowed"
    for klass in ("..evil", "a..b", "", "é b", "__main__.x y"):
        assert refusal(resolver(tmp_path), klass).reason == "NotAllowed"


def test_what_a_module_merely_imported_is_refused(project, tmp_path):
    inner = project(JOB)
    name = project(
        f"import os\nfrom shutil import rmtree\nfrom {inner} import Parcel\n"
        "class Own:\n    @staticmethod\n    def process(job): return 'own'\n"
    )
    found = resolver(tmp_path, "rmtree", "system")
    assert refusal(found, f"{name}.Parcel").reason == "NotAllowed"
    assert refusal(found, name, "rmtree").reason == "NotAllowed"
    assert refusal(found, f"{name}.os", "system").reason == "NotAllowed"
    assert refusal(found, f"{name}.os.path", "system").reason == "NotAllowed"
    assert found.resolve(f"{name}.Own", "rmtree").call(None) == "own"


OPERATIONS = "def process(job): return 'operated'\n"


@pytest.mark.parametrize("way", ["{0}.{1}", "{0}.Own.{1}"])
def test_a_module_reached_as_an_attribute_must_be_allowed_itself(project, tmp_path, way):
    library = project(OPERATIONS, under="venv/lib/site-packages")
    name = project(f"import {library}\nclass Own:\n    {library} = {library}\n")
    klass = way.format(name, library)
    assert refusal(resolver(tmp_path), library).reason == "NotAllowed"
    refused = refusal(resolver(tmp_path), klass)
    assert (refused.reason, refused.is_unknown) == ("NotAllowed", False)
    assert library in refused.message
    assert resolver(tmp_path, modules=[library]).resolve(klass, "q").call(None) == "operated"


def test_a_method_counts_when_inherited_from_an_allowed_base_only(project, tmp_path):
    base = project(JOB)
    name = project(
        f"from {base} import Parcel\nfrom string import Formatter\n"
        "class Good(Parcel): pass\nclass Bad(Formatter): pass\n"
    )
    found = resolver(tmp_path, "format")
    assert found.resolve(f"{name}.Good", "format").call(None) == "processed"
    assert refusal(found, f"{name}.Bad", "format").reason == "NotAllowed"


def test_an_allowed_klass_without_a_method_says_so(project, tmp_path):
    name = project("class Idle:\n    size = 3\n    def _hidden(job): pass\n")
    refused = refusal(resolver(tmp_path, "_hidden", "__init__", "size"), f"{name}.Idle", "_hidden")
    assert refused.reason == "method-missing"
    assert refused.message == f'{name}.Idle is missing a method "_hidden" or "process"'


def test_a_plain_function_that_is_no_job_is_refused(project, tmp_path):
    name = project("def process(job): pass\n")
    assert refusal(resolver(tmp_path), f"{name}.process").reason == "NotAllowed"


def test_a_loaded_module_of_the_same_name_from_elsewhere_is_not_used(project, tmp_path):
    outside = project(
        "class Parcel:\n    @staticmethod\n    def process(job): return 'outside'\n", under="outside"
    )
    __import__(outside)
    project(JOB, name=outside, under="app")
    assert refusal(resolver(tmp_path / "app"), f"{outside}.Parcel").reason == "NotAllowed"


def here(directory: Path, **options: Any) -> Resolver:
    return Resolver(AllowList(directory=directory, **options))


@pytest.mark.parametrize("name", ["{0}", "{0}.inner", "{0}.inner.deep"])
def test_modules_and_regular_packages_directly_in_the_working_directory_are_allowed(project, tmp_path, name):
    name = project(JOB, name=name.format(f"pack{tmp_path.name.replace('-', '_')}"))
    for count in range(1, name.count(".") + 1):
        tmp_path.joinpath(*name.split(".")[:count], "__init__.py").touch()
    assert here(tmp_path).resolve(f"{name}.Parcel", "q").call(None) == "processed"


@pytest.mark.parametrize(
    "name",
    ["setup", "conftest", "tests.jobs", "uploads.avatar", "good.uploads.avatar", "uploads.good.avatar"],
)
def test_what_else_lies_in_the_working_directory_is_refused_and_not_imported(
    project, tmp_path, monkeypatch, name
):
    monkeypatch.delitem(sys.modules, name.partition(".")[0], raising=False)
    project("raise SystemError('imported')\n" + JOB, name=name)
    for package in ("tests", "good", "uploads/good"):
        if (tmp_path / package).is_dir():
            (tmp_path / package / "__init__.py").touch()
    refused = refusal(here(tmp_path), f"{name}.Parcel")
    assert refused.reason == "NotAllowed"
    assert name not in sys.modules
    assert resolver(tmp_path).allow.locate(f"{name}.Parcel").module == name  # a path allows all below it


def test_nothing_is_allowed_by_location_where_the_working_directory_is_the_root(project, tmp_path):
    name = project(JOB)
    (tmp_path / "__init__.py").touch()
    assert refusal(here(Path("/")), f"{name}.Parcel").reason == "NotAllowed"
    nested = ".".join((*tmp_path.parts[1:], name)).replace("-", "_")
    assert refusal(here(Path("/")), f"{nested}.Parcel").reason in ("NotAllowed", "ModuleNotFoundError")


@pytest.mark.parametrize("what", ["file", "package"])
def test_what_anyone_may_write_is_refused(project, tmp_path, what):
    name = project(JOB, name=f"written{tmp_path.name.replace('-', '_')}.jobs")
    package = tmp_path / name.partition(".")[0]
    (package / "__init__.py").touch()
    path = package if what == "package" else package / "jobs.py"
    path.chmod(path.stat().st_mode | 0o002)
    assert refusal(here(tmp_path), f"{name}.Parcel").reason == "NotAllowed"
    path.chmod(path.stat().st_mode & ~0o002)
    assert here(tmp_path).resolve(f"{name}.Parcel", "q").call(None) == "processed"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_is_refused(project, tmp_path):
    name = project(JOB)
    os.chown(tmp_path / f"{name}.py", 12345, 12345)
    assert refusal(here(tmp_path), f"{name}.Parcel").reason == "NotAllowed"


def test_a_namespace_package_within_another_is_found_below_a_path(project, tmp_path, monkeypatch):
    name = project(JOB, name=f"outer{tmp_path.name.replace('-', '_')}.inner.jobs")
    assert resolver(tmp_path).resolve(f"{name}.Parcel", "q").call(None) == "processed"
