"""The reference scripts: PyPI's `reqless`, fetched into folders of their own, loaded and run, never read."""

import subprocess
import sys
from functools import cache
from pathlib import Path

PACKAGE, OLDER_PACKAGE = "reqless==1.0.0a3", "reqless==0.13.3"
"""The older one speaks the protocol before, qless, and some of what came after it."""
FOLDER = Path(__file__).parents[2] / ".holdfast"


def _fetch(python: str, package: str, folder: Path) -> None:
    words = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), package]
    subprocess.run(words, check=True, capture_output=True, timeout=60)


@cache
def _text(package: str, folder: Path, name: str) -> str | None:
    """The script's text; None where the package cannot be had. A virtual environment may lack pip."""
    script = folder / "reqless" / "lua" / name
    for python in (sys.executable, "python3"):
        if not script.exists():
            try:
                _fetch(python, package, folder)
            except (subprocess.SubprocessError, OSError):
                continue
    return script.read_text() if script.exists() else None


def reference_text() -> str | None:
    return _text(PACKAGE, FOLDER / "reference", "reqless.lua")


def older_reference_text() -> str | None:
    return _text(OLDER_PACKAGE, FOLDER / "reference-older", "qless.lua")
