"""The written reference says what the program says."""

import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.commands import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = DOCS / "reference"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages as they are written now, by a process of its own: no test has run a command in it before."""
    folder = tmp_path_factory.mktemp("reference")
    command = [sys.executable, str(DOCS / "generators" / "reference.py"), str(folder)]
    subprocess.run(command, check=True, timeout=120)
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.mark.full
def test_the_pages_of_the_reference_are_up_to_date(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert (WRITTEN / name).read_text(encoding="utf-8") == text, f"{name}: run `make docs`"


@pytest.mark.full
def test_every_verb_is_in_the_reference_with_its_arguments_and_its_reply(pages: dict[str, str]) -> None:
    sections = {part.partition("\n")[0]: part for part in pages["verbs.md"].split("\n## ")[1:]}
    assert set(sections) == set(COMMANDS)
    for verb, command in COMMANDS.items():
        for name in command.__struct_fields__:
            assert f"\n| `{name}` | " in sections[verb], (verb, name)
        assert "\nReply, as read: " in sections[verb]
    assert "\n| `priority` | whole number, -4,095 to 4,095 | `0` |" in sections["put"]


@pytest.mark.full
def test_every_public_name_is_on_the_page_of_the_python_api_as_it_is_called(pages: dict[str, str]) -> None:
    text = pages["api.md"]
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
