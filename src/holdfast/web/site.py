"""What all requests of one application share: its client, options, templates, live numbers and background work."""

import asyncio
import gzip
import hashlib
import mimetypes
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from holdfast.client.aio import AsyncClient
from holdfast.console.handles import AsyncConsole
from holdfast.console.masking import Mask
from holdfast.console.operations.operations import RunningOperation
from holdfast.console.operations.spec import Spec
from holdfast.errors import HoldfastError
from holdfast.logs import logger
from holdfast.release import VERSION
from holdfast.settings import shown_url
from holdfast.web.live import Hub, cancelled
from holdfast.web.options import Options
from holdfast.web.packing import takes_gzip
from holdfast.web.schemas import Schemas
from holdfast.web.views import ActionRoute, Done, Table, View

if TYPE_CHECKING:  # the JSON API does without templates
    from holdfast.web.rendering import Pages

# The OpenAPI description of the JSON twins and actions, made of the same tables as they are.

_REF: Final = "#/components/schemas/{name}"


def openapi(table: Table, version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of an application, without `servers`, which depend on where it is mounted."""
    results = Schemas("#/components/schemas/Result.{name}")
    kinds = list(dict.fromkeys([*(action.body for action in table.actions.values()), Done]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    bodies = dict(zip(kinds, schemas, strict=True))  # two modules may have bodies of one name
    paths: dict[str, Any] = {}
    for view in table.views:
        paths.setdefault(view.twin, {})["get"] = _read(view, results.of_result(view.load))
    for action in table.actions.values():
        paths.setdefault(f"/{action.noun}/{action.verb}", {})["post"] = _write(action, bodies[action.body])
    paths["/health"] = {"get": _HEALTH}
    parts = {f"Result.{name}": schema for name, schema in results.components.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "holdfast", "version": version},
        "paths": paths,
        "components": {"schemas": {**components, **parts, "Problem": _PROBLEM}},
    }


_PROBLEM: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "request": {"type": "string"},
    },
}


def _read(view: View, result: Mapping[str, Any]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([view.query], ref_template=_REF)
    schema = components[view.query.__name__]
    parameters = [
        {"name": name, "in": "query", "required": False, "schema": one}
        for name, one in schema.get("properties", {}).items()
    ]
    if "{name}" in view.path:
        parameters.insert(
            0, {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        )
    return {
        "operationId": f"get_{view.name}",
        "summary": view.summary,
        "parameters": parameters,
        "responses": {
            "200": _json("What the page shows.", result),
            **_errors("400", "401", "403", "404", "503"),
        },
    }


_IF_MATCH: Final[Mapping[str, Any]] = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag that was read; if it has changed since, nothing is done.",
    "required": False,
    "schema": {"type": "string"},
}


def _write(action: ActionRoute, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operationId": f"{action.verb}_{action.noun}".replace("-", "_"),
        "summary": action.summary,
        "parameters": [_IF_MATCH] if action.tagged else [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": _json("What was done.", {"$ref": _REF.format(name="Done")}),
            **_errors(
                "400", "401", "403", "404", "409", *(["412"] if action.tagged else []), "413", "415", "503"
            ),
        },
    }


def _json(description: str, schema: Mapping[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _errors(*statuses: str) -> dict[str, Any]:
    problem = {"$ref": _REF.format(name="Problem")}
    return {status: _json("A problem document.", problem, "application/problem+json") for status in statuses}


_HEALTH: Final[Mapping[str, Any]] = {
    "operationId": "get_health",
    "summary": "Whether the store responds; no authentication.",
    "parameters": [],
    "responses": {
        "200": _json(
            "It responds.",
            {"type": "object", "required": ["store"], "properties": {"store": {"const": "ok"}}},
        ),
        **_errors("503"),
    },
}


# The files of the application: style, scripts, fonts. Their URLs change with their content, so browsers keep
# them for a year.

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
_SPACES: Final = re.compile(rb"/\*(?s:.*?)\*/|;\s*(?=\})|\s*([{};,])\s*|\s+(?=>)|(?<=>)\s+|(?<=:) +")
"""What a browser does not need: comments, indentation, and in styles spaces around punctuation, and the last semicolon of a block."""


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
        """Answer `GET /static/<hash>/<name>`. Scripts of any hash are served, so that a page of an older release keeps working."""
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


# Run operations on many jobs in the background of the application, and take over those whose process has
# ended.

_LOOK: Final = 20.0
_MOST: Final = 8


class BackgroundOperations:
    """The operations that this process runs, by id."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None

    async def start(self, console: AsyncConsole, spec: Spec) -> str:
        """Note an operation and run it in the background. Returns its id. Raises UsageError, FilterError."""
        return self._run(console, await console.start_operation(spec))

    async def resume(self, console: AsyncConsole, id: str) -> str:
        """Take over an operation that was stopped or whose process has ended. Raises OperationNotFound, WrongState."""
        return self._run(console, await console.resume_operation(id))

    async def undo(self, console: AsyncConsole, id: str) -> str:
        """Undo an operation in the background. Returns the id of the undoing one. Raises WrongState."""
        return self._run(console, await console.undo_operation(id))

    def _run(self, console: AsyncConsole, running: RunningOperation) -> str:
        task = asyncio.get_running_loop().create_task(
            self._follow(console, running), name=f"operation {running.id}"
        )
        self._tasks[running.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(running.id, None))
        self._hub.changed("operations", "audit")
        return running.id

    async def _follow(self, console: AsyncConsole, running: RunningOperation) -> None:
        try:
            await console.run_operation(running, self._report)
        except HoldfastError as error:
            logger.warning("operation %s was interrupted: %s", running.id, error)
        finally:
            self._hub.changed("operations", f"op:{running.id}", "counts", "queues", "failed")

    def _report(self, running: RunningOperation) -> None:
        self._hub.progress(running.id, running.looked, running.spec.candidates)

    def watch(self, console: AsyncConsole) -> None:
        """Begin to look for operations whose process has ended, if that was not begun yet in this event loop."""
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(
                self._take_over(console), name="holdfast-web-operations"
            )

    async def close(self) -> None:
        """Stop working in this process; what is under way is taken over by another one."""
        mine = [task for task in (self._watch, *self._tasks.values()) if task is not None]
        for task in mine:
            if task.get_loop() is asyncio.get_running_loop():
                await cancelled(task)

    async def _take_over(self, console: AsyncConsole) -> None:
        """Take over operations whose process ended, one after the other, as long as the application runs."""
        while True:
            try:
                for one in await console.operations(limit=25):
                    if one.is_orphaned and one.id not in self._tasks and len(self._tasks) < _MOST:
                        await self.resume(console, one.id)
            except HoldfastError as error:
                logger.debug("operations cannot be read: %s", error)
            await asyncio.sleep(_LOOK)


# Searches take turns: of each user one is at work and few are in line, and one that no request waits for
# ends.

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
        )  # an action must not end the search of its page
        page = (user, named[:_LONGEST])
        if page[1] and page in self._of_pages:
            self._of_pages[page].end(409, "A newer search of this page replaced this one.")
        line = self._lines.setdefault(user, _Line())
        if line.count > IN_LINE:
            sentence = (
                f"A search is running and {IN_LINE} are waiting already; try again when they have ended."
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


class Site:
    """The shared state of one application; nothing is shared between two applications."""

    def __init__(self, client: AsyncClient, options: Options, table: Table) -> None:
        self.client, self.options, self.table = client, options, table
        self.version = VERSION
        self.application = "holdfast"
        self.store = shown_url(client.store_url) if client.store_url else "the embedded store"
        self.files = Files()
        self.mask = Mask(options.redact)
        self.hub = Hub(client)
        self.operations = BackgroundOperations(self.hub)
        self.searches = Searches()

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """The OpenAPI document of the application, without `servers`."""
        return openapi(self.table, self.version)

    @cached_property
    def pages(self) -> "Pages":
        """The templates."""
        from holdfast.web.rendering import Pages

        return Pages()

    async def close(self) -> None:
        """End the background work. Operations continue in another process, or when they are resumed."""
        await self.hub.close()
        await self.operations.close()
