"""Signed texts: session cookies, and links that log somebody in once. A secret of 32 bytes signs them."""

import base64
import hashlib
import hmac
import os
import secrets
import time
from pathlib import Path
from typing import Final

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response

from holdfast.errors import UsageError
from holdfast.logs import logger

SESSION_SECONDS: Final = 12 * 3600.0
LINK_SECONDS: Final = 600.0
SESSION: Final = "holdfast.session"
"""The key in the scope of a request whose user comes from a session, which the user can end."""
_MOST_USED: Final = 10_000


class Session(msgspec.Struct, frozen=True):
    """A session that has not ended: whose it is, and the mark of what that user logged in with."""

    id: str
    name: str
    mark: str
    ends: float


class Sessions:
    """Session cookies and one-time links, signed by a secret.

    A session has the name of the user and a mark of the credential; its reader looks up whether the user still exists, and the role.
    `server` names the process for which links are valid; only that process knows which were used. `ended`: a file of the sessions
    that were logged out, which outlive a restart; without one this process alone knows them.
    """

    def __init__(self, secret: bytes, server: str = "", ended: Path | None = None) -> None:
        if len(secret) < 16:
            raise ValueError("a secret has at least 16 bytes")
        self._secret, self._server = secret, server
        self._used: dict[str, float] = {}
        self._ended_file = ended
        self._ended = _read_ended(ended)

    # Links.

    def link_token(self, seconds: float = LINK_SECONDS) -> str:
        """Return a token that logs a user in once, within `seconds`."""
        return self._sign(f"link {self._server}", secrets.token_hex(8), f"{time.time() + seconds:.0f}")

    def take_link(self, token: str) -> bool:
        """Return whether a token is genuine, of this process, not too old and not used before; it is used now."""
        words = self._read(f"link {self._server}", token)
        if words is None or not _is_ahead(words[-1]) or words[0] in self._used:
            return False
        self._used = _ahead(self._used)
        if len(self._used) >= _MOST_USED:
            return False
        self._used[words[0]] = float(words[-1])
        return True

    # Cookies.

    def log_in(
        self, request: HTTPConnection, response: Response, name: str, mark: str, ends: float = 0.0
    ) -> None:
        """Give a browser the cookie of a session, which ends after twelve hours, or at `ends` (epoch seconds, 0: never)."""
        until = time.time() + SESSION_SECONDS
        value = self._sign(
            "session",
            secrets.token_hex(8),
            base64.urlsafe_b64encode(name.encode()).decode(),
            mark,
            f"{min(until, ends or until):.0f}",
        )
        response.set_cookie(
            cookie_name(request),
            value,
            max_age=int(SESSION_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def session(self, request: HTTPConnection) -> Session | None:
        """Return the session of a request, None if it has none, or its session has ended."""
        words = self._read("session", request.cookies.get(cookie_name(request), ""))
        if words is None or len(words) != 4 or not _is_ahead(words[-1]) or words[0] in self._ended:
            return None
        name = base64.urlsafe_b64decode(words[1]).decode()
        return Session(words[0], name, words[2], float(words[3]))

    def log_out(self, request: HTTPConnection, response: Response) -> None:
        """End the session of a request, also where its cookie was copied to, and take the cookie from the browser."""
        found = self.session(request)
        if found is not None:
            self._ended = {**_ahead(self._ended), found.id: found.ends}
            while len(self._ended) > _MOST_USED:
                del self._ended[next(iter(self._ended))]
            _write_ended(self._ended_file, self._ended)
        response.delete_cookie(
            cookie_name(request),
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def _sign(self, kind: str, *words: str) -> str:
        text = ".".join(words)
        return f"{text}.{self._signature(kind, text)}"

    def _read(self, kind: str, signed: str) -> list[str] | None:
        text, _, signature = signed.rpartition(".")
        if not text or not hmac.compare_digest(signature.encode(), self._signature(kind, text).encode()):
            return None
        return text.split(".")

    def _signature(self, kind: str, text: str) -> str:
        return hmac.new(self._secret, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest()


def cookie_name(request: HTTPConnection) -> str:
    """Return the name of the session cookie: over TLS one that no other host can set, and one for each port."""
    prefix = "__Host-" if request.url.scheme == "https" else ""
    return f"{prefix}holdfast-{request.url.port or 0}"


def _is_ahead(moment: str) -> bool:
    return moment.isdecimal() and len(moment) < 15 and float(moment) > time.time()


def _ahead(moments: dict[str, float]) -> dict[str, float]:
    now = time.time()
    return {name: ends for name, ends in moments.items() if ends > now}


def _read_ended(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, float])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError:
        raise UsageError(f"{path} cannot be read: remove it") from None


def _write_ended(path: Path | None, ended: dict[str, float]) -> None:
    if path is None:
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        made = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(made, "wb") as file:
            file.write(msgspec.json.encode(ended))
        draft.replace(path)
    except OSError as error:
        logger.warning(
            "%s cannot be written; a session that was logged out is known to this process only: %s",
            path,
            error,
        )
