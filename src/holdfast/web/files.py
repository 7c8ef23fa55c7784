"""The files of the application: style, scripts, fonts. Their URLs change with their content, so browsers keep them for a year."""

import gzip
import hashlib
import mimetypes
import re
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from holdfast.web.packing import takes_gzip

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}
_TEXTS: Final = frozenset((".js", ".css", ".svg"))
_FOR_A_YEAR: Final = "public, max-age=31536000, immutable"
_COMMENTS: Final = re.compile(
    rb"""^[ \t]*//[^\n]*\n|(?<=[;,{}]) // [^\n"'`]*$|^[ \t]*/\*(?s:.*?)\*/[ \t]*\n|^[ \t\n]+""", re.MULTILINE
)
_SPACES: Final = re.compile(rb"\s*([{};,])\s*|(?<=:) +")
"""What a browser does not need: comments, indentation, and in styles spaces around punctuation."""


class Files:
    """The files of a folder, read at first use."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._folder = folder
        self._known = {
            str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()
        }
        self._hashes: dict[str, str] = {}
        self._contents: dict[str, bytes] = {}
        self._packed: dict[str, bytes] = {}

    def hash_of(self, name: str) -> str:
        """Return the first digits of the digest of a file, that of nothing for one that does not exist."""
        if name not in self._hashes:
            content = self._known[name].read_bytes() if name in self._known else b""
            self._hashes[name] = hashlib.sha256(content).hexdigest()[:10]
        return self._hashes[name]

    def content_of(self, name: str) -> bytes:
        """Return what is sent of a file: our own scripts and styles without comments and indentation."""
        if name not in self._contents:
            content = self._known[name].read_bytes()
            if name.endswith((".js", ".css")) and "/" not in name:
                content = _COMMENTS.sub(b"", content)
            self._contents[name] = _SPACES.sub(rb"\1", content) if name == "app.css" else content
        return self._contents[name]

    def packed_of(self, name: str) -> bytes:
        """Return what is sent of a file of text as gzip."""
        if name not in self._packed:
            self._packed[name] = gzip.compress(self.content_of(name), mtime=0)
        return self._packed[name]

    def texts(self, ending: str) -> dict[str, str]:
        """Return the text of each file with an ending, by its name without that."""
        return {
            path.name.removesuffix(ending): path.read_text(encoding="utf-8")
            for name, path in self._known.items()
            if name.endswith(ending)
        }

    async def serve(self, request: Request) -> Response:
        """Answer `GET /static/<hash>/<name>`. Scripts of any hash are served, so that a page of an older release works on."""
        name = request.path_params["name"]
        path = self._known.get(name)  # a name from outside never becomes a path
        if path is None:
            return Response("not found", 404, media_type="text/plain")
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        # The style sheet names its fonts relative to itself, so they are asked for under its hash.
        fresh = request.path_params["hash"] in (self.hash_of(name), self.hash_of("app.css"))
        headers = {"Cache-Control": _FOR_A_YEAR if fresh else "no-cache"}
        if path.suffix in _TEXTS and takes_gzip(request.headers):
            headers["Content-Encoding"] = "gzip"
            return Response(self.packed_of(name), media_type=kind, headers=headers)
        return Response(self.content_of(name), media_type=kind, headers=headers)
