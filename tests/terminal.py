"""A program on a terminal of a given size, and what a person sees of it."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

import programs
from waiting import until


class Terminal:
    """Runs `holdfast` with these words on a pseudo-terminal. It is killed with the `with` block if it is not over."""

    def __init__(
        self, *words: str, rows: int = 24, columns: int = 80, env: Mapping[str, str] | None = None
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._file, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        given = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        given.pop("COLUMNS", None)
        given.pop("LINES", None)
        command = [sys.executable, "-m", "holdfast.cli.main", *words]
        self._program = programs.popen(
            command, env=given, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        self.pid = self._program.pid
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._program.kill()
        self._program.wait(30)
        os.close(self._file)

    def press(self, keys: str) -> None:
        """Type these keys."""
        os.write(self._file, keys.encode())

    @property
    def text(self) -> str:
        """What stands on the screen now, without trailing blanks."""
        while select.select([self._file], [], [], 0.01)[0]:
            try:
                self._stream.feed(os.read(self._file, 65_536))
            except OSError:  # the program has closed the terminal
                break
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def shows(self, *texts: str, within: float = 60.0) -> str:
        """Wait until all of these texts stand on the screen, and return all of it."""
        try:
            return (
                until(
                    lambda: (seen := self.text) and all(one in seen for one in texts) and seen,
                    f"{texts}",
                    within,
                )
                or ""
            )
        except AssertionError as error:
            error.add_note(self.text)
            raise

    def code(self, within: float = 30.0) -> int:
        """Wait for the end of the program, and return its exit code."""

        def ended() -> bool:
            _ = self.text  # or it waits until somebody reads
            return self._program.poll() is not None

        until(ended, "the program has ended", within)
        return int(self._program.returncode)


def written(
    words: Sequence[str], columns: int, directory: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Run a Python program on a terminal; returns its exit code, and everything that it wrote."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 130, columns, 0, 0))
    program = programs.popen(
        words, cwd=directory, env=env, stdin=theirs, stdout=theirs, stderr=subprocess.STDOUT
    )
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65_536):
            text += piece
    except OSError:  # the program has closed the terminal
        pass
    finally:
        os.close(ours)
    return program.wait(60), text
