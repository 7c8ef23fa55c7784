"""Where notices go: standard output, URLs that take JSON, chats, the desktop."""

import html
import json
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import click

from holdfast import __version__
from holdfast.cli.notices import Notice
from holdfast.errors import UsageError
from holdfast.printable import printable_json

TIMEOUT: Final = 10.0  # seconds


class Undelivered(Exception):
    """A notice did not arrive. `is_lasting`: another try would not help."""

    def __init__(self, why: object, is_lasting: bool = False) -> None:
        super().__init__(str(why))
        self.is_lasting = is_lasting


class Sink(ABC):
    """One place for notices; `name` is how it is called in messages, without secrets."""

    name: str

    @abstractmethod
    def tell(self, notice: Notice) -> None:
        """Deliver one notice. Raises Undelivered."""


class Lines(Sink):
    """Standard output: a line for each, the message of a failure below it; or JSON, one object a line."""

    name = "standard output"

    def __init__(self, as_json: bool = False) -> None:
        self._as_json = as_json

    def tell(self, notice: Notice) -> None:
        if self._as_json:
            click.echo(printable_json(json.dumps(notice.as_dict(), ensure_ascii=False)))
            return
        below = "".join(f"\n    {line}" for line in notice.message.splitlines())
        click.echo(notice.line + below)


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would send the notice to a machine that nobody named, as a GET without its body."""

    def redirect_request(
        self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> None:
        """Follow none: it is an error with the status of the redirect."""


_open: Final = build_opener(_NoRedirects).open


class Webhook(Sink):
    """A URL that takes each notice as JSON. Raises UsageError for what is no URL."""

    def __init__(self, url: str, flag: str = "--webhook") -> None:
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise UsageError(f"{flag} must be a URL such as https://host/path")  # what it is may be a secret
        self._url = url
        self.name = f"{place.scheme}://{place.hostname}"  # the rest is often a secret

    def tell(self, notice: Notice) -> None:
        body = json.dumps(self.payload(notice)).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"holdfast/{__version__}"}
        try:
            with _open(Request(self._url, body, headers, method="POST"), timeout=TIMEOUT):
                pass
        except HTTPError as error:
            error.close()
            is_lasting = 300 <= error.code < 500 and error.code not in (408, 425, 429)
            what = ", a redirect, which is not followed" if error.code < 400 else ""
            raise Undelivered(f"it answered {error.code}{what}", is_lasting) from None
        except (OSError, HTTPException, ValueError) as error:
            raise Undelivered(getattr(error, "reason", error)) from None

    def payload(self, notice: Notice) -> dict[str, Any]:
        """What is posted."""
        return notice.as_dict()


class Chat(Webhook):
    """A URL that takes messages as Slack, Mattermost and their like do: `{"text": …}`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "--chat")

    def payload(self, notice: Notice) -> dict[str, Any]:
        """What is posted: the line, and the message of a failure in a block of its own."""
        message = notice.message.replace("```", "'''").strip()
        block = f"\n```{message}```" if message else ""
        # A blank of no width keeps `@channel` in the text of a job from calling everybody.
        return {"text": re.sub(r"@(?=\w)", "@\u200b", html.escape(notice.line + block, quote=False))}


class Desktop(Sink):
    """Notifications of the desktop, by `notify-send`. Raises UsageError where there is no such program."""

    name = "notify-send"

    def __init__(self) -> None:
        found = shutil.which(self.name)
        if found is None:
            raise UsageError("--desktop needs the program notify-send, of the package libnotify")
        self._program = found

    def tell(self, notice: Notice) -> None:
        below = html.escape("\n".join(filter(None, (notice.line, notice.message[:500]))), quote=False)
        words = [self._program, "--app-name", "holdfast", "--", notice.title, below]
        try:
            subprocess.run(words, timeout=TIMEOUT, check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise Undelivered(error) from None
