"""The sentence about an action that the next page shows once, in a cookie, with what undoes the action."""

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import msgspec
from starlette.responses import Response

from holdfast.web.context import Flash
from holdfast.web.views import Repeal

if TYPE_CHECKING:
    from holdfast.web.context import Context

_COOKIE: Final = "holdfast-flash"
_LONGEST: Final = 1000
_MOST_BYTES: Final = 3500
"""Browsers keep cookies of 4 kB; an undo that makes one longer is left out."""

_Written = tuple[str, str, Repeal | None, str]


class Flashes:
    """Sets and reads the cookie. `secret` signs what undoes an action: a cookie is no way to make somebody press a button."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def set(
        self, response: Response, ctx: "Context", text: str, kind: str, undo: Repeal | None = None
    ) -> None:
        """Let the next page of this browser show a sentence, and offer to undo what it is about."""
        value = self._written(ctx, text, kind, undo)
        if len(value) > _MOST_BYTES:
            value = self._written(ctx, text, kind, None)
        response.set_cookie(_COOKIE, value, max_age=60, path=ctx.url("/"), httponly=True, samesite="strict")

    def _written(self, ctx: "Context", text: str, kind: str, undo: Repeal | None) -> str:
        signature = self._signature(ctx, undo) if undo else ""
        return quote(json.dumps([text[:_LONGEST], kind, msgspec.to_builtins(undo), signature]))

    def _signature(self, ctx: "Context", undo: Repeal) -> str:
        content = msgspec.json.encode([ctx.user.name, undo], order="deterministic")
        return hmac.new(self._secret, content, hashlib.sha256).hexdigest()

    def read(self, ctx: "Context") -> Flash | None:
        """Return the sentence for this page. What another process signed is shown without its undo."""
        try:
            text, kind, undo, signature = msgspec.json.decode(
                unquote(ctx.request.cookies.get(_COOKIE, "")).encode(), type=_Written
            )
        except (msgspec.MsgspecError, UnicodeError):
            return None
        is_ours = undo is not None and hmac.compare_digest(
            signature.encode(), self._signature(ctx, undo).encode()
        )
        return Flash(text, "failed" if kind == "failed" else "done", undo if is_ours else None)

    @staticmethod
    def clear(response: Response, ctx: "Context") -> None:
        """Let no further page show the sentence."""
        response.delete_cookie(_COOKIE, path=ctx.url("/"))
