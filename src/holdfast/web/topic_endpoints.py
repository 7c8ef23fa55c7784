"""The endpoints of topics: `POST /schedule/<topic>` and others. The part `topics` of the application.

A request has its fields as JSON or as a form. Fields that an endpoint does not know are ignored, as the older servers did.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.codecs import encode_data
from holdfast.commands.topics import MAX_MOVED
from holdfast.console.handles import AsyncConsole
from holdfast.console.masking import Mask
from holdfast.errors import UsageError
from holdfast.settings import check_name, check_whole
from holdfast.text import one_line
from holdfast.web.auth import Authentication
from holdfast.web.namespaces import HEADER, NamespaceNotAllowed, Namespaces
from holdfast.web.options import Options
from holdfast.web.users import User

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_MOST_FIELDS: Final = 100
_MOST_REQUEUED: Final = 100_000
_TTR: Final = 60.0
_NUMBER: Final = re.compile(r"[+-]?\d{1,20}(\.\d{0,20})?([eE][+-]?\d{1,3})?", re.ASCII)


class Fields:
    """The fields of a request: of a form text, of JSON any values."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = {name: value for name, value in given.items() if value is not None}

    def id(self) -> str:
        """Return the id. Raises UsageError if it is missing, or cannot be one."""
        found = self._given.get("id")
        if found is None:
            raise UsageError("id: is missing")
        if not isinstance(found, str):
            raise UsageError(f"id: expected text, got {_shown(found)}")
        return check_name("id", found)

    def contents(self) -> str:
        """Return the field `contents`, or `body`: text as it is, an object or list as its JSON. Raises UsageError."""
        if "contents" in self._given and "body" in self._given:
            raise UsageError("contents and body are the same field: give one of them")
        found = self._given.get("contents", self._given.get("body"))
        if found is None:
            raise UsageError("contents: is missing")
        if isinstance(found, str):
            return found
        if isinstance(found, msgspec.Raw):
            return encode_data(bytes(found)).decode()
        raise UsageError(f"contents: expected text, an object or a list, got {_shown(found)}")

    def number(self, name: str) -> float | None:
        """Return a number, which may be written as text, None if there is none. Raises UsageError."""
        found = self._given.get(name)
        if isinstance(found, str):
            if not found:  # a field of a form that was left empty
                return None
            found = float(found) if _NUMBER.fullmatch(found) else found
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise UsageError(f"{name}: expected a number, got {_shown(found)}")
        return found

    def whole(self, name: str, default: int, most: int) -> int:
        """Return a whole number between 1 and `most`. Raises UsageError."""
        found = self.number(name)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        return default if found is None else check_whole(name, found, 1, most)


def _shown(value: object) -> str:
    return "an object or a list" if isinstance(value, msgspec.Raw) else one_line(repr(value))[:80]


Result = Mapping[str, object] | None
"""The JSON of the response, None for nothing (204)."""


async def _schedule(console: AsyncConsole, topic: str, given: Fields) -> Result:
    contents = given.contents()
    delay, at = given.number("delay"), given.number("at")
    return {"success": True, "created": await console.put_message(topic, given.id(), contents, delay, at=at)}


async def _cancel(console: AsyncConsole, topic: str, given: Fields) -> Result:
    [removed] = await console.delete_messages(topic, given.id())
    return {"success": True, "removed": removed}


async def _reserve(console: AsyncConsole, topic: str, given: Fields) -> Result:
    ttr = given.number("ttr")
    found = await console.reserve_messages(topic, ttr=_TTR if ttr is None else ttr, max=given.number("max"))
    return (
        {"topic": topic, "id": found[0].id, "contents": found[0].body, "deadline": found[0].deadline}
        if found
        else None
    )


async def _pull(console: AsyncConsole, topic: str, given: Fields) -> Result:
    found = await console.pull_messages(topic, max=given.number("max"))
    return {"topic": topic, "id": found[0].id, "contents": found[0].body} if found else None


async def _release(console: AsyncConsole, topic: str, given: Fields) -> Result:
    delay, at, deadline = (given.number(name) for name in ("delay", "at", "deadline"))
    [released] = await console.release_messages(topic, given.id(), delay=delay, at=at, deadline=deadline)
    return {"success": True, "released": released}


async def _requeue(console: AsyncConsole, topic: str, given: Fields) -> Result:
    limit = given.whole("limit", MAX_MOVED, _MOST_REQUEUED)
    return {"requeued": await console.requeue_messages(topic, limit, max=given.number("max"))}


async def _ready(console: AsyncConsole, topic: str, _: Fields) -> Result:
    found = await console.topic_counts(topic)
    return {"topic": topic, "ready": found.ready, "queued": found.queued, "reserved": found.reserved}


