"""The reference scripts: PyPI's `reqless`, fetched into folders of their own, loaded and run, never read."""

import subprocess
import sys
from functools import cache
from pathlib import Path

PACKAGE, OLDER_PACKAGE = "reqless==1.0.0a3", "reqless==0.13.3"
"""The older one speaks the protocol before, qless, and some of what came after it."""
FOLDER = Path(__file__).parents[2] / ".holdfast"


FOLDERS = {PACKAGE: FOLDER / "reference", OLDER_PACKAGE: FOLDER / "reference-older"}


@cache
def fetched(package: str, folder: Path, part: str) -> Path | None:
    """A part of a package in its folder; None where it cannot be had. A virtual environment may lack pip."""
    for python in (sys.executable, "python3"):
        words = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), package]
        if not (folder / part).exists():
            try:
                subprocess.run(words, check=True, capture_output=True, timeout=60)
            except (subprocess.SubprocessError, OSError):
                continue
    return folder / part if (folder / part).exists() else None


def _text(package: str, name: str) -> str | None:
    script = fetched(package, FOLDERS[package], f"reqless/lua/{name}")
    return script and script.read_text()


def reference_text() -> str | None:
    return _text(PACKAGE, "reqless.lua")


def older_reference_text() -> str | None:
    return _text(OLDER_PACKAGE, "qless.lua")
