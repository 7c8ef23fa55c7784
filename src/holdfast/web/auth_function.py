"""`auth=` that is a function of the program: plain ones run in threads, async ones in the event loop, both with a deadline."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from queue import Empty, SimpleQueue
from typing import Any, Final, NoReturn, cast
from urllib.parse import quote, urlsplit, urlunsplit

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from holdfast.errors import UsageError
from holdfast.logs import logger
from holdfast.web.front_pages import front_page
from holdfast.web.gate import GateRefusal, problem, refusal, wants_json
from holdfast.web.parts import place_of
from holdfast.web.users import User

_SECONDS: Final = 10.0
"""That a function may take."""
_THREADS: Final = 8
_LINE: Final = 4096
"""Calls that may wait for a thread: a fleet of programs that starts again comes all at once."""
_IDLE: Final = 60.0
_LONGEST: Final = 2000
"""Characters of a place that the page to log in is given."""
_PRINTABLE: Final = "".join(chr(code) for code in range(33, 127))
_TOAST: Final = Markup(
    '<div class="toast c-failed" data-toast="failed"><p>{} <a href="{}">Log in</a></p></div>'
)


class _NotInTime(Exception):
    """The function did not return, or was not called, before its deadline."""


class AuthFunction:
    """The user is what a function of the program returns for a request: a User, or None if there is none.

    A plain function runs in one of eight threads, so it may wait for a database; what it returns is awaited if that is an awaitable. An
    `async def`, or an object whose `__call__` is one, is awaited in the event loop and must not block it. After `seconds` the response is
    503. An exception is logged with the id that the response, a 500, shows; an HTTPException of Starlette is the response itself.
    `login_url`: where people without a user are sent, "" for a refusal.
    """

    routes: Sequence[BaseRoute] = ()

    def __init__(self, function: Any, login_url: str = "", seconds: float = _SECONDS) -> None:
        self._function, self._login_url, self._seconds = function, login_url, seconds
        self._is_async = iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)
        self._threads = _Threads()

    async def user(self, request: HTTPConnection) -> User | None:
        """Return what the function returns. Raises Refusal with the response if it fails, HTTPException."""
        try:
            found = await self._call(request)
            if found is None or isinstance(found, User):
                return found
            raise UsageError(f"auth: expected a User or None, got {type(found).__name__}")
        except HTTPException:
            raise
        except _NotInTime as error:
            logger.error("request %s: auth %s", request.scope.get("holdfast.request"), error)
            _refuse(request.scope, 503, "Authentication timed out.")
        except Exception as error:
            logger.error(
                "request %s: auth raised %s",
                request.scope.get("holdfast.request"),
                type(error).__name__,
                exc_info=error,
            )
            _refuse(request.scope, 500, "Authentication failed because of an error in the application.")

    async def _call(self, request: HTTPConnection) -> object:
        until = time.monotonic() + self._seconds
        if self._is_async:
            found = self._function(request)
        else:
            call = partial(contextvars.copy_context().run, self._function, request)
            found = await self._within(asyncio.wrap_future(self._threads.start(call)), until)
        if isawaitable(found):
            found = await self._within(asyncio.ensure_future(cast("Awaitable[object]", found)), until)
        return found

    async def _within(self, future: "asyncio.Future[object]", until: float) -> object:
        try:
            await asyncio.wait((future,), timeout=max(0.0, until - time.monotonic()))
            if not future.done():
                raise _NotInTime(f"did not return within {self._seconds:g} s")
        finally:
            if not future.done():
                future.add_done_callback(lambda one: one.cancelled() or one.exception())
                future.cancel()
        if future.cancelled():
            raise RuntimeError("auth was cancelled")
        return future.result()

    def refused(self, request: HTTPConnection) -> Response:
        """Return the way to log in: a redirect from a page, 401 that names it for the rest; without one 403."""
        scope = request.scope
        if not self._login_url:
            return refusal(scope, 403, "You do not have access to this application.")
        sentence = "You are not logged in."
        is_region = scope.get("method") in ("GET", "HEAD") and "hx-request" in request.headers
        if wants_json(scope) or is_region or place_of(scope) == "/live":
            return problem(scope, 401, sentence, login_url=self._login_url)
        if scope.get("method") in ("GET", "HEAD"):
            return RedirectResponse(with_next(self._login_url, _own_place(scope)), 302)
        link = with_next(self._login_url, str(scope.get("root_path", "")) + "/")
        if "hx-request" in request.headers:
            return HTMLResponse(_TOAST.format(sentence, link), 401)
        inside = Markup('<p>{} Nothing was changed.</p><a class="btn main" href="{}">Log in</a>')
        return front_page(scope, 401, "Not logged in", inside.format(sentence, link))


def check_login_url(given: str) -> None:
    """Raise UsageError for a `login_url` that is neither a path of this host nor an HTTP URL."""
    parts = urlsplit(given)
    is_path = given.startswith("/") and not given.startswith("//")
    is_url = parts.scheme in ("http", "https") and bool(parts.netloc)
    if given and (not (is_path or is_url) or set(given) - set(_PRINTABLE) or "\\" in given):
        raise UsageError(
            f"login_url: expected a path such as /login/ or a URL with http or https, got {given!r:.80}"
        )


def with_next(login_url: str, place: str) -> str:
    """Return the URL of a page to log in that leads back to a path: `/login/?next=%2Fops%2F`."""
    parts = urlsplit(login_url)
    query = "&".join(one for one in (parts.query, f"next={quote(place, safe='/')}") if one)
    return urlunsplit(parts._replace(query=query))


def _own_place(scope: Scope) -> str:
    """Return the path and query of a request, as a path of this host that no browser takes for another one."""
    root = str(scope.get("root_path", "")).rstrip("/")
    raw = (scope.get("raw_path") or b"").partition(b"?")[0].decode("latin-1")
    written = raw if raw.startswith(root + "/") else quote(root + place_of(scope))
    path = quote("/" + written.lstrip("/\\"), safe=_PRINTABLE.replace("\\", ""))
    query = quote(scope.get("query_string", b"").decode("latin-1"), safe=_PRINTABLE)
    place = f"{path}?{query}" if query else path
    return next((one for one in (place, path) if len(one) <= _LONGEST), root + "/")


def _refuse(scope: Scope, status: int, sentence: str) -> NoReturn:
    """Raise the response to a request whose user could not be found out, with the id of the request, under which the log has the cause."""
    text = f"{sentence} Request {scope.get('holdfast.request', '')}: see the log of the application."
    if wants_json(scope):
        raise GateRefusal(problem(scope, status, text))
    raise GateRefusal(front_page(scope, status, "Request failed", text))


class _Threads:
    """Threads that call functions, started when they are needed. One that never returns does not keep the program from ending."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[object], Callable[[], object]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._pending = 0

    def start(self, call: Callable[[], object]) -> "Future[object]":
        """Have a thread call a function, and return its future. Raises _NotInTime if too many wait."""
        future: Future[object] = Future()
        with self._lock:
            if self._pending >= _THREADS + _LINE:
                raise _NotInTime(f"was not called: {_THREADS} calls have not returned and {_LINE} wait")
            self._pending += 1
            self._calls.put((future, call))
            is_needed = self._started < min(self._pending, _THREADS)
            self._started += is_needed
        if is_needed:
            threading.Thread(target=self._work, name="holdfast-auth", daemon=True).start()
        return future

    def _work(self) -> None:
        while self._call_next():
            pass

    def _call_next(self) -> bool:
        """Call the next function; return False if there was none for a while."""
        try:
            future, call = self._calls.get(timeout=_IDLE)
        except Empty:
            with self._lock:
                is_over = self._calls.empty()
                self._started -= is_over
            return not is_over
        try:
            if future.set_running_or_notify_cancel():
                _settle(future, call)
        finally:
            with self._lock:
                self._pending -= 1
        return True


def _settle(future: "Future[object]", call: Callable[[], object]) -> None:
    try:
        result = call()
    except BaseException as error:
        is_fit = isinstance(error, Exception) and not isinstance(error, StopIteration)
        future.set_exception(error if is_fit else RuntimeError(f"auth raised {type(error).__name__}"))
    else:
        future.set_result(result)
