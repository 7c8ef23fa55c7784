"""The reference script: PyPI's `reqless`, fetched into a folder of its own, loaded and run, never read."""

import subprocess
import sys
from functools import cache
from pathlib import Path

PACKAGE = "reqless==1.0.0a3"
FOLDER = Path(__file__).parents[2] / ".holdfast" / "reference"
SCRIPT = FOLDER / "reqless" / "lua" / "reqless.lua"


def _fetch(python: str) -> bool:
    words = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(FOLDER), PACKAGE]
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=60)
    except (subprocess.SubprocessError, OSError):
        return False
    return SCRIPT.exists()


@cache
def reference_text() -> str | None:
    """The script's text; None where the package cannot be had. A virtual environment may lack pip."""
    if SCRIPT.exists() or _fetch(sys.executable) or _fetch("python3"):
        return SCRIPT.read_text()
    return None
