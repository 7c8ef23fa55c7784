"""The endpoint of all verbs: a plain ASGI application, because a framework would cost more than the call to the store."""

import asyncio
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, get_type_hints

import msgspec
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from holdfast.commands.admin import Info
from holdfast.commands.leases import Popped, Settlement
from holdfast.console.masking import Mask
from holdfast.models import JobFacts
from holdfast.release import VERSION
from holdfast.text import one_line
from holdfast.web.auth import Authentication
from holdfast.web.gate import GateRefusal, refused_by, request_name
from holdfast.web.gateway.calling import Caller, GatewayCall
from holdfast.web.gateway.exceptions import NAMED_RESULTS
from holdfast.web.gateway.flows import FlowHandle, FlowMember
from holdfast.web.gateway.problems import Problem, response_to
from holdfast.web.gateway.repeats import HEADER as KEY
from holdfast.web.gateway.repeats import checked_key
from holdfast.web.gateway.results import Ended, LeasedJob, RefusedJob, Settled, encode
from holdfast.web.gateway.verbs import Verb, verbs
from holdfast.web.namespaces import HEADER as NAMESPACE
from holdfast.web.namespaces import NamespaceNotAllowed, Namespaces
from holdfast.web.options import Options
from holdfast.web.parts import place_of
from holdfast.web.schemas import Schema, Schemas
from holdfast.web.users import User

# The OpenAPI description of the gateway, made of the table of verbs.

