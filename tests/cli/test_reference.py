"""The written reference says what the program says."""

import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.cli import reference

WRITTEN = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.full
def test_the_pages_of_the_reference_are_up_to_date(tmp_path: Path) -> None:
    # In a process of its own: a command that another test has run alone remembers how its --help was named there.
    command = [sys.executable, "-m", "holdfast.cli.reference", str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    for name in reference.pages():
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert (WRITTEN / name).read_text(encoding="utf-8") == text, f"{name}: run `make docs`"


def test_every_verb_is_in_the_reference() -> None:
    text = reference.verbs()
    for verb in reference.COMMANDS:
        assert f"\n## {verb}\n" in text


@pytest.mark.full
def test_every_public_name_is_on_the_page_of_the_python_api_as_it_is_called() -> None:
    text = reference.pages()["api.md"]
    assert [
        name for name in holdfast.__all__ if f"\n### {name}\n" not in text and f"`{name}`" not in text
    ] == []
    for line in (
        "* `pop(count: None = None) -> Job | None`, `pop(count: int) -> list[Job]`: ",
        "* `fail(group: str, message: str = '') -> str`: ",
        "* `counts: list[dict[str, Any]]`: ",
        "Failed(group: str, message: str = '')",
    ):
        assert line in text
