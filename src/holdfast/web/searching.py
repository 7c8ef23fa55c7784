"""Searches take turns: of each user one is at work and few are in line, and one that no request waits for ends."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

IN_LINE: Final = 4
"""Searches of a user that wait while one is at work."""
PAGE: Final = "X-Holdfast-Page"
"""The header by which a page names itself: its newer search ends its older one."""
_LONGEST: Final = 64


class _Line:
    """The searches of one user: a lock that the one at work holds, and how many there are."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0


class _Search:
    """One search, which may be ended from outside: then `why` has the reason."""

    def __init__(self, line: _Line) -> None:
        self._line, self._task = line, asyncio.current_task()
        self.why: tuple[int, str] | None = None
        self._is_counted = True
        line.count += 1

    def end(self, status: int, why: str) -> None:
        """Cancel it; the response, if somebody reads it, has the status and the reason."""
        if self.why is None and self._task is not None:
            self.why = status, why
            self.leave()
            self._task.cancel()

    def leave(self) -> None:
        """Count it no more."""
        self._line.count -= self._is_counted
        self._is_counted = False

    def refusal(self) -> HTTPException | None:
        """Return what is raised in place of a cancellation from outside, None for one of others."""
        if self.why is None or self._task is None:
            return None
        return HTTPException(*self.why) if self._task.uncancel() == 0 else None


class Searches:
    """The searches of one application."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._of_pages: dict[tuple[str, str], _Search] = {}

    @asynccontextmanager
    async def turn(self, request: Request, user: str, *, is_watched: bool = True) -> AsyncGenerator[None]:
        """Wait for the turn of a search of a user, and let it end when its client has gone or its page begins a newer one.

        `is_watched`: see whether the client has gone. Raises HTTPException: 429 if too many are in line already.
        """
        named = (
            request.headers.get(PAGE.lower(), "") if request.method == "GET" else ""
        )  # an action is no search to replace
        page = (user, named[:_LONGEST])
        if page[1] and page in self._of_pages:
            self._of_pages[page].end(409, "A newer search of this page took its place.")
        line = self._lines.setdefault(user, _Line())
        if line.count > IN_LINE:
            sentence = (
                f"A search is at work and {IN_LINE} are in line already; try again when they have ended."
            )
            raise HTTPException(429, sentence, {"Retry-After": "1"})
        search = _Search(line)
        if page[1]:
            self._of_pages[page] = search
        watching = (
            asyncio.ensure_future(_watch(request, search)) if is_watched and _can_watch(request) else None
        )
        try:
            async with line.lock:
                yield
        except asyncio.CancelledError:
            refusal = search.refusal()
            if refusal is None:
                raise
            raise refusal from None
        finally:
            search.leave()
            if watching is not None:
                watching.cancel()
            if self._of_pages.get(page) is search:
                del self._of_pages[page]
            if not line.count and not line.lock.locked() and self._lines.get(user) is line:
                del self._lines[user]


def _can_watch(request: Request) -> bool:
    """Return whether one may listen for the end of a connection: a WSGI server reports none."""
    return not any(name.startswith("wsgi") for name in request.scope)


async def _watch(request: Request, search: _Search) -> None:
    """End a search when its client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    search.end(400, "The client has disconnected.")
