"""The reference script: PyPI's `reqless`, fetched into a folder of its own, loaded and run, never read."""

import subprocess
import sys
from functools import cache
from pathlib import Path

PACKAGE = "reqless==1.0.0a3"
FOLDER = Path(__file__).parents[2] / ".holdfast" / "reference"
SCRIPT = FOLDER / "reqless" / "lua" / "reqless.lua"


@cache
def reference_text() -> str | None:
    """The script's text; None where the package cannot be had."""
    if not SCRIPT.exists():
        words = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(FOLDER),
            PACKAGE,
        ]
        try:
            subprocess.run(words, check=True, capture_output=True, timeout=60)
        except (subprocess.SubprocessError, OSError):
            return None
    return SCRIPT.read_text() if SCRIPT.exists() else None
