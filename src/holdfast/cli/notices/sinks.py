"""Places where notices are sent: standard output and the desktop, and the base class of all of them."""

import html
import json
import shutil
import socket
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

import click

from holdfast.cli.notices.notice import Notice, cut
from holdfast.errors import UsageError
from holdfast.text import printable_json

TIMEOUT: Final = 10.0
"""Seconds for one step of a delivery, such as connecting."""
LONGEST: Final = 30.0
"""Seconds for one whole delivery, however slowly the receiver responds."""
_MOST_SHOWN: Final = 500


class Undelivered(Exception):
    """A notice did not arrive.

    `is_lasting`: this notice was refused, so another try is useless. `after`: seconds that the receiver wants to be left alone.
    """

    def __init__(self, why: object, is_lasting: bool = False, after: float = 0.0) -> None:
        super().__init__(cut(" ".join(str(why).split()), 300))
        self.is_lasting = is_lasting
        self.after = after


class Sink(ABC):
    """A place where notices are sent; `name` is what messages call it, without secrets."""

    name: str

    @abstractmethod
    def deliver(self, notice: Notice) -> None:
        """Deliver one notice. Raises Undelivered."""


class Lines(Sink):
    """Standard output: a line for each notice, the message of a failure below it; or one JSON object a line."""

    name = "standard output"

    def __init__(self, as_json: bool = False) -> None:
        self._as_json = as_json

    def deliver(self, notice: Notice) -> None:
        if self._as_json:
            click.echo(printable_json(json.dumps(notice.as_dict(), ensure_ascii=False)))
            return
        below = "".join(f"\n    {line}" for line in notice.message.splitlines())
        click.echo(notice.line + below)


class Desktop(Sink):
    """Notifications of the desktop, by `notify-send`. Raises UsageError if there is no such program."""

    name = "notify-send"

    def __init__(self) -> None:
        found = shutil.which(self.name)
        if found is None:
            raise UsageError("--desktop requires the program notify-send, of the package libnotify")
        self._program = found

    def deliver(self, notice: Notice) -> None:
        lines = filter(None, (notice.line, cut(notice.message, _MOST_SHOWN)))
        below = html.escape("\n".join(lines), quote=False)
        words = [self._program, "--app-name", "holdfast", "--", notice.title, below]
        try:
            subprocess.run(words, timeout=TIMEOUT, check=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            output = error.stderr.decode(errors="replace").strip()
            raise Undelivered(f"exit status {error.returncode}" + (f": {output}" if output else "")) from None
        except subprocess.TimeoutExpired:
            raise Undelivered(f"it did not end within {TIMEOUT:g} s") from None
        except OSError as error:
            raise Undelivered(error.strerror or error) from None


@contextmanager
def ended_after(connection: Callable[[], socket.socket | None], seconds: float) -> Generator[None]:
    """Shut the connection down if the block takes longer: the timeout of a socket starts again with each byte."""

    def end() -> None:
        found = connection()
        if found is not None:
            with suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
