"""The command as people call it."""

import subprocess
import sys


def holdfast(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run `holdfast` with these words to its end."""
    return subprocess.run(
        [sys.executable, "-m", "holdfast.cli.main", *words], capture_output=True, text=True, timeout=30
    )
