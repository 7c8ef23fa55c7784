"""The pages of the documentation, followed by a reader who types everything, on one store from the first page to the last."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from holdfast import store as embedded
from holdfast.cli.groups import DefaultGroup
from holdfast.cli.main import COMMANDS, run
from holdfast.cli.main import holdfast as program

TESTS = Path(__file__).parents[1]
TOP = TESTS.parent
README, START = TOP / "README.md", TOP / "docs" / "start.md"
WRITTEN = [README, *sorted(TOP.glob("docs/**/*.md"))]
GUIDE = [page for page in WRITTEN if page.parent.name in ("guide", "recipes")]
PAGE = 600
"""Seconds after which a page counts as hung. The longest runs 17 commands: 11 s of CPU, of which a run of all tests on two cores
leaves it a tenth; each command has a limit of its own (reader.SECONDS).
"""
READ = f"import sys; sys.path.append({str(TESTS)!r}); from reader import follow; sys.path.pop(); follow(sys.argv[1])"


def links_of(page: Path) -> list[tuple[Path, str]]:
    """The files, and the places in them, that a page leads to."""
    found = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8"))
    return [
        ((page.parent / file).resolve() if file else page, place)
        for file, place in found
        if "://" not in file
    ]


def pages_in_order() -> list[Path]:
    """README, the first ten minutes, and then what these lead to, in their order."""
    led_to = [file for file, _ in links_of(START) if file in GUIDE]
    return [README, START, *dict.fromkeys(led_to)]


def read(page: Path, directory: Path, store: Path) -> str:
    """Follow a page; return what went wrong."""
    directory.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in ("HOLDFAST_URL", "REDIS_URL")}
    ended = subprocess.run(
        [sys.executable, "-c", READ, str(page)],
        cwd=directory,
        env=kept | {"HOLDFAST_DIR": str(store)},
        capture_output=True,
        text=True,
        timeout=PAGE,
        check=False,
    )
    return ended.stderr if ended.returncode else ""


@pytest.mark.full
def test_all_pages_can_be_followed_one_after_the_other_on_one_store(tmp_path: Path) -> None:
    store = tmp_path / "store"
    try:
        for page in pages_in_order():
            # A recipe is a project of its own.
            place = page.stem if page.parent.name == "recipes" else "project"
            assert not read(page, tmp_path / place, store), page
    finally:
        embedded.stop(store)


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```pycon\n>>> 6 * 7\n43\n```\n", "page.md:2: the page shows '43\\n', but it is '42\\n'"),
        ("\n```python\nprint(6 * 7)  # 43\n```\n", "page.md:3: the page shows '43\\n', but it is '42\\n'"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError: division by zero"),
        ("```console\n$ holdfast wroker\n```\n", "holdfast wroker exited with 2"),
    ],
)
def test_a_page_that_shows_something_else_cannot_be_followed(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text)
    assert said in read(tmp_path / "page.md", tmp_path / "project", tmp_path / "store")


@pytest.mark.full
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


def mistake(line: str) -> str:
    """What is wrong with a command line: a sub-command or an option that there is not."""
    command: click.Command = program
    context = click.Context(command)
    for word in line.split()[1:]:
        name = word.split("=")[0].strip("`,;.:)")
        if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", name):
            found = command.get_command(context, name)
            if found is None and not command.invoke_without_command and command.list_commands(context):
                return f"{line}: there is no {name}"
            command = found or command
        elif re.fullmatch(r"--[a-z][a-z-]*", name):
            if isinstance(command, DefaultGroup):
                command = command.commands["list"]
            options = {one for param in command.params for one in (*param.opts, *param.secondary_opts)}
            if name not in {*options, "--help", "--version"}:
                return f"{line}: there is no option {name}"
    return ""


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_the_sub_commands_and_options_that_a_page_shows_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lines = re.findall(r"`(holdfast [a-z][^`\n]*)`", text)
    lines += re.findall(r"^(?:\$ |\{ | {4})?(holdfast [a-z][^\n#|>&]*)", text, re.MULTILINE)
    assert [wrong for line in lines if (wrong := mistake(line))] == []


@pytest.mark.full
@pytest.mark.parametrize("first", [README, START], ids=lambda page: page.stem)
def test_the_first_pages_lead_to_every_page_of_the_guide(first: Path) -> None:
    assert set(GUIDE) <= {file for file, _ in links_of(first)}


@pytest.mark.full
@pytest.mark.parametrize(
    ("given", "said"), [("wroker", "No such command 'wroker'. Did you mean 'worker'?"), ("xyz", "'xyz'.")]
)
def test_a_command_that_there_is_not_suggests_the_nearest(
    given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([given]) == 2
    assert capsys.readouterr().err.rstrip().endswith(said)
