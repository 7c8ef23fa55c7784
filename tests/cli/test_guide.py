"""The code of the guide, run from top to bottom as its reader would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.main import COMMANDS, run

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
TOP = GUIDE.parents[1]
WRITTEN = [TOP / "README.md", *sorted(TOP.glob("docs/**/*.md"))]


def links_of(page: Path) -> list[tuple[Path, str]]:
    """The files, and the places in them, that a page leads to."""
    found = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8"))
    return [
        ((page.parent / file).resolve() if file else page, place)
        for file, place in found
        if "://" not in file
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_and_what_it_says_is_so(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    kept = {name: value for name, value in os.environ.items() if name not in ("HOLDFAST_URL", "REDIS_URL")}
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env=kept | {"HOLDFAST_DIR": str(tmp_path / "store")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert blocks
    assert ended.returncode == 0, ended.stderr


def test_there_is_a_page_about_jobs() -> None:
    assert "jobs" in [page.stem for page in PAGES]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    for file, place in links_of(page):
        assert file.exists(), file
        titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE) if place else []
        assert not place or place in [title.lower().replace(" ", "-") for title in titles], place


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_the_commands_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"(?:`|^ {4}|^\$ |^\{ )holdfast ([a-z]+)", text, re.MULTILINE)
    assert set(named) <= set(COMMANDS)


@pytest.mark.parametrize("first", ["README.md", "docs/start.md"])
def test_the_first_pages_lead_to_every_page_of_the_guide(first: str) -> None:
    assert set(PAGES) <= {file for file, _ in links_of(TOP / first)}


@pytest.mark.parametrize(
    ("given", "said"), [("wroker", "No such command 'wroker'. Did you mean 'worker'?"), ("xyz", "'xyz'.")]
)
def test_a_command_that_there_is_not_suggests_the_nearest(
    given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([given]) == 2
    assert capsys.readouterr().err.rstrip().endswith(said)