class Endpoint(NamedTuple):
    """An endpoint: the first segment of its path, its method, the verb of the core that it calls, and what it does."""

    name: str
    method: str
    verb: str
    run: Callable[[AsyncConsole, str, Fields], Awaitable[Result]]


ENDPOINTS: Final = (
    Endpoint("schedule", "POST", "topic_put", _schedule),
    Endpoint("cancel", "POST", "topic_delete", _cancel),
    Endpoint("reserve", "POST", "topic_reserve", _reserve),
    Endpoint("pull", "POST", "topic_pull", _pull),
    Endpoint("release", "POST", "topic_release", _release),
    Endpoint("requeue", "POST", "topic_requeue", _requeue),
    Endpoint("ready", "GET", "topic_counts", _ready),
)


def topic_routes(namespaces: Namespaces, options: Options, auth: Authentication) -> list[BaseRoute]:
    """Return the routes of the topic endpoints. A topic may have any characters, also a "/"."""
    mask = Mask(options.redact)

    def handler(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            user = await auth.user(request)
            if user is None:
                return auth.refused(request)
            topic = _topic_of(request, endpoint)
            _check_rights(endpoint, topic, user, options)
            try:
                client = namespaces.chosen(user, request.headers.get(HEADER, ""))
            except NamespaceNotAllowed as refused:
                raise HTTPException(403, str(refused)) from None
            result = await endpoint.run(AsyncConsole(client, user.name), topic, await _fields(request))
            if result and "contents" in result and not user.sees_data(is_read=False):
                result = {**result, "contents": mask.json_text(str(result["contents"]))}
            return Response(status_code=204) if result is None else JSONResponse(result)

        return handle

    return [Route(f"/{one.name}/{{topic:path}}", handler(one), methods=_METHODS) for one in ENDPOINTS]


def _topic_of(request: Request, endpoint: Endpoint) -> str:
    """Return the topic that the path names. Raises HTTPException, UsageError."""
    name: str = request.path_params["topic"]
    if not name:
        raise HTTPException(404, f"This path names no topic: expected /{endpoint.name}/TOPIC.")
    allowed = ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,)
    if request.method not in allowed:
        sentence = f"/{endpoint.name} takes {endpoint.method}, not {one_line(request.method)[:40]}."
        raise HTTPException(405, sentence, {"Allow": ", ".join(allowed)})
    if "\ufffd" in name and b"%EF%BF%BD" not in request.scope.get("raw_path", b"").upper():
        raise UsageError("the topic in the path is not UTF-8")
    return check_name("topic", name)


def _check_rights(endpoint: Endpoint, topic: str, user: User, options: Options) -> None:
    if options.read_only and endpoint.method != "GET":
        raise HTTPException(403, "This application is read-only.")
    name = one_line(user.name)[:100]
    if not user.may_call(endpoint.verb):
        raise HTTPException(403, f"{name!r} has the role {user.role}, which may not use /{endpoint.name}.")
    if not user.may_use_topic(topic):
        raise HTTPException(403, f"{name!r} may not use the topic {one_line(topic)!r:.220}.")


async def _fields(request: Request) -> Fields:
    """Return the fields of a request. Raises HTTPException for a body of another type, UsageError for one that cannot be read."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body:
        return Fields({})
    if kind in (_JSON, ""):
        return Fields(_json(body))
    if kind == _FORM:
        return Fields(_form(body))
    raise HTTPException(415, f"The body must be {_JSON} or {_FORM}, not {one_line(kind)[:80]}.")


def _json(body: bytes) -> Mapping[str, object]:
    try:
        found = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        raise UsageError("the body: expected a JSON object") from None
    except RecursionError:
        raise UsageError("the body is nested too deep") from None
    except (msgspec.MsgspecError, ValueError) as error:  # also text that is not UTF-8
        raise UsageError(f"the body is not JSON: {error}") from None
    return {name: _value(name, bytes(raw)) for name, raw in found.items()}


def _value(name: str, text: bytes) -> object:
    """Return a text, number, truth value or null; an object or list as it is written."""
    if text[:1] in (b"{", b"["):
        return msgspec.Raw(text)
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError) as error:  # a number out of range, half of a surrogate
        raise UsageError(f"{one_line(name)[:80]}: {error}") from None


def _form(body: bytes) -> Mapping[str, str]:
    if body.lstrip()[:1] == b"{":
        raise UsageError(f"the body is JSON: send it with Content-Type: {_JSON}")
    try:
        return dict(parse_qsl(body.decode(), True, max_num_fields=_MOST_FIELDS, errors="strict"))
    except ValueError as error:  # not UTF-8, or too many
        raise UsageError(f"the form cannot be read: {error}") from None
