"""The packages: what is built is what belongs into them, and each group of tools has what its files import."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from zipfile import ZipFile

import pytest
from distribution import NAME, faults_in, faults_of_tag, package_files, release
from source_tree import ROOT


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an sdist of this checkout."""
    directory = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


@pytest.mark.full
def test_wheel_and_sdist_have_what_belongs_into_them(built: Path) -> None:
    assert faults_in(built) == []


@pytest.mark.full
def test_a_file_that_is_missing_or_too_many_is_found(built: Path, tmp_path: Path) -> None:
    version, _ = release()
    name = f"{NAME}-{version}-py3-none-any.whl"
    with ZipFile(built / name) as right, ZipFile(tmp_path / name, "w") as wrong:
        for one in right.namelist():
            if one != "holdfast/py.typed":
                wrong.writestr(one, right.read(one))
        wrong.writestr("tests/test_jobs.py", "")
    assert faults_in(tmp_path) == [
        f"{NAME}-{version}.tar.gz was not built",
        f"{name}: holdfast/py.typed is missing",
        f"{name}: tests/test_jobs.py does not belong there",
    ]


def test_a_wheel_has_the_core_and_the_pages_of_the_web_ui() -> None:
    kinds = {name.rpartition(".")[2] for name in package_files()}
    assert kinds >= {"py", "lua", "html", "js", "css", "typed"}


def test_a_tag_that_is_not_the_version_is_refused_and_so_is_a_development_core() -> None:
    version, _ = release()
    found = faults_of_tag("v99.0", version, released=False)
    assert found[0] == f"the tag is v99.0, and src/holdfast/release.py has {version}"
    assert "CORE_VERSION" in found[1]
    assert faults_of_tag("v0.0.1", "0.0.1", released=True) == ["CHANGELOG.md: expected `## 0.0.1 (<date>)`"]


def distributions(requirements: list[str], extras: dict[str, list[str]]) -> set[str]:
    """Return the names of distributions that some requirements name, with those of our own extras."""
    found: set[str] = set()
    for requirement in requirements:
        own = re.fullmatch(r"holdfast-jobs\[(.+)\]", requirement)
        for extra in own[1].split(",") if own else []:
            found |= distributions(extras[extra], extras)
        if not own:
            found.add(plain(re.split(r"[\[<>=!~; ]", requirement)[0]))
    return found


def plain(name: str) -> str:
    return name.lower().replace("_", "-")


def with_what_they_need(names: set[str]) -> set[str]:
    """Return some distributions with those that they need, as far as they are installed."""
    found: set[str] = set()
    left = set(names)
    while left:
        name = left.pop()
        found.add(name)
        try:
            needed = requires(name) or []
        except PackageNotFoundError:
            continue
        left |= {plain(re.split(r"[\[<>=!~;( ]", one)[0]) for one in needed if "extra ==" not in one} - found
    return found


def imported(folder: Path) -> set[str]:
    """Return the top-level modules that the files of a folder import."""
    names: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize(
    ("folder", "group"),
    [
        ("tests", "dev-test"),
        ("benchmarks", "dev-bench"),
        ("docs/generators", "dev-docs"),
        ("src", "dev-lint"),
    ],
)
def test_a_group_has_what_its_files_import(folder: str, group: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    has = distributions([*project["dependencies"], *extras[group]], extras)
    has = with_what_they_need(distributions([*project["dependencies"], *extras[group]], extras))
    owners = packages_distributions()
    missing = {
        name: owners[name]
        for name in imported(ROOT / folder) - set(sys.stdlib_module_names) - {"holdfast"}
        if name in owners and not {plain(one) for one in owners[name]} & has
    }
    assert missing == {}


def test_all_groups_together_are_what_make_installs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    groups = {name for name in extras if name.startswith("dev-")}
    assert distributions(["holdfast-jobs[dev]"], extras) == distributions(
        [f"holdfast-jobs[{','.join(sorted(groups))}]"], extras
    )
    makefile = (ROOT / "Makefile").read_text()
    assert "$(INSTALL) '.[dev]'" in makefile


def test_what_is_installed_for_work_has_one_version() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = {plain(line.partition("==")[0]) for line in (ROOT / "constraints.txt").read_text().split()}
    assert distributions(["holdfast-jobs[dev]"], extras) - pinned == set()
