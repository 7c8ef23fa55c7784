"""Notices over HTTP: to programs as signed JSON, and to chats."""

import html
import json
import re
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from holdfast.cli.notices.notice import Digest, Notice, cut
from holdfast.cli.notices.sinks import LONGEST, TIMEOUT, Sink, Undelivered, ended_after
from holdfast.client.signature import HEADER, signature
from holdfast.errors import UsageError
from holdfast.release import VERSION
from holdfast.settings import is_authority

_MOST_CHAT: Final = 3000
_LONGEST_RETRY: Final = 3600.0


class _Connection(HTTPConnection):
    """A connection on which the whole response has to come in time."""

    def getresponse(self) -> HTTPResponse:
        with ended_after(lambda: self.sock, LONGEST):
            return super().getresponse()


class _SecureConnection(HTTPSConnection):
    """The same with TLS."""

    def getresponse(self) -> HTTPResponse:
        with ended_after(lambda: self.sock, LONGEST):
            return super().getresponse()


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class _Https(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureConnection, req)


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect, which would send the notice to another machine, as a GET without its body."""

    def redirect_request(
        self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> None:
        """Return None, which makes the redirect an error with its status."""


_open: Final = partial(build_opener(_NoRedirects, _Http, _Https).open, timeout=TIMEOUT)


def _base_of(url: str) -> str:
    """Return scheme and host of an HTTP URL, an empty string if it is none."""
    try:
        split = urlsplit(url)
    except ValueError:
        return ""
    is_plain = url.isascii() and url.isprintable() and " " not in url and "@" not in split.netloc
    valid = is_plain and split.scheme in ("http", "https") and is_authority(split.netloc)
    return f"{split.scheme}://{split.netloc}" if valid else ""


class Webhook(Sink):
    """A URL that each notice is posted to as JSON, signed if there is a secret. Raises UsageError for anything but an HTTP URL."""

    def __init__(self, url: str, secret: bytes = b"", flag: str = "--webhook") -> None:
        base = _base_of(url)
        if not base:
            raise UsageError(f"{flag} must be a URL such as https://host/path")  # its text may be a secret
        self._url, self._secret = url, secret
        self.name = base  # the rest is often a secret

    def deliver(self, notice: Notice) -> None:
        body = json.dumps(self.payload(notice)).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"holdfast/{VERSION}"}
        if self._secret:
            headers[HEADER] = signature(self._secret, body)
        try:
            with _open(Request(self._url, body, headers, method="POST")):
                pass
        except HTTPError as error:
            error.close()
            raise _refused(error) from None
        except OSError as error:
            raise Undelivered(getattr(error, "reason", error)) from None
        except (HTTPException, ValueError) as error:
            raise Undelivered(type(error).__name__) from None  # its text may have the path

    def payload(self, notice: Notice) -> dict[str, Any]:
        """Return what is posted."""
        return notice.as_dict()


def _refused(error: HTTPError) -> Undelivered:
    is_lasting = 300 <= error.code < 500 and error.code not in (408, 425, 429)
    what = ", a redirect, which is not followed" if error.code < 400 else ""
    after = str(error.headers.get("Retry-After", "")).strip()
    seconds = min(float(after), _LONGEST_RETRY) if re.fullmatch("[0-9]{1,9}", after) else 0.0
    return Undelivered(f"HTTP status {error.code}{what}", is_lasting, seconds)


class Chat(Webhook):
    """A URL that takes messages as Slack and Mattermost do: `{"text": …}`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, flag="--chat")

    def payload(self, notice: Notice) -> dict[str, Any]:
        """Return what is posted: the head and the link, and the message of a failure in a block of its own."""
        if isinstance(notice, Digest):
            return {
                "text": "\n".join(filter(None, (notice.title, *map(_linked, notice.listed), notice.rest)))
            }
        message = cut(notice.message.strip(), _MOST_CHAT)
        block = f"\n```{_as_text(message)}```" if message else ""
        return {"text": _linked(notice) + block}


def _linked(notice: Notice) -> str:
    return f"{_as_text(notice.head)} {_escaped(notice.link)}".rstrip()


def _as_text(text: str) -> str:
    """Return text that calls nobody, hides no URL and ends no block: with zero-width spaces behind `@` and inside of links."""
    return re.sub(r"@(?=\w)|\](?=[(\[])", "\\g<0>\u200b", _escaped(text)).replace("```", "'''")


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
