"""The released clients: each in a folder of its own, with what it needs beside it; run, never read."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from reference import FOLDER, FOLDERS, OLDER_PACKAGE, PACKAGE, fetched

from holdfast.core.texts import TEXTS

HERE = Path(__file__).parent
NEEDS = "decorator"
"""What the packages need and this project does not have; the driver is the one that we use."""
SCRIPTS = {PACKAGE: "reqless", OLDER_PACKAGE: "qless"}
"""Which of our texts each is given."""


def environment(package: str) -> dict[str, str] | None:
    """What a process needs to import the package, None where it cannot be had."""
    needs = FOLDER / "reference-needs"
    if not fetched(package, FOLDERS[package], "reqless") or not fetched(NEEDS, needs, NEEDS):
        return None
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, FOLDERS[package], needs)))}


def script_of(package: str, whose: str, folder: Path) -> str:
    """`own`, or a file with our text."""
    if whose == "own":
        return "own"
    text = TEXTS[SCRIPTS[package]]
    path = folder / text.file
    path.write_text(text.make(), encoding="utf-8")
    return str(path)


def visit(package: str, script: str, url: str, *words: str) -> list[str]:
    """The words of a process that runs `visitor`."""
    return [sys.executable, str(HERE / "visitor.py"), words[0], url, script, *words[1:]]


@cache
def told(package: str, script: str, url: str) -> dict[str, str]:
    """How each story went, all of them told by one process."""
    done = subprocess.run(
        visit(package, script, url, "stories"),
        env=environment(package),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout)
    return answers
