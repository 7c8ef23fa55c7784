"""What is in the packages: `python tests/architecture/distribution.py dist [v1.2.3]`, which `make dist` runs."""

import re
import sys
import tarfile
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

from source_tree import PACKAGE, ROOT

NAME = "holdfast_jobs"
OF_A_WHEEL = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
IN_AN_SDIST = (
    "src", "tests", "docs", "benchmarks", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    "LICENSE", "Makefile", "constraints.txt", "pyproject.toml", "PKG-INFO",
)  # fmt: skip


def release() -> tuple[str, bool]:
    """Return the version of the checkout, and whether its core is a release: not `<version>.dev`."""
    text = (PACKAGE / "release.py").read_text()
    version = re.search(r'^VERSION = "(.+)"$', text, re.MULTILINE)
    assert version
    return version[1], re.search(r"^CORE_VERSION = VERSION$", text, re.MULTILINE) is not None


def package_files() -> set[str]:
    """Return the files of the package, as a wheel names them."""
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    return {path.relative_to(PACKAGE.parent).as_posix() for path in files}


def faults_of_wheel(path: Path, version: str) -> list[str]:
    """Return what is wrong with a wheel."""
    with ZipFile(path) as wheel:
        names = set(wheel.namelist())
        metadata = Parser().parsestr(wheel.read(f"{NAME}-{version}.dist-info/METADATA").decode())
    expected = package_files() | {f"{NAME}-{version}.dist-info/{name}" for name in OF_A_WHEEL}
    faults = [f"{path.name}: {name} is missing" for name in sorted(expected - names)]
    faults += [f"{path.name}: {name} does not belong there" for name in sorted(names - expected)]
    if (metadata["Name"], metadata["Version"]) != ("holdfast-jobs", version):
        faults.append(f"{path.name}: its name is {metadata['Name']} {metadata['Version']}")
    return faults


def faults_of_sdist(path: Path, version: str) -> list[str]:
    """Return what is wrong with an sdist."""
    with tarfile.open(path) as sdist:
        names = {name.removeprefix(f"{NAME}-{version}/") for name in sdist.getnames()}
    tops = {name.partition("/")[0] for name in names}
    faults = [f"{path.name}: {name} is missing" for name in IN_AN_SDIST if name not in tops]
    faults += [
        f"{path.name}: src/{name} is missing"
        for name in sorted(package_files())
        if f"src/{name}" not in names
    ]
    return faults


def faults_of_tag(tag: str, version: str, released: bool) -> list[str]:
    """Return what keeps this checkout from being the release of a tag."""
    faults = [] if tag == f"v{version}" else [f"the tag is {tag}, and src/holdfast/release.py has {version}"]
    if not released:
        faults.append(
            "src/holdfast/release.py: expected CORE_VERSION = VERSION; a core `.dev` is replaced by others"
        )
    if not re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    ):
        faults.append(f"CHANGELOG.md: expected `## {version} (<date>)`")
    return faults


def faults_in(directory: Path, tag: str = "") -> list[str]:
    """Return what is wrong with the packages in a directory; with a tag, also whether they are its release."""
    version, released = release()
    wheel = directory / f"{NAME}-{version}-py3-none-any.whl"
    sdist = directory / f"{NAME}-{version}.tar.gz"
    faults = [f"{path.name} was not built" for path in (wheel, sdist) if not path.exists()]
    faults += [
        f"{path.name} does not belong there"
        for path in sorted(directory.iterdir())
        if path not in (wheel, sdist)
    ]
    if wheel.exists():
        faults += faults_of_wheel(wheel, version)
    if sdist.exists():
        faults += faults_of_sdist(sdist, version)
    return faults + (faults_of_tag(tag, version, released) if tag else [])


def main(directory: str, tag: str = "") -> int:
    faults = faults_in(Path(directory), tag)
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{directory}: the wheel has {len(package_files())} files of the package; nothing is wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
