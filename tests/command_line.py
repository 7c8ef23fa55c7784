"""The command as people call it."""

import subprocess
import sys

import programs


def holdfast(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run `holdfast` with these words to its end."""
    return programs.run([sys.executable, "-m", "holdfast.cli.main", *words], timeout=30)