_REF: Final = "#/components/schemas/{name}"
_RESULT_REF: Final = "#/components/schemas/Result.{name}"
_INFO: Final = (
    "Holdfast's verbs for programs in any language: a JSON object in, an object with `result` out. Times are in seconds since 1970, "
    "durations in seconds. Data and results of jobs are any JSON values, stored as they are written."
)
_ERRORS: Final[Mapping[str, str]] = {
    "400": "The request is malformed; the title names the field.",
    "401": "No token, or a wrong one.",
    "403": "The token's role, queues or namespaces do not allow this.",
    "404": "No such verb, or no such job.",
    "409": "Refused: the lease is lost, or the current state does not allow this.",
    "413": "The body, or the data of a job, is too large.",
    "415": "The body is not JSON.",
    "422": "A different request was sent with this Idempotency-Key.",
    "429": "A limit is reached; retry after the number of seconds in Retry-After.",
    "503": "The store does not respond, or is full; retry after the number of seconds in Retry-After.",
}
_AGAIN: Final = ("429", "503")
_PROBLEM: Final[Schema] = {
    "type": "object",
    "description": "A problem document (RFC 9457). `type` is stable, `code` is that of the core, if it has one.",
    "required": ["type", "title", "status", "request"],
    "properties": {
        "type": {"type": "string", "examples": ["holdfast:lease-lost"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "request": {"type": "string"},
        "code": {"type": "string", "examples": ["HF_LEASE_LOST"]},
    },
}
_HEADER_SCHEMAS: Final[Mapping[str, Schema]] = {
    "namespace": {
        "name": NAMESPACE,
        "in": "header",
        "description": "A namespace other than that of the application; the token or the application must allow it.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[\w.-]+$"},
    },
    "key": {
        "name": KEY,
        "in": "header",
        "description": "Any text. A repeat with it within a minute returns what the first request did, and does nothing twice. Another put with it is refused.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    },
}


@cache
def description() -> Mapping[str, Any]:
    """Return the OpenAPI 3.1 document, without `servers`."""
    table = verbs().values()
    kinds = [kind for verb in table for kind in (verb.request, verb.batch) if kind is not None]
    bodies, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schemas = Schemas(_RESULT_REF)
    refused = schemas.of_type(RefusedJob)
    body_of = dict(zip(kinds, bodies, strict=True))
    paths = {f"/{verb.name}": {"post": _operation(verb, body_of, schemas, refused)} for verb in table}
    results = {f"Result.{name}": schema for name, schema in schemas.components.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "holdfast gateway", "version": VERSION, "description": _INFO},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": {**components, **results, "Problem": _PROBLEM},
            "parameters": dict(_HEADER_SCHEMAS),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    verb: Verb, bodies: Mapping[type[msgspec.Struct], Schema], schemas: Schemas, refused: Schema
) -> Schema:
    body, result = bodies[verb.request], _result(verb, schemas)
    if verb.batch is not None:
        body = {"anyOf": [body, bodies[verb.batch]]}
        result = {"anyOf": [result, {"type": "array", "items": {"anyOf": [result, refused]}}]}
    return {
        "operationId": verb.name,
        "summary": verb.summary,
        "parameters": [
            {"$ref": f"#/components/parameters/{name}"}
            for name in _HEADER_SCHEMAS
            if name != "key" or not verb.reads
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": _ok(result), **{status: _problem(status) for status in _ERRORS}},
    }


def _result(verb: Verb, schemas: Schemas) -> Schema:
    kind = get_type_hints(getattr(verb.kind, "read"))["return"]  # noqa: B009
    if verb.name == "heartbeat":
        return {"type": "number"}
    if verb.name == "await":
        return {"type": "array", "items": schemas.of_type(Ended)}
    if verb.name == "flow_put":
        return schemas.of_type(FlowHandle)
    if verb.name == "flow_steps":
        return {"type": "array", "items": schemas.of_type(FlowMember)}
    if kind is Popped or verb.name == "resume":
        return {"type": "array", "items": schemas.of_type(LeasedJob)}
    if kind is Settlement:
        return schemas.of_type(Settled)
    if kind == list[JobFacts | None]:
        return {"type": "array", "items": {"type": ["object", "null"]}}
    found = schemas.of_type(kind)
    if verb.name in NAMED_RESULTS:
        names = NAMED_RESULTS[verb.name]
        parts = dict(zip(names, found["prefixItems"], strict=True))
        return {"type": "object", "required": list(names), "properties": parts}
    return found


def _ok(result: Schema) -> Schema:
    schema = {"type": "object", "required": ["result"], "properties": {"result": result}}
    return {"description": "What the verb returns.", "content": {"application/json": {"schema": schema}}}


def _problem(status: str) -> Schema:
    found: Schema = {
        "description": _ERRORS[status],
        "content": {"application/problem+json": {"schema": {"$ref": _REF.format(name="Problem")}}},
    }
    if status in _AGAIN:
        found["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return found


MOST_BYTES: Final = 8 << 20
"""The largest body of a request: a job may have a megabyte of data, and a batch several jobs."""
_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


_NAMESPACE, _KEY = NAMESPACE.lower(), KEY.lower()


class Gateway:
    """The ASGI application of `/v1`."""

    def __init__(self, namespaces: Namespaces, options: Options, auth: Authentication) -> None:
        self._namespaces, self._options, self._auth = namespaces, options, auth
        self._verbs = verbs()
        self._caller = Caller(Mask(options.redact))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        scope["holdfast.request"] = request_name()
        headers = _headers(scope)
        refused = refused_by(self._options, scope, headers, MOST_BYTES)
        if refused is None:
            try:
                content = await self._content(scope, headers, receive)
            except Exception as error:
                refused = response_to(scope, error)
            else:
                await _send(send, content)
                return
        await refused(scope, receive, send)

    async def _content(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> bytes:
        """Return the body of the response. Raises Problem, HoldfastError."""
        if scope["method"] == "GET" and place_of(scope) == "/v1/health":  # probes have no user
            await self._namespaces.own.run(Info())
            return encode({"store": "ok"})
        connection = HTTPConnection(scope)
        user = await self._auth.user(connection)
        if user is None:
            raise GateRefusal(self._auth.refused(connection))
        if scope["method"] == "GET" and place_of(scope) == "/v1/openapi.json":
            return encode({**description(), "servers": [{"url": f"{scope.get('root_path', '')}/v1"}]})
        verb = self._verb(scope)
        self._check_rights(verb, user)
        try:
            client = self._namespaces.chosen(user, headers.get(_NAMESPACE, ""))
        except NamespaceNotAllowed as refused:
            raise Problem(403, "forbidden", str(refused)) from None
        body = await _body(receive)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and (body or kind):
            raise Problem(415, "not-json", "The body must be JSON, with Content-Type: application/json.")
        call = GatewayCall(verb, user, client, verb.read(body or b"{}"), checked_key(headers.get(_KEY)))
        if getattr(call.request, "wait", 0):
            result = await self._unless_gone(call, receive)
        else:
            result = await self._caller.result(call)
        return encode({"result": result})

    async def _unless_gone(self, call: GatewayCall, receive: Receive) -> Any:
        """Return the result of a request that waits, unless the client disconnects first. Raises Problem then."""
        working = asyncio.ensure_future(self._caller.result(call))
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not leaving.done():
                return working.result()
        except asyncio.CancelledError:
            self._abandon(call, working)
            raise
        finally:
            leaving.cancel()
        self._abandon(call, working)
        raise Problem(400, "bad-request", "The client has disconnected.")

    def _abandon(self, call: GatewayCall, working: "asyncio.Future[Any]") -> None:
        """End a request whose client has gone, and give back the jobs that it has leased or leases meanwhile."""
        working.cancel()
        working.add_done_callback(lambda one: one.cancelled() or one.exception())
        self._caller.give_back(call)

    def _verb(self, scope: Scope) -> Verb:
        name = place_of(scope).removeprefix("/v1/")
        found = self._verbs.get(name)
        if found is None:
            raise Problem(404, "unknown-verb", _unknown(name, tuple(self._verbs)))
        if scope["method"] != "POST":
            raise Problem(405, "method-not-allowed", "Call a verb with POST.", Allow="POST")
        return found

    def _check_rights(self, verb: Verb, user: User) -> None:
        if self._options.read_only and not verb.reads and verb.name != "info":
            raise Problem(403, "forbidden", "This application is read-only.")
        if not all(user.may_call(function) for function in verb.functions):
            name = one_line(user.name)[:100]
            raise Problem(
                403, "forbidden", f"{name!r} has the role {user.role}, which may not call {verb.name}."
            )

    def limit_waits(self, most: int) -> None:
        """Lower the largest number of requests that wait at the same time."""
        self._caller.limit_waits(most)

    def end_waits(self) -> None:
        """End the requests that wait, with no jobs."""
        self._caller.end_waits()

    async def close(self) -> None:
        """End the waits of this gateway, and finish the calls under way."""
        await self._caller.close()


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by name in lower case; of repeated headers the first."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return found


async def _send(send: Send, content: bytes) -> None:
    headers = [*_HEADERS, (b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _unknown(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name[:100], known, 1)
    advice = f"did you mean {close[0]!r}?" if close else "GET /v1/openapi.json describes them."
    return f"There is no verb {one_line(name)[:100]!r}; {advice}"


async def _body(receive: Receive) -> bytes:
    """Return the whole body. Raises Problem if it is too large, or the connection ended before."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Problem(400, "bad-request", "The connection was closed before the whole body had arrived.")
        part: bytes = message.get("body", b"")
        parts.append(part)
        size, more = size + len(part), message.get("more_body", False)
        if size > MOST_BYTES:
            raise Problem(413, "too-large", f"The body is larger than {MOST_BYTES:,} bytes.")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _disconnected(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
