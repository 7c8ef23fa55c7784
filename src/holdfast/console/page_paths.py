"""Paths of pages of the web UI, for all that link to them: names of any characters as one segment, and query strings."""

import base64
import binascii
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

_MARK: Final = "~"


def segment(name: str) -> str:
    """Return a name as one segment of a path, as it is written in a URL.

    Browsers and proxies change some paths (`..`, `a//b`, a `/` at the end): such names are written in base64 behind a "~".
    """
    if name in ("", ".", "..") or name.startswith((_MARK, "/")) or name.endswith("/") or "//" in name:
        return _MARK + base64.urlsafe_b64encode(name.encode(errors="surrogateescape")).decode().rstrip("=")
    return quote(name, safe="", errors="surrogateescape")


def name_of(written: str) -> str:
    """Return the name that a decoded segment stands for; a "/" at its end is that of the URL."""
    written = written.removesuffix("/") or written
    if not written.startswith(_MARK):
        return written
    text = written[1:]
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return written
    return found.decode(errors="surrogateescape")


def job_path(jid: str) -> str:
    """Return the path of the page of a job."""
    return f"/jobs/{segment(jid)}"


def group_path(group: str) -> str:
    """Return the path of the page of a failure group."""
    return f"/failed/{segment(group)}"


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return a path with a query string of what is neither None nor empty."""
    given = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
