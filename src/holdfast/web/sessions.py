"""Signed texts: session cookies, and links that log somebody in once. A secret of 32 bytes signs them; nothing is stored."""

import base64
import hashlib
import hmac
import secrets
import time
from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from holdfast.web.users import BY_NAME, User

SESSION_SECONDS: Final = 12 * 3600.0
LINK_SECONDS: Final = 600.0
_MOST_USED: Final = 10_000


class Sessions:
    """Session cookies and one-time links, signed by a secret. A link that was used is known to this process."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < 16:
            raise ValueError("a secret has at least 16 bytes")
        self._secret = secret
        self._used: dict[str, float] = {}

    # Links.

    def link_token(self, seconds: float = LINK_SECONDS) -> str:
        """Return a token that logs somebody in once, within so many seconds."""
        return self._sign("link", secrets.token_hex(8), f"{time.time() + seconds:.0f}")

    def take_link(self, token: str) -> bool:
        """Return whether a token is genuine, not too old and not used before; it is used now."""
        words = self._read("link", token)
        if words is None or not _is_ahead(words[-1]) or words[0] in self._used:
            return False
        now = time.time()
        self._used = {name: ends for name, ends in self._used.items() if ends > now}
        if len(self._used) >= _MOST_USED:
            return False
        self._used[words[0]] = float(words[-1])
        return True

    # Cookies.

    def log_in(self, request: HTTPConnection, response: Response, user: User) -> None:
        """Give a browser the cookie of a session."""
        name = base64.urlsafe_b64encode(user.name.encode()).decode()
        value = self._sign("session", name, user.role, f"{time.time() + SESSION_SECONDS:.0f}")
        response.set_cookie(
            cookie_name(request),
            value,
            max_age=int(SESSION_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def user(self, request: HTTPConnection) -> User | None:
        """Return the user of the session of a request, None if it has none or its session has ended."""
        words = self._read("session", request.cookies.get(cookie_name(request), ""))
        if words is None or len(words) != 3 or not _is_ahead(words[-1]):
            return None
        role = BY_NAME.get(words[1])
        return None if role is None else User(base64.urlsafe_b64decode(words[0]).decode(), role)

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
