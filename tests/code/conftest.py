"""A little project in a directory of its own, importable and gone again after the test."""

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Project = Callable[..., str]
_numbers = itertools.count(1)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Write a module and return its name; `under` places it below another directory of the search path."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(source: str, name: str = "", under: str = "") -> str:
        name = name or f"shop{next(_numbers)}"
        root = tmp_path / under
        if under and str(root) not in sys.path:
            root.mkdir(parents=True, exist_ok=True)
            monkeypatch.syspath_prepend(str(root))
        file = root.joinpath(*name.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return name

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
