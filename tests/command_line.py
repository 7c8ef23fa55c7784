"""The command as people call it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import programs

HUNG = 180
"""Seconds after which a command counts as hung. One that changes 50,000 jobs takes 4 s of CPU, of which a run of all tests on two
cores gives it a tenth.
"""


def holdfast(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run `holdfast` with these words to its end."""
    return programs.run([sys.executable, "-m", "holdfast.cli.main", *words], timeout=HUNG)


def on_a_terminal(*words: str, columns: int = 80, rows: int = 24) -> tuple[int, str]:
    """Run `holdfast` with these words on a terminal of this size; return its exit code and every character that it wrote."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "holdfast.cli.main", *words]
    process = programs.popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"}
    )
    os.close(theirs)
    written = b""
    while piece := _read(ours):
        written += piece
    os.close(ours)
    return process.wait(30), written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # a terminal whose other side is closed
        return b""
