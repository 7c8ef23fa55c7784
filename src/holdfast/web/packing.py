"""Responses packed by gzip, for clients that take it: pages and JSON while they are sent, files once.

A page of another site could learn from the length of a packed response which of its guesses, in the query of a URL, is also elsewhere in it
(BREACH). So what such a page may have asked for is not packed, and the length of the rest varies by up to a hundred bytes.
"""

import asyncio
import re
import secrets
import struct
import zlib
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

_TYPES: Final = frozenset(("text/html", "application/json", "application/problem+json"))
_LEAST, _MOST = 1000, 4 << 20
"""Bytes: a shorter response gains nothing, a longer one takes too much time."""
_LEVEL: Final = 4
_SLICE: Final = 1 << 18
"""Bytes that are packed before others have their turn: about 5 ms."""
_PADDING: Final = 100
_HEAD: Final = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff"
"""Of gzip, with a name of a file behind it."""
_REFUSED: Final = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")


def takes_gzip(headers: Mapping[str, str]) -> bool:
    """Return whether a client takes gzip."""
    for one in headers.get("accept-encoding", "").split(","):
        name, _, weight = one.partition(";")
        if name.strip().lower() == "gzip":
            return not _REFUSED.fullmatch(weight)
    return False


def is_own_request(scheme: str, headers: Mapping[str, str]) -> bool:
    """Return whether no page of another site can have made a browser send a request, also one that it only leads to."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    referrer = urlsplit(headers.get("referer", ""))
    if (referrer.scheme, referrer.netloc) == (scheme, headers.get("host", "")):
        return True
    if headers.get("authorization", "").lower().startswith("bearer "):
        return True
    is_of_browser = any(name in headers for name in ("cookie", "referer", "origin", "authorization"))
    return not is_of_browser and "text/html" not in headers.get("accept", "")


async def packed(content: bytes) -> bytes:
    """Return bytes as gzip, with a name of random length. Others have their turn between slices."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    parts = [_HEAD, b"x" * secrets.randbelow(_PADDING), b"\0"]
    for at in range(0, len(content), _SLICE):
        if at:
            await asyncio.sleep(0)
        parts.append(packer.compress(content[at : at + _SLICE]))
    end = struct.pack("<LL", zlib.crc32(content), len(content) & 0xFFFFFFFF)
    return b"".join((*parts, packer.flush(), end))


class Packing:
    """The `send` of a request, which packs a page or JSON that is sent as a whole. Streams stay as they are."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_fit(message):
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            body = message.get("body", b"")
            if not message.get("more_body") and _LEAST <= len(body) <= _MOST:
                message = {**message, "body": await packed(body)}
                headers = MutableHeaders(scope=start)
                headers["Content-Encoding"] = "gzip"
                headers["Content-Length"] = str(len(message["body"]))
            await self._send(start)
        await self._send(message)


def _is_fit(start: Message) -> bool:
    headers = MutableHeaders(scope=start)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in _TYPES and "content-encoding" not in headers
